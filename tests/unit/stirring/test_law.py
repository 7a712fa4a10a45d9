"""The laws of stirring against enumeration, linear programmes and the numbers of the theory."""

from fractions import Fraction
from itertools import product
from math import exp, log

import numpy as np
import pytest
from tests.oracles import stirring as oracle

from stirred.errors import BudgetError, InputError
from stirred.mechanisms.stirring.free_slots import expect_changed
from stirred.mechanisms.stirring.law import (
    BY_HELD,
    BY_PLACE,
    CYCLES,
    Asked,
    StratumLaw,
    StratumShape,
    StratumShapes,
    changed_slots,
    choose_laws,
    count_cycles,
    delta_after,
    enumerate_cycles,
    enumerate_types,
    epsilon_after,
    exchange_loss,
    expect_type_changes,
    free_chances,
    injection_chance,
    loss_at,
    moved_share,
    ratio,
    record_loss,
    rho_squared,
    round_power,
    trade_chances,
    trade_moments,
    weight_of_rate,
    weights_of_trades,
)
from stirred.mechanisms.swap.enumeration import swapping_law
from stirred.spec import Budget

WEIGHTS = (Fraction(1, 3), Fraction(1), Fraction(7), Fraction(40))


@pytest.mark.parametrize("n", [2, 3, 4, 5])
@pytest.mark.parametrize("weight", WEIGHTS)
def test_the_law_by_cycles_is_the_defined_one_and_moves_the_stated_share(n: int, weight: Fraction) -> None:
    law = enumerate_cycles(n, weight)
    assert law == oracle.ewens(n, weight)
    assert sum(p * sum(i != a for i, a in enumerate(s)) for s, p in law.items()) / n == moved_share(n, weight)
    share = moved_share(n, weight)
    assert weight_of_rate(n, share) == weight


@pytest.mark.parametrize("weight", WEIGHTS)
def test_partial_injections_have_the_closed_form(weight: Fraction) -> None:
    n = 5
    law = enumerate_cycles(n, weight)
    pairs = [({0: 0}, 1), ({0: 1}, 0), ({0: 0, 1: 1}, 2), ({0: 1, 1: 0}, 1), ({0: 0, 1: 2}, 1)]
    pairs += [({0: 1, 1: 2}, 0), ({0: 2, 1: 3}, 0), ({0: 1, 1: 2, 2: 0}, 1), ({0: 1, 2: 3, 3: 2}, 1)]
    for given, closed in pairs:
        chance = sum(p for s, p in law.items() if all(s[i] == j for i, j in given.items()))
        assert chance == injection_chance(n, weight, len(given), closed)


@pytest.mark.parametrize("weight", WEIGHTS)
def test_two_records_share_a_cycle_as_in_randomised_response(weight: Fraction) -> None:
    for n in (2, 4, 5):
        together = Fraction(0)
        for s, p in enumerate_cycles(n, weight).items():
            joined = list(s)
            joined[0], joined[1] = joined[1], joined[0]
            together += p if count_cycles(tuple(joined)) > count_cycles(s) else 0
        assert together == 1 / (1 + weight)


STRATA = [
    ((0, 0, 1, 2), (0, 0, 1, 2)),
    ((0, 0, 1, 1, 2), (0, 0, 0, 1, 2)),
    ((0, 1, 2, 3, 4), (0, 0, 1, 1, 2)),
    ((0, 1), (0, 1)),
    ((0, 1, 2), (0, 1, 2)),
    ((0, 1, 2), (0, 0, 1)),
    ((0, 0, 1), (0, 1, 2)),
    ((0, 1, 2, 3), (0, 1, 2, 3)),
    ((0, 1, 2, 3), (0, 0, 1, 2)),
    ((0, 1, 2, 3), (0, 0, 1, 1)),
    ((0, 0, 1, 2), (0, 1, 1, 2)),
    ((0, 0, 1, 1), (0, 0, 1, 1)),
    ((0, 0, 0, 1), (0, 0, 1, 2)),
    ((0, 0, 1, 1), (0, 1, 2, 3)),
    ((0, 1, 2, 3, 4), (0, 1, 2, 3, 4)),
    ((0, 0, 1, 1, 1), (0, 0, 1, 2, 2)),
    ((0, 0, 1, 2, 3), (0, 0, 0, 1, 2)),
]


@pytest.mark.parametrize(("held", "places"), STRATA)
@pytest.mark.parametrize("weight", [Fraction(1, 3), Fraction(7), Fraction(49, 4)])
def test_the_stated_loss_covers_the_true_one_and_is_attained_by_different_records(
    held: tuple[int, ...], places: tuple[int, ...], weight: Fraction
) -> None:
    n, types = len(held), min(len({*held}), len({*places}))
    cases = [(CYCLES, lambda data: enumerate_cycles(n, weight))]
    square = StratumLaw(BY_HELD, weight).root ** 2 == weight  # by more than two types λ is a square above 1
    if len({*held}) == 2 or square:
        cases.append((BY_HELD, lambda data: enumerate_types([h for h, _ in data], weight)))
    if len({*places}) == 2 or square:
        cases.append((BY_PLACE, lambda data: enumerate_types([p for _, p in data], weight)))
    for kind, law in cases:
        every = oracle.universe(held, places)
        laws = {data: oracle.published(data, law) for data in every}
        worst = Fraction(1)
        some = every if len(every) <= 24 else every[:1]  # where all records differ, all data sets are alike
        for one in some:
            far = oracle.exchanges_from(one)
            assert {*far} == {*every}
            for other, exchanges in far.items():
                if exchanges:
                    lost = oracle.worst_ratio(laws[one], laws[other])
                    distance = oracle.hamming(one, other)
                    assert lost <= ratio(weight) ** exchanges
                    assert Budget.log(lost) <= loss_at(weight, distance, min(types, n))
                    assert Budget.log(lost) <= record_loss(weight, types) * distance
                    worst = max(worst, lost) if exchanges == 1 else worst
                    if kind != CYCLES:
                        assert lost**2 <= ratio(weight) ** distance  # half of it for each record
        slots = places if kind == BY_HELD else held
        if len({*slots}) == n:
            assert worst == ratio(weight)  # attained


def test_two_strata_lose_the_sum() -> None:
    first, second = Fraction(7), Fraction(3)
    laws = [enumerate_cycles(3, first), enumerate_cycles(2, second)]
    joint = {(s, t): p * q for (s, p), (t, q) in product(laws[0].items(), laws[1].items())}
    worst = Fraction(0)
    for (s, t), chance in joint.items():
        moved = tuple(s[k] for k in (1, 0, 2)), tuple(t[k] for k in (1, 0))
        worst = max(worst, chance / joint[moved])
    assert Budget.log(worst) == exchange_loss(first) + exchange_loss(second)


@pytest.mark.parametrize("n", [3, 4, 5])
@pytest.mark.parametrize("weight", [3, 10, 40])
def test_no_law_moves_fewer_records_at_the_same_loss(n: int, weight: int) -> None:
    assert abs(oracle.least_moved_share(n, log(weight)) - float(moved_share(n, Fraction(weight)))) < 1e-9


@pytest.mark.parametrize("types", [(0, 0, 1, 1), (0, 0, 0, 1, 1), (0, 0, 0, 0, 0, 1)])
@pytest.mark.parametrize("weight", [Fraction(4), Fraction(16), Fraction(100)])
def test_no_mechanism_changes_fewer_slots_of_two_types(types: tuple[int, ...], weight: Fraction) -> None:
    ones = sum(types)
    trades = trade_chances(len(types) - ones, ones, weight)
    changed = 2 * sum(t * p for t, p in enumerate(trades)) / len(types)
    assert abs(oracle.least_changed_slots(types, log(weight)) - float(changed)) < 1e-9


@pytest.mark.parametrize(("n1", "n2"), [(1, 1), (1, 9), (4, 3), (30, 20), (200, 70)])
@pytest.mark.parametrize("rate", [Fraction(1, 100), Fraction(1, 20), Fraction(1, 2), Fraction(9, 10)])
def test_the_law_by_types_changes_as_many_records_as_a_share_that_moves(
    n1: int, n2: int, rate: Fraction
) -> None:
    (weight,) = weights_of_trades(np.array([n1]), np.array([n2]), rate)
    exact = sum(t * p for t, p in enumerate(trade_chances(n1, n2, weight)))
    wanted = rate * n1 * n2 / (n1 + n2 - 1)
    assert wanted * (1 - Fraction(1, 10**9)) <= exact <= wanted * (1 + Fraction(1, 10**6))
    mean, spread = trade_moments(n1, n2, weight)
    second = sum(t * t * p for t, p in enumerate(trade_chances(n1, n2, weight)))
    assert mean == pytest.approx(float(exact), rel=1e-11)
    assert spread == pytest.approx(float(second - exact**2), rel=1e-9, abs=1e-12)


def test_the_theory_s_cases_at_equal_numbers_of_changed_slots() -> None:
    # theory 8.9: (4,3) at the share of the PSA with p = 1/4, and so on: losses of cycles and of types
    derangements = (1, 0, 1, 2, 9, 44, 265, 1854)

    def psa_share(n: int, p: Fraction) -> Fraction:
        from math import comb

        weights = [
            comb(n, k) * p**k * (1 - p) ** (n - k) if k != 1 else Fraction(0)
            for k in range(len(derangements[: n + 1]))
        ]
        return sum(k * w for k, w in enumerate(weights)) / sum(weights) / n

    for (n1, n2), p, cycles, types in (
        ((4, 3), Fraction(1, 4), 2.646, 2.468),
        ((3, 3), Fraction(1, 10), 4.302, 4.275),
        ((5, 2), Fraction(1, 2), 1.709, 1.494),
    ):
        share = psa_share(n1 + n2, p)
        assert log(weight_of_rate(n1 + n2, share)) == pytest.approx(cycles, abs=6e-4)
        assert log(weights_of_trades(np.array([n1]), np.array([n2]), share)[0]) == pytest.approx(
            types, abs=6e-4
        )


def test_the_law_by_several_types_is_the_defined_one() -> None:
    for types in ((0, 1, 2), (0, 0, 1, 2), (0, 0, 1, 1, 2), (0, 1, 2, 3, 3)):
        for root in (Fraction(3, 2), Fraction(5)):
            found: dict[tuple[int, ...], Fraction] = {}
            for s, chance in enumerate_types(types, root**2).items():
                shown = tuple(types[i] for i in s)
                found[shown] = found.get(shown, Fraction(0)) + chance
            assert found == oracle.by_changed_slots(types, 1 / root)
            changed = sum(p * sum(a != b for a, b in zip(types, y, strict=True)) for y, p in found.items())
            counts = [types.count(kind) for kind in dict.fromkeys(types)]
            assert expect_changed(counts, root) == pytest.approx(float(changed), rel=1e-9)
            whole = sum(free_chances(counts, root).values())
            assert whole == 1


@pytest.mark.parametrize("counts", [(3, 2, 1), (4, 4, 4, 4), (9, 5, 1, 1), (6, 6, 6, 3, 2)])
@pytest.mark.parametrize("rate", [Fraction(1, 100), Fraction(1, 20), Fraction(1, 2)])
def test_as_many_slots_change_as_at_the_asked_rate(counts: tuple[int, ...], rate: Fraction) -> None:
    shape = StratumShapes.of([StratumShape(sum(counts), counts, None)])
    law = choose_laws(shape, Asked.of(rate=rate, law="types"))[0]
    assert law.kind == BY_HELD
    assert law.root**2 == law.weight
    exact = _exact_changes(counts, law.root)
    wanted = Fraction(changed_slots(counts, 1)) * rate
    assert wanted * (1 - Fraction(1, 10**7)) <= exact <= wanted * Fraction(101, 100)
    assert expect_type_changes(counts, law.weight) == pytest.approx(float(exact), rel=1e-8)


def _exact_changes(counts: tuple[int, ...], root: Fraction) -> Fraction:
    return sum(
        (
            chance * Fraction(sum(f) ** 2 - sum(k * k for k in f), sum(f) or 1)
            for f, chance in free_chances(counts, root).items()
        ),
        Fraction(0),
    )


def test_the_theory_s_cases_of_several_types() -> None:
    # theory 8.10: (2,2,2) at the changed slots of the PSA with p = 1/4: by types 2.660, by cycles 2.476
    swap = swapping_law(Fraction(1, 4))(tuple(range(6)), tuple(range(6)))
    kinds = (0, 0, 1, 1, 2, 2)
    changed = float(sum(p * sum(kinds[i] != kinds[j] for i, j in enumerate(s)) for s, p in swap.items()))
    low, high = 1.0, 100.0
    for _ in range(60):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if expect_changed((2, 2, 2), Fraction(middle)) > changed else (low, middle)
    assert round(2 * log(low), 3) == 2.660
    assert round(log(weight_of_rate(6, Fraction(changed / changed_slots((2, 2, 2), 1)))), 3) == 2.476
    # (2,1,1) and (2,2,1) at e^L = 4: the share of changed slots, by cycles .3571 and .4000, by types of (2,2,1) .4213
    assert round(changed_slots((2, 1, 1), float(moved_share(4, Fraction(4)))) / 4, 4) == 0.3571
    assert round(changed_slots((2, 2, 1), float(moved_share(5, Fraction(4)))) / 5, 4) == 0.4
    assert round(expect_changed((2, 2, 1), Fraction(2)) / 5, 4) == 0.4213
    # 8.10a: n = 100,000 in ten places, 5 % change: 10.3 against 14.5
    share = 5_000 / changed_slots([10_000] * 10, 1)
    shape = StratumShapes.of([StratumShape(100_000, None, (10_000,) * 10)])
    asked = {law: Asked.of(rate=Fraction(share), law=law) for law in ("auto", "cycles")}
    losses = {law: float(choose_laws(shape, own)[0].loss.upper(3)) for law, own in asked.items()}
    assert losses["auto"] == pytest.approx(10.3, abs=0.05)
    assert losses["cycles"] == pytest.approx(14.4, abs=0.15)


SIDES = [(2,), (1, 1), (12,), (9, 3), (4, 4, 4), (6, 3, 2, 1), (200,), (150, 50), (50,) * 4, (25,) * 8, None]


def test_auto_takes_what_loses_least_or_changes_fewest() -> None:
    rows = [
        StratumShape(n, held, places)
        for n in (2, 12, 200)
        for held, places in product(SIDES, repeat=2)
        if all(side is None or sum(side) == n for side in (held, places))
    ]
    shapes = StratumShapes.of(rows)
    kinds = set()
    for rate in ("1/100", "1/20", "1/2", "9/10"):
        auto, cycles, types = (choose_laws(shapes, Asked.of(rate=rate, law=law)) for law in LAWS)
        for i, shape in enumerate(rows):
            assert ratio(auto[i].weight) == min(ratio(law[i].weight) for law in (auto, cycles, types))
            assert cycles[i].kind == CYCLES
            assert shape.differs or auto[i].kind == types[i].kind == CYCLES
            if (
                shape.differs
                and shape.n > 2
                and 2 in [len(side) for side in (shape.held, shape.places) if side]
            ):
                assert auto[i].kind != CYCLES
            kinds.add(auto[i].kind)
    assert kinds == {CYCLES, BY_HELD, BY_PLACE}
    for loss in ("1/2", "3", "8"):
        every = [choose_laws(shapes, Asked.of(loss=loss, law=law)) for law in LAWS]
        for i, shape in enumerate(rows):
            effects = [_find_effect(shape, laws[i]) for laws in every]
            assert effects[0] <= min(effects) * (1 + 1e-9)
            assert all(laws[i].loss <= Budget.of(Fraction(loss)) for laws in every)


LAWS = ("auto", "cycles", "types")


def _find_effect(shape: StratumShape, law: StratumLaw) -> float:
    if law.kind == CYCLES:
        return float(moved_share(shape.n, law.weight))
    counts = shape.held if law.kind == BY_HELD else shape.places
    assert counts
    return expect_type_changes(counts, law.weight) / changed_slots(counts, 1)


def test_strata_that_are_drawn_too_slowly_are_stirred_by_cycles() -> None:
    slow, quick = (2,) * 12, (40,) * 12
    for counts, kind in ((slow, CYCLES), (quick, BY_PLACE)):
        shape = StratumShapes.of([StratumShape(sum(counts), None, counts)])
        assert choose_laws(shape, Asked.of(rate="1/4", law="types"))[0].kind == kind
    many = StratumShapes.of([StratumShape(10**6, None, None)])
    assert choose_laws(many, Asked.of(rate="1/4", law="types"))[0].kind == CYCLES


def test_both_wishes_are_kept_by_types_too() -> None:
    counts = (50, 30, 20)
    shape = StratumShapes.of([StratumShape(100, None, counts)])
    asked = Asked.of(rate="1/10", loss="3")
    law = choose_laws(shape, asked)[0]
    assert law.kind == BY_PLACE
    assert law.loss <= Budget.of(3)
    assert expect_type_changes(counts, law.weight) >= changed_slots(counts, 0.1)
    roomy = choose_laws(shape, Asked.of(rate="1/10", loss="20"))[0]
    assert roomy == choose_laws(shape, Asked.of(rate="1/10"))[0]


def test_losses_are_rounded_down_and_both_wishes_are_kept() -> None:
    for loss in (Fraction(1, 100), Fraction(1), Fraction(8), Fraction(31, 2), Fraction(40)):
        power = round_power(loss)
        assert Budget.log(power) <= Budget.of(loss)
        assert float(power) == pytest.approx(exp(loss), rel=2e-6 if loss <= 20 else 0.3)
    both = Asked.of(rate="1/20", loss="5")
    for n in (2, 5, 9, 10_000, 10**8):
        weight = both.weight(n)
        assert exchange_loss(weight) <= Budget.of(5)
        assert moved_share(n, weight) >= Fraction(1, 20)
    huge = Asked.of(rate=Fraction(1, 10**12)).weight(10**8)
    assert huge.numerator + huge.denominator * 10**8 < 2**62
    assert huge <= weight_of_rate(10**8, Fraction(1, 10**12))
    assert not Asked.of(rate="9/10", loss="1").keeps_loss(Asked.of(rate="9/10", loss="1").weight(2))


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"rate": "0"},
        {"rate": "1"},
        {"rate": "3/2"},
        {"loss": "0"},
        {"loss": "-1"},
        {"loss": "41"},
        {"loss": 0.5},
        {"rate": 0.05},
        {"rate": "1/20", "law": "ewens"},
    ],
)
def test_impossible_wishes_are_refused(asked: dict) -> None:
    with pytest.raises((InputError, BudgetError)) as caught:
        Asked.of(**asked)
    assert caught.value.why
    assert caught.value.fix


@pytest.mark.parametrize("weight", [Fraction(3), Fraction(1, 3), Fraction(10)])
@pytest.mark.parametrize("releases", [1, 2, 3])
def test_several_releases_compose_as_enumerated(weight: Fraction, releases: int) -> None:
    odds = ratio(weight)
    outcomes = list(product((odds / (1 + odds), 1 / (1 + odds)), repeat=releases))
    here = [_multiply(chances) for chances in outcomes]
    there = [_multiply([1 - chance for chance in chances]) for chances in outcomes]
    for epsilon in (Fraction(0), Fraction(1, 2), Fraction(1), Fraction(3)):
        true = sum(max(0.0, float(p) - exp(epsilon) * float(q)) for p, q in zip(here, there, strict=True))
        stated = delta_after(weight, releases, epsilon)
        assert true <= float(stated) * (1 + 1e-12) + 1e-15
        assert float(stated) == pytest.approx(true, rel=1e-9, abs=1e-12)
    for delta in (Fraction(0), Fraction(1, 1000), Fraction(1, 20), Fraction(3, 10)):
        power = Fraction(exp(float(epsilon_after(weight, releases, delta).upper(12))))
        assert sum(
            max(Fraction(0), p - power * q) for p, q in zip(here, there, strict=True)
        ) <= delta + Fraction(1, 10**9)
        less = power * (1 - Fraction(1, 10**6))
        if less > 1:
            assert sum(max(Fraction(0), p - less * q) for p, q in zip(here, there, strict=True)) > delta


def _multiply(factors: object) -> Fraction:
    found = Fraction(1)
    for factor in factors:  # type: ignore[attr-defined]
        found *= factor
    return found


@pytest.mark.parametrize("weight", [Fraction(3), Fraction(1, 2), Fraction(40)])
def test_rho_bounds_every_renyi_divergence_and_is_the_limit_at_one(weight: Fraction) -> None:
    odds = float(ratio(weight))
    p, q = odds / (1 + odds), 1 / (1 + odds)
    rho = float(rho_squared(weight).upper(12))
    for alpha in (1.0001, 1.1, 1.5, 2, 3, 10, 100):
        moment = p**alpha * q ** (1 - alpha) + q**alpha * p ** (1 - alpha)
        assert log(moment) / (alpha - 1) <= rho * alpha * (1 + 1e-6)
    assert rho == pytest.approx(p * log(p / q) + q * log(q / p), abs=1e-9)
