"""Check types, missing values and levels of every column of a record type in one streaming pass."""

from collections.abc import Iterator

import polars as pl

from stirred.census.codebook.schema import Levels, RecordSchema, VariableSchema
from stirred.census.codebook.typed import (
    absent,
    comparable_codes,
    loosely,
    present,
    variables_of,
    wanted_type,
)
from stirred.census.files import CensusFiles
from stirred.census.validation.problems import Problem
from stirred.frames import collected


def check_columns(census: CensusFiles, record: RecordSchema) -> tuple[int, list[Problem]]:
    """The number of records, and the problems of each single column."""
    file = census.file(record.name)
    columns = file.collect_schema()
    shaped = present(census.schema, record, file)
    types = shaped.collect_schema()
    known = [variable for variable in variables_of(census.schema, record, columns) if variable.name in types]
    for name, codes in record.where:
        if name in types:
            variable = next(v for v in known if v.name == name)
            shaped = shaped.filter(_value(variable, types[name]).is_in(list(codes)))
    tests = [test for variable in known for test in _tests(variable, types[variable.name], record)]
    counted = collected(
        shaped.select(
            pl.len().alias("\x00"),
            *(broken.sum().alias(str(index)) for index, (_, _, broken) in enumerate(tests)),
        ),
        streaming=True,
    )
    row = counted.row(0, named=True)
    problems = [
        Problem(
            record_type=record.name, column=name, rule="the file has no such column", count=1, of="columns"
        )
        for name in absent(census.schema, record, columns)
    ]
    for index, (column, rule, _) in enumerate(tests):
        if row[str(index)]:
            problems.append(
                Problem(record_type=record.name, column=column, rule=rule, count=int(row[str(index)]))
            )
    return int(row["\x00"]), problems


def _value(variable: VariableSchema, dtype: pl.DataType) -> pl.Expr:
    target = wanted_type(variable, dtype)
    value = pl.col(variable.name)
    return value if target is None else loosely(value, dtype, target)


def _tests(
    variable: VariableSchema, dtype: pl.DataType, record: RecordSchema
) -> Iterator[tuple[str, str, pl.Expr]]:
    name, missing = variable.name, variable.missing
    there = pl.col(name).is_not_null()
    value = _value(variable, dtype)
    target = wanted_type(variable, dtype)
    if target is not None:
        kind = "whole numbers" if target.is_integer() else "numbers" if target.is_numeric() else "codes"
        yield name, f"values that are not {kind}", there & value.is_null()
    if missing.policy == "error" or (missing.policy == "level" and missing.empty_as is None):
        rule = "missing values" if missing.policy == "error" else "empty fields, and no level stands for them"
        yield name, rule, ~there
    codes = comparable_codes(variable)
    if missing.policy == "error" and codes:
        yield name, "missing codes, which the policy makes errors", value.is_in(codes)
    levels = variable.all_levels
    if levels is not None:
        outside = ~_within(value, levels)
        if codes and missing.policy != "level":
            outside &= ~value.is_in(codes)
        yield name, "values outside the listed levels", value.is_not_null() & outside
    if variable.kind == "number" and (dtype if target is None else target).is_float():
        yield name, "values that are not finite", value.is_nan() | value.is_infinite()
    if name in (record.weight, record.size):
        yield name, "negative values", value < 0


def _within(value: pl.Expr, levels: Levels) -> pl.Expr:
    if isinstance(levels, range):
        return value.is_between(levels.start, levels.stop - 1)
    if levels and isinstance(levels[0], str):
        return value.cast(pl.String).is_in(list(levels))
    return value.is_in(list(levels))
