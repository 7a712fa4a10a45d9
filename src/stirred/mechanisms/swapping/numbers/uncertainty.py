"""Compute the uncertainty of every cell of a table from the released file and the swap rate alone."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred.mechanisms.swapping.numbers.moments import StratumCells, estimate

Z95 = 1.959963984540054
_CROSS = 4_000_000  # (stratum, cell) pairs handled at a time
_GRAIN = (
    2.0**20
)  # moments are added as whole numbers of 2⁻²⁰: the sum does not depend on the order of the strata


def kept(by: Sequence[str], *, match: Sequence[str], swap: Sequence[str]) -> bool:
    """Whether the swap keeps the table exactly: nothing in it moves, or all that stays is matched (Proposition 4)."""
    held = {name for name in by if name not in set(swap)}
    return len(held) == len(set(by)) or held <= set(match)


def exact(published: pl.DataFrame) -> pl.DataFrame:
    """A table of exact counts in the layout of the others."""
    count = pl.col("count").cast(pl.Float64)
    return published.with_columns(estimate=count, standard_error=pl.lit(0.0), low=count, high=count)


def parted(
    units: pl.DataFrame,
    counted: pl.DataFrame,
    *,
    by: Sequence[str],
    match: Sequence[str],
    swap: Sequence[str],
    rate: Fraction,
) -> pl.DataFrame:
    """The counts and moments of whole strata, as whole numbers: those of other strata can be added by ``finished``.

    ``units`` has a row per record that takes part in the swap (columns ``unit``, match and swap variables); ``counted`` a
    row per record the table counts (column ``unit`` and the ``by`` variables); those of other units are exact. Both come
    from the *released* file.

    >>> units = pl.DataFrame({"unit": [0, 1, 2], "size": [1, 1, 1], "county": ["a", "a", "b"]})
    >>> counted = units.with_columns(pl.Series("tenure", ["o", "r", "r"]))
    >>> by = ["county", "tenure"]
    >>> moments = parted(units, counted, by=by, match=["size"], swap=["county"], rate=Fraction(1, 20))
    >>> finished([moments], by).select(*by, "count").rows()
    [('a', 'o', 1), ('a', 'r', 1), ('b', 'o', 0), ('b', 'r', 1)]
    """
    keys = list(by)
    moving = [name for name in keys if name in set(swap)]
    held = [name for name in keys if name not in set(swap)]
    published = counted.group_by(keys).agg(pl.len().cast(pl.Int64).alias("count"))
    whole = pl.lit(0, pl.Int64)
    fixed = (
        counted.join(units, on="unit", how="anti")
        .group_by(keys)
        .agg((pl.len().cast(pl.Int64) * int(_GRAIN)).alias("estimate"))
        .select(*keys, whole.alias("count"), "estimate", whole.alias("variance"))
    )
    moments = _moments(units, counted, keys, held, moving, list(match), rate)
    return _summed(
        pl.concat(
            [
                published.select(*keys, "count", whole.alias("estimate"), whole.alias("variance")),
                fixed,
                moments.select(*keys, whole.alias("count"), "estimate", "variance"),
            ]
        ),
        keys,
    )


def finished(parts: Sequence[pl.DataFrame], keys: list[str]) -> pl.DataFrame:
    """The table from the moments of all its strata."""
    whole = _summed(pl.concat(parts), keys)
    return _finish(
        whole.with_columns(
            pl.col("estimate").cast(pl.Float64) / _GRAIN, pl.col("variance").cast(pl.Float64) / _GRAIN
        ),
        keys,
    )


def _moments(
    units: pl.DataFrame,
    counted: pl.DataFrame,
    keys: list[str],
    held: list[str],
    moving: list[str],
    match: list[str],
    rate: Fraction,
) -> pl.DataFrame:
    """Σ over strata of the estimate and its variance, by cell."""
    stratum = (
        units.select(match).unique().sort(match, nulls_last=False).with_row_index("_m")
        if match
        else pl.DataFrame({"_m": [0]}).cast(pl.UInt32)
    )
    strata = (
        units.join(stratum, on=match, nulls_equal=True)
        if match
        else units.with_columns(_m=pl.lit(0, pl.UInt32))
    )
    size = strata.group_by("_m").agg(pl.len().alias("_n"))
    # places: how many records of the stratum lie in each combination of the moving variables
    places = strata.group_by("_m", *moving).agg(pl.len().cast(pl.Float64).alias("_t"))
    # what each record adds to each held category, then per stratum and category, and where it is shown
    link = strata.select("unit", "_m", *[pl.col(name).alias(f"_p_{name}") for name in moving])
    adds = counted.group_by("unit", *held).agg(pl.len().cast(pl.Float64).alias("_w")).join(link, on="unit")
    squares = (pl.col("_w") ** 2).sum()
    whole = adds.group_by("_m", *held).agg(pl.col("_w").sum().alias("_W"), squares.alias("_Q"))
    shown = (
        adds.group_by("_m", *held, *[f"_p_{name}" for name in moving])
        .agg(pl.col("_w").sum().alias("_N"), squares.alias("_S"))
        .rename({f"_p_{name}": name for name in moving})
    )
    whole = whole.join(size, on="_m")
    per = whole.group_by("_m").len(name="_h").join(places.group_by("_m").len(name="_k"), on="_m")
    per = per.with_columns((pl.col("_h") * pl.col("_k")).cum_sum().alias("_c")).with_columns(
        (pl.col("_c") // _CROSS).alias("_part")
    )
    results = []
    for part in per["_part"].unique().sort():
        chosen = per.filter(pl.col("_part") == part).select("_m")
        cross = whole.join(chosen, on="_m", how="semi").join(
            places.join(chosen, on="_m", how="semi"), on="_m"
        )
        cross = cross.join(shown, on=["_m", *held, *moving], how="left", nulls_equal=True).with_columns(
            pl.col("_N", "_S").fill_null(0.0)
        )
        value, spread = estimate(
            StratumCells(
                n=cross["_n"].to_numpy().astype(np.int64),
                places=cross["_t"].to_numpy(),
                shown=cross["_N"].to_numpy(),
                weight=cross["_W"].to_numpy(),
                shown_squares=cross["_S"].to_numpy(),
                squares=cross["_Q"].to_numpy(),
            ),
            rate,
        )
        results.append(
            cross.select(keys)
            .with_columns(estimate=_whole(value), variance=_whole(spread))
            .group_by(keys)
            .agg(pl.col("estimate", "variance").sum())
        )
    if not results:
        return (
            whole.select(held)
            .head(0)
            .join(places.select(moving).head(0), how="cross")
            .with_columns(estimate=pl.lit(0, pl.Int64), variance=pl.lit(0, pl.Int64))
        )
    return pl.concat(results)


def _whole(values: NDArray[np.float64]) -> pl.Series:
    return pl.Series(np.rint(values * _GRAIN).astype(np.int64))


def _summed(frame: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    """Sums of whole numbers by cell."""
    return frame.group_by(keys).agg(pl.col("count", "estimate", "variance").sum())


def _finish(moments: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    """Every cell with an estimate, those published as zero too; intervals do not go below zero."""
    error = pl.col("variance").sqrt()
    return (
        moments.with_columns(
            error.alias("standard_error"),
            (pl.col("estimate") - Z95 * error).clip(lower_bound=0.0).alias("low"),
            (pl.col("estimate") + Z95 * error).clip(lower_bound=0.0).alias("high"),
        )
        .select(*keys, "count", "estimate", "standard_error", "low", "high")
        .sort(keys, nulls_last=False)
    )
