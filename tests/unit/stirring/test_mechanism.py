"""Stirring as a mechanism: its promise covers every pair of a universe, its closed forms are those of its law."""

from fractions import Fraction
from itertools import permutations, product
from math import exp, log
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from stirred.census import Census
from stirred.chance import Key
from stirred.cli.main import main
from stirred.engine import Local
from stirred.errors import BudgetError, InputError, PrivacyError, StirredError
from stirred.mechanisms.stirring import Stirring
from stirred.mechanisms.stirring.estimates import count_stratum_shapes, list_shapes
from stirred.mechanisms.stirring.law import (
    BY_HELD,
    BY_PLACE,
    CYCLES,
    MAX_RATE,
    MAX_WEIGHT_BITS,
    MIN_RATE,
    Asked,
    StratumShapes,
    choose_laws,
    delta_after,
    enumerate_cycles,
    exchange_loss,
    moved_share,
    rho_squared,
)
from stirred.mechanisms.stirring.mechanism import CyclesPairs
from stirred.mechanisms.swap import PermutationSwapping
from stirred.mechanisms.swap.estimates import StratumCells, estimate, variance
from stirred.mechanisms.swap.frame import Frame
from stirred.spec import Budget, Exchanges

KEY = Key.for_tests(1)
BASE = {"match": ["size"], "swap": ["county"]}


def census(rows: dict[str, list]) -> Census:
    n = len(next(iter(rows.values())))
    schema = {
        "geography": {"spine": ["state", "county"]},
        "record": {"household": {"id": "hid"}},
    }
    return Census.of(schema, {"household": pa.table({"hid": range(n), "state": [1] * n, **rows})})


def large(n: int = 6_000) -> Census:
    rng = np.random.default_rng(1)
    table = pa.table(
        {
            "hid": np.arange(n) * 3,
            "state": np.ones(n, np.int64),
            "county": rng.integers(0, 8, n),
            "size": rng.integers(1, 5, n),
            "tenure": rng.choice(["own", "rent"], n),
            "race": rng.integers(0, 12, n),
        }
    )
    schema = {"geography": {"spine": ["state", "county"]}, "record": {"household": {"id": "hid"}}}
    return Census.of(schema, {"household": table})


UNIVERSES = [
    # two strata; records that differ, and equal ones
    ({"size": [1, 1, 1, 2, 2], "race": [0, 1, 2, 0, 1]}, [0, 1, 2, 0, 1]),
    ({"size": [1, 1, 1, 1], "race": [0, 0, 1, 2]}, [0, 0, 1, 2]),
    ({"size": [1, 1, 1, 1, 2, 2], "race": [0, 0, 1, 1, 0, 1]}, [0, 1, 2, 0, 1, 1]),
    ({"size": [1, 1, 1, 1], "race": [0, 1, 2, 3]}, [0, 0, 0, 1]),
]
SETTINGS = [
    {"rate": "1/4"},
    {"rate": "3/4", "law": "auto"},
    {"loss": "2", "law": "types"},
    {"rate": "1/3", "loss": "3", "shuffle_first": "race", "shuffle_levels": ["0", "1"]},
    {"loss": "1", "law": "auto", "shuffle_first": "race", "shuffle_levels": ["0", "1"]},
]


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize(("held", "places"), UNIVERSES)
def test_the_promise_covers_all_pairs_of_a_universe(held: dict, places: list, settings: dict) -> None:
    mechanism = Stirring(**BASE, **settings)
    strata = [[i for i, size in enumerate(held["size"]) if size == own] for own in sorted({*held["size"]})]
    every = {}
    for orders in product(*({tuple(p) for p in permutations([places[i] for i in s])} for s in strata)):
        county = [0] * len(places)
        for stratum, order in zip(strata, orders, strict=True):
            for i, place in zip(stratum, order, strict=True):
                county[i] = place
        every[tuple(county)] = census({**held, "county": county})
    promises = {data: mechanism.specification(one) for data, one in every.items()}
    first = next(iter(promises.values()))
    assert all(promise.budget == first.budget for promise in promises.values())
    budget = float(first.budget.upper(9))
    per_record = float(mechanism.record_specification(every[next(iter(every))]).budget.upper(9))
    laws = {data: mechanism.exact_law(one) for data, one in every.items()}
    assert all(sum(law.values()) == 1 for law in laws.values())
    pairs = 0
    start = next(iter(every))
    for one in [start, *list(every)[-2:]]:
        steps = _count_exchanges(held, one, list(every))
        for other in every:
            distance = _distance(held, one, other)
            if distance:
                assert laws[one].keys() == laws[other].keys()
                worst = max(abs(log(laws[one][y] / laws[other][y])) for y in laws[one])
                assert worst <= budget * steps[other] + 1e-9
                assert worst <= per_record * distance + 1e-9
                pairs += 1
    assert pairs


def _distance(held: dict, one: tuple, other: tuple) -> int:
    rows = [list(zip(*held.values(), data, strict=True)) for data in (one, other)]
    for row in list(rows[0]):
        if row in rows[1]:
            rows[1].remove(row)
    return len(rows[1])


def _count_exchanges(held: dict, start: tuple, every: list[tuple]) -> dict[tuple, int]:
    """Return the fewest steps to each data set, each of which changes at most two records."""
    found, edge = {start: 0}, [start]
    while edge:
        edge = [
            other
            for one in edge
            for other in every
            if other not in found
            and _distance(held, one, other) <= 2
            and not found.update({other: found[one] + 1})
        ]
    return found


@pytest.mark.parametrize("asked", [{"rate": "1/4"}, {"loss": "2"}, {"rate": "1/3", "loss": "1"}])
@pytest.mark.parametrize(
    ("race", "places", "kinds"),
    [
        ([0, 0, 1, 1, 1], [0, 0, 1, 2, 2], {BY_HELD}),
        ([0, 1, 2, 3, 4, 5], [0, 0, 0, 1, 2, 2], {CYCLES, BY_PLACE}),
        ([0, 0, 0, 0, 1, 2], [0, 0, 0, 0, 1, 2], {CYCLES, BY_HELD, BY_PLACE}),
    ],
)
def test_the_choice_of_a_law_is_the_same_in_a_whole_universe(
    race: list[int], places: list[int], kinds: set[int], asked: dict
) -> None:
    mechanism = Stirring(**BASE, **asked, law="auto")
    found = set()
    for county in {*permutations(places)}:
        data = census({"size": [1] * len(race), "race": race, "county": list(county)})
        frame = mechanism.frame(data)
        (shape,) = list_shapes(frame.shapes(most_types=mechanism.most_types_counted)).distinct
        found.add((shape, mechanism._choose_laws(frame)[0]))
        # the promise is made from the same counts as the draw
        assert count_stratum_shapes(
            frame.strata, frame.of(frame.roles.hold), frame.of(frame.roles.moving_variables)
        ).distinct == (shape,)
    assert len(found) == 1
    ((shape, law),) = found
    assert choose_laws(StratumShapes.of([shape]), mechanism.goal)[0] == law
    assert law.kind in kinds


def test_the_budget_is_that_of_the_theory() -> None:
    n = 200
    data = census({"size": [1] * n, "race": list(range(n)), "county": [i % 20 for i in range(n)]})
    stirred = Stirring(**BASE, rate="1/20", release_identifiers={"race": "a test"}, accept_reversal=["race"])
    promise = stirred.specification(data)
    assert promise.input_premetric == Exchanges("household")
    assert promise.budget == Budget.log(19 * (n - 1))
    assert promise.evidence.status == "proved"
    per_record = stirred.record_specification(data)
    assert per_record.budget == Budget.log(19 * (n - 1)) * Fraction(n - 1, n)
    # per exchange ln(19·199) = 8.2378, against twice ln(…) of the Permutation Swapping Algorithm: half
    assert any(str(per_record.budget.upper(4)) in str(note) for note in promise.notes)
    old = PermutationSwapping(
        **BASE, rate="1/20", release_identifiers={"race": "a test"}, accept_reversal=["race"]
    )
    assert 2 * old.specification(data).budget > Budget.log(19 * (n - 1)) * Fraction(19, 10)


@pytest.mark.parametrize("law", ["cycles", "auto"])
def test_threads_release_the_same_records(law: str) -> None:
    data = large()
    drop = {"drop": ["race"]} if law == "auto" else {}
    mechanism = Stirring(**BASE, rate="1/5", law=law, **drop)
    one = mechanism.release(data, key=KEY)
    assert one.specification == mechanism.specification(data)
    other = mechanism.release(data, key=KEY, engine=Local(workers=1))
    assert _rows(one) == _rows(other)
    assert all(check.kept for check in other.checks)
    before = data.scan("household").collect().select("county", "tenure", "size").sort(pl.all())
    after = pl.DataFrame(pl.from_arrow(one.microdata["household"])).select("county", "tenure", "size")
    assert not after.sort(pl.all()).equals(before, null_equal=True)


def _rows(release: object) -> list:
    table = release.microdata["household"]  # type: ignore[attr-defined]
    frame = pl.DataFrame(pl.from_arrow(table if isinstance(table, pa.Table) else table.to_table()))
    return frame.select(sorted(frame.columns)).with_columns(pl.all().cast(pl.String)).sort(pl.all()).rows()


def test_moments_of_a_cell_are_those_of_the_law() -> None:
    rng = np.random.default_rng(3)
    for n, asked in ((2, {"rate": "1/3"}), (3, {"loss": "1"}), (5, {"rate": "1/5"}), (5, {"rate": "9/10"})):
        law = CyclesPairs(Stirring(**BASE, **asked).goal)
        every = enumerate_cycles(n, law.asked.weight(n))
        for _ in range(4):
            w, u = rng.integers(0, 3, n), rng.integers(0, 2, n)
            shown = {g: sum(int(w[i]) * int(u[g[i]]) for i in range(n)) for g in every}
            squares = {g: sum(int(w[i]) ** 2 * int(u[g[i]]) for i in range(n)) for g in every}
            mean = sum(p * shown[g] for g, p in every.items())
            spread = float(sum(p * shown[g] ** 2 for g, p in every.items()) - mean**2)

            def one(value: object) -> np.ndarray:
                return np.array([float(value)])

            size, inside = np.array([n]), one((w * u).sum())
            found = variance(
                size, one(u.sum()), inside, one(w.sum()), one((w * w * u).sum()), one((w * w).sum()), law
            )
            assert found[0] == pytest.approx(spread, abs=1e-9)
            total = 0.0
            for g, p in every.items():
                cells = StratumCells(
                    n=size,
                    places=one(u.sum()),
                    shown=one(shown[g]),
                    weight=one(w.sum()),
                    shown_squares=one(squares[g]),
                    squares=one((w * w).sum()),
                )
                total += float(p) * estimate(cells, law)[0][0]
            assert total == pytest.approx(float(inside[0]), abs=1e-9)


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    data = large(3_000)
    by = ["county", "race"]
    truth = data.scan("household").group_by(by).len().collect()
    mechanism = Stirring(**BASE, rate="1/5")
    held, cells, off = 0, 0, []
    for seed in range(12):
        table = mechanism.table(mechanism.release(data, key=Key.for_tests(seed)), by)
        both = (
            pl.DataFrame(pl.from_arrow(table))
            .join(truth, on=by, how="left")
            .with_columns(pl.col("len").fill_null(0))
        )
        held += int(((both["low"] <= both["len"]) & (both["len"] <= both["high"])).sum())
        off.append(((both["estimate"] - both["len"]) / both["standard_error"]).to_numpy())
        cells += both.height
    # 1,152 cells; intervals widened to whole records hold more than 95 %; below 93 % has a chance below 10⁻⁶
    assert 0.93 < held / cells <= 1
    scores = np.concatenate(off)
    assert abs(scores.mean()) < 5 / np.sqrt(scores.size) * 2
    assert 0.8 < scores.std() < 1.2


def test_shuffled_records_move_almost_surely() -> None:
    data = large()
    mechanism = Stirring(**BASE, rate="1/50", shuffle_first="race", shuffle_levels=["3"], drop=["tenure"])
    frame = mechanism.frame(data)
    moved = (
        mechanism.draw_swap(frame, KEY.bind("test"), Local())["county"].codes != frame.columns["county"].codes
    )
    chosen = mechanism._find_chosen(frame)
    # of eight counties one in eight shuffled records comes home again
    assert 0.8 < moved[chosen].mean() < 0.95
    assert moved[~chosen].mean() < 0.05
    assert (
        mechanism.specification(data).budget
        == Stirring(**BASE, rate="1/50", drop=["tenure"]).specification(data).budget
    )


@pytest.mark.parametrize(
    ("settings", "kind", "told"),
    [
        ({}, InputError, "rate or a loss"),
        ({"rate": "0"}, InputError, "share 0"),
        ({"rate": "-1/20"}, InputError, "share|rate"),
        ({"rate": "3/2"}, InputError, "share|rate"),
        ({"rate": 0.05}, BudgetError, "rate"),
        ({"loss": "41"}, InputError, "loss of one exchange"),
        ({"loss": "eight"}, BudgetError, "loss"),
        ({"rate": "1/20", "shuffle_levels": ["3"]}, InputError, "variable and its levels"),
        ({"rate": "1"}, InputError, "share 1"),
        ({"loss": "0"}, InputError, "loss of one exchange"),
        ({"loss": "-2"}, InputError, "loss of one exchange"),
        ({"rate": "1/20", "shuffle_first": "race"}, InputError, "variable and its levels"),
        ({"rate": "1/20", "law": "quick"}, InputError, "law is not as it should be"),
        ({"rate": "9999/10000", "loss": "1/10"}, InputError, "contradict"),
        *(
            (
                {"rate": "1/20", "shuffle_first": place, "shuffle_levels": ["1"]},
                PrivacyError,
                f"shuffled first by {place}",
            )
            for place in ("county", "state")
        ),
        ({"rate": "1/20", "shuffle_first": "income", "shuffle_levels": ["1"]}, InputError, "income"),
        ({"rate": "1/20", "shuffle_first": "race", "shuffle_levels": ["77"]}, InputError, "77"),
    ],
)
def test_bad_input_is_refused_before_anything_is_drawn(settings: dict, kind: type, told: str) -> None:
    with pytest.raises(kind, match=told) as caught:
        _check(settings)
    assert caught.value.why
    assert caught.value.fix


def _check(settings: dict) -> None:
    data = large(2_000)
    mechanism = Stirring(**BASE, **settings)
    try:
        mechanism.release(data, key=KEY)  # refused too where nobody asked before
    except StirredError:
        mechanism.refuse(data)
        mechanism.specification(data)


def test_an_area_beside_the_spine_is_a_place_too() -> None:
    n = 400
    geography = {"spine": ["state", "county"], "off_spine": {"district": {}}}
    homes = {
        "state": [1] * n,
        "county": [i % 8 for i in range(n)],
        "district": [i % 8 // 2 for i in range(n)],
        "size": [i // 8 % 3 for i in range(n)],
        "race": [i // 24 % 5 for i in range(n)],
    }
    data = Census.of({"geography": geography, "record": {"household": {}}}, {"household": homes})
    mechanism = Stirring(
        **BASE, drop=["district"], rate="1/20", shuffle_first="district", shuffle_levels=["1"]
    )
    with pytest.raises(PrivacyError, match="shuffled first by district"):
        mechanism.refuse(data)
    for ask in (mechanism.specification, lambda data: mechanism.release(data, key=KEY)):
        with pytest.raises(PrivacyError, match="shuffled first by district"):
            ask(data)


def test_a_place_is_refused_before_its_levels_are_looked_up() -> None:
    mechanism = Stirring(**BASE, rate="1/20", shuffle_first="county", shuffle_levels=["no such county"])
    for ask in (mechanism.specification, mechanism.refuse, lambda data: mechanism.release(data, key=KEY)):
        with pytest.raises(PrivacyError, match="shuffled first by county"):
            ask(large(2_000))


def test_a_contradiction_names_the_strata_and_the_rate_that_they_reach() -> None:
    """Of strata of n records, at ε = 1/10 a share of (n − 1)/(e^-0.1 + n − 1) can move: 0.5249 of two, 0.6885 of three."""
    sizes = [i // 2 for i in range(20)] + [20, 20, 20, 21, 21, 21, 21] + [99] * 50
    n = len(sizes)
    data = census({"size": sizes, "race": list(range(n)), "county": [i % 5 for i in range(n)]})
    settings = {**BASE, "loss": "1/10", "law": "cycles", "release_identifiers": {"race": "a test"}}
    with pytest.raises(InputError, match="contradict") as caught:
        Stirring(**settings, rate="7/10").specification(data)
    assert "only at a larger loss in 11 strata (10 of 2 records, 1 of 3 records)" in caught.value.why
    assert "2 records: 0.5249; 3 records: 0.6885" in caught.value.why
    with pytest.raises(InputError) as caught:
        Stirring(**settings, rate="99/100").specification(data)
    assert "13 strata (10 of 2 records, 1 of 3 records, 1 of 4 records, 1 larger)" in caught.value.why
    Stirring(**settings, rate="1/2").specification(data)


@pytest.mark.parametrize("rate", ["0.99999999999999999999", "1/10000000000000000000"])
def test_a_rate_that_no_share_can_be_told_from_0_or_1_is_refused_at_once(rate: str) -> None:
    with pytest.raises(InputError, match="too near 0 or 1"):
        Stirring(**BASE, rate=rate)


@pytest.mark.parametrize("rate", [MIN_RATE, Fraction(99_999, 100_000), MAX_RATE])
def test_the_smallest_and_largest_rates_have_a_promise(rate: Fraction) -> None:
    """Of two records: λ = (1 − p)/p. Of many the weights of a step still fit 62 bits."""
    data = census({"size": [1] * 2, "race": [0, 1], "county": [0, 1]})
    promise = Stirring(**BASE, rate=str(rate), law="cycles").specification(data)
    assert float(promise.budget.upper(6)) == pytest.approx(abs(log((1 - rate) / rate)), abs=1e-2)
    for n in (2, 3, 10**4, 2**32 - 1):
        weight = Asked.of(rate=rate).weight(n)
        assert weight.numerator + weight.denominator * (n - 1) < 1 << MAX_WEIGHT_BITS
        assert moved_share(n, weight) >= rate


def test_the_check_states_what_is_expected_to_move_by_each_law() -> None:
    """Held aaabb at 1/20: p·2·3·2/(5·4) = 3 % change their type; of five that differ, 5 % move."""
    n = 5
    data = census(
        {"size": [1] * n + [2] * n, "race": [0, 0, 0, 1, 1, 0, 1, 2, 3, 4], "county": [*range(n), *range(n)]}
    )
    (shown,), numbers = Stirring(**BASE, rate="1/20").preview(data)
    assert numbers["expected_by_law"] == {
        "cycles": {"strata": 1, "records": 5, "share_that_moves": 0.05},
        "held types": {"strata": 1, "records": 5, "share_that_changes_type": 0.03},
    }
    assert "about 0.4 of 10 records (4.0%)" in str(shown.note)


@pytest.mark.parametrize("weight", [Fraction(0), Fraction(-3)])
def test_a_weight_that_is_not_positive_is_refused(weight: Fraction) -> None:
    for use in (exchange_loss, rho_squared, lambda w: delta_after(w, 2, Fraction(1))):
        with pytest.raises(InputError, match="λ is a positive number"):
            use(weight)


class ByWhereAndWhat(Stirring):
    """A mutant: shuffles first who is of the kind that is named like its place."""

    def _find_chosen(self, frame: Frame) -> np.ndarray:
        return frame.columns["county"].codes == frame.columns["race"].codes


@pytest.mark.parametrize(("mechanism", "within"), [(Stirring, True), (ByWhereAndWhat, False)])
def test_a_choice_by_what_a_record_is_costs_nothing_and_one_by_where_it_lives_too_does(
    mechanism: type[Stirring], within: bool
) -> None:
    held = {"size": [1, 1, 1], "race": [0, 1, 2]}
    stirred = mechanism(**BASE, rate="1/20", shuffle_first="race", shuffle_levels=["0", "1"])
    every = {order: census({**held, "county": list(order)}) for order in permutations(range(3))}
    laws = {order: stirred.exact_law(data) for order, data in every.items()}
    promised = stirred.specification(every[0, 1, 2]).budget
    assert promised == Budget.log(38)
    near = [order for order in every if _distance(held, (0, 1, 2), order) == 2]
    worst = max(
        max(laws[0, 1, 2][y] / laws[order][y], laws[order][y] / laws[0, 1, 2][y])
        for order in near
        for y in laws[order]
    )
    assert (Budget.log(worst) <= promised) is within


def test_nothing_is_written_where_settings_are_refused(tmp_path: Path) -> None:
    table = large(400).scan("household").collect()
    table.write_csv(tmp_path / "homes.csv")
    (tmp_path / "census.toml").write_text(
        '[geography]\nspine = ["state", "county"]\n[record.household]\nfiles = ["homes.csv"]\nid = "hid"\n'
        '[record.household.variables]\nsize = "1..4"\ntenure = ["own", "rent"]\nrace = "0..11"\n'
    )
    before = {*tmp_path.iterdir()}
    words = ["stirring", str(tmp_path), "--match", "size", "--swap", "county", "--out", str(tmp_path / "out")]
    for bad in (
        [],
        ["--rate", "0"],
        ["--rate", "1"],
        ["--loss", "0"],
        ["--rate", "9999/10000", "--loss", "1/10"],
        ["--rate", "1/20", "--shuffle-first", "county", "--shuffle-levels", "1"],
        ["--rate", "1/20", "--shuffle-first", "income", "--shuffle-levels", "1"],
    ):
        assert main([*words, *bad]) == 2
        assert {*tmp_path.iterdir()} == before


def test_strata_of_one_record_stay_and_are_said() -> None:
    data = census({"size": [1, 2, 2, 2, 3], "race": [0, 0, 1, 2, 1], "county": [0, 0, 1, 2, 1]})
    promise = Stirring(**BASE, rate="1/2").specification(data)
    assert any("2 records are alone" in str(words) for words in promise.untouched)


def test_knobs_turn_rate_and_loss() -> None:
    both = Stirring(**BASE, rate="1/20", loss="6")
    assert [knob.name for knob in both.knobs()] == ["rate", "loss"]
    for knob in both.knobs():
        one = knob.turned(knob.settings[3])
        assert getattr(one, knob.name) == knob.settings[3]
    assert [knob.name for knob in Stirring(**BASE, loss="6").knobs()] == ["loss", "rate"]


def test_the_expected_effect_is_the_share_of_the_law() -> None:
    data = large()
    cycles = Stirring(**BASE, rate="1/20", law="cycles")
    assert cycles.expected_effect(data).share == pytest.approx(0.05, rel=1e-9)
    # by types those are counted whose county changes: of eight nearly equal ones, seven in eight of those that move
    types = Stirring(**BASE, rate="1/20").expected_effect(data)
    assert types.share == pytest.approx(0.05 * 7 / 8, rel=2e-3)
    loss = Stirring(**BASE, loss="6", law="cycles").expected_effect(data)
    sizes = data.scan("household").group_by("size").len().collect()["len"].to_numpy()
    share = (sizes * (sizes - 1) / (exp(6) + sizes - 1)).sum() / sizes.sum()
    assert loss.share == pytest.approx(share, rel=1e-5)
