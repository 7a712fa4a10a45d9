"""Guess from files the record types, identifiers, links, geography, and the kind of each variable."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from stirred.census import presets
from stirred.census.census import redact_errors
from stirred.census.describe.codebooks import Codebook, codebook_of
from stirred.census.progress import Progress, silent
from stirred.census.readers import delimited, open_source
from stirred.census.readers.dispatch import format_of
from stirred.census.readers.paths import resolve
from stirred.census.schema import Source
from stirred.frames import collected

Document = dict[str, object]
FEW = 100  # a column with at most this many values is guessed to be a category
_ID = re.compile(r"(^|_)(id|serial|serialno|mafid|hhid|key)$|serial|household_id|_id$", re.IGNORECASE)
_SIZE = re.compile(r"^(size|persons|np|hh_?size|hhsz|hsize|numprec)$", re.IGNORECASE)
_WEIGHT = re.compile(r"(weight|wgt|wt)p?$|^(hhwt|perwt)$", re.IGNORECASE)
_CODE = re.compile(r"^geo(id|code)(10|20)?$", re.IGNORECASE)
_TYPES = (
    ("household", re.compile(r"house|home|unit|(^|_)hh", re.IGNORECASE)),
    ("person", re.compile(r"person|people|popul|individual", re.IGNORECASE)),
)


def describe(
    files: Sequence[str],
    *,
    folder: Path | None = None,
    confidential: bool = False,
    ddi: str = "",
    progress: Progress | None = None,
) -> Document:
    """A document of the shape of census.toml, one record type per file.

    Levels, ranges and counts are taken from the records only with ``confidential``; otherwise only the names of
    columns and their types are shown. Codes of a codebook are metadata and always shown.
    """
    report = progress or silent
    where = folder or Path()
    frames: dict[str, tuple[Source, pl.LazyFrame]] = {}
    for name in files:
        source = Source(files=(name,), ddi=ddi)
        kind = format_of(source, where)
        encoding = _encoding(source, where) if kind == "csv" else "utf8"
        source = Source(files=(name,), ddi=ddi, format="" if _obvious(name) else kind, encoding=encoding)
        record_type = _record_type(name, taken=frames)
        with redact_errors(record_type):
            frames[record_type] = (source, open_source(source, where))
    columns = {name: list(frame.collect_schema().names()) for name, (_, frame) in frames.items()}
    geography = _geography([name for names in columns.values() for name in names])
    records: Document = {}
    for done, (name, (source, frame)) in enumerate(frames.items()):
        report(f"{name} records", done, len(frames))
        with redact_errors(name):
            records[name] = _record(
                name, source, frame, geography, codebook_of(source, where), confidential=confidential
            )
    report("done", len(frames), len(frames))
    _link(records, columns)
    document: Document = {"format": 1, "name": "census"}
    if geography:
        document["geography"] = geography
    document["record"] = records
    return document


def _obvious(name: str) -> bool:
    return Path(name).suffix.lower() in (".parquet", ".csv", ".sav", ".dta", ".duckdb", ".arrow", ".tsv")


def _encoding(source: Source, folder: Path) -> str:
    plain = [
        path
        for path in resolve(source.files, folder, delimited.ENDINGS)
        if path.suffix not in (".gz", ".zst")
    ]
    return "latin1" if any(delimited.encoding_of(path) == "latin1" for path in plain) else "utf8"


def _record_type(name: str, taken: Mapping[str, object]) -> str:
    stem = re.sub(r"[*?\[\]]", "", Path(name).name.split(".")[0]) or "record"
    guess = next((kind for kind, pattern in _TYPES if pattern.search(stem)), stem)
    return (
        guess
        if guess not in taken
        else next(f"{guess}_{n}" for n in range(2, 1000) if f"{guess}_{n}" not in taken)
    )


def _geography(columns: list[str]) -> Document:
    lower = {name.lower(): name for name in columns}
    best: tuple[str, list[str]] = ("", [])
    for preset, levels in presets.SPINES.items():
        there = [level for level in levels if level in lower]
        if len(there) > len(best[1]):
            best = (preset, there)
    code = next((name for name in columns if _CODE.match(name)), "")
    if code and len(best[1]) < 3:
        return {"preset": "us", "code": code}
    renamed = {level: {"column": lower[level]} for level in best[1] if lower[level] != level}
    return {"spine": best[1], **({"level": renamed} if renamed else {})} if best[1] else {}


def _record(
    name: str,
    source: Source,
    frame: pl.LazyFrame,
    geography: Document,
    codebook: Codebook,
    *,
    confidential: bool,
) -> Document:
    schema = frame.collect_schema()
    facts = _facts(frame, schema, confidential=confidential)
    record: Document = {"files": list(source.files)}
    for key, value in (("format", source.format), ("ddi", source.ddi), ("encoding", source.encoding)):
        if value not in ("", "utf8"):
            record[key] = value
    identifier = _identifier(name, frame, schema, facts)
    if identifier:
        record["id"] = identifier
    for key, pattern in (("size", _SIZE), ("weight", _WEIGHT)):
        found = next((c for c in schema if pattern.search(c)), "")
        if found and (key == "weight" or name == "household"):
            record[key] = found
    if confidential:
        record["#"] = f"{facts['']:,} records"
    areas = _area_columns(geography)
    taken = set(presets.SPINES["us"]) if "code" in geography else set()
    variables: Document = {}
    for column, dtype in schema.items():
        if column in areas or column in (identifier, record.get("weight")):
            continue
        described = _variable(
            frame, column, dtype, facts, codebook.get(column, {}), confidential=confidential
        )
        # a column called county beside a code that gives the county is its name
        variables[f"{column}_name" if column in taken else column] = (
            {"column": column, **described} if column in taken else described
        )
    record["variables"] = variables
    return record


def _area_columns(geography: Document) -> set[str]:
    spine, levels = geography.get("spine", []), geography.get("level", {})
    assert isinstance(spine, list)
    assert isinstance(levels, dict)
    return {str(geography.get("code", "")), *spine, *(level["column"] for level in levels.values())}


def _facts(frame: pl.LazyFrame, schema: pl.Schema, *, confidential: bool) -> dict[str, int]:
    """Facts about the records: which text columns hold only whole numbers; with ``confidential``, counts of values."""
    text = [column for column, dtype in schema.items() if dtype == pl.String]
    asked = [
        (~_filled(pl.col(c)).str.contains(r"^(0|-?[1-9]\d*)$")).sum().alias(f"{c}\x00text") for c in text
    ]
    asked += [_filled(pl.col(c)).is_not_null().sum().alias(f"{c}\x00filled") for c in text]
    if confidential:
        asked.append(pl.len().alias(""))
        for column, dtype in schema.items():
            value = _filled(pl.col(column)) if dtype == pl.String else pl.col(column)
            asked.append(value.null_count().alias(f"{column}\x00null"))
            asked.append(value.approx_n_unique().alias(f"{column}\x00distinct"))
    if not asked:
        return {}
    result = collected(frame.select(asked), streaming=True)
    return {key: int(value) for key, value in result.row(0, named=True).items()}


def _filled(value: pl.Expr) -> pl.Expr:
    return pl.when(value != "").then(value)


def _identifier(name: str, frame: pl.LazyFrame, schema: pl.Schema, facts: Mapping[str, int]) -> str:
    """The column named like an identifier; with ``confidential`` it must also be unique."""
    for column, dtype in schema.items():
        if not (dtype.is_integer() or dtype == pl.String) or not _ID.search(column):
            continue
        if "" not in facts:
            if name != "person" or "person" in column.lower():
                return column
            continue
        exact = collected(frame.select(pl.col(column).n_unique()), streaming=True)
        if int(exact.item()) == facts[""]:
            return column
    return ""


def _variable(
    frame: pl.LazyFrame,
    column: str,
    dtype: pl.DataType,
    facts: Mapping[str, int],
    labels: Mapping[str | int, str],
    *,
    confidential: bool,
) -> Document:
    result: Document = {}
    if labels:
        codes = list(labels)
        result["levels"] = (
            codes if len({type(code) for code in codes}) == 1 else [str(code) for code in codes]
        )
        result["labels"] = {str(code): label for code, label in labels.items()}
        return result
    digits = facts.get(f"{column}\x00text", 1) == 0 and facts.get(f"{column}\x00filled", 0) > 0
    whole = dtype.is_integer() or digits
    result["type"] = "integer" if whole else "number" if dtype.is_float() else "text"
    if not confidential:
        return result
    empty = facts[f"{column}\x00null"]
    if empty:
        result["missing"] = "keep"
        result["#"] = f"{empty:,} empty"
    if dtype.is_float() or dtype.is_nested() or facts[f"{column}\x00distinct"] > FEW + FEW // 10:
        return result
    value = _filled(pl.col(column)).cast(pl.Int64) if digits else pl.col(column)
    found = collected(frame.select(value.drop_nulls().unique().sort()), streaming=True)
    values = [value for value in found.to_series().to_list() if value != ""]
    if not values or len(values) > FEW or not isinstance(values[0], int | str) or isinstance(values[0], bool):
        return result
    del result["type"]
    if isinstance(values[0], int) and len(values) > 2 and values[-1] - values[0] < 2 * len(values):
        result["range"] = f"{values[0]}..{values[-1]}"
    else:
        result["levels"] = values
    return result


def _link(records: Document, columns: Mapping[str, list[str]]) -> None:
    """Link persons to households when they have the household's identifier."""
    household = records.get("household")
    if not isinstance(household, dict) or "id" not in household:
        return
    identifier = household["id"]
    for name, record in records.items():
        if name != "household" and isinstance(record, dict) and identifier in columns[name]:
            record["household"] = identifier
            record.pop("id", None) if record.get("id") == identifier else None
            record["variables"].pop(identifier, None)
