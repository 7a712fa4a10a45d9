"""Enumerate small strata in exact fractions: every data set, every permutation, the law of every variant."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import permutations, product
from math import inf, log
from operator import ne

import numpy as np
from numpy.typing import NDArray

from stirred.spec.budgets import Budget
from stirred.spec.laws import compute_odds, count_derangements

# Enumerate small strata: every data set of a universe, every permutation, in exact fractions.
#
# A data set is a stratum's hold values (fixed) beside an arrangement of its swap values; the tables of a universe are
# the distinct tabulations. A *law* gives each permutation its probability for a given data set; the paper's is
# $c\,o^k/d(k)$. The largest loss per unit is taken over all pairs of data sets and all outputs.

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


# The laws of the swapping variants for the enumeration oracle, written from their definitions, in fractions.

Distance = Callable[[int, int], int]


def held_law(chance_of: Mapping[int, Fraction]) -> Law:
    """Return law 1a: the chance depends on the record's hold value."""
    return selection_law(lambda hold, _: [chance_of[h] for h in hold])


def place_law(chance_of: Mapping[tuple[int, int], Fraction]) -> Law:
    """Return law 1b: the chance depends on the record's hold and swap values."""
    return selection_law(lambda hold, swap: [chance_of[cell] for cell in zip(hold, swap, strict=True)])


def rarity_law(common: Fraction, unique: Fraction, group: Callable[[int], int] = int) -> Law:
    """Return law 1c with c = 1: a record unique in its group and place has its own probability."""

    def chances(hold: Labels, swap: Labels) -> list[Fraction]:
        cells = [(group(h), s) for h, s in zip(hold, swap, strict=True)]
        return [unique if cells.count(cell) == 1 else common for cell in cells]

    return selection_law(chances)


def nonvacuous_law(p: Fraction) -> Law:
    """Return law 3: the swap, given that no record was selected or the table changed."""
    psa = swapping_law(p)

    def law(hold: Labels, swap: Labels) -> Mapping[Permutation, Fraction]:
        identity = tuple(range(len(hold)))
        before = tabulate(hold, swap)
        kept = {
            g: chance
            for g, chance in psa(hold, swap).items()
            if chance and (g == identity or tabulate(hold, apply(g, swap)) != before)
        }
        total = sum(kept.values(), Fraction(0))
        return {g: chance / total for g, chance in kept.items()}

    return law


@cache
def pairings(n: int) -> tuple[tuple[tuple[int, int], ...], ...]:
    """Return all ways to pair n records, one left over if n is odd.

    >>> len(pairings(4)), len(pairings(5))
    (3, 15)
    """

    def of(items: tuple[int, ...]) -> list[tuple[tuple[int, int], ...]]:
        if len(items) < 2:
            return [()]
        first, rest = items[0], items[1:]
        found = [
            ((first, other), *more) for other in rest for more in of(tuple(x for x in rest if x != other))
        ]
        if len(items) % 2:
            found += of(rest)  # the first record has no partner
        return found

    return tuple(of(tuple(range(n))))


def near_law(p: Fraction, preference: Fraction, away: Distance) -> Law:
    """Return law 4: draw g, pair all records, choose the arrangement of each exchangeable pair by distance."""
    psa = swapping_law(p)

    def law(hold: Labels, swap: Labels) -> Mapping[Permutation, Fraction]:
        n = len(hold)
        result: dict[Permutation, Fraction] = {}
        ways = pairings(n)
        for g, chance in psa(hold, swap).items():
            for pairing in ways:
                open_pairs = [
                    (i, j) for i, j in pairing if g[i] != i and g[j] != j and g[i] != j and g[j] != i
                ]
                for exchanged in product((False, True), repeat=len(open_pairs)):
                    after, weight = list(g), chance / len(ways)
                    for (i, j), flip in zip(open_pairs, exchanged, strict=True):
                        stay = away(swap[i], swap[g[i]]) + away(swap[j], swap[g[j]])
                        cross = away(swap[i], swap[g[j]]) + away(swap[j], swap[g[i]])
                        chosen, other = (cross, stay) if flip else (stay, cross)
                        if chosen == other:
                            weight /= 2
                        else:
                            weight *= (preference if chosen < other else Fraction(1)) / (1 + preference)
                        if flip:
                            after[i], after[j] = g[j], g[i]
                    key = tuple(after)
                    result[key] = result.get(key, Fraction(0)) + weight
        return result

    return law


def stratified_law(
    p: Fraction, stratum: Callable[[int], int] | None = None, keys: Sequence[int] | None = None
) -> Law:
    """Return Algorithm 1 in several strata, given by a function of the hold value or record by record."""
    psa = swapping_law(p)

    def law(hold: Labels, swap: Labels) -> Mapping[Permutation, Fraction]:
        del swap  # places have no effect
        marks = list(keys) if keys is not None else [stratum(h) if stratum else 0 for h in hold]
        result: dict[Permutation, Fraction] = {}
        groups = [[i for i, mark in enumerate(marks) if mark == m] for m in sorted(set(marks))]
        for g in all_permutations(len(hold)):
            if any(marks[i] != marks[j] for i, j in enumerate(g)):
                continue
            chance = Fraction(1)
            for group in groups:
                inside = tuple(group.index(g[i]) for i in group)
                if len(group) > 1:
                    chance *= psa(tuple(group), tuple(group))[inside]
            result[g] = chance
        return result

    return law


def chain_law(first: Law, second: Law) -> Law:
    """Return the law of one swap after the other; the second must not depend on the swap values."""

    def law(hold: Labels, swap: Labels) -> Mapping[Permutation, Fraction]:
        result: dict[Permutation, Fraction] = {}
        later = second(hold, swap)
        for g, chance in first(hold, swap).items():
            for f, more in later.items():
                key = tuple(g[j] for j in f)
                result[key] = result.get(key, Fraction(0)) + chance * more
        return result

    return law


def unit_matching_law(p: Fraction, alpha: Fraction, stratum: Callable[[int], int]) -> Law:
    """Return law 5: PSA(αp) in the pool, then PSA((1−α)p) in the strata."""
    return chain_law(swapping_law(alpha * p), stratified_law((1 - alpha) * p, stratum))


def noisy_key_law(
    p: Fraction, kernel: Mapping[int, Mapping[int, Fraction]], stratum: Callable[[int], int]
) -> Law:
    """Return law 6a: every record draws a noisy stratum, then Algorithm 1 runs within these strata."""

    def law(hold: Labels, swap: Labels) -> Mapping[Permutation, Fraction]:
        options = [kernel[stratum(h)] for h in hold]
        result: dict[Permutation, Fraction] = {}
        for keys in product(*options):
            weight = Fraction(1)
            for key, option in zip(keys, options, strict=True):
                weight *= option[key]
            for g, chance in stratified_law(p, keys=keys)(hold, swap).items():
                result[g] = result.get(g, Fraction(0)) + weight * chance
        return result

    return law


SMALL_MARGINS = (((1, 1, 1, 1), (1, 1, 1, 1)), ((2, 2), (2, 2)), ((2, 1, 1), (2, 1, 1)))


def example_law(law: str, p: Fraction, **parameters: Fraction) -> Law:
    """Return a law of each variant at given rates, on strata of four records with places 0 … 3."""
    high = parameters.get("highest", p)
    other = (
        parameters.get("change", Fraction(1, 2)) / 2
    )  # redrawn between two keys, half of the time the same
    kernel = {0: {0: 1 - other, 1: other}, 1: {0: other, 1: 1 - other}}
    makers: dict[str, Callable[[], Law]] = {
        "1a": lambda: held_law({h: high if h > 1 else p for h in range(4)}),
        "1b": lambda: place_law({(h, s): high if (h + s) % 2 else p for h in range(4) for s in range(4)}),
        "1c": lambda: rarity_law(p, high, lambda h: h // 2),
        "3": lambda: nonvacuous_law(p),
        "4": lambda: near_law(p, parameters.get("preference", Fraction(1)), lambda a, b: abs(a - b)),
        "5": lambda: unit_matching_law(p, parameters["alpha"], lambda h: h // 2),
        "6a": lambda: noisy_key_law(p, kernel, lambda h: h // 2),
    }
    return makers[law]() if law in makers else swapping_law(p)


@cache
def find_loss(law: str, p: Fraction, parameters: tuple[tuple[str, Fraction], ...] = ()) -> Loss:
    """Return the largest loss of a variant on a few universes of four records, a lower bound on any budget.

    >>> find_loss("2", Fraction(1, 2)).budget.exact
    '1/2*ln(9)'
    """
    made = example_law(law, p, **dict(parameters))
    return max(
        (largest_loss_of(made, repeat_labels(hold), repeat_labels(swap)) for hold, swap in SMALL_MARGINS),
        key=lambda loss: loss.budget,
    )
