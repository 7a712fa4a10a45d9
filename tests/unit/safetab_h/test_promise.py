"""What SafeTab-H promises: budgets, noise, sensitivity over all neighbours, conversions."""

import itertools
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import stirred as st
from stirred import SafeTabH
from stirred.mechanisms.census2020.noise import CellNoise
from stirred.mechanisms.census2020.safetab.groups import (
    PUERTO_RICO,
    REGION_TYPES,
    UNITED_STATES,
    CodeLists,
    GroupCounts,
    GroupMap,
    GroupSet,
    Regions,
    Tally,
)
from stirred.mechanisms.census2020.safetab.households.tables import (
    CELLS_PER_GROUP,
    DDHC_B_2020,
    LEVELS,
    Measurement,
    PublishedGroups,
    TypeAndTenure,
    half_width,
)
from stirred.mechanisms.exhibits import SELECTED_ROWS_KEY
from stirred.spec import Budget, Hamming, NormalizedRenyi, SymmetricDifference
from unit.safetab_h.test_counts import BUDGET, CUTS, KEY, all_totals, mechanism, town
from unit.safetab_h.towns import write

RACES = ("race_code_1", "race_code_2", "race_code_3")


def test_the_preset_has_the_production_figures() -> None:
    assert DDHC_B_2020.sum_budgets(UNITED_STATES) == Fraction("8.895302")
    assert DDHC_B_2020.sum_budgets(PUERTO_RICO) == Fraction("4.754134")
    assert DDHC_B_2020.thresholds["T3", "COUNTY", 1] == (4971, 19971, 149970)
    assert DDHC_B_2020.thresholds["T3", "STATE", 1] == (4971, 19971, 149971)
    assert DDHC_B_2020.thresholds["T4", "AIANNH", 1] == (971,)
    deviations = {
        round(float(CellNoise("zcdp", budget, Fraction(9)).variance) ** 0.5, 4)
        for budget in DDHC_B_2020.budgets.values()
        if budget
    }
    assert deviations == {1.5306, 5.6123, 25.51}
    margins = {round(1.959964 * deviation) for deviation in deviations}
    assert margins == {3, 11, 50}


def test_the_promise_is_per_household_and_converts_both_ways(tmp_path: Path) -> None:
    write(tmp_path, town(1), all_totals(1))
    census = st.read(tmp_path)
    made = mechanism(tmp_path, preset="ddhc-b-2020", budget={}, thresholds={}, epsilon=None)
    spec = made.specification(census)
    assert spec.input_premetric == SymmetricDifference("household")
    assert spec.output_premetric == NormalizedRenyi()
    assert spec.rho_squared == Budget.of("8.895302")
    assert spec.evidence.status == "proved"
    changed = mechanism(
        tmp_path, preset="ddhc-b-2020", budget={}, thresholds={}, epsilon=None, neighbours="changed"
    ).specification(census)
    assert changed.input_premetric == Hamming("household")
    assert changed.rho_squared == Budget.of("17.790604")
    assert made.conversion is not None
    assert made.conversion.restate(spec).rho_squared == changed.rho_squared
    assert spec.per(Hamming("household")).rho_squared == Budget.of(4 * Fraction("8.895302"))


def test_pure_dp_adds_budgets_and_has_geometric_noise(tmp_path: Path) -> None:
    write(tmp_path, town(1), all_totals(1))
    census = st.read(tmp_path)
    made = mechanism(tmp_path, definition="puredp", epsilon=None)
    assert made.specification(census).budget == Budget.of(24)  # two tables, six region types, two levels
    release = made.release(census, key=KEY)
    frame = pl.DataFrame(pl.from_arrow(release.tables["t3"]))
    noise = CellNoise("puredp", Fraction(1), Fraction(17**2))  # 8 codes of one group each, and one ethnicity
    assert CodeLists.read(tmp_path / "codes").sensitivity(1, fine=True, most_codes=8) == 9
    single = frame.filter(pl.col("variance") == pl.col("variance").min())["variance"][0]
    assert single == pytest.approx(2 * np.exp(-1 / 9) / (1 - np.exp(-1 / 9)) ** 2)
    assert single < float(noise.variance)


def contributions(folder: Path, frames: list[pl.DataFrame], table: str, level: int) -> list[np.ndarray]:
    """Every published measured count, without noise, for each of many censuses: all groups, levels drawn by their totals."""
    lists = CodeLists.read(folder / "codes")
    kind = REGION_TYPES["COUNTY"]
    mapping = GroupMap.of(lists, level, fine=False, most_codes=3)
    item = GroupSet(kind, level, ("01001", "02003"), mapping)
    cells = TypeAndTenure("type", "tenure")
    tally = Tally(sets=(item,), regions=Regions({}, ""), races=RACES, ethnicity="ethnicity_code", cells=cells)
    groups = np.arange(item.number, dtype=np.int64)
    totals = groups * 7 % 40
    made = Measurement(table, (10, 20, 30) if table == "T3" else (10,), CellNoise("zcdp", None, Fraction(1)))
    published = PublishedGroups(item, groups, totals)
    found = []
    for frame in frames:
        (keys, counts), *_ = tally.expand_groups(tally.group_records(frame.lazy()).collect())
        vector = np.zeros(item.number * CELLS_PER_GROUP, np.int64)
        for rows in made.rows(published, GroupCounts(keys, counts, cells.number), cells, KEY):
            single = rows.filter(pl.col("terms") == 1)
            region = single["region"].replace_strict({"01001": 0, "02003": 1}, return_dtype=pl.Int64)
            number = single["iteration"].replace_strict(
                {code: place for place, code in enumerate(mapping.codes)}, return_dtype=pl.Int64
            )
            place = (region * item.iterations + number) * CELLS_PER_GROUP + single["cell"]
            vector[place.to_numpy()] = single["count"].to_numpy()
        found.append(vector)
    return found


def test_no_neighbour_moves_the_counts_by_more_than_is_claimed(tmp_path: Path) -> None:
    """All censuses of at most two households of a small world, and all that add, remove or change one."""
    write(tmp_path, [], {})
    lists = CodeLists.read(tmp_path / "codes")
    codes = [("1000", "", ""), ("1001", "", ""), ("1001", "2000", ""), ("1000", "1001", "2000")]
    world = [
        (county, *races, "9000", kind, 1 + kind % 4)
        for county, kinds in (("01001", (1, 4, 2, 5)), ("02003", (3, 1, 5, 2)))
        for races, kind in zip(codes, kinds, strict=True)
    ]
    columns = ["county", *RACES, "ethnicity_code", "type", "tenure"]
    whole = pl.DataFrame(world, schema=columns, orient="row")
    sets = [*((i,) for i in range(len(world))), *itertools.combinations(range(len(world)), 2), ()]
    frames = [whole[list(chosen)] for chosen in sets]
    for table, level in (("T3", 2), ("T4", 1)):
        most = lists.sensitivity(level, fine=False, most_codes=3)
        vectors = dict(zip(sets, contributions(tmp_path, frames, table, level), strict=True))
        largest = 0
        for chosen, other in itertools.combinations(sets, 2):
            added, gone = len({*other} - {*chosen}), len({*chosen} - {*other})
            if added + gone == 1 or (added, gone) == (1, 1):
                moved = vectors[chosen] - vectors[other]
                steps = 1 if added + gone == 1 else 2
                assert np.abs(moved).max(initial=0) <= 1
                assert (moved**2).sum() <= steps * most
                largest = max(largest, int((moved**2).sum()) // steps)
        assert 1 < largest <= most


def test_every_household_is_in_one_measured_cell_of_a_level() -> None:
    for table, codes in (("T3", 5), ("T4", 4)):
        for level in LEVELS[table]:
            assert (level.counting_matrix[:, 1:].sum(axis=0) == 1).all()
            assert level.counting_matrix.shape[1] == codes + 1
            assert level.counting_matrix[:, 0].sum() == 0


def test_margins_of_sums_of_geometric_noise_cover() -> None:
    noise = CellNoise("puredp", Fraction(1), Fraction(9))
    rng = np.random.default_rng(1)
    q = np.exp(-1 / 3)
    draws = rng.geometric(1 - q, (4, 200_000)) - rng.geometric(1 - q, (4, 200_000))
    for terms in (1, 2, 4):
        width = half_width(noise, terms)
        inside = (np.abs(draws[:terms].sum(axis=0)) <= width).mean()
        assert inside >= 0.949
        assert (np.abs(draws[:terms].sum(axis=0)) <= width - 1).mean() < 0.951


def test_margins_of_wide_noise_are_found_at_once() -> None:
    for definition, z in (("zcdp", 1.96), ("puredp", 2.1183)):
        noise = CellNoise(definition, Fraction(1, 10**12), Fraction(9))
        assert half_width(noise, 1) == pytest.approx(z * float(noise.variance) ** 0.5, rel=1e-3)


def test_noise_has_the_claimed_variance(tmp_path: Path) -> None:
    write(tmp_path, [], {("COUNTY", f"{i:05d}", code): 0 for i in range(400) for code in ("A1", "B1", "E1")})
    made = mechanism(tmp_path, epsilon=None, budget={"COUNTY-1": "1/2"}, thresholds={})
    release = made.release(st.read(tmp_path), key=KEY)
    counts = release.tables["t3"]["count"].to_numpy()
    assert len(counts) == 1200
    assert abs(counts.var() / 9 - 1) < 0.25  # σ² = 9 / (2 · 1/2); six standard deviations
    assert abs(counts.mean()) < 0.6
    assert release.tables["t4"]["count"].to_numpy().tolist() != counts.tolist()


def test_budgets_of_tables_that_cannot_be_made_are_not_spent(tmp_path: Path) -> None:
    write(tmp_path, town(1), all_totals(1))
    census = st.read(tmp_path)
    made = mechanism(tmp_path, epsilon=None, household_type="rooms")
    spec = made.specification(census)
    assert spec.rho_squared == Budget.of(12)
    assert any("T3" in str(note) for note in spec.notes)
    release = made.release(census, key=KEY)
    assert set(release.tables) == {"t4"}
    assert release.ledger is not None
    assert release.ledger.total == spec.budget


def test_a_sum_has_the_variance_of_its_cells(tmp_path: Path) -> None:
    write(tmp_path, [], {("COUNTY", "01001", "A1"): 99})
    made = mechanism(tmp_path, epsilon=None, budget={"COUNTY-1": "1"})
    release = made.release(st.read(tmp_path), key=KEY)
    for table, terms in (("t3", [5, 3, 1, 2, 1, 1, 2, 1, 1]), ("t4", [3, 1, 1, 1])):
        assert release.tables[table]["variance"].to_pylist() == [4.5 * number for number in terms]


def test_a_household_costs_the_larger_program(tmp_path: Path) -> None:
    write(tmp_path, town(1), all_totals(1))
    census = st.read(tmp_path)
    made = mechanism(tmp_path, epsilon=None, budget={"USA-1": "1", "PR-STATE-1": "3", "PR-COUNTY-2": "1"})
    spec, release = made.specification(census), made.release(census, key=KEY)
    assert spec.rho_squared == Budget.of(8)
    assert release.ledger is not None
    assert release.ledger.total == spec.budget


def test_noise_is_never_used_for_two_censuses_or_two_tables_of_totals(tmp_path: Path) -> None:
    households, totals = town(5), all_totals(5)
    more = totals | {("STATE", "01", "A1"): 77}
    made = []
    for place, (some, given) in enumerate(
        ((households, totals), (households[:-1], totals), (households, more))
    ):
        folder = write(tmp_path / str(place), some, given)
        census = st.read(folder)
        noisy, exact = (
            mechanism(folder, epsilon=e).release(census, key=KEY).tables["t4"] for e in (None, "inf")
        )
        made.append(np.array(noisy["count"]) - np.array(exact["count"]))
    assert len(made[0]) == len(made[1])
    assert (made[0] != made[1]).mean() > 0.5
    assert made[0][:20].tolist() != made[2][:20].tolist()


def test_the_total_scales_every_budget() -> None:
    made = SafeTabH(total="2")
    assert made.total_budget == 2
    assert made.exact_settings.budgets["T3", "USA", 2] == Fraction("1.9208") * 2 / Fraction("8.895302")
    turned = made.knobs()[0].turned(Fraction(3))
    assert isinstance(turned, SafeTabH)
    assert turned.total_budget == 3


def test_an_infinite_budget_is_said_and_never_private(tmp_path: Path) -> None:
    write(tmp_path, town(1), all_totals(1))
    census = st.read(tmp_path)
    made = mechanism(tmp_path)
    assert not made.specification(census).budget.is_finite
    assert not made.release(census, key=st.Key.fresh()).private


def test_exhibits_and_tables(tmp_path: Path) -> None:
    write(tmp_path, town(1), all_totals(1))
    census = st.read(tmp_path)
    made = mechanism(tmp_path, epsilon=None)
    release = made.release(census, key=KEY)
    assert len(made.exhibits(None)) == 1
    assert len(made.exhibits(release)) == 2
    by = ("region_type", "region", "iteration", "t4_cell")
    table = made.table(release, by)
    assert table.num_rows == release.tables["t4"].num_rows
    assert {"count", "estimate", "standard_error", "low", "high"} <= set(table.column_names)
    assert SELECTED_ROWS_KEY.encode() in table.schema.metadata  # a group that is not shown is no count of 0
    assert made.list_own_tables(release).keys() == {"t3", "t4"}
    assert set(CUTS) == set(BUDGET)
