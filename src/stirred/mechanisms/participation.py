"""Who takes part in a swap: all records but vacant units and group quarters, as the schema lists them."""

from collections.abc import Sequence

import polars as pl

from stirred.census.codebook.schema import Kinds


def staying_levels(kinds: Kinds | None) -> tuple[str, ...]:
    """The kinds of records that never take part: vacant units and group quarters."""
    return () if kinds is None else tuple(str(level) for level in (*kinds.vacant, *kinds.group_quarters))


def takes_part(kinds: Kinds | None, there: Sequence[str]) -> pl.Expr:
    """Whether a record of a table with these columns takes part; one with an empty kind does."""
    if kinds is None or kinds.column not in there:
        return pl.lit(True)
    return ~pl.col(kinds.column).cast(pl.String).is_in(staying_levels(kinds)).fill_null(False)
