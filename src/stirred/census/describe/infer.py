"""Guess a census.toml from files or tables: record types, identifiers, links, geography and variables."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from stirred._support import import_optional
from stirred.census.describe.columns import PERSONAL_NAMES, RECORD_TYPE_NAMES, Sheet, find_facts, find_roles
from stirred.census.describe.document import Description
from stirred.census.describe.entries import RecordGuess, write_geography, write_record
from stirred.census.describe.links import (
    FlatFile,
    add_survey_keys,
    find_flat_households,
    find_links,
    list_key_candidates,
    size_agrees,
)
from stirred.census.progress import Progress, silent
from stirred.census.readers import delimited, open_source, statistical, workbook
from stirred.census.readers.sources import (
    COMPRESSION_OF_ENDING,
    find_format,
    redact_errors,
    require_lines,
    resolve_files,
)
from stirred.census.schema import Source
from stirred.errors import InputError

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
