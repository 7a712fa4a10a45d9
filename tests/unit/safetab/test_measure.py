"""The two stages: drawing only the survivors among empty groups has the law of drawing all, and suppression hides zeros."""

from collections import Counter
from fractions import Fraction
from itertools import combinations, pairwise, product
from math import comb

import numpy as np
import pytest
from scipy.stats import chi2

from stirred.chance import Key
from stirred.mechanisms.census2020.factors import Definition
from stirred.mechanisms.census2020.noise import CellNoise
from stirred.mechanisms.census2020.safetab.groups import GroupCounts, GroupMap, GroupSet, RegionType
from stirred.mechanisms.census2020.safetab.persons.tables import (
    AGE4,
    AGE9,
    AGE23,
    GroupSpan,
    MeasuredGroups,
    Stages,
    absent_numbers,
    count_cells,
    draw_empty,
    map_to_coarser,
    measure_groups,
)

F = Fraction
ALARM = 1e-7  # of each statistic; fewer than ten are looked at
NOTHING = np.zeros(0, np.int64)


def groups(regions: int, iterations: int = 4) -> GroupSet:
    mapping = GroupMap(tuple(f"{i}" for i in range(iterations)), {}, {}, {}, 2)
    return GroupSet(RegionType("TRACT", "tract"), 2, tuple(f"{i:05d}" for i in range(regions)), mapping)


def counted(cells: dict[int, int]) -> GroupCounts:
    keys = sorted(cells)
    return GroupCounts(np.array(keys, np.int64), np.array([cells[k] for k in keys], np.int64), 46)


def stages(definition: Definition, *, cut: int | None, thresholds: tuple[int, ...] = (4, 5, 7)) -> Stages:
    first, second = (CellNoise(definition, budget, F(4)) for budget in (F(2, 3), F(1)))
    return Stages(first=first, second=second, whole=second, thresholds=thresholds, cut=cut)


def probabilities(noise: CellNoise, low: int, high: int) -> dict[int, float]:
    """The law of the noise from its formula, in floating point."""
    weight = {
        k: np.exp(-float(noise.budget or 1) * (k * k / 4 if noise.definition == "zcdp" else abs(k) / 2))
        for k in range(-400, 401)
    }
    whole = sum(weight.values())
    return {k: weight[k] / whole for k in range(low, high + 1)}


def fate(made: MeasuredGroups, number: int) -> list[str]:
    """What became of each group."""
    found = ["hidden"] * number
    for group, count in zip(made.totals.tolist(), made.total_counts.tolist(), strict=True):
        found[group] = f"total {min(count, 6)}"
    for level, (some, _) in made.cells.items():
        for group in some.tolist():
            assert found[group] == "hidden"
            found[group] = f"detail {level}"
    return found


def expected(steps: Stages) -> dict[str, float]:
    """The fate of a group without records when all are drawn."""
    first, second = (probabilities(noise, -400, 400) for noise in (steps.first, steps.second))
    result: dict[str, float] = {"hidden": 0.0}
    for seen, p in first.items():
        detail = sum(seen >= step for step in steps.thresholds)
        if detail:
            result[f"detail {detail}"] = result.get(f"detail {detail}", 0) + p
            continue
        for total, q in second.items():
            name = "hidden" if steps.cut is not None and total <= steps.cut else f"total {min(total, 6)}"
            result[name] = result.get(name, 0) + p * q
    return result


def surprise(seen: Counter[str], law: dict[str, float], n: int) -> float:
    """The chi-square statistic's chance to be as large or larger."""
    rare = [name for name, p in law.items() if p * n < 8]
    pooled = {name: p for name, p in law.items() if name not in rare}
    pooled["rare"] = sum(law[name] for name in rare) + 1e-9
    counts = Counter({name: seen[name] for name in pooled if name != "rare"})
    counts["rare"] = n - sum(counts.values())
    value = sum((counts[name] - n * p) ** 2 / (n * p) for name, p in pooled.items() if p * n >= 1)
    return float(chi2.sf(value, len(pooled) - 1))


def law_of_survivors(definition: Definition, key: Key) -> tuple[float, float]:
    """How surprising the fates of 20,000 groups are, one by one and in pairs of neighbours."""
    item, steps = groups(5_000), stages(definition, cut=1)
    assert steps.sparse
    made = measure_groups(item, counted({46 * 9 + 3: 2, 46 * 700: 1}), NOTHING, steps, key)
    fates = fate(made, item.number)
    empty = [fates[g] for g in range(item.number) if g not in (9, 700)]
    law = expected(steps)
    pairs = Counter(f"{a}|{b}" for a, b in zip(empty[::2], empty[1::2], strict=True))
    joint = {f"{a}|{b}": p * q for (a, p), (b, q) in product(law.items(), law.items())}
    return surprise(Counter(empty), law, len(empty)), surprise(pairs, joint, len(empty) // 2)


@pytest.mark.parametrize("definition", ["zcdp", "puredp"])
def test_survivors_have_the_law_of_drawing_every_group(definition: Definition) -> None:
    alone, pairs = law_of_survivors(definition, Key.for_tests(8))
    assert alone > ALARM
    assert pairs > ALARM


def test_a_run_that_leaves_out_a_kind_of_survivor_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutants: no group without records ever passes the first look, or none ever keeps its total."""
    above = CellNoise.above
    for label in ("first empty", "total empty"):

        def less(noise: CellNoise, key: Key, name: tuple[object, ...], n: int, bound: int) -> object:
            none = (NOTHING, NOTHING)
            return none if name[0] == label else above(noise, key, name, n, bound)  # type: ignore[arg-type] # noqa: B023

        monkeypatch.setattr(CellNoise, "above", less)
        assert min(law_of_survivors("zcdp", Key.for_tests(8))) < ALARM


def test_every_way_to_draw_survivors_adds_up_to_the_naive_law() -> None:
    """Four empty groups among six, small laws in exact fractions: both programs enumerated, outcome by outcome."""
    first = {0: F(1, 2), 1: F(1, 3), 2: F(1, 6)}  # detail where the first look is 1 or 2
    second = {0: F(3, 5), 5: F(1, 5), 9: F(1, 5)}  # shown where the total is above 0
    present, number = np.array([1, 4]), 6
    empty = [g for g in range(number) if g not in present]
    naive: Counter[tuple[tuple[int, str, int], ...]] = Counter()
    for looks, sums in product(product(first, repeat=4), product(second, repeat=4)):
        chance = F(1)
        rows = []
        for g, look, total in zip(empty, looks, sums, strict=True):
            chance *= first[look] * second[total]
            if look:
                rows.append((g, "detail", look))
            elif total:
                rows.append((g, "total", total))
        naive[tuple(sorted(rows))] += chance
    sparse: Counter[tuple[tuple[int, str, int], ...]] = Counter()
    for passing, p in _survivors(first, 4):
        places = np.array([place for place, _ in passing], np.int64)
        chosen = [
            (int(g), "detail", v) for g, (_, v) in zip(absent_numbers(present, places), passing, strict=True)
        ]
        for shown, q in _survivors(second, 4 - len(passing)):
            left = absent_numbers(
                present, absent_numbers(places, np.array([place for place, _ in shown], np.int64))
            )
            rows = chosen + [(int(g), "total", v) for g, (_, v) in zip(left, shown, strict=True)]
            sparse[tuple(sorted(rows))] += p * q
    assert sum(naive.values()) == 1
    assert sparse == naive


def _survivors(law: dict[int, F], n: int) -> list[tuple[list[tuple[int, int]], F]]:
    """All outcomes of drawing how many of n are above 0, which, and their values, with their probabilities."""
    p = 1 - law[0]
    found = []
    for k in range(n + 1):
        for places in combinations(range(n), k):
            for values in product([v for v in law if v], repeat=k):
                chance = comb(n, k) * p**k * (1 - p) ** (n - k) / comb(n, k)
                for v in values:
                    chance *= law[v] / p
                found.append((list(zip(places, values, strict=True)), chance))
    return found


def kept_share(cut_moved: int = 0) -> tuple[int, int]:
    """How many of many groups without records are shown, at p = 0.99; the first look is switched off."""
    noise = CellNoise("zcdp", F("0.1431"), F(9))
    steps = Stages(
        first=noise, second=noise, whole=noise, thresholds=(10**6,) * 3, cut=noise.cut(F(99, 100)) + cut_moved
    )
    item = groups(50_000)
    return len(measure_groups(item, counted({}), NOTHING, steps, Key.for_tests(2)).totals), item.number


def test_a_group_without_persons_is_shown_with_probability_one_minus_p_at_most() -> None:
    shown, number = kept_share()
    limit = number * 0.01
    assert shown <= limit + 6 * limit**0.5  # beyond six standard deviations: false alarm below 1e-8
    assert shown > 0


def test_a_bound_one_too_low_is_noticed() -> None:
    shown, number = kept_share(cut_moved=-1)
    assert shown > number * 0.01 + 6 * (number * 0.01) ** 0.5


@pytest.mark.parametrize(
    ("thresholds", "detail"), [((10**9,) * 3, 0), ((-(10**9), 10**9, 10**9), 1), ((-(10**9),) * 2 + (10**9,), 2),
                               ((-(10**9),) * 3, 3)],
)  # fmt: skip
def test_thresholds_drive_every_branch(thresholds: tuple[int, ...], detail: int) -> None:
    item = groups(3)
    steps = stages("zcdp", cut=None, thresholds=thresholds)
    made = measure_groups(item, counted({46 * 5 + 7: 40}), NOTHING, steps, Key.for_tests(1))
    if detail == 0:
        assert made.totals.tolist() == list(range(12))
    else:
        some, rows = made.cells[detail]
        assert some.tolist() == list(range(12))
        assert rows.shape == (12, count_cells(detail))
        assert rows[5, map_to_coarser(detail)[7]] > 20


def test_the_last_threshold_counts_as_reached() -> None:
    quiet = CellNoise("zcdp", None, F(9))
    steps = Stages(first=quiet, second=quiet, whole=quiet, thresholds=(3, 5, 7), cut=0)
    made = measure_groups(groups(2), counted({0: 2, 46: 3, 92: 5, 138: 7}), NOTHING, steps, Key.for_tests(1))
    assert made.totals.tolist() == [0]
    assert {level: some.tolist() for level, (some, _) in made.cells.items()} == {1: [1], 2: [2], 3: [3]}


def test_groups_of_detailed_lists_get_a_total_with_the_whole_budget() -> None:
    steps = stages("zcdp", cut=None, thresholds=(-(10**9),) * 3)
    made = measure_groups(groups(2), counted({0: 5}), np.array([0, 2]), steps, Key.for_tests(1))
    assert made.totals.tolist() == [0, 2, 4, 6]
    assert not made.looked.any()


def test_coarser_ages_are_made_of_finer_ones() -> None:
    assert set(AGE4) <= set(AGE23)
    assert set(AGE9) <= set(AGE23)
    assert [len(set(map_to_coarser(detail).tolist())) for detail in (1, 2, 3)] == [8, 18, 46]


def test_noise_too_wide_for_a_table_is_drawn_for_every_group() -> None:
    noise = CellNoise("puredp", F(1, 1000), F(4))  # a scale of 2,000
    assert noise.is_wide
    places, values = noise.above(Key.for_tests(1), ("wide",), 40_000, 4_000)
    share = np.exp(-4_001 / 2_000) / (1 + np.exp(-1 / 2_000))  # P(X > 4000)
    assert (values > 4_000).all()
    assert (np.diff(places) > 0).all()
    assert abs(len(places) - 40_000 * share) < 6 * (40_000 * share) ** 0.5  # false alarm below 1e-8


@pytest.mark.parametrize("cut", [3, None], ids=["sparse", "all shown"])
def test_spans_of_groups_are_measured_as_the_whole_is(cut: int | None) -> None:
    """Wherever a set is cut into parts, the same groups are shown with the same noise."""
    rng = np.random.default_rng(4)
    item, key = groups(60), Key.for_tests(8)
    steps = stages("zcdp", cut=cut)
    keys = np.sort(rng.choice(item.number * 46, 150, replace=False)).astype(np.int64)
    every = GroupCounts(keys, rng.integers(1, 9, keys.size), 46)
    detailed = np.array([2], np.int64)
    whole = measure_groups(item, every, detailed, steps, key)
    present = every.totals()[0]
    empty = draw_empty(item, len(present), steps, key)
    edges = [0, 1, 17, 17, 130, item.number]
    pieces = []
    for first, end in pairwise(edges):
        inside = (keys >= first * 46) & (keys < end * 46)
        some = GroupCounts(keys[inside], every.counts[inside], 46)
        before = int((present < first).sum())
        pieces.append(measure_groups(item, some, detailed, steps, key, GroupSpan(first, end, before, empty)))
    for name in ("totals", "total_counts", "looked"):
        joined = np.concatenate([getattr(piece, name) for piece in pieces])
        assert joined.tolist() == getattr(whole, name).tolist()
    assert len(whole.totals) > len(present) // 4
    assert {1, 2, 3} & whole.cells.keys()
    for level in (1, 2, 3):
        found = [piece.cells[level] for piece in pieces if level in piece.cells]
        here, rows = whole.cells.get(level, (NOTHING, NOTHING))
        assert [group for one, _ in found for group in one.tolist()] == here.tolist()
        assert [row for _, some in found for row in some.tolist()] == rows.tolist()
    assert empty.passing.size > 0 or cut is None
