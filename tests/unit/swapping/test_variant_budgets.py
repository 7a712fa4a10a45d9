"""Budgets of the swapping variants against enumeration of their laws, up to five records."""

from fractions import Fraction

import pytest

from oracles.strata import noised_loss, shapes
from stirred.errors import InputError
from stirred.mechanisms.swap.bounds import bounds, claim
from stirred.mechanisms.swap.budget import tight_budget
from stirred.mechanisms.swap.enumeration import (
    Law,
    held_law,
    largest_loss_of,
    loss_between,
    near_law,
    noisy_key_law,
    nonvacuous_law,
    outputs,
    pairings,
    place_law,
    rarity_law,
    repeat_labels,
    swapping_law,
    tabulate,
    unit_matching_law,
)
from stirred.mechanisms.swap.strata import Stratum
from stirred.mechanisms.swap.variant_budgets import (
    LAWS,
    near_places,
    no_vacuous,
    rates_by_held,
    rates_by_place,
    rates_by_rarity,
    unit_matching_rates,
    variant_bounds,
)
from stirred.spec.budgets import Budget

RATES = [
    (Fraction(1, 20), Fraction(1, 10)),
    (Fraction(1, 10), Fraction(1, 2)),
    (Fraction(1, 3), Fraction(4, 5)),
]
FIVE = [((2, 2, 1), (2, 2, 1)), ((3, 2), (2, 1, 1, 1)), ((2, 1, 1, 1), (3, 1, 1))]


def universes(n: int) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    if n < 5:
        return shapes(n)
    return [(repeat_labels(hold), repeat_labels(swap)) for hold, swap in FIVE]


def places(low: Fraction, high: Fraction, kind: int) -> dict[tuple[int, int], Fraction]:
    return {(h, s): low if (s if kind else h + s) % 2 else high for h in range(6) for s in range(6)}


def near(one: int, other: int) -> int:
    return abs(one - other)


def normalised(law: Law, n: int) -> bool:
    names = repeat_labels((1,) * n)
    return sum(law(names, names).values()) == 1


@pytest.mark.parametrize(("low", "high"), RATES)
@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_rates_that_vary_keep_their_budget(n: int, low: Fraction, high: Fraction) -> None:
    held = [{v: low if v % 2 else high for v in range(6)}, {v: high if v == 0 else low for v in range(6)}]
    for hold, swap in universes(n):
        for chance in held:
            assert largest_loss_of(held_law(chance), hold, swap).budget <= rates_by_held(n, low, high)
        for kind in (0, 1):
            found = largest_loss_of(place_law(places(low, high, kind)), hold, swap).budget
            assert found <= rates_by_place(n, low, high)
        for common, unique in ((low, high), (high, low)):
            found = largest_loss_of(rarity_law(common, unique, lambda h: h // 2), hold, swap).budget
            assert found <= rates_by_rarity(n, low, high)


def test_varying_rates_attain_their_budget() -> None:
    # four different records, the two exchanged ones rare: ½ ln(d(4)/d(2)) − ln o_min
    low, high = Fraction(1, 10), Fraction(1, 2)
    names = repeat_labels((1,) * 4)
    found = largest_loss_of(held_law({0: low, 1: low, 2: high, 3: high}), names, names).budget
    assert found == rates_by_held(4, low, high) == Budget.log(9 * 81) * Fraction(1, 2)


def test_equal_rates_are_the_plain_swap() -> None:
    p = Fraction(1, 7)
    assert all(rates_by_held(n, p, p) == tight_budget(n, p) for n in range(2, 9))


def test_rates_by_place_lose_more_than_rates_by_held_variables() -> None:
    # the redraw's normaliser no longer cancels: two records, exchanged
    low, high = Fraction(1, 10), Fraction(1, 2)
    found = largest_loss_of(place_law(places(low, high, 0)), (0, 1), (0, 1)).budget
    held = largest_loss_of(held_law({0: low, 1: high}), (0, 1), (0, 1)).budget
    assert held < found <= rates_by_place(2, low, high)


@pytest.mark.parametrize("p", [Fraction(1, 20), Fraction(1, 2), Fraction(4, 5)])
@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_prohibiting_vacuous_swaps_is_finite_and_bounded(n: int, p: Fraction) -> None:
    law = nonvacuous_law(p)
    assert normalised(law, n)
    for hold, swap in universes(n):
        found = largest_loss_of(law, hold, swap).budget
        assert found.is_finite
        assert found <= no_vacuous(n, p)


def test_prohibiting_vacuous_swaps_really_costs_more() -> None:
    # balanced 2×2 at p = 1/2: x itself comes out only when nobody is selected
    p = Fraction(1, 2)
    with_vacuous = largest_loss_of(swapping_law(p), repeat_labels((3, 3)), repeat_labels((3, 3))).budget
    without = largest_loss_of(nonvacuous_law(p), repeat_labels((3, 3)), repeat_labels((3, 3))).budget
    assert without > with_vacuous
    # all values different: no swap is vacuous and nothing changes
    names = repeat_labels((1,) * 4)
    assert largest_loss_of(nonvacuous_law(p), names, names).budget == tight_budget(4, p)


def test_vacuous_outputs_vanish() -> None:
    p = Fraction(1, 2)
    hold, swap = repeat_labels((2, 2)), repeat_labels((2, 2))
    nobody = (1 - p) ** 4 / (1 - 4 * p * (1 - p) ** 3)
    plain = outputs(swapping_law(p), hold, swap)
    kept = outputs(nonvacuous_law(p), hold, swap)
    same = tabulate(hold, swap)
    assert plain[same] > nobody
    assert kept[same] == nobody / (1 - (plain[same] - nobody))


@pytest.mark.parametrize("n", [3, 4, 5])
@pytest.mark.parametrize("preference", [Fraction(1), Fraction(3)])
def test_near_places_keep_their_budget(n: int, preference: Fraction) -> None:
    p = Fraction(1, 10)
    law = near_law(p, preference, near)
    assert normalised(law, n)
    for hold, swap in universes(n)[-12:]:
        found = largest_loss_of(law, hold, swap).budget
        assert found <= near_places(n, p, preference)
        if preference == 1:
            assert found == largest_loss_of(swapping_law(p), hold, swap).budget


def test_near_places_are_preferred() -> None:
    p, names = Fraction(1, 2), repeat_labels((1,) * 4)
    far = sum(q * sum(near(i, j) for i, j in enumerate(g)) for g, q in swapping_law(p)(names, names).items())
    closer = sum(
        q * sum(near(i, j) for i, j in enumerate(g))
        for g, q in near_law(p, Fraction(9), near)(names, names).items()
    )
    assert closer < far


def test_pairings_are_all_of_them() -> None:
    assert [len(pairings(n)) for n in range(1, 8)] == [1, 1, 3, 3, 15, 15, 105]
    assert all(len({x for pair in way for x in pair}) == 4 for way in pairings(5))


@pytest.mark.parametrize("alpha", [Fraction(1, 10), Fraction(1, 2)])
def test_unit_matching_keeps_the_budget_of_the_pool(alpha: Fraction) -> None:
    p = Fraction(1, 2)
    law = unit_matching_law(p, alpha, lambda h: h // 2)
    assert normalised(law, 4)
    travel, _ = unit_matching_rates(p, alpha)
    for hold, swap in shapes(4):
        found = largest_loss_of(law, hold, swap).budget
        assert found.is_finite
        assert found <= tight_budget(4, travel)


def test_unit_matching_drops_the_strata_from_the_invariants() -> None:
    # without travellers (law within strata only) a pair that differs across strata is told apart for certain
    from stirred.mechanisms.swap.enumeration import stratified_law

    names = repeat_labels((1,) * 4)
    assert not largest_loss_of(
        stratified_law(Fraction(1, 2), lambda h: h // 2), names, names
    ).budget.is_finite


def test_noisy_keys_are_finite_on_small_pools_but_unknown_in_general() -> None:
    p = Fraction(1, 2)
    kernel = {0: {0: Fraction(3, 4), 1: Fraction(1, 4)}, 1: {0: Fraction(1, 4), 1: Fraction(3, 4)}}
    names = repeat_labels((1,) * 4)
    found = largest_loss_of(noisy_key_law(p, kernel, lambda h: h // 2), names, names).budget
    assert found.is_finite
    assert found > tight_budget(4, p)  # so the swap's own budget would have been too small a claim
    bound, lower = variant_bounds("6a", [Stratum(n=4, hold_types=4, swap_types=4)], p)
    assert bound.status == "unknown"
    assert not bound.budget.is_finite
    assert lower.status == "estimated"
    assert lower.budget == found


@pytest.mark.parametrize("q", [Fraction(1, 10), Fraction(1, 2), Fraction(9, 10)])
@pytest.mark.parametrize("half", [1, 2])
def test_noise_after_the_swap_beats_both_parts(half: int, q: Fraction) -> None:
    p = Fraction(1, 4)
    margins = repeat_labels((half, half))
    chain = noised_loss(swapping_law(p), margins, margins, q).budget
    swap_alone = largest_loss_of(swapping_law(p), margins, margins).budget
    # the noise alone: one exchange is two records and moves the count by one
    noise_alone = Budget.log(1 / q) * Fraction(1, 2)
    assert chain < swap_alone
    assert chain < noise_alone


def test_every_law_has_bounds() -> None:
    strata = [Stratum(n=50, hold_types=5, swap_types=9), Stratum(n=2, hold_types=2, swap_types=2)]
    extra: dict[str, dict[str, object]] = {law: {"highest": "1/2"} for law in ("1a", "1b", "1c")}
    extra |= {"4": {"preference": 2}, "5": {"alpha": "1/10"}}
    for law in LAWS:
        found = variant_bounds(law, strata, "1/10", **extra.get(law, {}))
        assert claim(found).status == ("unknown" if law == "6a" else "proved")
        assert claim(found).budget.is_finite == (law != "6a")
        for bound in found:
            if (
                bound.status == "estimated"
            ):  # the largest loss that enumeration found: what is claimed cannot be less
                assert not bound.budget.is_zero
                assert bound.budget <= claim(found).budget
    assert variant_bounds("2", strata, "1/10")[0].budget == bounds(strata, "1/10")[0].budget


def test_small_strata_are_looked_at_when_rates_follow_places() -> None:
    large, small = Stratum(n=9, hold_types=3, swap_types=3), Stratum(n=2, hold_types=2, swap_types=2)
    both = variant_bounds("1b", [large, small], "1/100", highest="99/100")[0].budget
    assert both >= rates_by_place(2, "1/100", "99/100")
    assert both >= rates_by_place(9, "1/100", "99/100")


def test_rarity_reaches_into_other_strata() -> None:
    # two strata of two, one risk cell across both: exchanging in one changes the rates in the other
    low, high = Fraction(1, 10), Fraction(1, 2)
    hold, places_ = (0, 1, 10, 11), ((0, 1, 0, 1), (1, 0, 0, 1))

    def law_of(swap: tuple[int, ...]) -> dict[object, Fraction]:
        cells = [(h % 10, s) for h, s in zip(hold, swap, strict=True)]
        rates = [high if cells.count(cell) == 1 else low for cell in cells]
        result: dict[object, Fraction] = {}
        for first in (0, 1):
            for second in (0, 1):
                chance = Fraction(1)
                for pair, flip in (((0, 1), first), ((2, 3), second)):
                    p, q = (rates[i] for i in pair)
                    both, nobody = p * q, (1 - p) * (1 - q)
                    chance *= (both if flip else nobody) / (both + nobody)
                after = list(swap)
                if first:
                    after[0], after[1] = after[1], after[0]
                if second:
                    after[2], after[3] = after[3], after[2]
                key = tuple(after)
                result[key] = result.get(key, Fraction(0)) + chance
        return result

    found, _ = loss_between(law_of(places_[0]), law_of(places_[1]), 2)
    strata = [Stratum(n=2, hold_types=2, swap_types=2)] * 2
    assert found <= claim(variant_bounds("1c", strata, low, highest=high)).budget
    assert found > largest_loss_of(swapping_law(low), (0, 1), (0, 1)).budget  # the other stratum tells more


@pytest.mark.parametrize("law", sorted(LAWS))
def test_rates_zero_and_one_cost_everything(law: str) -> None:
    strata = [Stratum(n=5, hold_types=3, swap_types=3)]
    found = variant_bounds(law, strata, "0", highest="1/2", preference=2, alpha="1/2")
    assert not claim(found).budget.is_finite


def test_bad_parameters_are_refused() -> None:
    with pytest.raises(InputError, match="strictly between"):
        rates_by_held(5, "0", "1/2")
    with pytest.raises(InputError, match="strictly between"):
        rates_by_held(5, "1/2", "1/3")
    with pytest.raises(InputError, match="at least 1"):
        near_places(5, "1/2", "1/2")
    with pytest.raises(InputError, match="needs preference"):
        variant_bounds("4", [Stratum(n=5, hold_types=3, swap_types=3)], "1/2")
    with pytest.raises(InputError, match="no law"):
        variant_bounds("9", [Stratum(n=5, hold_types=3, swap_types=3)], "1/2")
