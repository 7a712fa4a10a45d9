"""Compute the uncertainty of every cell of a table from the released file and the swap rate alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import frexp

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred.mechanisms.released_parts import count_cells
from stirred.mechanisms.swapping.numbers.moments import StratumCells, estimate

Z95 = 1.959963984540054
MAX_VARIANCE_IN_WHOLE_RECORDS = 10.0  # variance below which a number changes by few whole records
SUM_COLUMNS = ("count", "weighted", "estimate", "variance", "slack")  # of a cell, in whole numbers
_MAX_PAIRS_PER_PASS = 4_000_000  # (stratum, cell) pairs handled at a time
_LARGEST_WHOLE_NUMBER = 2.0**60  # of a whole number that is added to others
_WEIGHT_COLUMN = "__weight"  # what a record adds to its cell, in whole numbers


@dataclass(frozen=True, slots=True)
class Units:
    """Units that make weights, estimates and variances whole numbers, whose sums do not depend on the order.

    A count needs no unit for its weights; the largest weight of a survey is about 2³¹ of its units.

    >>> Units.of(900.0).weight == 2.0**21
    True
    """

    weight: float = 1.0  # a weight of 1 is so many units
    squares: float = 1.0  # a squared weight, in squared units, is divided by this
    estimate: float = 2.0**20  # a unit of estimates is this part of a unit of weights
    variance: float = 2.0**20

    @staticmethod
    def of(largest: float) -> "Units":
        """Choose the units for weights of which the largest is known."""
        exponent = frexp(largest)[1] if largest > 0 else 0
        return Units(weight=2.0 ** (31 - exponent), squares=2.0**22, estimate=1.0, variance=2.0**-40)


def keeps_table(by: Sequence[str], *, match: Sequence[str], swap: Sequence[str], weight: str = "") -> bool:
    """Return whether the swap keeps the table exactly: nothing in it moves, or all that stays is matched.

    A weight is a held variable: weighted totals by place are exact only where the weight is matched too.
    """
    moving, named = set(swap), {*by, *filter(None, [weight])}
    held = named - moving
    return held == named or held <= set(match)


def lay_out_exact(published: pl.DataFrame, of: str = "count") -> pl.DataFrame:
    """Lay out a table of exact numbers with the columns of the others."""
    value = pl.col(of).cast(pl.Float64)
    return published.with_columns(estimate=value, standard_error=pl.lit(0.0), low=value, high=value)


def sum_moments(
    units: pl.DataFrame,
    counted: pl.DataFrame,
    *,
    by: Sequence[str],
    match: Sequence[str],
    swap: Sequence[str],
    rate: Fraction,
    weight: str = "",
    scale: Units | None = None,
) -> pl.DataFrame:
    """Sum counts and moments of whole strata as whole numbers, which ``finish_cells`` adds up.

    ``units`` has a row per record that takes part in the swap (columns ``unit``, match and swap variables); ``counted`` a
    row per record the table counts (column ``unit``, the ``by`` variables and the weight, if there is one); those of other
    units are exact. Both come from the *released* file.

    >>> units = pl.DataFrame({"unit": [0, 1, 2], "size": [1, 1, 1], "county": ["a", "a", "b"]})
    >>> counted = units.with_columns(pl.Series("tenure", ["o", "r", "r"]))
    >>> by = ["county", "tenure"]
    >>> moments = sum_moments(units, counted, by=by, match=["size"], swap=["county"], rate=Fraction(1, 20))
    >>> finish_cells([moments], by).select(*by, "count").rows()
    [('a', 'o', 1), ('a', 'r', 1), ('b', 'o', 0), ('b', 'r', 1)]
    """
    keys, scale = list(by), scale or Units()
    moving = [name for name in keys if name in set(swap)]
    held = [name for name in keys if name not in set(swap)]
    added = (
        (pl.col(weight).cast(pl.Float64).fill_null(0.0).fill_nan(0.0) * scale.weight).round()
        if weight
        else pl.lit(1)
    )
    counted = counted.with_columns(added.cast(pl.Int64).alias(_WEIGHT_COLUMN))
    still = pl.col(_WEIGHT_COLUMN).sum()
    published = count_cells(counted.lazy(), keys).collect()
    weighed = counted.group_by(keys).agg(still.alias("weighted"))
    fixed = (
        counted.join(units, on="unit", how="anti")
        .group_by(keys)
        .agg((still * int(scale.estimate)).alias("estimate"))
    )
    moments = _estimate_moments(units, counted, keys, held, moving, list(match), rate, scale)
    return _add_up(
        [_lay_out_sums(part, keys) for part in (pl.DataFrame(published), weighed, fixed, moments)], keys
    )


def finish_cells(
    parts: Sequence[pl.DataFrame], keys: list[str], *, weight: str = "", scale: Units | None = None
) -> pl.DataFrame:
    """Make the table from the moments of all its strata; intervals do not go below zero.

    Where the swap left no trace of a stratum the standard error is infinite, and the interval allows for all of it.
    """
    scale = scale or Units()
    whole, grain = _add_up(parts, keys), scale.weight * scale.estimate
    variance = pl.col("variance").cast(pl.Float64) / scale.variance / scale.weight**2
    slack, spread = pl.col("slack").cast(pl.Float64) / grain, Z95 * variance.sqrt()
    if not weight:
        spread = variance.map_batches(half_widths, pl.Float64)
    value = pl.col("estimate").cast(pl.Float64) / grain
    made = whole.select(
        *keys,
        "count",
        pl.col("weighted").cast(pl.Float64) / scale.weight,
        estimate=value,
        standard_error=pl.when(slack > 0).then(float("inf")).otherwise(variance.sqrt()),
        low=(value - spread - slack).clip(lower_bound=0.0),
        high=(value + spread + slack).clip(lower_bound=0.0),
    )
    return (made if weight else made.drop("weighted")).sort(keys, nulls_last=False)


def half_widths(variances: pl.Series, level: float = 0.95) -> pl.Series:
    r"""Half the width of intervals: $z\,\sigma$, and for small variances what whole records need.

    A number that changes by whole records, as many in as out on average, differs from its mean as the difference of two
    Poisson numbers: $P(|D| = k) = 2 e^{-V} I_k(V)$ for $k > 0$. With h the smallest number that $|D|$ exceeds in at most
    $1 - level$ of all cases, the margin is at least $h + 1/2$. An exact number has none.

    >>> half_widths(pl.Series([0.0, 0.04, 0.3, 100.0])).round(2).to_list()
    [0.0, 0.5, 1.5, 19.6]
    """
    from scipy.special import ive, ndtri  # slow to import, and only tables with intervals need it

    value = variances.to_numpy()
    normal = float(ndtri(0.5 + level / 2)) * np.sqrt(value)
    few = np.flatnonzero((value > 0) & (value < MAX_VARIANCE_IN_WHOLE_RECORDS))
    steps, rest = np.zeros(len(few)), 1.0 - ive(0, value[few])
    for k in range(1, 4 * int(MAX_VARIANCE_IN_WHOLE_RECORDS)):
        steps += rest > 1 - level
        rest -= 2 * ive(k, value[few])
    normal[few] = np.maximum(normal[few], steps + 0.5)
    return pl.Series(normal)


def _estimate_moments(
    units: pl.DataFrame,
    counted: pl.DataFrame,
    keys: list[str],
    held: list[str],
    moving: list[str],
    match: list[str],
    rate: Fraction,
    scale: Units,
) -> pl.DataFrame:
    """Sum the estimate and its variance over strata, by cell."""
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
    adds = counted.group_by("unit", *held).agg(pl.col(_WEIGHT_COLUMN).sum().alias("_w")).join(link, on="unit")
    square = (pl.col("_w").cast(pl.Float64) ** 2 / scale.squares).round().cast(pl.Int64)
    adds = adds.with_columns(square.alias("_q"))
    whole = adds.group_by("_m", *held).agg(pl.col("_w").sum().alias("_W"), pl.col("_q").sum().alias("_Q"))
    shown = (
        adds.group_by("_m", *held, *[f"_p_{name}" for name in moving])
        .agg(pl.col("_w").sum().alias("_N"), pl.col("_q").sum().alias("_S"))
        .rename({f"_p_{name}": name for name in moving})
    )
    whole = whole.join(size, on="_m")
    per = whole.group_by("_m").len(name="_h").join(places.group_by("_m").len(name="_k"), on="_m")
    per = per.with_columns((pl.col("_h") * pl.col("_k")).cum_sum().alias("_c")).with_columns(
        (pl.col("_c") // _MAX_PAIRS_PER_PASS).alias("_part")
    )
    results = []
    for part in per["_part"].unique().sort():
        chosen = per.filter(pl.col("_part") == part).select("_m")
        cross = whole.join(chosen, on="_m", how="semi").join(
            places.join(chosen, on="_m", how="semi"), on="_m"
        )
        cross = cross.join(shown, on=["_m", *held, *moving], how="left", nulls_equal=True).with_columns(
            pl.col("_N", "_S").fill_null(0)
        )
        weights = cross["_W"].to_numpy().astype(np.float64)
        value, spread = estimate(
            StratumCells(
                n=cross["_n"].to_numpy().astype(np.int64),
                places=cross["_t"].to_numpy(),
                shown=cross["_N"].to_numpy().astype(np.float64),
                weight=weights,
                shown_squares=cross["_S"].to_numpy() * scale.squares,
                squares=cross["_Q"].to_numpy() * scale.squares,
            ),
            rate,
        )
        erased = np.isinf(spread)
        results.append(
            cross.select(keys)
            .with_columns(
                estimate=_round_whole(value * scale.estimate),
                variance=_round_whole(np.where(erased, 0.0, spread) * scale.variance),
                slack=_round_whole(np.where(erased, weights, 0.0) * scale.estimate),
            )
            .group_by(keys)
            .agg(pl.col("estimate", "variance", "slack").sum())
        )
    if not results:
        return whole.select(held).head(0).join(places.select(moving).head(0), how="cross")
    return pl.concat(results)


def _round_whole(values: NDArray[np.float64]) -> pl.Series:
    return pl.Series(np.rint(np.clip(values, -_LARGEST_WHOLE_NUMBER, _LARGEST_WHOLE_NUMBER)).astype(np.int64))


def _lay_out_sums(frame: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    """Return the cells with all sums, zero where a part has none."""
    zero = pl.lit(0, pl.Int64)
    return frame.select(
        *keys, *(pl.col(name) if name in frame.columns else zero.alias(name) for name in SUM_COLUMNS)
    )


def _add_up(parts: Sequence[pl.DataFrame], keys: list[str]) -> pl.DataFrame:
    """Add up whole numbers by cell."""
    return pl.concat(parts).group_by(keys).agg(pl.col(SUM_COLUMNS).sum())
