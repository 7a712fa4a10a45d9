r"""The average effect of a swap in closed form, for data users who correct for it or check it.

In a stratum of n records a record is selected with the *effective rate* q, which differs from p because a single
selection is drawn again; a selected record takes the value t of the swap variable with chance $n_t/(n-1)$, one less for
its own. Everything below follows from these two facts and was checked by enumeration.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stirred.errors import InputError
from stirred.languages import Phrase

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
