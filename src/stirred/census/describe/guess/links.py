"""Find which records belong to which: the household column of a person file, and households inside a person file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from stirred.census.canonical import joined
from stirred.census.codebook.typed import loosely, plain
from stirred.census.describe.guess import names
from stirred.census.describe.guess.facts import ColumnFacts, Sheet, as_text, facts_of
from stirred.census.describe.guess.roles import ColumnRoles
from stirred.census.flat import PERSONS, grouped
from stirred.frames import collected

MOST = 30  # persons per household on average; more would be areas
TEXT = pl.String()


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundLink:
    """A column of one file that holds the identifiers of another."""

    home: int
    persons: int
    column: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FlatFile:
    """A person file that holds households: its key, the households as a sheet, and the persons' own columns."""

    key: str
    homes: Sheet
    own: tuple[str, ...]
    sizes: Mapping[str, bool]  # column → whether it is the number of persons


def with_keys(sheet: Sheet) -> Sheet:
    """The sheet with the keys of several columns that surveys of its layout have, each as one more column.

    Columns with one value tell nothing apart and are no part of a key; a column that tells the same households apart
    is enough by itself.
    """
    columns = {name.lower(): facts for name, facts in sheet.columns.items() if facts.coded}
    known = (key for key in names.keys_known() if all(part in columns for part in key))
    parts = [facts for facts in (columns[part] for part in next(known, ())) if facts.distinct > 1]
    home = sheet
    if len(parts) > 1:
        home = _with_key(sheet, parts)
        key = home.columns[home.home_key]
        alone = [
            facts
            for facts in sheet.matching(names.HOUSEHOLD_ID)
            if facts not in parts and facts.coded and not names.PERSON_NUMBER.search(facts.name)
        ]
        if any(_as_fine(home, facts, key) for facts in alone):
            home, parts = sheet, []
    if not parts:
        parts = [
            facts
            for facts in sheet.matching(names.HOUSEHOLD_ID)
            if facts.coded and not facts.unique and facts.distinct > 1
        ][:1]
    like = [*sheet.matching(names.PERSON_NUMBER), *sheet.matching(names.PERSON_ID)]
    number = next((facts for facts in like if facts.coded and not facts.unique), None)
    if number is None or not parts or number in parts:
        return home
    person = _with_key(home, [*parts, number])
    if person.columns[person.home_key].unique:  # the key that was added last
        return replace(person, home_key=home.home_key)
    return home


def _with_key(sheet: Sheet, parts: Sequence[ColumnFacts]) -> Sheet:
    name = "+".join(facts.name for facts in parts)
    frame = sheet.frame.with_columns(joined(_text(facts) for facts in parts).alias(name))
    _, made = facts_of(frame.select(name))
    keys = {**sheet.keys, name: tuple(facts.name for facts in parts)}
    return replace(sheet, frame=frame, columns={**sheet.columns, **made}, keys=keys, home_key=name)


def _as_fine(sheet: Sheet, facts: ColumnFacts, key: ColumnFacts) -> bool:
    """Whether a column tells all records apart that a key does."""
    if facts.unique:
        return True
    values = [pl.col(facts.name).n_unique(), pl.struct(facts.name, key.name).n_unique().alias("\x00both")]
    row = collected(sheet.frame.select(*values, pl.col(key.name).n_unique()), streaming=True).row(0)
    return bool(row[0] == row[1] == row[2])


def names_household(sheet: Sheet, column: str) -> bool:
    """Whether a column is named like one that tells households apart."""
    if column in sheet.keys:
        return column == sheet.home_key
    return bool(names.HOUSEHOLD_ID.search(column))


def link_of(sheets: Sequence[Sheet], roles: Sequence[ColumnRoles]) -> list[FoundLink]:
    """For each file the best link to another one, by inclusion of its values and by likeness of names."""
    found = []
    for persons, sheet in enumerate(sheets):
        options = [
            (score, FoundLink(home=home, persons=persons, column=facts.name, why=why))
            for home, other in enumerate(sheets)
            if home != persons and roles[home].id and _may_be_home(sheets, roles, home, persons)
            for facts in sheet.columns.values()
            for score, why in _included(other, roles[home].id, sheet, facts)
        ]
        if options:
            found.append(max(options, key=lambda option: option[0])[1])
    homes = {link.home for link in found}
    return [link for link in found if link.persons not in homes]


def _may_be_home(sheets: Sequence[Sheet], roles: Sequence[ColumnRoles], home: int, persons: int) -> bool:
    """Two files with the same identifier are two parts of one record, unless their names say what they are."""
    called = sheets[home].name, sheets[persons].name
    if called == ("household", "person"):
        return True
    return called != ("person", "household") and (
        not roles[persons].id or roles[persons].id != roles[home].id
    )


def _included(
    home: Sheet, identifier: str, persons: Sheet, facts: ColumnFacts
) -> list[tuple[tuple[int, float], str]]:
    """The score of a link and its reason, or nothing: names alike, or nearly all identifiers occur."""
    if not facts.coded or not persons.rows or not home.rows:
        same = facts.name.lower() == identifier.lower()
        return [((2, 0.0), "the same name")] if same and facts.coded else []
    same = facts.name.lower() == identifier.lower()
    like = names_household(persons, facts.name)
    if not (same or like) and not 0.9 <= facts.distinct / home.rows <= 1.1:
        return []
    here = persons.frame.select(_text(facts).alias("id")).drop_nulls().unique()
    there = home.frame.select(_text(home.columns[identifier]).alias("id"))
    matched = here.join(there, on="id", how="semi")
    both = [collected(frame.select(pl.len()), streaming=True).item() for frame in (here, matched)]
    values, known = int(both[0]), int(both[1])
    if not known:
        return []
    if same and known >= values / 2:
        rest = "" if known == values else "; not decided what records without a household are"
        return [((2, known / values), f"the same name, its values are identifiers of the other file{rest}")]
    if known == values and (like or known >= 0.9 * home.rows):
        return [((1 if like else 0, known / home.rows), "its values are identifiers of the other file")]
    return []


def _text(facts: ColumnFacts) -> pl.Expr:
    value = pl.col(facts.name)
    value = value.cast(TEXT) if isinstance(facts.dtype, pl.Categorical | pl.Enum) else value
    text = loosely(value, facts.dtype, TEXT)
    text = plain(text) if facts.shape == "whole" else text
    return pl.when(text != "").then(text)


def size_agrees(home: Sheet, roles: ColumnRoles, persons: Sheet, column: str) -> bool:
    """Whether the size of every household is the number of its persons."""
    key, size = _text(home.columns[roles.id]).alias("id"), home.columns[roles.size]
    number = as_text(pl.col(size.name), size.dtype).cast(pl.Float64, strict=False).fill_null(-1.0)
    counted = persons.frame.select(_text(persons.columns[column]).alias("id")).group_by("id").len()
    both = home.frame.select(key, number.alias("size")).join(counted, on="id", how="left")
    agrees = (pl.col("size") == pl.col("len").fill_null(0)).all()
    return bool(collected(both.select(agrees), streaming=True).item())


def flat_of(sheet: Sheet, roles: ColumnRoles) -> FlatFile | None:
    """The households inside a person file: the records of one key agree in some columns."""
    if not sheet.rows or (roles.id and names_household(sheet, roles.id)):
        return None
    keys = [
        facts
        for facts in sheet.columns.values()
        if names_household(sheet, facts.name) and _groups(facts, sheet.rows, MOST)
    ]
    for key in sorted(keys, key=lambda facts: (facts.name != sheet.home_key, -facts.distinct)):
        parts = {part for part in sheet.keys.get(key.name, ()) if not names.PLACE.search(part)}
        rest = [
            name
            for name, facts in sheet.columns.items()
            if name not in {key.name, *parts, *sheet.keys} and facts.shape != "other"
        ]
        made = grouped(sheet.frame, key.name, rest)
        constant = [name for name in rest if name not in made.uneven]
        if any(sheet.columns[name].distinct > 1 for name in constant):
            frame = made.frame.lazy()
            sizes = {
                facts.name: _counts(made.frame, facts.name)
                for facts in sheet.matching(names.SIZE)
                if facts.name in constant and facts.shape == "whole"
            }
            rows, columns = facts_of(frame.select(key.name, *constant))
            homes = Sheet(
                name="household",
                frame=frame,
                rows=rows,
                columns=columns,
                labels=sheet.labels,
                keys={name: parts for name, parts in sheet.keys.items() if name == key.name},
                home_key=sheet.home_key,
            )
            own = tuple(name for name in sheet.columns if name not in {*constant, key.name, *parts})
            return FlatFile(key=key.name, homes=homes, own=own, sizes=sizes)
    return None


def looks_like_a_key(sheet: Sheet, roles: ColumnRoles) -> list[str]:
    """Columns of a person file that may tell households apart, though no name says so."""
    if not sheet.enough or not sheet.matching(names.PERSONAL):
        return []
    return [
        facts.name
        for facts in sheet.columns.values()
        if facts.name not in roles.taken
        and (names.HOUSEHOLD_ID.search(facts.name) or names.ID.search(facts.name) or facts.distinct > 1000)
        and not names.PLACE.search(facts.name)
        and not names.MEASURE.search(facts.name)
        and _groups(facts, sheet.rows, 8)
        and sheet.rows >= 1.2 * facts.distinct
    ]


def _groups(facts: ColumnFacts, rows: int, most: int) -> bool:
    able = facts.coded and not facts.unique and facts.empty <= rows // 20 and facts.distinct > 1
    return able and rows <= facts.distinct * most


def _counts(homes: pl.DataFrame, size: str) -> bool:
    number = pl.col(size).cast(pl.Float64, strict=False)
    return bool(homes.select((number == pl.col(PERSONS)).all()).item())
