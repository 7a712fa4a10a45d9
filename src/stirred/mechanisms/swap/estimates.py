"""Estimate tables from a swapped release: closed forms, unbiased estimates, standard errors and intervals."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from math import frexp
from typing import Protocol

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from stirred.census import Schema
from stirred.census.geography import attach_levels
from stirred.engine import Engine
from stirred.errors import InputError
from stirred.frames import collect_frame
from stirred.languages import Phrase
from stirred.mechanisms.exhibits import Exhibit, Series
from stirred.mechanisms.release import (
    Exchange,
    Release,
    StratumKernel,
    cells_schema,
    count_cells,
    count_records,
    map_strata,
    require_schema,
    scan_records,
)
from stirred.mechanisms.swap.config import Roles

# The average effect of a swap in closed form, for data users who correct for it or check it.
#
# In a stratum of n records a record is selected with the *effective rate* q, which differs from p because a single
# selection is drawn again; a selected record takes the value t of the swap variable with chance $n_t/(n-1)$, one less
# for its own. Everything below follows from these two facts and was checked by enumeration.

Floats = NDArray[np.float64]


def effective_rate(n: ArrayLike, rate: Fraction) -> Floats:
    r"""Chance that a record of a stratum of n is selected: $q = \frac{p - p(1-p)^{n-1}}{1 - n p (1-p)^{n-1}}$.

    >>> effective_rate([1, 2, 5, 20], Fraction(1, 20)).round(4)
    array([0.    , 0.0028, 0.0116, 0.05  ])
    """
    sizes = np.asarray(n, np.float64)
    p = float(rate)
    if rate <= 0 or rate >= 1:
        return np.where(sizes >= 2, p, 0.0)
    log_rest = np.maximum(sizes - 1, 0) * np.log1p(-p)
    nobody_else = np.exp(log_rest)
    q = -p * np.expm1(log_rest) / np.where(sizes >= 2, 1 - sizes * p * nobody_else, 1.0)
    return np.where(sizes >= 2, q, 0.0)


def shrinkage(n: ArrayLike, rate: Fraction) -> Floats:
    r"""How far a stratum's table moves towards independence: $\lambda = q\,n/(n-1)$.

    >>> float(shrinkage(2, Fraction(1, 2)))
    1.0
    """
    sizes = np.asarray(n, np.float64)
    return effective_rate(sizes, rate) * sizes / np.maximum(sizes - 1, 1)


def attenuation(n: ArrayLike, rate: Fraction) -> Floats:
    r"""The factor $1-\lambda$ by which every association of held and swapped variables in a stratum shrinks.

    >>> float(attenuation(10**6, Fraction(1, 20)).round(4))
    0.95
    """
    return 1 - shrinkage(n, rate)


def _independence(table: Floats) -> tuple[Floats, Floats]:
    """Return the size of each stratum and its table under independence, for the last two axes hold × swap."""
    total = table.sum(axis=(-2, -1), keepdims=True)
    product = table.sum(axis=-1, keepdims=True) * table.sum(axis=-2, keepdims=True)
    return total, product / np.maximum(total, 1)


def mean_table(table: ArrayLike, rate: Fraction) -> Floats:
    r"""Expected swapped table: $E[N'_{ht}] = (1-\lambda) N_{ht} + \lambda\, n_h n_t / n$ in each stratum.

    The last two axes are hold × swap types; axes before them are strata.

    >>> mean_table([[2, 0], [0, 2]], Fraction(1, 2)).round(3)
    array([[1.222, 0.778],
           [0.778, 1.222]])
    """
    counts = np.asarray(table, np.float64)
    total, independent = _independence(counts)
    weight = shrinkage(total, rate)
    return (1 - weight) * counts + weight * independent


def deshrink(table: ArrayLike, rate: Fraction) -> Floats:
    r"""Unbiased estimate of the table before the swap: $\hat N = (N' - \lambda\, n_h n_t / n) / (1-\lambda)$.

    Its margins are those of the released table, which are exact; its cells may be negative.

    >>> deshrink(mean_table([[5, 1], [2, 4]], Fraction(1, 3)), Fraction(1, 3)).round(9)
    array([[5., 1.],
           [2., 4.]])
    """
    counts = np.asarray(table, np.float64)
    total, independent = _independence(counts)
    weight = shrinkage(total, rate)
    if np.any(np.isclose(weight, 1) & (total > 1)):
        raise InputError(
            "the table cannot be de-shrunk",
            why="in some stratum the swap leaves no trace of the association (the shrinkage is 1)",
            fix="drop strata whose effective rate q satisfies q·n = n - 1",
        )
    return (counts - weight * independent) / (1 - weight)


def channel(margin: Sequence[int], rate: Fraction) -> Floats:
    r"""Chance that a record truly at s is released at t, as a matrix: $q\,n_t/(n-1)$ off the diagonal.

    >>> channel([1, 3], Fraction(1, 2)).round(4)
    array([[0.4167, 0.5833],
           [0.1944, 0.8056]])
    """
    counts = np.asarray(margin, np.float64)
    n = counts.sum()
    moved = effective_rate(n, rate) * counts / max(n - 1, 1)
    result = np.tile(moved, (counts.size, 1))
    np.fill_diagonal(result, 0)
    np.fill_diagonal(result, 1 - result.sum(axis=1))
    return result


def posterior(
    margin: Sequence[int], shown: int, rate: Fraction, prior: Sequence[float] | None = None
) -> Floats:
    r"""Return the probable true place of a record unique in its stratum, given its released place, by Bayes.

    Without a prior an outsider takes the margins, and the chance that it truly is there is
    $1 - q (n - n_t)/(n-1)$.

    >>> posterior([1, 3], 1, Fraction(1, 2)).round(4)
    array([0.1944, 0.8056])
    """
    weights = np.asarray(margin if prior is None else prior, np.float64) * channel(margin, rate)[:, shown]
    if not weights.sum() > 0:
        raise InputError(
            "no place is possible for this record",
            why="the prior gives probability 0 to every place that the release allows",
            fix="give a prior that allows at least one of these places",
        )
    result: Floats = weights / weights.sum()
    return result


@dataclass(frozen=True, slots=True, kw_only=True)
class WeakStrata:
    """Strata whose effective rate is far below the swap rate: counts only."""

    strata: int
    records: int
    below: Fraction
    lowest: float

    def words(self) -> Phrase:
        """Return the finding as a phrase."""
        lowest = Decimal(f"{self.lowest:.4f}")
        return Phrase(
            "swap.note.weak", strata=self.strata, number=self.records, below=self.below, lowest=lowest
        )

    def __str__(self) -> str:
        return str(self.words())


def weak_strata(
    sizes: ArrayLike, rate: Fraction, *, counts: ArrayLike | None = None, below: Fraction = Fraction(1, 2)
) -> WeakStrata | None:
    """Return the strata of two or more records that are rarely swapped, or None; ``counts`` counts strata.

    >>> print(weak_strata([2, 400], Fraction(1, 20)))
    1 strata with 2 records have an effective rate below 1/2 of the swap rate (lowest 0.0028): their records almost \
always stay where they are
    """
    n = np.asarray(sizes, np.int64)
    many = np.ones(n.size, np.int64) if counts is None else np.asarray(counts, np.int64)
    q = effective_rate(n, rate)
    weak = (n >= 2) & (q < float(below * rate)) & (many > 0)
    if not weak.any():
        return None
    return WeakStrata(
        strata=int(many[weak].sum()),
        records=int((n * many)[weak].sum()),
        below=below,
        lowest=float(q[weak].min()),
    )


# Estimate a swapped cell without bias, with its variance, from public numbers only.
#
# In a stratum of $n$ records let $u_i = 1$ when record $i$ truly lies in the cell's places (there are $n_t$ such
# records) and let $w_i \ge 0$ be what it adds to the cell when shown there (1 for a household table, the number of
# such persons for a person table, 0 outside the cell's held categories). The cell shows $N' = \sum_i w_i\, u_{g(i)}$
# for the random permutation $g$ of Algorithm 1. With $K$ the number of selected records (binomial, redrawn at 1), the
# joint law of $(g(i), g(j))$ has five classes, so the first two moments of $N'$ are exact closed forms in
# $W = \sum w_i$, $Q = \sum w_i^2$ and their parts over $u_i = 1$. $n$, $n_t$, $W$ and $Q$ are functions of the
# invariants; the parts over $u_i = 1$ are estimated without bias from their swapped values.

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class PairLaw:
    """Probabilities of the joint moves of one record and of two records of a stratum."""

    moves: float  # q: a given record moves
    both_stay: float
    exchange: float  # i → j and j → i
    stay_and_go: float  # i stays, j → one given third record
    follow: float  # i → j and j → one given third record
    apart: float  # i and j → two given further records

    @property
    def stays(self) -> float:
        """Return 1 − q, the probability that a record stays."""
        return 1 - self.moves


class PairSource(Protocol):
    """A law of moves other than the PSA's, whose pairs are known by the size of a stratum."""

    def pairs(self, n: int) -> PairLaw:
        """Return the pair law in a stratum of n records."""
        ...

    def share(self, n: int) -> Fraction:
        """Return the share that moves in a stratum of n records."""
        ...


def pair_law(n: int, rate: Fraction | PairSource) -> PairLaw:
    """Return the pair law in a stratum of n records, in floats: of the PSA at swap rate p, or of another law.

    >>> round(pair_law(2, Fraction(1, 2)).exchange, 12)
    0.5
    >>> pair_law(1, Fraction(1, 2)).moves
    0.0
    """
    return _selected_pairs(n, rate) if isinstance(rate, Fraction) else rate.pairs(n)


def binomial_pmf(k: Array, n: int, p: float) -> Array:
    """Return the chances of k successes in n trials, as SciPy's ``binom.pmf`` does for 0 < p < 1 and whole k of 0 to n.

    Importing ``scipy.stats`` takes most of a second of processor time, which every release with tables would pay; the
    function that it calls lies in a module that is loaded anyway.

    >>> binomial_pmf(np.array([0.0, 1.0, 2.0]), 2, 0.5).round(6).tolist()
    [0.25, 0.5, 0.25]
    """
    from scipy.special import _ufuncs  # only tables with intervals need it

    compute = getattr(_ufuncs, "_binom_pmf", None)
    if compute is None:  # no public name
        from scipy import stats

        compute = stats.binom.pmf
    result: Array = compute(k, n, p)
    return result


@lru_cache(maxsize=1 << 16)
def _selected_pairs(n: int, rate: Fraction) -> PairLaw:
    p = float(rate)
    if n < 2 or p == 0.0:
        return PairLaw(moves=0.0, both_stay=1.0, exchange=0.0, stay_and_go=0.0, follow=0.0, apart=0.0)
    spread = 12 * np.sqrt(n * p * (1 - p)) + 12
    k = np.arange(max(0, int(n * p - spread)), min(n, int(n * p + spread) + 1) + 1, dtype=np.float64)
    weight = binomial_pmf(k, n, p)
    weight[k == 1] = 0.0
    weight /= weight.sum()
    pairs = weight * k * (k - 1) / (n * (n - 1))
    swapped = _two_cycles(k)
    one = np.divide(1.0, k - 1, out=np.zeros_like(k), where=k >= 2)
    third = max(n - 2, 1)
    return PairLaw(
        moves=float((weight * k).sum() / n),
        both_stay=float((weight * (n - k) * (n - k - 1)).sum() / (n * (n - 1))),
        exchange=float((pairs * swapped).sum()),
        stay_and_go=float((weight * (n - k) * k).sum() / (n * (n - 1)) / third) if n > 2 else 0.0,
        follow=float((pairs * (one - swapped)).sum() / third) if n > 2 else 0.0,
        apart=float((pairs * (1 - 2 * one + swapped)).sum() / (third * (n - 3))) if n > 3 else 0.0,
    )


def _two_cycles(k: Array) -> Array:
    """Return d(k−2)/d(k), the chance that two given points of a random derangement of k exchange places."""
    small = [0.0, 0.0]
    d = [1, 0]
    for m in range(2, 24):
        d.append(m * d[-1] + (-1) ** m)
        small.append(d[m - 2] / d[m])
    table = np.array(small)
    large = np.divide(1.0, k * (k - 1), out=np.zeros_like(k), where=k > 1)
    return np.where(k < len(table), table[np.minimum(k, len(table) - 1).astype(np.int64)], large)


@dataclass(frozen=True, slots=True, kw_only=True)
class StratumCells:
    """Cells of strata as arrays: one entry for each (stratum, cell)."""

    n: npt.NDArray[np.int64]  # records of the stratum
    places: Array  # n_t: records of the stratum that lie in the cell's places
    shown: Array  # N′, or its sum of squares
    weight: Array  # W: what the stratum would add if all its records lay there
    shown_squares: Array  # Σ w² over the records shown there
    squares: Array  # Q = Σ w²


def cell_shrinkage(n: npt.NDArray[np.int64], rate: Fraction | PairSource) -> Array:
    """Return λ = q n/(n−1), by which a cell moves towards independence, for each stratum size.

    >>> cell_shrinkage(np.array([2]), Fraction(1, 2)).round(6).tolist()
    [1.0]
    """
    sizes, inverse = np.unique(n, return_inverse=True)
    values = np.array([pair_law(int(m), rate).moves * m / (m - 1) if m > 1 else 0.0 for m in sizes])
    result: Array = values[inverse]
    return result


def estimate(cells: StratumCells, rate: Fraction | PairSource) -> tuple[Array, Array]:
    r"""Unbiased $\hat N = (N' - \lambda W n_t/n)/(1-\lambda)$ and its estimated variance, entry by entry.

    Where $|1 - \lambda|$ is nearly 0 (the swapped file holds no information on the cell) the variance is infinite.
    """
    lam = cell_shrinkage(cells.n, rate)
    share = np.divide(cells.places, cells.n, out=np.zeros_like(cells.places), where=cells.n > 0)
    known = np.abs(1 - lam) > 1e-9
    safe = np.where(known, 1 - lam, 1.0)
    value = np.where(known, (cells.shown - lam * cells.weight * share) / safe, cells.weight * share)
    squares = np.where(
        known, (cells.shown_squares - lam * cells.squares * share) / safe, cells.squares * share
    )
    inside = np.clip(value, 0.0, cells.weight)
    squares = np.clip(squares, 0.0, cells.squares)
    spread = variance(cells.n, cells.places, inside, cells.weight, squares, cells.squares, rate)
    return value, np.where(known, spread / np.square(safe), np.inf)


def variance(
    n: npt.NDArray[np.int64],
    places: Array,
    inside: Array,
    weight: Array,
    squares_inside: Array,
    squares: Array,
    rate: Fraction | PairSource,
) -> Array:
    """Return the exact variance of N′ given the true parts (``inside`` = Σ w u, ``squares_inside`` = Σ w² u).

    >>> one = np.ones(1)
    >>> variance(np.array([2]), one, one, one, one, one, Fraction(1, 2)).round(6).tolist()  # stays or leaves, ½ each
    [0.25]
    """
    sizes, inverse = np.unique(n, return_inverse=True)
    laws = [pair_law(int(m), rate) for m in sizes]

    def each(name: str) -> Array:
        column: Array = np.array([getattr(item, name) for item in laws], dtype=np.float64)[inverse]
        return column

    q, both, exchange = each("moves"), each("both_stay"), each("exchange")
    go, follow, apart = each("stay_and_go"), each("follow"), each("apart")
    outside, squares_outside = weight - inside, squares - squares_inside
    others = np.maximum(n - 1, 1)
    stay = 1 - q * (n - places) / others
    come = q * places / others
    mean = inside * stay + outside * come
    one_one = both + exchange + 2 * (places - 2) * (go + follow) + (places - 2) * (places - 3) * apart
    one_zero = (places - 1) * (go + follow) + (places - 1) * (places - 2) * apart
    zero_zero = places * (places - 1) * apart
    second = squares_inside * stay + squares_outside * come
    second += (np.square(inside) - squares_inside) * one_one
    second += 2 * inside * outside * one_zero
    second += (np.square(outside) - squares_outside) * zero_zero
    result: Array = np.maximum(second - np.square(mean), 0.0)
    return result


# Compute the uncertainty of every cell of a table from the released file and the swap rate alone.

Z95 = 1.959963984540054
MAX_VARIANCE_IN_WHOLE_RECORDS = 10.0  # variance below which a number changes by few whole records
SUM_COLUMNS = ("count", "weighted", "estimate", "variance", "slack")  # of a cell, in whole numbers
MAX_PAIRS_PER_PASS = 4_000_000  # (stratum, cell) pairs handled at a time
_LARGEST_WHOLE_NUMBER = 2.0**60  # of a whole number that is added to others
WEIGHT_COLUMN = "__weight"  # what a record adds to its cell, in whole numbers


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
    rate: Fraction | PairSource,
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
    counted = weigh_records(counted, weight, scale)
    still = pl.col(WEIGHT_COLUMN).sum()
    published = count_cells(counted.lazy(), keys).collect()
    weighed = counted.group_by(keys).agg(still.alias("weighted"))
    fixed = (
        counted.join(units, on="unit", how="anti")
        .group_by(keys)
        .agg((still * int(scale.estimate)).alias("estimate"))
    )
    moments = _estimate_moments(units, counted, keys, held, moving, list(match), rate, scale)
    return add_up_cells(
        [lay_out_sums(part, keys) for part in (pl.DataFrame(published), weighed, fixed, moments)], keys
    )


def weigh_records(counted: pl.DataFrame, weight: str, scale: Units) -> pl.DataFrame:
    """Return the records with what each adds to its cell, in whole numbers."""
    added = (
        (pl.col(weight).cast(pl.Float64).fill_null(0.0).fill_nan(0.0) * scale.weight).round()
        if weight
        else pl.lit(1)
    )
    return counted.with_columns(added.cast(pl.Int64).alias(WEIGHT_COLUMN))


def finish_cells(
    parts: Sequence[pl.DataFrame], keys: list[str], *, weight: str = "", scale: Units | None = None
) -> pl.DataFrame:
    """Make the table from the moments of all its strata; intervals do not go below zero.

    Where the swap left no trace of a stratum the standard error is infinite, and the interval allows for all of it.
    """
    scale = scale or Units()
    whole, grain = add_up_cells(parts, keys), scale.weight * scale.estimate
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
    rate: Fraction | PairSource,
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
    adds = counted.group_by("unit", *held).agg(pl.col(WEIGHT_COLUMN).sum().alias("_w")).join(link, on="unit")
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
        (pl.col("_c") // MAX_PAIRS_PER_PASS).alias("_part")
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
                estimate=round_whole(value * scale.estimate),
                variance=round_whole(np.where(erased, 0.0, spread) * scale.variance),
                slack=round_whole(np.where(erased, weights, 0.0) * scale.estimate),
            )
            .group_by(keys)
            .agg(pl.col("estimate", "variance", "slack").sum())
        )
    if not results:
        return whole.select(held).head(0).join(places.select(moving).head(0), how="cross")
    return pl.concat(results)


def round_whole(values: NDArray[np.float64]) -> pl.Series:
    """Return whole numbers, none so large that a sum of many would not fit."""
    return pl.Series(np.rint(np.clip(values, -_LARGEST_WHOLE_NUMBER, _LARGEST_WHOLE_NUMBER)).astype(np.int64))


def lay_out_sums(frame: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    """Return the cells with all sums, zero where a part has none."""
    zero = pl.lit(0, pl.Int64)
    return frame.select(
        *keys, *(pl.col(name) if name in frame.columns else zero.alias(name) for name in SUM_COLUMNS)
    )


def add_up_cells(parts: Sequence[pl.DataFrame], keys: list[str]) -> pl.DataFrame:
    """Add up whole numbers by cell."""
    return pl.concat(parts).group_by(keys).agg(pl.col(SUM_COLUMNS).sum())


# Tables of a swap's release with the uncertainty of every cell, and where the swaps fell: public numbers alone.

MAX_POINTS_DRAWN = 400  # of a line in the report


class SwapVariables(Protocol):
    """The choice of variables of a swap."""

    @property
    def match(self) -> tuple[str, ...]:
        """Return the match variables."""

    @property
    def swap(self) -> tuple[str, ...]:
        """Return the swap variables."""

    @property
    def resolution(self) -> str:
        """Return the record type that is swapped."""


class SwapChoice(SwapVariables, Protocol):
    """The choice of variables and rate of a swap."""

    @property
    def rate(self) -> Fraction:
        """Return the swap rate."""


def list_moving(match: Sequence[str], swap: Sequence[str], schema: Schema) -> list[str]:
    """List the variables that move: the swap variables and the levels of geography that move along."""
    return [*swap, *(level for level in schema.spine if level not in match)]


def describe_exchange(
    choice: SwapVariables, release: Release, selected: Callable[[ArrayLike], Floats]
) -> Exchange | None:
    """Return the law by which one record moves, ``selected`` by the size of its stratum; None without records."""
    if choice.resolution not in release.microdata:
        return None
    there = scan_records(release.microdata[choice.resolution]).collect_schema().names()
    return Exchange(
        record_type=choice.resolution,
        match=choice.match,
        moving=tuple(
            name
            for name in dict.fromkeys(list_moving(choice.match, choice.swap, require_schema(release)))
            if name in there
        ),
        selected=selected,
    )


@dataclass(frozen=True, slots=True)
class Moments(StratumKernel):
    """Sum counts and moments of the cells of whole strata; with a weight, weighted sums too."""

    rate: Fraction | PairSource
    weight: str = ""
    scale: Units = field(default_factory=Units)

    @property
    def read_columns(self) -> tuple[str, ...]:
        """Return the variables of the table, and the weight."""
        return tuple(dict.fromkeys([*self.by, *filter(None, [self.weight])]))

    def of(self, units: pl.DataFrame, counted: pl.DataFrame) -> pl.DataFrame:
        """Return the counts, estimates and variances that these strata add to the cells."""
        return sum_moments(
            units,
            counted,
            by=self.by,
            match=self.match,
            swap=self.swap,
            rate=self.rate,
            weight=self.weight,
            scale=self.scale,
        )

    def schema(self, kinds: pa.Schema) -> pa.Schema:
        """Return the schema of the cells with whole numbers."""
        return cells_schema(kinds, self.by, SUM_COLUMNS)


@dataclass(frozen=True, slots=True)
class Sizes(StratumKernel):
    """Count the strata of each size."""

    def of(self, units: pl.DataFrame, counted: pl.DataFrame) -> pl.DataFrame:
        """Return the sizes and the number of strata of each."""
        del counted
        size = pl.len().cast(pl.Int64).alias("__size")
        sizes = units.group_by(list(self.match)).agg(size) if self.match else units.select(size)
        sizes = sizes.select(size=pl.col("__size")).filter(pl.col("size") > 0)
        return sizes.group_by("size").agg(strata=pl.len().cast(pl.Int64))

    def schema(self, kinds: pa.Schema) -> pa.Schema:
        """Return the schema of two whole numbers."""
        del kinds
        return pa.schema([("size", pa.int64()), ("strata", pa.int64())])


def estimate_table(
    choice: SwapVariables,
    release: Release,
    by: Sequence[str],
    record_type: str,
    engine: Engine,
    *,
    law: Fraction | PairSource,
    weight: str = "",
    moments: "Callable[..., Moments]" = Moments,
) -> pl.DataFrame:
    r"""Count, unbiased estimate, standard error and 95 % interval of every cell; ``law`` is the swap rate of the PSA.

    With a weight the cell is $N' = \sum_i w_i u_{g(i)}$, where $w_i$ is the sum of the weights that the records of unit
    $i$ add to it: the moments of ``mechanisms/swap/estimates.py`` hold for any $w_i \ge 0$ that stays with its record.
    """
    schema, swap = require_schema(release), list_moving(choice.match, choice.swap, require_schema(release))
    areas = [off.name for off in schema.geography.off_spine if off.of in swap and off.name in by]
    units = scan_records(release.microdata[choice.resolution])
    if areas and release.folder is not None:
        units = attach_levels(schema, units, areas, release.folder)
    names = units.collect_schema().names()
    swap = [name for name in dict.fromkeys([*swap, *areas]) if name in names]
    fixed = keeps_table(by, match=choice.match, swap=swap, weight=weight)
    if fixed and not weight:
        return lay_out_exact(count_records(release, by, record_type=record_type, engine=engine))
    scale = _choose_units(release, record_type, weight) if weight else Units()
    kernel = moments(tuple(by), choice.match, tuple(swap), law, weight, scale)
    found = map_strata(
        release, kernel, record_type=record_type, resolution=choice.resolution, areas=areas, engine=engine
    )
    table = finish_cells([found], list(by), weight=weight, scale=scale)
    return lay_out_exact(table, "weighted") if fixed else table


def _choose_units(release: Release, record_type: str, weight: str) -> Units:
    """Choose the units of the released weights."""
    homes = require_schema(release).record(record_type).linked_to
    frames = [
        scan_records(release.microdata[kind]) for kind in (record_type, homes) if kind in release.microdata
    ]
    found = next((frame for frame in frames if weight in frame.collect_schema()), None)
    if found is None:
        raise InputError(
            f"the table needs the weight {weight}",
            why=f"the release has no such column for {record_type} records",
            fix="hold the weight in the swap, or leave weight out",
        )
    largest = collect_frame(found.select(pl.col(weight).cast(pl.Float64).max()), streaming=True).item()
    return Units.of(largest or 0.0)


def count_stratum_sizes(choice: SwapVariables, release: Release, engine: Engine) -> pl.DataFrame:
    """Count the strata of each size; sizes of strata are invariants."""
    own = choice.resolution
    kernel = Sizes((), choice.match, ())
    found = map_strata(release, kernel, record_type=own, resolution=own, areas=(), engine=engine)
    return found.group_by("size").agg(pl.col("strata").sum()).sort("size")


def largest_share(
    choice: SwapVariables, release: Release, engine: Engine, law: Fraction | PairSource
) -> Fraction:
    """Return the largest share that moves in a stratum of this release, of the PSA its swap rate."""
    if isinstance(law, Fraction):
        return law
    sizes = count_stratum_sizes(choice, release, engine)["size"].to_list()
    return max((law.share(n) for n in sizes), default=Fraction(0))


def exhibit_effective_rates(choice: SwapChoice, release: Release, engine: Engine) -> Exhibit:
    """Return the effective rate by stratum size as an exhibit."""
    found = count_stratum_sizes(choice, release, engine)
    sizes, number = found["size"].to_list(), found["strata"].to_list()
    effective = [float(q) for q in effective_rate(found["size"].to_numpy(), choice.rate)]
    records = [size * many for size, many in zip(sizes, number, strict=True)]
    weak = sum(r for r, q in zip(records, effective, strict=True) if q < float(choice.rate) / 2)
    x, y = Phrase("swap.exhibit.size"), Phrase("swap.exhibit.rate")
    rows: list[dict[str, object]] = [{x: s, y: q} for s, q in zip(sizes, effective, strict=True) if s > 0]
    if len(rows) > MAX_POINTS_DRAWN:
        rows = rows[:: max(1, len(rows) // MAX_POINTS_DRAWN)]
    share = Decimal(f"{100 * weak / max(sum(records), 1):.2g}")
    series = Series(
        name="effective-rate",
        kind="line",
        title=Phrase("swap.exhibit.chart"),
        sentence=Phrase("swap.exhibit.largest", number=max(sizes, default=0)),
        rows=rows,
        x=x,
        y=y,
        log_x=True,
    )
    return Exhibit(
        title=Phrase("swap.exhibit.title"),
        finding=Phrase("swap.exhibit.finding", rate=choice.rate, share=share),
        parts=(series,) if rows else (),
    )


def require_held(roles: Roles, weight: str, record_type: str) -> None:
    """Raise an error if a weight does not stay with its record."""
    if weight not in {*roles.held_variables, *dict(roles.members).get(record_type, ())}:
        raise InputError(
            f"a table is weighted by {weight}, which the swap does not hold",
            why=f"it moves, it is dropped, or {record_type} records have no such variable",
            fix="hold it, or drop it and let [weights] recalibrate_to make new ones from public totals",
        )
