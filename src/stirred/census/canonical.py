"""Give every value one form, whatever file it comes from: the number 7 is the same in CSV, Parquet, SPSS and pandas.

A text file has no types, SPSS has no whole numbers, and pandas turns whole numbers with gaps into decimals. The form of
a column decides the draw and the released bytes. The schema states it; where the schema leaves it open, the column
is read once:

- in a text file, whole numbers as they are usually written (7, never 07 or +7; 1e+05 as R does, 7.0) are whole numbers, and
  other numbers are numbers, unless the column holds identifiers or codes; a format with types keeps its text;
- decimals that are all whole become whole numbers; NaN is an empty value;
- truth values become the words true and false; dates become text as in 2020-04-01.
"""

from collections.abc import Collection, Iterable, Mapping

import polars as pl

from stirred.census.codebook.schema import Levels, RecordSchema, Schema
from stirred.census.codebook.typed import MAX_EXACT_FLOAT, normalise_digits
from stirred.errors import DataError, SchemaError, did_you_mean
from stirred.frames import collect_frame

WHOLE_PATTERN = r"^(0|-?[1-9][0-9]{0,17})$"
NUMBER_PATTERN = r"^-?(0|[1-9][0-9]{0,14})(\.[0-9]{1,15})?$"
TRUTH_LEVELS = ("true", "false")
MAX_INT64 = 2**63 - 1

Forms = Mapping[str, str]  # column → the form it takes


def open_columns(
    schema: Schema, record: RecordSchema, columns: pl.Schema
) -> tuple[list[str], frozenset[str]]:
    """Return the columns whose type the schema leaves open, and which of them hold identifiers or codes."""
    closed = {
        v.source
        for v in record.variables
        if v.kind in ("integer", "number")
        or (v.levels is not None and not _has_truth_levels(v.levels, columns.get(v.source)))
    }
    closed |= {name for name in (record.size, record.weight) if name}
    geography = schema.geography
    spine = {name for level in geography.spine for name in (level.columns or (level.name,))}
    closed |= spine if geography.typed_as else set()
    closed |= {record.kinds.column} if record.kinds is not None else set()
    parts = {name for _, names in record.keys for name in names}  # a key is made of values in their one form
    codes = {record.id, record.household, *parts, *spine}
    codes |= {off.column or off.name for off in geography.off_spine}
    return [name for name in columns.names() if name not in closed or name in parts], frozenset(codes)


def add_keys(schema: Schema, record: RecordSchema, frame: pl.LazyFrame) -> pl.LazyFrame:
    """Return the frame with one text column for each key of several columns; equal texts mean equal keys.

    The columns of a key are then dropped, unless the schema names one for something else. A key with an empty part is
    empty. A column that is there already was made before.

    >>> from stirred.census.codebook.parse import parse_schema
    >>> schema = parse_schema({"record": {"household": {"id": ["dwelling", "number"]}}})
    >>> homes = pl.LazyFrame({"dwelling": ["a", "a|1", None], "number": [1, 2, 3]})
    >>> add_keys(schema, schema.record("household"), homes).collect().to_series().to_list()
    ['a|1', 'a~11|2', None]
    """
    columns = frame.collect_schema()
    made = {name: parts for name, parts in record.keys if name not in columns}
    if not made:
        return frame
    for name, parts in made.items():
        for part in parts:
            if part not in columns:
                raise SchemaError(
                    f"the {record.name} file lacks {part}",
                    why=f"the key {name} is made of it",
                    fix=f"{part}: {did_you_mean(part, columns.names())}",
                )
    named = _named_beside_keys(schema, record)
    done = {part for parts in made.values() for part in parts} - named
    keys = [
        join_texts(pl.col(part).cast(pl.String) for part in parts).alias(name) for name, parts in made.items()
    ]
    return frame.with_columns(keys).drop(done)


def join_texts(parts: Iterable[pl.Expr]) -> pl.Expr:
    """Return texts as one text that is equal only where all of them are equal; empty where one of them is."""
    texts = list(parts)
    filled = pl.all_horizontal((text != "").fill_null(value=False) for text in texts)
    # the mark between parts is written in another way inside them, so that no two keys become one
    safe = [
        text.str.replace_all("~", "~0", literal=True).str.replace_all("|", "~1", literal=True)
        for text in texts
    ]
    return pl.when(filled).then(pl.concat_str(safe, separator="|"))


def _named_beside_keys(schema: Schema, record: RecordSchema) -> set[str]:
    """Return the columns that the schema uses for something else than keys of several columns."""
    geography = schema.geography
    named = {column for level in geography.spine for column in (level.columns or (level.name,))}
    named |= {off.column or off.name for off in geography.off_spine}
    named |= {name for variable in record.variables for name in (variable.source, variable.imputed)}
    named |= {name for name, _ in record.where}
    named |= {record.id, record.household, record.household_from, record.size, record.weight}
    return named | ({record.kinds.column} if record.kinds is not None else set())


def _has_truth_levels(levels: Levels, dtype: pl.DataType | None) -> bool:
    """Return whether a column may hold truth values and has the levels true and false."""
    return dtype in (pl.Boolean, pl.String) and set(TRUTH_LEVELS) <= set(levels)


def find_forms(
    frame: pl.LazyFrame, asked: Collection[str], codes: Collection[str], *, untyped: bool
) -> dict[str, str]:
    """Return the form of each open column, found in one pass over those whose type does not tell it.

    >>> frame = pl.LazyFrame({"id": ["1", "20"], "zip": ["01", "20"], "rent": ["1.5", ""], "n": [1.0, float("nan")]})
    >>> find_forms(frame, ["id", "zip", "rent", "n"], ["id", "zip"], untyped=True)
    {'id': 'whole', 'rent': 'number', 'n': 'whole'}
    """
    types = frame.collect_schema()
    found: dict[str, str] = {}
    tests: dict[tuple[str, str], pl.Expr] = {}
    for name in asked:
        dtype, value = types[name], pl.col(name)
        if dtype == pl.Boolean:
            found[name] = "truth"
        elif dtype == pl.Date or dtype == pl.Time:
            found[name] = "text"
        elif isinstance(dtype, pl.Datetime):
            found[name] = "moment"
            tests[name, "day"] = value.dt.date().cast(pl.Datetime("us")) == value.dt.replace_time_zone(
                None
            ).cast(pl.Datetime("us"))
        elif isinstance(dtype, pl.Decimal):
            found[name] = "number"
        elif dtype.is_float():
            tests[name, "whole"] = (
                value.is_nan() | ((value == value.floor()) & (value.abs() < MAX_EXACT_FLOAT))
            ).fill_null(value=True)
        elif dtype in (pl.UInt64, pl.Int128, pl.UInt128):
            tests[name, "whole"] = value.is_between(-(2**63), MAX_INT64).fill_null(value=True)
        elif dtype == pl.String and untyped:
            empty = (value == "").fill_null(value=True)
            tests[name, "whole"] = normalise_digits(value).str.contains(WHOLE_PATTERN) | empty
            tests[name, "truth"] = value.str.to_lowercase().is_in(TRUTH_LEVELS) | empty
            if name not in codes:
                tests[name, "number"] = value.str.contains(NUMBER_PATTERN) | empty
            tests[name, "filled"] = empty  # a column without any value stays text
    if not tests:
        return found
    likely = _find_true(frame.head(1000), tests)
    sure = _find_true(frame, {key: tests[key] for key in likely}) if likely else set()
    for name in asked:
        for form in ("whole", "number", "truth", "day"):
            if (name, form) in sure and (name, "filled") not in sure:
                found[name] = form
                break
    return {name: found[name] for name in asked if name in found}


def _find_true(frame: pl.LazyFrame, tests: Mapping[tuple[str, str], pl.Expr]) -> set[tuple[str, str]]:
    """Return the tests that hold in every row."""
    asked = [test.all().alias(str(i)) for i, test in enumerate(tests.values())]
    row = collect_frame(frame.select(asked), streaming=True).row(0)
    return {key for key, holds in zip(tests, row, strict=True) if holds}


def apply_forms(frame: pl.LazyFrame, forms: Forms) -> pl.LazyFrame:
    """Return the frame with its open columns in their forms, and NaN as empty values."""
    types = frame.collect_schema()
    changed = [_apply_form(name, types[name], forms.get(name, "")) for name in types.names()]
    return frame.with_columns([value for value in changed if value is not None])


def _apply_form(name: str, dtype: pl.DataType, form: str) -> pl.Expr | None:
    value = pl.col(name)
    if form == "kept":
        return None
    if isinstance(dtype, pl.List | pl.Struct | pl.Array | pl.Duration) or dtype in (pl.Binary, pl.Object):
        raise DataError(
            f"column {name} holds values of type {dtype.base_type()}",
            why="a census variable holds text, numbers or dates",
            fix="cast the column to text, or leave it out of the file",
        )
    if dtype.is_float():
        value = value.fill_nan(None)
        return value.cast(pl.Int64) if form == "whole" else value
    if form in ("whole", "number"):
        target = pl.Int64() if form == "whole" else pl.Float64()
        return (
            value.cast(target)
            if dtype != pl.String
            else pl.when(value != "").then(normalise_digits(value)).cast(target).alias(name)
        )
    if form == "truth":
        return value.cast(pl.String).str.to_lowercase()
    if form == "day":
        return value.dt.date().cast(pl.String)
    if form == "moment":
        return value.dt.replace_time_zone(None).dt.to_string("%Y-%m-%d %H:%M:%S%.f")
    if form == "text" or dtype == pl.Null:
        return value.cast(pl.String)
    return None
