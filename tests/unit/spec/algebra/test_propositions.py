"""The paper's propositions on mechanisms small enough to compute their loss exactly, and refusals outside them."""

from collections.abc import Hashable
from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles.encodings import (
    data_sets,
    distance,
    through_multiverse,
    through_neighbours,
    through_premetric,
)
from stirred.errors import SpecificationError
from stirred.spec import (
    Answer,
    Approximate,
    Budget,
    Domain,
    Hamming,
    Margin,
    Multiplicative,
    Multiverse,
    NormalizedRenyi,
    OutputPremetric,
    exact_release,
)
from stirred.spec.compare import (
    largest_coarse_budgets,
    lemma_1,
    loss_is_no_smaller,
    only_invariants_are_free,
    smallest_fine_budgets,
)

POINTS = range(4)  # data sets on a line: d(x, y) = |x − y|
Universes = frozenset[frozenset[Hashable]]
laws = st.lists(st.integers(1, 20), min_size=len(POINTS), max_size=len(POINTS))


def loss(weights: list[int], universe: frozenset[Hashable]) -> Budget:
    """The smallest ε of a two-outcome mechanism in one universe, by the definition itself."""
    worst = Budget.zero()
    for x, y in combinations(sorted(universe), 2):
        p, q = (Fraction(weights[i], 21) for i in (x, y))
        for ratio in (p / q, q / p, (1 - p) / (1 - q), (1 - q) / (1 - p)):
            if ratio > 1:
                worst = max(worst, Budget.log(ratio) * Fraction(1, abs(x - y)))
    return worst


COARSE: Universes = frozenset({frozenset(POINTS)})
FINE: Universes = frozenset({frozenset({0, 1}), frozenset({2, 3})})
OVERLAPPING: Universes = frozenset({frozenset({0, 1, 2}), frozenset({1, 2, 3})})


@settings(deadline=None)
@given(laws)
def test_proposition_3_more_invariants_lower_the_nominal_loss(weights: list[int]) -> None:
    for coarse in COARSE | OVERLAPPING:
        for fine in FINE:
            if fine <= coarse:
                assert loss(weights, coarse) >= loss(weights, fine)


@settings(deadline=None)
@given(laws)
def test_proposition_5_budgets_transfer_to_finer_universes(weights: list[int]) -> None:
    for coarse in (COARSE, OVERLAPPING):
        budgets = {universe: loss(weights, universe) for universe in coarse}
        carried = smallest_fine_budgets(budgets, FINE)
        assert all(loss(weights, universe) <= budget for universe, budget in carried.items())
        assert lemma_1(budgets, carried)
        asked = {universe: loss(weights, universe) + Budget.of(1) for universe in FINE}
        suffices = largest_coarse_budgets(coarse, asked)
        # any mechanism within these budgets is within the asked ones
        if all(loss(weights, universe) <= budget for universe, budget in suffices.items()):
            assert all(loss(weights, universe) <= budget for universe, budget in asked.items())
        assert lemma_1(suffices, asked)


def test_lemma_1_is_refused_outside_its_hypothesis() -> None:
    whole, part = frozenset(POINTS), frozenset({0, 1})
    assert lemma_1({whole: Budget.of(2)}, {part: Budget.of(1)}).answer is Answer.UNKNOWN
    assert lemma_1({part: Budget.of(1)}, {whole: Budget.of(2)}).answer is Answer.UNKNOWN
    with pytest.raises(SpecificationError, match="no refinement"):
        smallest_fine_budgets({part: Budget.of(1)}, COARSE)
    with pytest.raises(SpecificationError, match="no refinement"):
        largest_coarse_budgets(FINE, {whole: Budget.of(1)})


def test_lemma_1_uses_the_best_universe_around() -> None:
    left, right = sorted(OVERLAPPING, key=sorted)
    middle = frozenset({1, 2})
    assert lemma_1({left: Budget.of(9), right: Budget.of(1)}, {middle: Budget.of(1)})
    assert smallest_fine_budgets({left: Budget.of(9), right: Budget.of(1)}, frozenset({middle})) == {
        middle: Budget.of(1)
    }


class Flat(OutputPremetric):
    """Neither a metric nor infinite at total variation 1."""

    symbol = "D_flat"


DOMAIN = Domain(name="toy", spine=("county", "block"))
BLOCK, COUNTY = Margin("household", ("block",)), Margin("household", ("county",))


def test_proposition_1_needs_a_premetric_that_is_infinite_at_total_variation_one() -> None:
    flavor = {"domain": DOMAIN, "input_premetric": Hamming("household")}
    for measure in (Multiplicative(), NormalizedRenyi(), Approximate("1e-9")):
        assert exact_release(
            COUNTY, multiverse=Multiverse.of(BLOCK), output_premetric=measure, **flavor
        ).budget.is_zero
    for measure in (Multiplicative(), NormalizedRenyi()):
        found = exact_release(BLOCK, multiverse=Multiverse.of(COUNTY), output_premetric=measure, **flavor)
        assert not found.budget.is_finite
    # under (ε, δ) it holds between neighbours, and nothing says that these two data sets are neighbours
    with pytest.raises(SpecificationError, match="total variation 1"):
        exact_release(BLOCK, multiverse=Multiverse.of(COUNTY), output_premetric=Approximate("1e-9"), **flavor)
    assert exact_release(
        COUNTY, multiverse=Multiverse.of(BLOCK), output_premetric=Flat(), **flavor
    ).budget.is_zero
    with pytest.raises(SpecificationError, match="total variation 1"):
        exact_release(BLOCK, multiverse=Multiverse.of(COUNTY), output_premetric=Flat(), **flavor)


def test_proposition_2_needs_a_metric() -> None:
    assert only_invariants_are_free(Multiplicative(), varies_at_finite_distance=True)
    assert only_invariants_are_free(NormalizedRenyi(), varies_at_finite_distance=False).answer is Answer.NO
    for measure in (Approximate("1e-9"), Flat()):
        with pytest.raises(SpecificationError, match="metric"):
            only_invariants_are_free(measure, varies_at_finite_distance=True)


def test_proposition_3_needs_nested_invariants() -> None:
    block, county = Multiverse.of(BLOCK), Multiverse.of(COUNTY)
    assert loss_is_no_smaller(county, block, DOMAIN)
    assert loss_is_no_smaller(block, county, DOMAIN).answer is Answer.UNKNOWN


def test_zero_times_infinity_is_infinity() -> None:
    assert Budget.zero() * Budget.infinite() == Budget.infinite()


HOUSEHOLDS = [(tenure, block) for tenure in "or" for block in "abc"]


def swap_invariants(x: tuple[tuple[str, str], ...]) -> Hashable:
    return tuple(sorted(t for t, _ in x)), tuple(sorted(b for _, b in x))


def test_three_encodings_of_invariants() -> None:
    data = [x for size in (2, 3) for x in data_sets(HOUSEHOLDS, size=size)]
    universe_pairs = through_multiverse(data, swap_invariants)
    assert universe_pairs == through_premetric(data, swap_invariants)
    assert universe_pairs
    # Lemma 5: no two data sets of one universe of a swap are at distance 1, so restricted neighbours are none
    assert min(pair[2] for pair in universe_pairs) == 2
    assert not through_neighbours(data, swap_invariants)
    # without invariants there are neighbours
    assert through_neighbours(data, len)


def test_distance_is_infinite_between_sizes() -> None:
    assert distance(("a",), ("a", "b")) == float("inf")
    assert distance(("a", "a"), ("a", "b")) == 1
