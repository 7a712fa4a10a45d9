"""The rules of a household's size and kind that its own record decides."""

from collections.abc import Callable, Iterator

import polars as pl

from stirred.census.codebook.domain import largest_household
from stirred.census.codebook.schema import RecordSchema, Schema
from stirred.census.validation.problems import RecordRule

Value = Callable[[str], pl.Expr]  # a variable after its missing policy


def size_rules(schema: Schema, record: RecordSchema, value: Value) -> Iterator[RecordRule]:
    """Vacant and occupied units, kinds that are not listed, and the largest household."""
    if not record.size:
        return
    size = value(record.size)
    largest = largest_household(schema)
    ordinary = pl.lit(value=True)
    kinds = record.kinds
    if kinds is not None:
        kind = value(kinds.column)
        if kinds.group_quarters:
            ordinary = ~kind.is_in(list(kinds.group_quarters))
        if kinds.vacant:
            empty = kind.is_in(list(kinds.vacant)) & (size > 0)
            yield RecordRule(record.size, "vacant units with persons", empty)
        if kinds.occupied:
            alone = kind.is_in(list(kinds.occupied)) & (size == 0)
            yield RecordRule(record.size, "occupied units without persons", alone)
        unknown = ~kind.is_in(list(kinds.listed))
        yield RecordRule(record.size, f"{kinds.column} names no kind of unit", unknown)
    if largest is not None:
        yield RecordRule(record.size, "more persons than the largest household", ordinary & (size > largest))
