"""Every data set, every permutation, exact fractions: the budgets hold, are attained where said, and mutants are caught."""

from collections.abc import Mapping
from fractions import Fraction
from random import Random

import pytest

from oracles.strata import shapes
from stirred.mechanisms.swap.bounds import margins_closed, margins_exact, phi_exact
from stirred.mechanisms.swap.budget import theorem_1, tight_budget
from stirred.mechanisms.swap.enumeration import (
    Labels,
    Law,
    Permutation,
    all_permutations,
    count_moved,
    largest_loss_of,
    loss_between,
    outputs,
    repeat_labels,
    swapping_law,
    tabulate,
    universe,
)
from stirred.spec.budgets import Budget
from stirred.spec.laws import count_derangements

RATES = [Fraction(1, 20), Fraction(1, 2), Fraction(4, 5)]
SIX = [  # margins of six records: the paper's witness, all different, repeated values, two types
    ((2, 2, 1, 1), (2, 2, 1, 1)),
    ((3, 3), (3, 3)),
    ((4, 2), (2, 2, 2)),
    ((3, 2, 1), (3, 2, 1)),
    ((5, 1), (2, 2, 1, 1)),
]


def check(law: Law, p: Fraction, hold: Labels, swap: Labels, *, labelled: bool = False) -> Budget:
    """The largest loss of a universe, held against every bound that is claimed for it."""
    n = len(hold)
    found = largest_loss_of(law, hold, swap, labelled=labelled).budget
    assert found <= tight_budget(n, p) <= theorem_1(n, p)
    if not labelled:
        for side in (hold, swap):
            if len(set(side)) == 2:
                first = side.count(0)
                assert found <= margins_exact(first, n - first, p)
                if p <= Fraction(2, 3):
                    assert found <= margins_closed(first, n - first, p)
    return found


@pytest.mark.parametrize("p", RATES)
@pytest.mark.parametrize("n", [2, 3, 4])
def test_every_small_universe_keeps_every_bound(n: int, p: Fraction) -> None:
    law = swapping_law(p)
    losses = [check(law, p, hold, swap) for hold, swap in shapes(n)]
    # all values different: attained, to the last digit
    assert losses[-1] == tight_budget(n, p) == max(losses)


@pytest.mark.parametrize("p", RATES)
@pytest.mark.parametrize("n", [2, 3, 4])
def test_labelled_output_loses_the_same_at_most(n: int, p: Fraction) -> None:
    law = swapping_law(p)
    every = repeat_labels((1,) * n)
    assert check(law, p, every, every, labelled=True) == tight_budget(n, p)
    for hold, swap in shapes(n):
        check(law, p, hold, swap, labelled=True)


def test_five_records_all_different_and_with_repeats() -> None:
    p = Fraction(1, 20)
    law = swapping_law(p)
    assert check(law, p, repeat_labels((1,) * 5), repeat_labels((1,) * 5)) == tight_budget(5, p)
    for hold, swap in (((2, 2, 1), (2, 2, 1)), ((3, 2), (2, 1, 1, 1)), ((4, 1), (3, 2))):
        check(law, p, repeat_labels(hold), repeat_labels(swap))


@pytest.mark.parametrize(("hold", "swap"), SIX)
def test_six_records(hold: tuple[int, ...], swap: tuple[int, ...]) -> None:
    p = Fraction(1, 20)
    found = check(swapping_law(p), p, repeat_labels(hold), repeat_labels(swap))
    if hold == (2, 2, 1, 1):
        # Proposition 9's witness: ½ ln(d(6)/d(4)) − ln o, attained by one pair and one output
        assert found == Budget.log(Fraction(265, 9) * 19**2) * Fraction(1, 2) == tight_budget(6, p)


@pytest.mark.slow
@pytest.mark.parametrize("p", RATES)
def test_every_universe_of_five_and_many_of_six(p: Fraction) -> None:
    law = swapping_law(p)
    assert max(check(law, p, hold, swap) for hold, swap in shapes(5)) == tight_budget(5, p)
    for hold, swap in shapes(6):
        if len(set(hold)) <= 4 or len(set(swap)) <= 4:
            check(law, p, hold, swap)


def test_exact_reduction_is_the_loss_where_the_types_can_split() -> None:
    # all swap values different: every t is attained, so ε* is the loss of the universe itself
    for p in RATES:
        for margins in ((2, 1), (2, 2), (3, 1), (3, 2), (4, 1)):
            found = largest_loss_of(
                swapping_law(p), repeat_labels(margins), repeat_labels((1,) * sum(margins))
            )
            assert found.budget == margins_exact(*margins, p)
    # columns (3, 5) against rows (1, 7) cannot split: the loss stays below
    p = Fraction(1, 2)
    found = largest_loss_of(swapping_law(p), repeat_labels((1, 4)), repeat_labels((2, 3)))
    assert found.budget < margins_exact(4, 1, p)


@pytest.mark.parametrize(
    ("hold", "swap"), [((2, 2), (2, 1, 1)), ((3, 2), (2, 2, 1)), ((3, 1), (2, 2)), ((2, 3), (1, 3, 1))]
)
def test_the_reduction_counts_what_brute_force_counts(hold: tuple[int, int], swap: tuple[int, ...]) -> None:
    # P(N′|N) = c Σ_t C_t Φ_t, with C_t counted over all choices of who crosses
    from itertools import combinations

    p = Fraction(1, 3)
    o, n = p / (1 - p), sum(hold)
    h, s = repeat_labels(hold), repeat_labels(swap)
    c = (1 - p) ** n / (1 - n * p * (1 - p) ** (n - 1))
    for table, arrangement in universe(h, s).items():
        brute = outputs(swapping_law(p), h, arrangement)
        formula: dict[object, Fraction] = dict.fromkeys(brute, Fraction(0))
        first, second = range(hold[0]), range(hold[0], n)
        for t in range(min(hold) + 1):
            for leaving in combinations(first, t):
                for coming in combinations(second, t):
                    row = sorted(
                        [arrangement[i] for i in first if i not in leaving] + [arrangement[j] for j in coming]
                    )
                    rest = sorted(
                        [arrangement[j] for j in second if j not in coming]
                        + [arrangement[i] for i in leaving]
                    )
                    formula[tabulate(h, [*row, *rest])] += c * phi_exact(*hold, o, t)
        assert formula == brute, table


def random_margins(random: Random, n: int, parts: int) -> tuple[int, ...]:
    cuts = sorted(random.sample(range(1, n), parts - 1))
    return tuple(b - a for a, b in zip([0, *cuts], [*cuts, n], strict=True))


def two_row_losses(
    rows: tuple[int, int], columns: tuple[int, ...], o: Fraction
) -> list[tuple[int, Fraction]]:
    """(distance, largest ratio) of all pairs of 2×S tables and all outputs, by the formula for P(N′|N)."""
    from itertools import product
    from math import comb

    n1 = rows[0]
    tables = [row for row in product(*(range(c + 1) for c in columns)) if sum(row) == n1]
    phis = [phi_exact(*rows, o, t) for t in range(min(rows) + 1)]

    def chance(before: tuple[int, ...], after: tuple[int, ...]) -> Fraction:
        # leave l_s of row 1's column s and bring back l_s + after − before from row 2
        counts = {0: 1}
        for b, a, c in zip(before, after, columns, strict=True):
            step: dict[int, int] = {}
            for out in range(b + 1):
                back = out + a - b
                if 0 <= back <= c - b:
                    for t, ways in counts.items():
                        step[t + out] = step.get(t + out, 0) + ways * comb(b, out) * comb(c - b, back)
            counts = step
        return sum((ways * phis[t] for t, ways in counts.items() if t < len(phis)), Fraction(0))

    matrix = [[chance(x, z) for z in tables] for x in tables]
    found = []
    for i, x in enumerate(tables):
        for j in range(i):
            units = sum(abs(a - b) for a, b in zip(x, tables[j], strict=True))
            found.append((units, max(max(a / b, b / a) for a, b in zip(matrix[i], matrix[j], strict=True))))
    return found


def hold_two_row_universes(seed: int, count: int, most: int) -> int:
    random = Random(seed)
    triples = 0
    for _ in range(count):
        n = random.randint(3, most)
        rows = random_margins(random, n, 2)
        columns = random_margins(random, n, random.randint(2, min(4, n)))
        o = random.choice(
            [Fraction(1, 99), Fraction(1, 19), Fraction(1, 9), Fraction(1, 2), Fraction(1), Fraction(2)]
        )
        p = o / (1 + o)
        exact, closed = margins_exact(rows[0], rows[1], p), margins_closed(rows[0], rows[1], p)
        assert exact <= closed
        worst: dict[int, Fraction] = {}
        for units, ratio in two_row_losses((rows[0], rows[1]), columns, o):
            worst[units] = max(worst.get(units, Fraction(1)), ratio)
            triples += 1
        for units, ratio in worst.items():
            assert Budget.log(ratio) * Fraction(1, units) <= exact
    return triples


def test_random_two_row_universes_keep_both_bounds() -> None:
    assert hold_two_row_universes(seed=1, count=60, most=9) > 300


@pytest.mark.slow
def test_many_random_two_row_universes_keep_both_bounds() -> None:
    assert hold_two_row_universes(seed=2, count=1500, most=14) > 10_000


def test_other_invariants_mean_infinite_loss() -> None:
    law = swapping_law(Fraction(1, 2))
    one = outputs(law, (0, 0, 1), (0, 1, 1))
    other = outputs(law, (0, 0, 1), (0, 0, 1))  # another swap margin
    assert not loss_between(one, other, 1)[0].is_finite
    third = outputs(law, (0, 1, 1), (0, 1, 1))  # another hold margin
    assert not loss_between(one, third, 1)[0].is_finite


@pytest.mark.parametrize("p", [Fraction(0), Fraction(1)])
def test_rates_zero_and_one_are_infinite_by_enumeration(p: Fraction) -> None:
    def law(hold: Labels, swap: Labels) -> Mapping[Permutation, Fraction]:
        n = len(hold)
        k = 0 if p == 0 else n
        return {
            g: Fraction(1, count_derangements(k)) if count_moved(g) == k else Fraction(0)
            for g in all_permutations(n)
        }

    assert not largest_loss_of(law, (0, 1), (0, 1)).budget.is_finite


# Mutants: a wrong sampler must not pass as the right one. The exact check compares laws, so the smallest deviation shows.


def same_law(law: Law, p: Fraction, n: int) -> bool:
    """Does a law equal Algorithm 1's closed form c o^k/d(k) on every permutation of n records?"""
    o = p / (1 - p)
    c = (1 - p) ** n / (1 - n * p * (1 - p) ** (n - 1))
    names = repeat_labels((1,) * n)
    given = law(names, names)
    right = {
        g: c * o ** count_moved(g) / count_derangements(count_moved(g))
        for g in all_permutations(n)
        if count_moved(g) != 1
    }
    return {g: q for g, q in given.items() if q} == right


def permutation_instead_of_derangement(p: Fraction) -> Law:
    """The selected are permuted uniformly, fixed points and all."""
    from itertools import combinations, permutations

    def law(hold: Labels, swap: Labels) -> Mapping[Permutation, Fraction]:
        n = len(hold)
        result: dict[Permutation, Fraction] = {}
        keep = 1 - n * p * (1 - p) ** (n - 1)
        for k in [0, *range(2, n + 1)]:
            for chosen in combinations(range(n), k):
                images = list(permutations(chosen))
                for image in images:
                    g = list(range(n))
                    for i, j in zip(chosen, image, strict=True):
                        g[i] = j
                    weight = p**k * (1 - p) ** (n - k) / keep / len(images)
                    result[tuple(g)] = result.get(tuple(g), Fraction(0)) + weight
        return result

    return law


def no_reselection(p: Fraction) -> Law:
    """A lone selected record just stays: that mass goes to the identity."""

    def law(hold: Labels, swap: Labels) -> Mapping[Permutation, Fraction]:
        n = len(hold)
        result = {
            g: p ** count_moved(g) * (1 - p) ** (n - count_moved(g)) / count_derangements(count_moved(g))
            for g in all_permutations(n)
        }
        result[tuple(range(n))] += n * p * (1 - p) ** (n - 1)
        return result

    return law


def test_the_true_law_passes_and_the_mutants_do_not() -> None:
    p = Fraction(1, 4)
    for n in (2, 3, 4, 5):
        assert same_law(swapping_law(p), p, n)
        assert sum(swapping_law(p)(repeat_labels((1,) * n), repeat_labels((1,) * n)).values()) == 1
        assert not same_law(permutation_instead_of_derangement(p), p, n)
        assert not same_law(no_reselection(p), p, n)
        assert not same_law(swapping_law(p + Fraction(1, 1000)), p, n)
        assert not same_law(swapping_law(p * (1 + Fraction(1, 1000))), p, n)


def test_mutants_change_the_loss_too() -> None:
    p, names = Fraction(1, 4), repeat_labels((1, 1, 1))
    right = largest_loss_of(swapping_law(p), names, names).budget
    assert right == tight_budget(3, p)
    for mutant in (
        permutation_instead_of_derangement(p),
        no_reselection(p),
        swapping_law(p + Fraction(1, 1000)),
    ):
        assert largest_loss_of(mutant, names, names).budget != right
    # dropping the redraw is no detail: staying put becomes likelier than the budget allows
    assert largest_loss_of(no_reselection(p), names, names).budget > tight_budget(3, p)


def test_mixed_strata_lose_an_invariant() -> None:
    # two strata swapped as one: outputs appear that no data set of the universe can give
    from stirred.mechanisms.swap.enumeration import stratified_law

    p = Fraction(1, 4)
    hold, swap = (0, 1, 10, 11), (0, 1, 2, 3)  # hold values 10 and 11 are the second stratum
    right = outputs(stratified_law(p, lambda h: h // 10), hold, swap)
    mixed = outputs(swapping_law(p), hold, swap)

    def margin(table: object) -> frozenset[tuple[int, int]]:
        assert isinstance(table, tuple)
        return frozenset((h // 10, s) for (h, s), _ in table)

    kept = {margin(table) for table in right}
    assert len(kept) == 1
    assert {margin(table) for table in mixed} != kept
