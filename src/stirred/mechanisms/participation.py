"""Who takes part in a swap, as the schema lists them, and the public law by which these records changed places."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from stirred.census.codebook.schema import Kinds


def list_staying_levels(kinds: Kinds | None) -> tuple[str, ...]:
    """Return the kinds of records that never take part: vacant units and group quarters."""
    return () if kinds is None else tuple(str(level) for level in (*kinds.vacant, *kinds.group_quarters))


def takes_part(kinds: Kinds | None, there: Sequence[str]) -> pl.Expr:
    """Return the expression that says whether a record takes part; one with an empty kind does."""
    if kinds is None or kinds.column not in there:
        return pl.lit(True)
    return ~pl.col(kinds.column).cast(pl.String).is_in(list_staying_levels(kinds)).fill_null(False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    r"""Records of a stratum exchange the values of some variables; rate, strata and variables are public.

    In a stratum of n records each is selected with chance ``selected(n)`` $= q$, and a selected record takes the value t
    with chance $n_t / (n - 1)$ if its own is another one.
    """

    record_type: str
    match: tuple[str, ...]
    moving: tuple[str, ...]
    selected: Callable[[ArrayLike], NDArray[np.float64]]
