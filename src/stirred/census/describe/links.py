"""Find which records belong to which: the household column of a person file, and households inside a person file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from stirred.census.describe.columns import (
    HOUSEHOLD_ID_NAMES,
    ID_NAMES,
    MEASURE_NAMES,
    PERSON_ID_NAMES,
    PERSON_NUMBER_NAMES,
    PERSONAL_NAMES,
    PLACE_NAMES,
    SIZE_NAMES,
    ColumnFacts,
    ColumnRoles,
    Sheet,
    empty_to_null,
    find_facts,
    list_survey_keys,
)
from stirred.census.records import PERSONS, group_households
from stirred.census.variables import cast_loosely, join_texts, normalise_digits
from stirred.frames import collect_frame

MAX_PERSONS_PER_HOUSEHOLD = 30  # persons per household on average; more would be areas
TEXT_TYPE = pl.String()


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


def add_survey_keys(sheet: Sheet) -> Sheet:
    """Return the sheet with one more column for each key of several columns that its survey layout has.

    Columns with one value tell nothing apart and are no part of a key; a column that tells the same households apart
    is enough by itself.
    """
    columns = {name.lower(): facts for name, facts in sheet.columns.items() if facts.may_be_code}
    known = (key for key in list_survey_keys() if all(part in columns for part in key))
    parts = [facts for facts in (columns[part] for part in next(known, ())) if facts.distinct > 1]
    home = sheet
    if len(parts) > 1:
        home = _add_key(sheet, parts)
        key = home.columns[home.home_key]
        alone = [
            facts
            for facts in sheet.match_names(HOUSEHOLD_ID_NAMES)
            if facts not in parts and facts.may_be_code and not PERSON_NUMBER_NAMES.search(facts.name)
        ]
        if any(_is_as_fine(home, facts, key) for facts in alone):
            home, parts = sheet, []
    if not parts:
        parts = [
            facts
            for facts in sheet.match_names(HOUSEHOLD_ID_NAMES)
            if facts.may_be_code and not facts.unique and facts.distinct > 1
        ][:1]
    like = [*sheet.match_names(PERSON_NUMBER_NAMES), *sheet.match_names(PERSON_ID_NAMES)]
    number = next((facts for facts in like if facts.may_be_code and not facts.unique), None)
    if number is None or not parts or number in parts:
        return home
    person = _add_key(home, [*parts, number])
    if person.columns[person.home_key].unique:  # the key that was added last
        return replace(person, home_key=home.home_key)
    return home


def _add_key(sheet: Sheet, parts: Sequence[ColumnFacts]) -> Sheet:
    name = "+".join(facts.name for facts in parts)
    frame = sheet.frame.with_columns(join_texts(_read_text(facts) for facts in parts).alias(name))
    _, made = find_facts(frame.select(name))
    keys = {**sheet.keys, name: tuple(facts.name for facts in parts)}
    return replace(sheet, frame=frame, columns={**sheet.columns, **made}, keys=keys, home_key=name)


def _is_as_fine(sheet: Sheet, facts: ColumnFacts, key: ColumnFacts) -> bool:
    """Return whether a column tells all records apart that a key does."""
    if facts.unique:
        return True
    values = [pl.col(facts.name).n_unique(), pl.struct(facts.name, key.name).n_unique().alias("\x00both")]
    row = collect_frame(sheet.frame.select(*values, pl.col(key.name).n_unique()), streaming=True).row(0)
    return bool(row[0] == row[1] == row[2])


def names_household(sheet: Sheet, column: str) -> bool:
    """Return whether a column is named like one that tells households apart."""
    if column in sheet.keys:
        return column == sheet.home_key
    return bool(HOUSEHOLD_ID_NAMES.search(column))


def find_links(sheets: Sequence[Sheet], roles: Sequence[ColumnRoles]) -> list[FoundLink]:
    """Return the best link of each file to another one, by inclusion of values and likeness of names."""
    found = []
    for persons, sheet in enumerate(sheets):
        options = [
            (score, FoundLink(home=home, persons=persons, column=facts.name, why=why))
            for home, other in enumerate(sheets)
            if home != persons and roles[home].id and _may_be_home(sheets, roles, home, persons)
            for facts in sheet.columns.values()
            for score, why in _score_link(other, roles[home].id, sheet, facts)
        ]
        if options:
            found.append(max(options, key=lambda option: option[0])[1])
    homes = {link.home for link in found}
    return [link for link in found if link.persons not in homes]


def _may_be_home(sheets: Sequence[Sheet], roles: Sequence[ColumnRoles], home: int, persons: int) -> bool:
    """Return whether one file may hold the households of the other; files with one identifier may not."""
    called = sheets[home].name, sheets[persons].name
    if called == ("household", "person"):
        return True
    return called != ("person", "household") and (
        not roles[persons].id or roles[persons].id != roles[home].id
    )


def _score_link(
    home: Sheet, identifier: str, persons: Sheet, facts: ColumnFacts
) -> list[tuple[tuple[int, float], str]]:
    """Return the score of a link and its reason, or nothing: names alike, or nearly all identifiers occur."""
    if not facts.may_be_code or not persons.rows or not home.rows:
        same = facts.name.lower() == identifier.lower()
        return [((2, 0.0), "the same name")] if same and facts.may_be_code else []
    same = facts.name.lower() == identifier.lower()
    like = names_household(persons, facts.name)
    if not (same or like) and not 0.9 <= facts.distinct / home.rows <= 1.1:
        return []
    here = persons.frame.select(_read_text(facts).alias("id")).drop_nulls().unique()
    there = home.frame.select(_read_text(home.columns[identifier]).alias("id"))
    matched = here.join(there, on="id", how="semi")
    both = [collect_frame(frame.select(pl.len()), streaming=True).item() for frame in (here, matched)]
    values, known = int(both[0]), int(both[1])
    if not known:
        return []
    if same and known >= values / 2:
        rest = "" if known == values else "; not decided what records without a household are"
        return [((2, known / values), f"the same name, its values are identifiers of the other file{rest}")]
    if known == values and (like or known >= 0.9 * home.rows):
        return [((1 if like else 0, known / home.rows), "its values are identifiers of the other file")]
    return []


def _read_text(facts: ColumnFacts) -> pl.Expr:
    value = pl.col(facts.name)
    value = value.cast(TEXT_TYPE) if isinstance(facts.dtype, pl.Categorical | pl.Enum) else value
    text = cast_loosely(value, facts.dtype, TEXT_TYPE)
    text = normalise_digits(text) if facts.shape == "whole" else text
    return pl.when(text != "").then(text)


def size_agrees(home: Sheet, roles: ColumnRoles, persons: Sheet, column: str) -> bool:
    """Return whether the size of every household is the number of its persons."""
    key, size = _read_text(home.columns[roles.id]).alias("id"), home.columns[roles.size]
    number = empty_to_null(pl.col(size.name), size.dtype).cast(pl.Float64, strict=False).fill_null(-1.0)
    counted = persons.frame.select(_read_text(persons.columns[column]).alias("id")).group_by("id").len()
    both = home.frame.select(key, number.alias("size")).join(counted, on="id", how="left")
    agrees = (pl.col("size") == pl.col("len").fill_null(0)).all()
    return bool(collect_frame(both.select(agrees), streaming=True).item())


def find_flat_households(sheet: Sheet, roles: ColumnRoles) -> FlatFile | None:
    """Return the households inside a person file: the records of one key agree in some columns."""
    if not sheet.rows or (roles.id and names_household(sheet, roles.id)):
        return None
    keys = [
        facts
        for facts in sheet.columns.values()
        if names_household(sheet, facts.name) and _may_group(facts, sheet.rows, MAX_PERSONS_PER_HOUSEHOLD)
    ]
    for key in sorted(keys, key=lambda facts: (facts.name != sheet.home_key, -facts.distinct)):
        parts = {part for part in sheet.keys.get(key.name, ()) if not PLACE_NAMES.search(part)}
        rest = [
            name
            for name, facts in sheet.columns.items()
            if name not in {key.name, *parts, *sheet.keys} and facts.shape != "other"
        ]
        made = group_households(sheet.frame, key.name, rest)
        constant = [name for name in rest if name not in made.uneven]
        if any(sheet.columns[name].distinct > 1 for name in constant):
            frame = made.frame.lazy()
            sizes = {
                facts.name: _size_matches(made.frame, facts.name)
                for facts in sheet.match_names(SIZE_NAMES)
                if facts.name in constant and facts.shape == "whole"
            }
            rows, columns = find_facts(frame.select(key.name, *constant))
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


def list_key_candidates(sheet: Sheet, roles: ColumnRoles) -> list[str]:
    """Return columns of a person file that may tell households apart, though no name says so."""
    if not sheet.has_enough_rows or not sheet.match_names(PERSONAL_NAMES):
        return []
    return [
        facts.name
        for facts in sheet.columns.values()
        if facts.name not in roles.special_columns
        and (HOUSEHOLD_ID_NAMES.search(facts.name) or ID_NAMES.search(facts.name) or facts.distinct > 1000)
        and not PLACE_NAMES.search(facts.name)
        and not MEASURE_NAMES.search(facts.name)
        and _may_group(facts, sheet.rows, 8)
        and sheet.rows >= 1.2 * facts.distinct
    ]


def _may_group(facts: ColumnFacts, rows: int, most: int) -> bool:
    able = facts.may_be_code and not facts.unique and facts.empty <= rows // 20 and facts.distinct > 1
    return able and rows <= facts.distinct * most


def _size_matches(homes: pl.DataFrame, size: str) -> bool:
    number = pl.col(size).cast(pl.Float64, strict=False)
    return bool(homes.select((number == pl.col(PERSONS)).all()).item())
