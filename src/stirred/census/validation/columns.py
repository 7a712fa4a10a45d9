"""The rules of every single column: types, missing values and levels."""

from collections.abc import Iterator

import polars as pl

from stirred.census.codebook.schema import Levels, RecordSchema, VariableSchema
from stirred.census.codebook.typed import comparable_codes, target_type
from stirred.census.validation.problems import RecordRule


def column_rules(
    variable: VariableSchema, dtype: pl.DataType, record: RecordSchema, there: pl.Expr
) -> Iterator[RecordRule]:
    """Yield the rules of a variable whose file has this type; ``there`` says whether a field is filled."""
    name, missing = variable.name, variable.missing
    value = pl.col(name)
    target = target_type(variable, dtype)
    now = dtype if target is None else target
    if target is not None:
        kind = "whole numbers" if target.is_integer() else "numbers" if target.is_numeric() else "codes"
        yield RecordRule(name, f"values that are not {kind}", there & value.is_null())
    if missing.policy == "error" or (missing.policy == "level" and missing.empty_as is None):
        rule = "missing values" if missing.policy == "error" else "empty fields, and no level stands for them"
        yield RecordRule(name, rule, ~there)
    codes = comparable_codes(variable)
    if missing.policy == "error" and codes:
        yield RecordRule(name, "missing codes, which the policy makes errors", value.is_in(codes))
    levels = variable.all_levels
    if levels is not None:
        outside = ~is_within(value, levels, now)
        if codes and missing.policy != "level":
            outside &= ~value.is_in(codes)
        yield RecordRule(name, "values outside the listed levels", value.is_not_null() & outside)
    if variable.kind == "number" and now.is_float():
        yield RecordRule(name, "values that are not finite", value.is_nan() | value.is_infinite())
    if name in (record.weight, record.size):
        yield RecordRule(name, "negative values", value < 0)


def is_within(value: pl.Expr, levels: Levels, dtype: pl.DataType) -> pl.Expr:
    """Return whether values of this type are among the levels."""
    if isinstance(levels, range):
        return value.is_between(levels.start, levels.stop - 1)
    if levels and isinstance(levels[0], str) and dtype != pl.String:
        value = value.cast(pl.String)
    return value.is_in(list(levels))
