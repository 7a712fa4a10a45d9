"""Statements of the paper on all small cases, with an enumeration of their own; docs/theory/appendix.md lists them."""

from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from itertools import permutations, product
from math import comb, e, factorial, floor

import pytest

from stirred.mechanisms.swap.budget import theorem_1
from stirred.paper.budgets import theorem_3
from stirred.spec import Budget
from stirred.spec.laws import count_derangements

Records = tuple[tuple[int, int], ...]  # (hold, swap) of one stratum
HALF, TWENTIETH = Fraction(1, 2), Fraction(1, 20)


def swapped(records: Records, g: tuple[int, ...]) -> Records:
    return tuple((hold, records[g[i]][1]) for i, (hold, _) in enumerate(records))


def hamming(one: Records, other: Records) -> int:
    """|x ⊖ x′|/2, as multisets."""
    apart = Counter(one)
    apart.subtract(Counter(other))
    return sum(map(abs, apart.values())) // 2


def moved(g: tuple[int, ...]) -> int:
    return sum(i != value for i, value in enumerate(g))


def law(n: int, p: Fraction) -> dict[tuple[int, ...], Fraction]:
    """Algorithm 1: select, deselect and select again where one alone was selected, derange uniformly."""
    chance: dict[int, Fraction] = {
        k: p**k * (1 - p) ** (n - k) / (1 - n * p * (1 - p) ** (n - 1)) for k in range(n + 1) if k != 1
    }
    counts = Counter(moved(g) for g in permutations(range(n)))  # how many permutations move k records
    return {g: chance[moved(g)] * comb(n, moved(g)) / counts[moved(g)] for g in permutations(range(n))}


def table_law(records: Records, p: Fraction) -> dict[tuple[tuple[tuple[int, int], int], ...], Fraction]:
    """The law of the published table."""
    found: dict[tuple[tuple[tuple[int, int], int], ...], Fraction] = {}
    for g, chance in law(len(records), p).items():
        table = tuple(sorted(Counter(swapped(records, g)).items()))
        found[table] = found.get(table, Fraction(0)) + chance
    return found


def loss(one: Records, other: Records, p: Fraction) -> Budget:
    """The largest log ratio of the two laws, by D_mult's definition."""
    first, second = table_law(one, p), table_law(other, p)
    positive = [{t for t, chance in found.items() if chance} for found in (first, second)]
    if positive[0] != positive[1]:
        return Budget.infinite()
    ratios = [max(first[t] / second[t], second[t] / first[t]) for t in positive[0]]
    return Budget.log(max(ratios)) if max(ratios) > 1 else Budget.zero()


STRATA: list[Records] = [
    tuple(zip(hold, swap, strict=True))
    for hold, swap in product(
        [(0, 0, 1, 1), (0, 1, 2, 3), (0, 0, 0, 1)], [(0, 1, 0, 1), (0, 1, 2, 3), (0, 0, 1, 2)]
    )
]


def test_the_law_sums_to_one_and_is_that_of_the_formula() -> None:
    for n, p in product((2, 3, 4, 5), (HALF, TWENTIETH)):
        found = law(n, p)
        assert sum(found.values()) == 1
        for g, chance in found.items():
            k = moved(g)
            again = 1 - n * p * (1 - p) ** (n - 1)
            expected = p**k * (1 - p) ** (n - k) / (again * count_derangements(k)) if k != 1 else 0
            assert chance == expected


@pytest.mark.parametrize("records", STRATA)
def test_lemma_2_the_distance_of_tables_is_twice_that_of_records(records: Records) -> None:
    for g in permutations(range(4)):
        other = swapped(records, g)
        apart = Counter(records)
        apart.subtract(Counter(other))
        assert sum(map(abs, apart.values())) == 2 * hamming(records, other)


def test_lemma_3_the_multiplicative_distance_is_a_metric() -> None:
    universe = list({tuple(sorted(swapped(STRATA[1], g))) for g in permutations(range(4))})[:6]
    apart = {(a, b): loss(a, b, HALF) for a, b in product(universe, repeat=2)}
    for a, b in product(universe, repeat=2):
        assert apart[a, b] == apart[b, a]
        assert (apart[a, b] == Budget.zero()) == (table_law(a, HALF) == table_law(b, HALF))
        assert all(apart[a, b] <= apart[a, c] + apart[c, b] for c in universe)


@pytest.mark.parametrize("records", STRATA[::2])
def test_lemma_4_the_order_of_records_costs_nothing(records: Records) -> None:
    assert loss(records, tuple(reversed(records)), TWENTIETH) == Budget.zero()


@pytest.mark.parametrize("records", STRATA)
def test_lemma_5_data_sets_at_some_distance_differ_by_as_many_moves(records: Records) -> None:
    for g in permutations(range(4)):
        other = swapped(records, g)
        distance = hamming(records, other)
        assert distance != 1
        moves = {moved(h) for h in permutations(range(4)) if not hamming(swapped(records, h), other)}
        assert distance in moves


def test_lemma_6_derangements_grow_no_faster_than_powers() -> None:
    for k in range(60):
        for a in range(k + 1):
            if a != k - 1:
                assert Fraction(count_derangements(k), count_derangements(k - a)) <= (k + 1) ** a
    assert all(count_derangements(k) == floor(factorial(k) / e + 0.5) for k in range(1, 15))
    assert count_derangements(0) != floor(1 / e + 0.5), "the identity of the paper fails at 0"


@pytest.mark.parametrize("records", STRATA)
def test_lemma_7_a_permutation_changes_no_more_records_than_it_moves(records: Records) -> None:
    assert all(hamming(records, swapped(records, g)) <= moved(g) for g in permutations(range(4)))


def attains(records: Records) -> bool:
    """Whether some derangement changes every record of the table."""
    n = len(records)
    return any(moved(g) == n == hamming(records, swapped(records, g)) for g in permutations(range(n)))


def test_lemma_8_its_condition_is_enough_and_not_necessary() -> None:
    for hold, swap in product(product(range(4), repeat=4), repeat=2):
        records = tuple(zip(hold, swap, strict=True))
        if max(Counter(hold).values()) <= 1 and max(Counter(swap).values()) <= 1:  # b/2 − 1 at b = 4
            assert attains(records)
    # "only if" is false: two records, all values different, and the condition asks for counts of at most 0
    assert attains(((0, 0), (1, 1)))
    assert attains(((0, 0), (1, 0), (2, 2), (3, 3))), "and at b = 4, with a value that stands twice"


def test_proposition_4_a_swap_keeps_its_two_margins_and_no_third() -> None:
    records = STRATA[0]
    margins = [Counter(record[side] for record in records) for side in (0, 1)]
    changed = False
    for g in permutations(range(4)):
        other = swapped(records, g)
        assert [Counter(record[side] for record in other) for side in (0, 1)] == margins
        changed = changed or bool(hamming(records, other))
    assert changed


@pytest.mark.parametrize("p", [Fraction(0), Fraction(1)])
def test_propositions_6_and_7_rates_0_and_1_protect_nothing(p: Fraction) -> None:
    assert not loss(((0, 0), (1, 1)), ((0, 1), (1, 0)), p).is_finite
    assert not theorem_1(2, p).is_finite


@pytest.mark.parametrize("p", [HALF, Fraction(3, 4), Fraction(9, 10)])
def test_proposition_8_strata_of_different_values_need_the_log_of_the_odds(p: Fraction) -> None:
    for n in (2, 4):
        records = tuple((i, i) for i in range(n))
        losses = [
            loss(records, swapped(records, g), p) * Fraction(1, hamming(records, swapped(records, g)))
            for g in permutations(range(n))
            if hamming(records, swapped(records, g))
        ]
        assert max(losses) >= (Budget.log(p / (1 - p)) if p > HALF else Budget.zero())


@pytest.mark.parametrize("p", [TWENTIETH, Fraction(1, 4), HALF])
def test_proposition_10_two_records_attain_the_bound(p: Fraction) -> None:
    found = loss(((0, 0), (1, 1)), ((0, 1), (1, 0)), p) * HALF
    bound = (
        Fraction(count_derangements(2), count_derangements(0)) * ((1 - p) / p) ** 2
    )  # ½ ln[d(2)/d(0)] − ln o
    assert found == (Budget.log(bound) * HALF if bound > 1 else Budget.zero())


# ---- Section 2 and Theorems 1 and 3 -----------------------------------------------------------------------------------

TYPES = list(product((0, 1), repeat=2))
FILES: list[Records] = [
    tuple(sorted(pair)) for pair in product(TYPES, repeat=2) if pair == tuple(sorted(pair))
]
STATISTICS: dict[str, Callable[[Records], object]] = {
    "nothing": lambda records: 0,
    "hold": lambda records: Counter(hold for hold, _ in records)[0],
    "swap": lambda records: Counter(swap for _, swap in records)[0],
    "table": lambda records: records,
}


def universes(invariant: Callable[[Records], object]) -> list[list[Records]]:
    found: dict[object, list[Records]] = {}
    for records in FILES:
        found.setdefault(invariant(records), []).append(records)
    return list(found.values())


def between(one: dict[object, Fraction], other: dict[object, Fraction]) -> Budget:
    ratios = [(one.get(z, Fraction(0)), other.get(z, Fraction(0))) for z in {*one, *other}]
    if any(not a or not b for a, b in ratios):
        return Budget.infinite()
    worst = max(max(a / b, b / a) for a, b in ratios)
    return Budget.log(worst) if worst > 1 else Budget.zero()


@pytest.mark.parametrize(("released", "invariant"), list(product(STATISTICS, repeat=2)))
def test_proposition_1_invariants_are_free_and_what_is_exact_beside_them_costs_everything(
    released: str, invariant: str
) -> None:
    shown, kept = STATISTICS[released], STATISTICS[invariant]
    for files in universes(kept):
        losses = [between({shown(a): Fraction(1)}, {shown(b): Fraction(1)}) for a in files for b in files]
        constant = len({shown(records) for records in files}) == 1
        assert max(losses) == (Budget.zero() if constant else Budget.infinite())


def test_proposition_2_a_law_that_varies_in_a_universe_costs_something() -> None:
    for files in universes(STATISTICS["hold"]):
        for numerators in product((1, 2, 3), repeat=len(files)):
            laws = [{0: Fraction(n, 4), 1: 1 - Fraction(n, 4)} for n in numerators]
            free = max(between(laws[0], law) for law in laws) == Budget.zero()
            assert free == (len({*numerators}) == 1)


@pytest.mark.parametrize("p", [TWENTIETH, HALF, Fraction(3, 4)])
def test_theorem_1_with_two_strata(p: Fraction) -> None:
    """Strata are independent and distances add: the budget of the larger one covers both."""
    small, large = ((0, 0), (1, 1)), ((0, 0), (1, 1), (1, 0))
    budget = max(theorem_1(2, p), theorem_1(3, p))
    assert budget == theorem_1(3, p)
    for g, h in product(permutations(range(2)), permutations(range(3))):
        others = swapped(small, g), swapped(large, h)
        apart = hamming(small, others[0]) + hamming(large, others[1])
        lost = loss(small, others[0], p) + loss(large, others[1], p)
        assert lost <= budget * apart
    assert theorem_1(0, p) == Budget.zero()


@pytest.mark.parametrize("p", [TWENTIETH, HALF, Fraction(19, 20)])
def test_theorem_3_files_of_different_values_need_its_bounds(p: Fraction) -> None:
    records = tuple((i, i) for i in range(4))
    losses = [
        loss(records, other, p) * Fraction(1, hamming(records, other))
        for other in (swapped(records, g) for g in permutations(range(4)))
        if hamming(records, other)
    ]
    assert theorem_3(4, p) <= max(losses) <= theorem_1(4, p)


@pytest.mark.parametrize("p", [TWENTIETH, HALF])
def test_proposition_9_the_papers_six_records_need_the_bound(p: Fraction) -> None:
    records = ((1, 1), (2, 2), (3, 3), (3, 3), (4, 4), (4, 4))
    other = ((1, 2), (2, 1), (3, 3), (3, 3), (4, 4), (4, 4))
    shown = tuple(sorted(Counter(((1, 1), (2, 2), (3, 4), (3, 4), (4, 3), (4, 3))).items()))
    ratio = table_law(records, p)[shown] / table_law(other, p)[shown]
    assert ratio == Fraction(count_derangements(6), count_derangements(4)) * ((1 - p) / p) ** 2
    assert hamming(records, other) == 2


def test_remark_1_b_is_a_function_of_the_invariants() -> None:
    def b(records: tuple[tuple[int, int, int], ...]) -> int:
        strata: dict[int, list[tuple[int, int]]] = {}
        for match, hold, swap in records:
            strata.setdefault(match, []).append((hold, swap))
        return max((len(cell) for cell in strata.values() if len({*cell}) > 1), default=0)

    found: dict[object, set[int]] = {}
    for records in product(list(product((0, 1), repeat=3)), repeat=3):
        margins = tuple(Counter(record[:2] for record in records).items())
        other = tuple(sorted(Counter(record[::2] for record in records).items()))
        found.setdefault((tuple(sorted(margins)), other), set()).add(b(records))
    assert all(len(values) == 1 for values in found.values())
    assert {value for values in found.values() for value in values} == {0, 2, 3}
