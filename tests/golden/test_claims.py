"""Sentences of the paper, checked on small cases; and that the checks would notice the opposite."""

from fractions import Fraction

import numpy as np
import pytest

from stirred.mechanisms.swap.enumeration import largest_loss_of, loss_between, outputs, unit_matching_law
from stirred.paper import claims


def computed(rows: list[dict[str, object]]) -> list[object]:
    assert all(row["paper"] in (None, row["computed"]) for row in rows), "the paper says otherwise"
    return [row["computed"] for row in rows]


def test_example_2_adults_and_children_by_block_are_invariant() -> None:
    assert computed(claims.example_2())[:2] == [0, 0]
    assert claims.example_2()[2]["computed"], "tenure by block moves"
    assert claims.example_2(match=("county", "adults"))[0]["computed"], "children are not in this key"


def test_example_3_the_multiverse_of_topdown_is_no_swap_s() -> None:
    assert computed(claims.example_3()) == [0, 0, 0]
    # a swap of ages within kinds and places would have these universes and one more margin: the check can tell
    data = [((0, 0, 0), (0, 1, 1)), ((0, 0, 1), (0, 1, 0)), ((1, 0, 0), (0, 1, 1))]
    same = claims._partition(data, [(claims.PLACE, claims.KIND)])
    assert same == claims._partition(data, [(), (claims.PLACE, claims.KIND)])
    assert claims._refines(claims._partition(data, [(0, 1, 2)]), same)


def test_section_6_2_the_mix_keeps_households_and_not_populations() -> None:
    assert computed(claims.unit_mixing())[:4] == [1, 1, 1, 3]
    sizes, counties = (1, 1, 2, 2), (0, 1, 0, 1)
    p, alpha = Fraction(1, 4), Fraction(1, 10)
    mix = claims.mixed_law(p, alpha, sizes)
    assert sum(mix(sizes, counties).values()) == 1
    # two swaps one after the other, the variant that has a proved budget, reach the same tables
    chain = unit_matching_law(p, alpha, lambda size: size)
    assert outputs(mix, sizes, counties).keys() == outputs(chain, sizes, counties).keys()
    assert not largest_loss_of(
        claims.mixed_law(p, Fraction(0), sizes), (0, 1, 2, 3), counties
    ).budget.is_finite


@pytest.mark.parametrize("n", [3, 4])
def test_appendix_c_disjoint_pairs_have_no_finite_budget(n: int) -> None:
    missing, finite, *permutations = computed(claims.pair_swapping(n))
    assert missing == {3: 2, 4: 14}[n]
    assert finite == 0
    assert permutations == [0, 3]


def test_appendix_c_the_witness() -> None:
    law = claims.pair_law(Fraction(1, 4))
    one = (0, 1, 2)
    turned, other = (1, 2, 0), (1, 0, 2)  # a circle of three; one exchange, two records away from both
    assert claims.tabulate(one, turned) not in outputs(law, one, one)
    assert claims.tabulate(one, turned) in outputs(law, one, other)
    assert not loss_between(outputs(law, one, one), outputs(law, one, other), 2)[0].is_finite


def test_appendix_g_the_normalised_distance_is_a_metric_and_its_square_is_none() -> None:
    broken, wrong, squared = computed(claims.metric())
    assert (broken, wrong) == (0, 0)
    assert squared
    far = np.array([[0.0, 1.0, 3.0], [1.0, 0.0, 1.0], [3.0, 1.0, 0.0]])
    assert claims._triangles(far) == 2
    half, quarter = np.array([0.5, 0.5]), np.array([0.25, 0.75])
    assert claims.normalised_renyi(half, quarter) ** 2 >= 0.5 * np.log(4 / 3)  # the order 1


def test_beliefs_over_a_whole_universe_move_no_more_than_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    beyond, single, largest = computed(claims.posteriors())
    assert (beyond, single) == (0, 0)
    assert largest > 1
    # a budget of a file with fewer records is too small, and beliefs say so
    true = claims.theorem_1
    monkeypatch.setattr(claims, "theorem_1", lambda n, p: true(n, p) * Fraction(1, 3))
    assert claims.posteriors()[0]["computed"]


def test_the_part_lists_every_claim() -> None:
    rows = claims.claims()["rows"]
    assert {row["section"] for row in rows} == {"2", "3.1", "3.2", "6.2", "C.2", "G"}
    assert not [row for row in rows if row["reason"] == "not explained"]
