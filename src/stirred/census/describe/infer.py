"""Guess a census.toml from files or tables: record types, identifiers, links, geography and variables."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from stirred._support import import_optional
from stirred.census.describe.columns import (
    HOUSEHOLD_ID_NAMES,
    ID_NAMES,
    MEASURE_NAMES,
    PERSON_ID_NAMES,
    PERSON_NUMBER_NAMES,
    PERSONAL_NAMES,
    PLACE_NAMES,
    RECORD_TYPE_NAMES,
    SIZE_NAMES,
    ColumnFacts,
    ColumnRoles,
    Sheet,
    empty_to_null,
    find_facts,
    find_roles,
    list_survey_keys,
)
from stirred.census.describe.document import Description
from stirred.census.describe.entries import RecordGuess, write_geography, write_record
from stirred.census.progress import Progress, silent
from stirred.census.readers import delimited, open_source, statistical, workbook
from stirred.census.readers.sources import (
    COMPRESSION_OF_ENDING,
    find_format,
    redact_errors,
    require_lines,
    resolve_files,
)
from stirred.census.records import PERSONS, group_households
from stirred.census.schema import Source
from stirred.census.variables import cast_loosely, join_texts, normalise_digits
from stirred.errors import InputError
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


# Read codes and labels from a file's own codebook: metadata that does not come from the records.

Codebook = dict[str, dict[str | int, str]]  # column → code → label


def read_codebook(source: Source, folder: Path) -> Codebook:
    """Return value labels of SPSS, Stata and SAS files, or codes of IPUMS codebooks; nothing for other files."""
    kind = find_format(source, folder)
    if kind == "stat":
        return _read_labels(resolve_files(source.files, folder, tuple(statistical.STAT_READERS))[0])
    if kind == "ipums":
        book = statistical.read_ddi(source, folder)
        return {
            v.name: {code: label for label, code in v.codes.items()} for v in book.data_description if v.codes
        }
    return {}


def _read_labels(path: Path) -> Codebook:
    library = import_optional("pyreadstat", "stat", why="SPSS, Stata and SAS files are read with it")
    _, meta = getattr(library, statistical.STAT_READERS[path.suffix.lower()])(
        path, metadataonly=True, output_format="dict"
    )
    found: Codebook = {}
    for column, labels in meta.variable_value_labels.items():
        found[column] = {_clean_code(code): str(label) for code, label in labels.items()}
    return found


def _clean_code(code: object) -> str | int:
    return int(code) if isinstance(code, int | float) and float(code).is_integer() else str(code)


# Guess from files or tables the record types, identifiers, links, geography, and the kind of each variable.


def describe(
    files: Sequence[str],
    *,
    folder: Path | None = None,
    confidential: bool = False,
    ddi: str = "",
    format: str = "",  # noqa: A002 — the key of census.toml
    tables: Sequence[str] = (),
    sheets: Sequence[str] = (),
    progress: Progress | None = None,
) -> Description:
    """Return a document of the shape of census.toml for files: record types, links, geography and variables.

    Levels, ranges and counts are taken from the records only with ``confidential``; otherwise only the names of
    columns, their types and their roles are shown. Codes of a codebook are metadata and always shown.
    ``format`` is that of all files, where their names do not tell it; of a database each of ``tables`` is a record
    type, of a workbook each of ``sheets``.
    """
    report = progress or silent
    where = folder or Path()
    sources = [source for name in files for source in _list_sources(name, where, ddi, format, tables, sheets)]
    if (tables and not any(source.table for source in sources)) or (
        sheets and not any(source.sheet for source in sources)
    ):
        raise InputError(
            "a table or a sheet was named for files that have none",
            why="tables are of DuckDB databases and IPUMS extracts, sheets of Excel workbooks",
            fix="leave out --table or --sheet, or check the files",
        )
    found, stems, guesses = [], [], []
    for done, source in enumerate(sources):
        name, stem = source.files[0], _find_stem(source.table or source.sheet or source.files[0])
        report(Path(name).name, done, len(sources) + 1)
        with redact_errors(stem):
            frame = open_source(source, where)
            rows, columns = find_facts(frame)
            comma = any(facts.comma for facts in columns.values())
            source = replace(source, decimal="," if comma else ".")
            labels = read_codebook(source, where)
        if source.header_row > 1:
            guesses.append(f"{Path(name).name}: the names of the columns stand in row {source.header_row}")
        sheet = Sheet(name=_match_record_type(stem), frame=frame, rows=rows, columns=columns)
        found.append(replace(sheet, source=source, labels=labels))
        stems.append(stem)
    report("structure", len(sources), len(sources) + 1)
    with redact_errors("described"):
        result = compose_document(found, stems, confidential=confidential, guesses=guesses, banded=True)
    report("done", len(sources) + 1, len(sources) + 1)
    return result


def _list_sources(
    name: str, folder: Path, ddi: str, asked: str, tables: Sequence[str], sheets: Sequence[str]
) -> list[Source]:
    """Return the ways to read a file: one, or one for each of its tables or sheets that were named."""
    plain = Source(files=(name,), ddi=ddi, format=asked)
    kind = find_format(plain, folder)
    source = replace(plain, format="" if not asked and _has_known_ending(name) else kind)
    if kind == "csv":
        return [replace(source, encoding=_find_encoding(source, folder))]
    if kind in ("duckdb", "ipums") and tables:
        return [replace(source, table=table) for table in tables]
    if kind == "xlsx":
        chosen = [replace(source, sheet=sheet) for sheet in sheets] or [source]
        return [replace(one, header_row=workbook.find_header_row(one, folder)) for one in chosen]
    return [source]


def describe_tables(tables: Mapping[str, pl.LazyFrame], *, confidential: bool = False) -> Description:
    """Return the document for tables in memory; a table without a name is named by its columns."""
    sheets = []
    for name, frame in tables.items():
        with redact_errors(name or "described"):
            rows, columns = find_facts(frame)
        sheets.append(Sheet(name=name, frame=frame, rows=rows, columns=columns))
    with redact_errors("described"):
        return compose_document(sheets, list(tables), confidential=confidential)


def compose_document(
    sheets: Sequence[Sheet],
    stems: Sequence[str],
    *,
    confidential: bool,
    guesses: Sequence[str] = (),
    banded: bool = False,
) -> Description:
    """Return the document for sheets with known facts; ``guesses`` were made when the files were opened.

    With ``banded`` numbers are coarsened, and columns that single out records are left out, so that a release made of the
    document as it stands passes the guards. Tables in memory are taken as they are.
    """
    sheets = [add_survey_keys(sheet) for sheet in sheets]
    roles = [find_roles(sheet) for sheet in sheets]
    links = {link.persons: link for link in find_links(sheets, roles)}
    homes = {link.home for link in links.values()}
    for link in links.values():
        home = roles[link.home]
        if home.size and not size_agrees(sheets[link.home], home, sheets[link.persons], link.column):
            home.size = home.why["size"] = ""  # it is a variable: top-coded, or of another time
    flats: dict[int, FlatFile] = {}
    for index, sheet in enumerate(sheets):
        flat = None if links or index in homes else find_flat_households(sheet, roles[index])
        if flat is not None:
            flats[index] = flat
    called = _name_record_types(sheets, stems, homes, set(links), set(flats))
    parts: list[RecordGuess] = []
    for index, sheet in enumerate(sheets):
        if index in flats:
            parts += _split_flat_file(replace(sheet, name=called[index]), flats[index], taken=called)
            continue
        part = RecordGuess(sheet=replace(sheet, name=called[index]), roles=roles[index])
        if index in links:
            link = links[index]
            part = RecordGuess(
                sheet=part.sheet, roles=find_roles(sheet, link=link.column), of=called[link.home]
            )
            part.roles.why["household"] = link.why
        else:
            for name in list_key_candidates(sheet, part.roles):
                part.roles.leave_out[name] = (
                    "many records share a value, as persons of a household do; not decided: "
                    f'if it is the household, set household_from = "{name}"'
                )
        parts.append(part)
    told = list(guesses)
    geography, areas = write_geography(parts, told)
    records = {
        part.name: write_record(part, areas, told, confidential=confidential, banded=banded) for part in parts
    }
    document = {"format": 1, "name": "census", **({"geography": geography} if geography else {})}
    return Description({**document, "record": records}, guesses=told)


def _split_flat_file(sheet: Sheet, flat: FlatFile, *, taken: Sequence[str]) -> list[RecordGuess]:
    """Return the two record types of a person file that holds households."""
    home = find_roles(replace(flat.homes, source=sheet.source))
    home.id, home.household_from = "", flat.key
    home.why = {
        **{role: why for role, why in home.why.items() if role != "id"},
        "household_from": "records with one value agree in the columns below",
    }
    home.leave_out.pop(flat.key, None)
    if home.size and not flat.sizes.get(home.size, False):
        home.size = ""  # it does not count the persons: a variable
        home.why.pop("size", None)
    if not home.size and "size" not in sheet.columns:
        home.size, home.why["size"] = "size", "no column of the file: the persons are counted"
    own = replace(sheet, columns={name: sheet.columns[name] for name in (flat.key, *flat.own)})
    person = find_roles(own, link=flat.key)
    person.why["household"] = "the households are made from it"
    name = "household" if "household" not in taken else _find_free_name("household", taken)
    households = replace(flat.homes, name=name, source=sheet.source)
    return [RecordGuess(sheet=households, roles=home), RecordGuess(sheet=own, roles=person, of=name)]


def _name_record_types(
    sheets: Sequence[Sheet], stems: Sequence[str], homes: set[int], persons: set[int], flats: set[int]
) -> list[str]:
    called: list[str] = []
    for index, sheet in enumerate(sheets):
        if index in flats:
            guess = "person" if sheet.name in ("", "household") else sheet.name
        elif sheet.name:
            guess = sheet.name
        elif index in homes:
            guess = "household"
        elif index in persons:
            guess = "person"
        elif len(sheets) == 1:
            guess = "person" if sheet.match_names(PERSONAL_NAMES) else "household"
        else:
            guess = stems[index] or "record"
        called.append(guess if guess not in called else _find_free_name(guess, called))
    return called


def _find_free_name(name: str, taken: Sequence[str]) -> str:
    return next(f"{name}_{number}" for number in range(2, 1000) if f"{name}_{number}" not in taken)


def _find_stem(name: str) -> str:
    return re.sub(r"[*?\[\]]", "", Path(name).name.split(".")[0]) or "record"


def _match_record_type(stem: str) -> str:
    return next((kind for kind, pattern in RECORD_TYPE_NAMES if pattern.search(stem)), "")


def _has_known_ending(name: str) -> bool:
    return Path(name).suffix.lower() in (
        ".parquet",
        ".csv",
        ".sav",
        ".dta",
        ".duckdb",
        ".arrow",
        ".tsv",
        ".xlsx",
    )


def _find_encoding(source: Source, folder: Path) -> str:
    paths = resolve_files(source.files, folder, delimited.TEXT_ENDINGS)
    for path in paths:
        require_lines(path)
    plain = [path for path in paths if path.suffix not in COMPRESSION_OF_ENDING]
    return "latin1" if any(delimited.find_encoding(path) == "latin1" for path in plain) else "utf8"
