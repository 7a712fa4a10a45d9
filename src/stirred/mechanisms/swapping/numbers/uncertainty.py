"""Compute the uncertainty of every cell of a table from the released file and the swap rate alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import frexp

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred.mechanisms.released_parts import cells
from stirred.mechanisms.swapping.numbers.moments import StratumCells, estimate

Z95 = 1.959963984540054
WHOLE_RECORDS = 10.0  # variance below which a number changes by few whole records
SUMS = ("count", "weighted", "estimate", "variance", "slack")  # of a cell, in whole numbers
_CROSS = 4_000_000  # (stratum, cell) pairs handled at a time
_LARGEST = 2.0**60  # of a whole number that is added to others
_ADDED = "__weight"  # what a record adds to its cell, in whole numbers


@dataclass(frozen=True, slots=True)
class Units:
    """Whole numbers that weights, estimates and variances are added in: such a sum has the same bits in any order.

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
        """The units for weights of which the largest is known."""
        exponent = frexp(largest)[1] if largest > 0 else 0
        return Units(weight=2.0 ** (31 - exponent), squares=2.0**22, estimate=1.0, variance=2.0**-40)


def kept(by: Sequence[str], *, match: Sequence[str], swap: Sequence[str], weight: str = "") -> bool:
    """Whether the swap keeps the table exactly: nothing in it moves, or all that stays is matched (Proposition 4).

    A weight is a held variable: weighted totals by place are exact only where the weight is matched too.
    """
    moving, named = set(swap), {*by, *filter(None, [weight])}
    held = named - moving
    return held == named or held <= set(match)


def exact(published: pl.DataFrame, of: str = "count") -> pl.DataFrame:
    """A table of exact numbers in the layout of the others."""
    value = pl.col(of).cast(pl.Float64)
    return published.with_columns(estimate=value, standard_error=pl.lit(0.0), low=value, high=value)


def parted(
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
    """The sums and moments of whole strata, as whole numbers: those of other strata can be added by ``finished``.

    ``units`` has a row per record that takes part in the swap (columns ``unit``, match and swap variables); ``counted`` a
    row per record the table counts (column ``unit``, the ``by`` variables and the weight, if there is one); those of other
    units are exact. Both come from the *released* file.

    >>> units = pl.DataFrame({"unit": [0, 1, 2], "size": [1, 1, 1], "county": ["a", "a", "b"]})
    >>> counted = units.with_columns(pl.Series("tenure", ["o", "r", "r"]))
    >>> by = ["county", "tenure"]
    >>> moments = parted(units, counted, by=by, match=["size"], swap=["county"], rate=Fraction(1, 20))
    >>> finished([moments], by).select(*by, "count").rows()
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
    counted = counted.with_columns(added.cast(pl.Int64).alias(_ADDED))
    still = pl.col(_ADDED).sum()
    published = cells(counted.lazy(), keys).collect()
    weighed = counted.group_by(keys).agg(still.alias("weighted"))
    fixed = (
        counted.join(units, on="unit", how="anti")
        .group_by(keys)
        .agg((still * int(scale.estimate)).alias("estimate"))
    )
    moments = _moments(units, counted, keys, held, moving, list(match), rate, scale)
    return _summed(
        [_laid_out(part, keys) for part in (pl.DataFrame(published), weighed, fixed, moments)], keys
    )


def finished(
    parts: Sequence[pl.DataFrame], keys: list[str], *, weight: str = "", scale: Units | None = None
) -> pl.DataFrame:
    """The table from the moments of all its strata: intervals do not go below zero, cells published as zero have one too.

    Where the swap left no trace of a stratum the standard error is infinite, and the interval allows for all of it.
    """
    scale = scale or Units()
    whole, grain = _summed(parts, keys), scale.weight * scale.estimate
    variance = pl.col("variance").cast(pl.Float64) / scale.variance / scale.weight**2
    slack, spread = pl.col("slack").cast(pl.Float64) / grain, Z95 * variance.sqrt()
    if not weight:
        spread = variance.map_batches(margins, pl.Float64)
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


def margins(variances: pl.Series, level: float = 0.95) -> pl.Series:
    r"""Half the width of intervals: $z\,\sigma$, and for small variances what whole records need.

    A number that changes by whole records, as many in as out on average, differs from its mean as the difference of two
    Poisson numbers: $P(|D| = k) = 2 e^{-V} I_k(V)$ for $k > 0$. With h the smallest number that $|D|$ exceeds in at most
    $1 - level$ of all cases, the margin is at least $h + 1/2$. An exact number has none.

    >>> margins(pl.Series([0.0, 0.04, 0.3, 100.0])).round(2).to_list()
    [0.0, 0.5, 1.5, 19.6]
    """
    from scipy.special import ive, ndtri  # slow to import, and only tables with intervals need it

    value = variances.to_numpy()
    normal = float(ndtri(0.5 + level / 2)) * np.sqrt(value)
    few = np.flatnonzero((value > 0) & (value < WHOLE_RECORDS))
    steps, rest = np.zeros(len(few)), 1.0 - ive(0, value[few])
    for k in range(1, 4 * int(WHOLE_RECORDS)):
        steps += rest > 1 - level
        rest -= 2 * ive(k, value[few])
    normal[few] = np.maximum(normal[few], steps + 0.5)
    return pl.Series(normal)


def _moments(
    units: pl.DataFrame,
    counted: pl.DataFrame,
    keys: list[str],
    held: list[str],
    moving: list[str],
    match: list[str],
    rate: Fraction,
    scale: Units,
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
    adds = counted.group_by("unit", *held).agg(pl.col(_ADDED).sum().alias("_w")).join(link, on="unit")
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
        (pl.col("_c") // _CROSS).alias("_part")
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
                estimate=_whole(value * scale.estimate),
                variance=_whole(np.where(erased, 0.0, spread) * scale.variance),
                slack=_whole(np.where(erased, weights, 0.0) * scale.estimate),
            )
            .group_by(keys)
            .agg(pl.col("estimate", "variance", "slack").sum())
        )
    if not results:
        return whole.select(held).head(0).join(places.select(moving).head(0), how="cross")
    return pl.concat(results)


def _whole(values: NDArray[np.float64]) -> pl.Series:
    return pl.Series(np.rint(np.clip(values, -_LARGEST, _LARGEST)).astype(np.int64))


def _laid_out(frame: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    """The cells with all sums; those that a part does not have are zero."""
    zero = pl.lit(0, pl.Int64)
    return frame.select(
        *keys, *(pl.col(name) if name in frame.columns else zero.alias(name) for name in SUMS)
    )


def _summed(parts: Sequence[pl.DataFrame], keys: list[str]) -> pl.DataFrame:
    """Sums of whole numbers by cell."""
    return pl.concat(parts).group_by(keys).agg(pl.col(SUMS).sum())
