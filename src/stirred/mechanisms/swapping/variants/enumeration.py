r"""Enumerate small strata: every data set of a universe, every permutation, in exact fractions.

A data set is a stratum's hold values (fixed) beside an arrangement of its swap values; the tables of a universe are
the distinct tabulations. A *law* gives each permutation its probability for a given data set; the paper's is
$c\,o^k/d(k)$. The largest loss per unit is taken over all pairs of data sets and all outputs.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import permutations
from math import inf, log
from operator import ne

import numpy as np
from numpy.typing import NDArray

from stirred.mechanisms.swapping.budget.by_size import compute_odds
from stirred.spec.laws.derangements import count_derangements
from stirred.spec.numbers.budget import Budget

Permutation = tuple[int, ...]
Labels = tuple[int, ...]
Cell = tuple[int, int]
Table = tuple[tuple[Cell, int], ...]
Law = Callable[[Labels, Labels], Mapping[Permutation, Fraction]]


@cache
def all_permutations(n: int) -> tuple[Permutation, ...]:
    """Return the n! permutations of a stratum."""
    return tuple(permutations(range(n)))


@cache
def count_moved(g: Permutation) -> int:
    """Count the records that a permutation moves.

    >>> count_moved((1, 0, 2))
    2
    """
    return sum(i != j for i, j in enumerate(g))


def swapping_law(p: Fraction) -> Law:
    """Return the law of Algorithm 1 from its steps: select, redraw a lone selection, derange uniformly.

    >>> swapping_law(Fraction(1, 2))((0, 1), (0, 1))[(1, 0)]
    Fraction(1, 2)
    """

    @cache
    def by_size(n: int) -> Mapping[Permutation, Fraction]:
        redraw = n * p * (1 - p) ** (n - 1)
        return {
            g: p ** count_moved(g)
            * (1 - p) ** (n - count_moved(g))
            / ((1 - redraw) * count_derangements(count_moved(g)))
            for g in all_permutations(n)
        }

    def law(hold: Labels, swap: Labels) -> Mapping[Permutation, Fraction]:
        del swap  # the law depends only on the number of records
        return by_size(len(hold))

    return law


def selection_law(chances: Callable[[Labels, Labels], Sequence[Fraction]]) -> Law:
    """Select record i with its own chance, redraw a lone selection, derange uniformly."""

    def law(hold: Labels, swap: Labels) -> Mapping[Permutation, Fraction]:
        p = chances(hold, swap)
        n = len(hold)
        nobody = Fraction(1)
        for q in p:
            nobody *= 1 - q
        kept = 1 - sum((nobody * compute_odds(q) for q in p), Fraction(0))
        result = {}
        for g in all_permutations(n):
            chance = nobody / (kept * count_derangements(count_moved(g)))
            for i in range(n):
                if g[i] != i:
                    chance *= compute_odds(p[i])
            result[g] = chance
        return result

    return law


def tabulate(hold: Sequence[int], swap: Sequence[int]) -> Table:
    """Return the contingency table of a stratum, as sorted cells.

    >>> tabulate((0, 0, 1), (5, 5, 6))
    (((0, 5), 2), ((1, 6), 1))
    """
    cells: dict[Cell, int] = {}
    for cell in zip(hold, swap, strict=True):
        cells[cell] = cells.get(cell, 0) + 1
    return tuple(sorted(cells.items()))


def distance(one: Table, other: Table) -> int:
    """Count the records in which two tables of equal size differ, half their l1 distance."""
    a, b = dict(one), dict(other)
    return sum(abs(a.get(cell, 0) - b.get(cell, 0)) for cell in a.keys() | b.keys()) // 2


def universe(hold: Sequence[int], swap: Sequence[int]) -> dict[Table, Labels]:
    """Return the tables with the same margins, each with an arrangement of the swap values that makes it.

    >>> len(universe((0, 0, 1, 1), (0, 0, 1, 1)))
    3
    """
    found: dict[Table, Labels] = {}
    for arrangement in sorted(set(permutations(swap))):
        found.setdefault(tabulate(hold, arrangement), arrangement)
    return found


def apply(g: Permutation, swap: Labels) -> Labels:
    """Return the swap values after a permutation: record i receives that of record g(i)."""
    return tuple(swap[j] for j in g)


def outputs(law: Law, hold: Labels, swap: Labels, *, labelled: bool = False) -> dict[object, Fraction]:
    """Return the distribution of the released table (or, labelled, of the arrangement) for one data set."""
    result: dict[object, Fraction] = {}
    for g, chance in law(hold, swap).items():
        if chance:
            after = apply(g, swap)
            key: object = after if labelled else tabulate(hold, after)
            result[key] = result.get(key, Fraction(0)) + chance
    return result


@dataclass(frozen=True, slots=True)
class Loss:
    """The largest loss per unit, and the pair of data sets and the output where it occurs."""

    budget: Budget
    pair: tuple[object, object] | None = None
    output: object = None
    distance: int = 0


def loss_between(
    one: Mapping[object, Fraction], other: Mapping[object, Fraction], units: int
) -> tuple[Budget, object]:
    """Return sup |ln P/Q| over outputs, per unit, and where; ∞ if an output is possible under one only."""
    best, where = Fraction(1), None
    for output in one.keys() | other.keys():
        p, q = one.get(output, Fraction(0)), other.get(output, Fraction(0))
        if not p or not q:
            return Budget.infinite(), output
        ratio = max(p / q, q / p)
        if ratio > best:
            best, where = ratio, output
    return Budget.log(best) * Fraction(1, units), where


def largest_loss_of(law: Law, hold: Sequence[int], swap: Sequence[int], *, labelled: bool = False) -> Loss:
    """Return the largest loss over all pairs of data sets of one universe and all outputs.

    Labelled, data sets are arrangements of the swap values over the records and distance counts records; else tables.

    >>> largest_loss_of(swapping_law(Fraction(1, 4)), (0, 1), (0, 1)).budget.exact
    '1/2*ln(9)'
    """
    fixed = tuple(hold)
    if labelled:
        sets: list[tuple[object, Labels]] = [(a, a) for a in sorted(set(permutations(swap)))]
        units = [[sum(map(ne, a, b)) for _, b in sets] for _, a in sets]
    else:
        sets = [(t, a) for t, a in universe(hold, swap).items()]
        tables = [tabulate(fixed, arrangement) for _, arrangement in sets]
        units = [[distance(a, b) for b in tables] for a in tables]
    laws = [outputs(law, fixed, arrangement, labelled=labelled) for _, arrangement in sets]
    return largest_of(laws, np.array(units), [name for name, _ in sets])


def largest_of(
    laws: Sequence[Mapping[object, Fraction]], units: NDArray[np.int64], names: Sequence[object]
) -> Loss:
    """Return the largest loss per unit among output distributions at given distances (0 is not compared).

    Floats find the candidates; fractions decide among all within 1e-9 of the largest.
    """
    support = list({output: None for one in laws for output in one})
    logs = np.array([[_log(one.get(output)) for output in support] for one in laws])
    best = 0.0
    candidates: list[tuple[float, int, int]] = []
    for i in range(len(laws) - 1):
        with np.errstate(invalid="ignore"):
            gap = np.abs(logs[i + 1 :] - logs[i])
        # −∞ on both sides: an output that neither can give.
        per_unit = np.nan_to_num(gap, nan=0.0, posinf=np.inf).max(axis=1)
        per_unit = np.where(units[i, i + 1 :] > 0, per_unit / np.maximum(units[i, i + 1 :], 1), 0.0)
        best = max(best, float(per_unit.max(initial=0.0)))
        floor = best * (1 - 1e-9)
        candidates += (
            [(float(per_unit[j]), i, i + 1 + j) for j in np.flatnonzero(per_unit >= floor).tolist()]
            if best
            else []
        )
    found = Loss(Budget.zero())
    seen: set[tuple[Fraction, int]] = set()
    for value, i, j in candidates:
        if value < best * (1 - 1e-9):
            continue
        if value == inf:
            return Loss(
                Budget.infinite(),
                (names[i], names[j]),
                loss_between(laws[i], laws[j], 1)[1],
                int(units[i, j]),
            )
        with np.errstate(invalid="ignore"):
            gap = np.nan_to_num(np.abs(logs[i] - logs[j]), nan=0.0)
        for column in np.flatnonzero(gap >= gap.max() * (1 - 1e-9)).tolist():
            where = support[column]
            ratio = laws[i][where] / laws[j][where]
            key = (max(ratio, 1 / ratio), int(units[i, j]))
            if key not in seen:
                seen.add(key)
                budget = Budget.log(key[0]) * Fraction(1, key[1])
                if budget > found.budget:
                    found = Loss(budget, (names[i], names[j]), where, key[1])
    return found


def _log(value: Fraction | None) -> float:
    return log(value.numerator) - log(value.denominator) if value else -inf


def repeat_labels(margins: Sequence[int]) -> Labels:
    """Return values 0, 1, … repeated as the margins say.

    >>> repeat_labels((2, 1))
    (0, 0, 1)
    """
    return tuple(value for value, count in enumerate(margins) for _ in range(count))
