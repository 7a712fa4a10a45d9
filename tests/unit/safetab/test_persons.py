"""SafeTab-P on small censuses: exact without noise, the promise as stated, no neighbour further away than promised."""

import random
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest

from stirred import SafeTabP
from stirred.census import Census, read
from stirred.census.synthetic import write_preset
from stirred.chance import Key
from stirred.errors import BudgetError, InputError
from stirred.frames import frame_of
from stirred.mechanisms.census2020.safetab.groups import (
    CODE_FILE,
    ETHNICITY_FILE,
    FILE_COLUMNS,
    MAP_FILE,
    PUERTO_RICO,
    RACE_FILE,
    UNITED_STATES,
    CodeLists,
    Tally,
)
from stirred.mechanisms.census2020.safetab.persons.budgets import DDHC_A_2020
from stirred.mechanisms.census2020.safetab.persons.tables import map_to_coarser
from stirred.publish import load, save
from stirred.publish.packet.lookup import look_up
from stirred.publish.plan.proposal import propose_plan
from stirred.spec import Hamming, SymmetricDifference

F = Fraction
KEY = Key.for_tests(4)
RACE_ROWS = [
    ("1", "north alone", 1, True, False, False), ("2", "north in combination", 1, False, False, False),
    ("3", "south alone", 1, True, True, False), ("4", "south in combination", 1, False, False, True),
    ("5", "hill alone", 2, True, False, False), ("6", "hill in combination", 2, False, False, False),
    ("9", "everyone alone", 0, True, "Null", "Null"),
]  # fmt: skip
ETHNIC_ROWS = [("7", "islander", 1, False, False), ("8", "reef islander", 2, True, False)]
LEADS = {"10": "12569", "11": "129", "20": "34", "90": "7", "91": "78", "99": ""}


@pytest.fixture(scope="module")
def lists(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lists")
    rows = {
        RACE_FILE: RACE_ROWS,
        ETHNICITY_FILE: ETHNIC_ROWS,
        CODE_FILE: [(code, code) for code in LEADS],
        MAP_FILE: [(to, code) for code, targets in LEADS.items() for to in targets],
    }
    for name, lines in rows.items():
        text = "\n".join("|".join(map(str, line)) for line in [FILE_COLUMNS[name], *lines])
        (folder / name).write_text(text + "\n")
    return folder


def person(rng: random.Random) -> dict[str, Any]:
    state = rng.choice(["01", "02", "72"])
    return {
        "state": state,
        "county": state + rng.choice(["001", "003"]),
        "sex": rng.choice([1, 2]),
        "age": rng.choice([0, 4, 5, 17, 18, 44, 45, 64, 65, 84, 85, 115]),
        "race_code_1": rng.choice([10, 11, 20]),
        "race_code_2": rng.choice([0, 10, 20]),
        "ethnicity_code": rng.choice([90, 91, 99]),
    }


def census(people: list[dict[str, Any]]) -> Census:
    frame = pl.DataFrame(people).with_row_index("hid").with_columns(pl.col("hid").cast(pl.Int64))
    schema = {
        "geography": {"spine": ["state", "county"]},
        "record": {"household": {"id": "hid"}, "person": {"household": "hid", "of": "household"}},
    }
    homes = frame.select("hid", "state", "county")
    return Census.of(schema, {"household": homes, "person": frame.drop("state", "county")})


def mechanism(lists: Path, **settings: Any) -> SafeTabP:
    usual: dict[str, Any] = {"codes": lists, "races": ["race_code_1", "race_code_2"], "most_codes": 2}
    return SafeTabP(**(usual | settings))


CUTS = {1: (18, 45, 65), 2: (5, 18, 25, 35, 45, 55, 65, 75)}
STEPS = {"USA": (10, 20, 10**9), "STATE": (6, 12, 10**9), "COUNTY": (4, 8, 10**9)}


def independent(people: list[dict[str, Any]]) -> tuple[Counter[Any], Counter[Any]]:
    """T1 and T2 without noise, written with loops and none of the program's code."""
    groups: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    rows = [(code, level, alone, fine, coarse) for code, _, level, alone, fine, coarse in RACE_ROWS]
    rows += [(code, level, None, fine, coarse) for code, _, level, fine, coarse in ETHNIC_ROWS]
    areas = {(one["state"], one["county"]) for one in people}
    for state, county in areas:
        island = "PR-" if state == "72" else ""
        for name, region in (("USA", "1"), ("STATE", state), ("COUNTY", county)):
            if island and name == "USA":
                continue
            for code, level, _, fine, coarse in rows:
                if (
                    level
                    and not (fine is True and name == "COUNTY")
                    and not (coarse is True and name != "COUNTY")
                ):
                    groups.setdefault((island + name, region, code), [])
    for (kind, region, code), members in groups.items():
        _, _, alone, _, _ = next(row for row in rows if row[0] == code)
        for one in people:
            if (one["state"] == "72") != kind.startswith("PR-"):
                continue
            if region not in ("1", one["state"], one["county"]):
                continue
            races = [LEADS.get(str(c), "") for c in (one["race_code_1"], one["race_code_2"]) if c]
            leads = {True: all(code in r for r in races), False: any(code in r for r in races),
                     None: code in LEADS[str(one["ethnicity_code"])]}  # fmt: skip
            if leads[alone]:
                members.append(one)
    t1: Counter[Any] = Counter()
    t2: Counter[Any] = Counter()
    for (kind, region, code), members in groups.items():
        short = kind.removeprefix("PR-")
        total = code in ("3", "8") and short != "COUNTY"  # detailed lists: a total alone
        detail = 0 if total else sum(len(members) >= step for step in STEPS[short])
        if detail or short != "COUNTY" or members:
            t1[kind, region, code] = len(members)
        if not detail:
            continue
        edges = (0, *CUTS[detail], 116)
        for sex in (1, 2):
            t2[kind, region, code, str(sex), "*", "*"] = sum(m["sex"] == sex for m in members)
            for a, b in pairwise(edges):
                inside = sum(m["sex"] == sex and a <= m["age"] < b for m in members)
                t2[kind, region, code, str(sex), str(a), str(b - 1)] = inside
    return t1, t2


@pytest.mark.parametrize("definition", ["zcdp", "puredp"])
def test_without_noise_it_is_an_independent_tabulation(lists: Path, definition: str) -> None:
    rng = random.Random(6)
    people = [person(rng) for _ in range(60)]
    steps = {
        f"{prefix}{name}-{level}": ",".join(map(str, three))
        for name, three in STEPS.items()
        for prefix in ("", "PR-")
        for level in (1, 2)
        if (prefix, name) != ("PR-", "USA")
    }
    run = mechanism(lists, epsilon="inf", thresholds=steps, definition=definition)
    release = run.release(census(people), key=KEY)
    assert not release.private
    assert not release.specification.budget.is_finite
    found = {}
    for name in ("t1", "t2"):
        frame = frame_of(release.tables[name])
        keys = frame.columns[: frame.columns.index("count")]
        found[name] = {tuple(row[:-1]): row[-1] for row in frame.select(*keys, "count").iter_rows()}
        assert (frame["variance"] == 0).all()
        assert (frame["low"] == frame["high"]).all()
    t1, t2 = independent(people)
    assert found["t2"] == dict(t2)
    assert found["t1"] == dict(t1)
    assert len(t2) > 100


# ---- the promise ------------------------------------------------------------------------------------------------------


def test_the_budgets_are_those_of_the_product() -> None:
    assert DDHC_A_2020.sum_budgets(UNITED_STATES) == F("4.944")
    assert DDHC_A_2020.sum_budgets(PUERTO_RICO) == F("2.643")
    assert SafeTabP().apportion().total_budget() == F("4.944")


def test_standard_deviations_and_bounds_of_the_product() -> None:
    here = SafeTabP().apportion()
    found = {line.name: here.stages(line) for line in here.lines}
    deviation = lambda noise: round(float(noise.variance) ** 0.5, 2)  # noqa: E731
    wanted = {
        "USA-1": (25.0, 75.0, 49),
        "USA-2": (1.53, 4.59, 3),
        "TRACT-2": (5.61, 16.82, 11),
        "PLACE-1": (25.0, 75.0, 49),
    }
    for name, (second, first, margin) in wanted.items():
        assert (deviation(found[name].second), deviation(found[name].first)) == (second, first)
        assert found[name].second.cut(F(39, 40)) == margin
    assert deviation(found["STATE-2"].whole) == 1.45
    assert (found["COUNTY-1"].cut, found["TRACT-2"].cut, found["STATE-2"].cut) == (93, 21, None)


def test_the_stages_of_a_line_cost_its_budget() -> None:
    """σ² = s / 2ρ² at each stage, and no more than the line has in all; pure DP the same with s / ε."""
    for definition in ("zcdp", "puredp"):
        here = SafeTabP(definition=definition).apportion()  # type: ignore[arg-type]
        for line in here.lines:
            steps = here.stages(line)
            touched = F(line.sensitivity)
            costs = []
            for noise in (steps.first, steps.second, steps.whole):
                assert noise.budget is not None
                if definition == "zcdp":
                    costs.append(touched / (2 * F(noise.variance)))
                else:
                    assert noise.squared == touched**2
                    costs.append(noise.budget)
            assert costs[0] + costs[1] == line.budget == costs[2]


def test_the_specification_says_both_factors(lists: Path) -> None:
    data = census([person(random.Random(1)) for _ in range(3)])
    added = mechanism(lists).specification(data)
    changed = mechanism(lists, neighbours="changed").specification(data)
    assert isinstance(added.input_premetric, SymmetricDifference)
    assert isinstance(changed.input_premetric, Hamming)
    assert F(changed.rho_squared.exact) == 2 * F(added.rho_squared.exact)
    generic = added.per(Hamming("person"))  # group privacy, which is also how the published figure was made
    assert F(generic.rho_squared.exact) == 4 * F(added.rho_squared.exact)
    assert any("times 4" in note and "times 2" in note for note in added.notes)
    assert any("housing" in note for note in added.notes)
    twice = mechanism(lists, neighbours="changed", definition="puredp").specification(data)
    once = mechanism(lists, definition="puredp").specification(data)
    assert F(twice.budget.exact) == 2 * F(once.budget.exact)


def test_the_noise_is_the_same_whichever_neighbours_are_compared(lists: Path) -> None:
    data = census([person(random.Random(2)) for _ in range(20)])
    one, two = (
        mechanism(lists, neighbours=n).release(data, key=KEY) for n in ("added-or-removed", "changed")
    )
    assert one.tables["t1"].equals(two.tables["t1"])


def neighbours(
    people: list[dict[str, Any]], others: list[dict[str, Any]]
) -> Iterator[tuple[bool, list[Any]]]:
    """All censuses with one person less, more (from a list) or changed; True marks a change."""
    for place in range(len(people)):
        yield False, people[:place] + people[place + 1 :]
    for other in others:
        yield False, [*people, other]
        for place in range(len(people)):
            yield True, [*people[:place], other, *people[place + 1 :]]


def measured_vectors(tally: Tally, people: list[dict[str, Any]]) -> list[dict[int, Counter[int]]]:
    """For each set: the vector of every level of detail, sparse, by group and cell; 0 is the total of the first look."""
    frame = pl.DataFrame(people, schema_overrides={"race_code_2": pl.Int64})
    result = []
    for keys, counts in tally.expand_groups(tally.group_records(frame.lazy()).collect()):
        vectors: dict[int, Counter[int]] = {detail: Counter() for detail in range(4)}
        for key, count in zip(keys.tolist(), counts.tolist(), strict=True):
            group, cell = divmod(key, 46)
            for detail, vector in vectors.items():
                vector[group * 46 + (int(map_to_coarser(detail)[cell]) if detail else 0)] += count
        result.append(vectors)
    return result


def distances(one: dict[int, Counter[int]], two: dict[int, Counter[int]]) -> tuple[int, int]:
    """Squared L2 and L1 distance where every group takes the level of detail that is worst for it."""
    worst: dict[int, list[int]] = {}
    for detail in range(4):
        here: Counter[int] = Counter()
        flat: Counter[int] = Counter()
        for cell in one[detail].keys() | two[detail].keys():
            moved = one[detail][cell] - two[detail][cell]
            here[cell // 46] += moved * moved
            flat[cell // 46] += abs(moved)
        for group, value in here.items():
            so_far = worst.setdefault(group, [0, 0])
            worst[group] = [max(so_far[0], value), max(so_far[1], flat[group])]
    return sum(a for a, _ in worst.values()), sum(b for _, b in worst.values())


def furthest(lists: Path, seed: int) -> dict[str, tuple[int, int]]:
    """By set, how far neighbours lie from a random census relative to the sensitivity: added or removed, changed."""
    rng = random.Random(seed)
    people, others = [person(rng) for _ in range(4)], [person(rng) for _ in range(12)]
    run = mechanism(lists)
    tally = run.tally(census([*people, *others]))
    base = measured_vectors(tally, people)
    most: dict[str, list[int]] = {}
    for changed, near in neighbours(people, others):
        for item, one, two in zip(tally.sets, base, measured_vectors(tally, near), strict=True):
            here = most.setdefault(f"{item.kind.name}-{item.level} {item.mapping.sensitivity}", [0, 0])
            squared, flat = distances(one, two)
            here[changed] = max(here[changed], squared, flat)
    return {name: (one, two) for name, (one, two) in most.items()}


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_no_neighbour_is_further_away_than_promised(lists: Path, seed: int) -> None:
    for name, (once, changed) in furthest(lists, seed).items():
        sensitivity = int(name.split()[1])
        assert once <= sensitivity, name
        assert changed <= 2 * sensitivity, name


def test_the_promise_is_attained(lists: Path) -> None:
    """Somewhere a person added costs all of s, and a changed one all of 2s: a smaller claim would be noticed."""
    tight = [(once, changed, int(name.split()[1])) for name, (once, changed) in furthest(lists, 2).items()]
    assert any(once == s for once, _, s in tight)
    assert any(changed == 2 * s for _, changed, s in tight)


# ---- what is published ------------------------------------------------------------------------------------------------


def test_files_have_the_columns_of_the_bureau(lists: Path, tmp_path: Path) -> None:
    data = census([person(random.Random(2)) for _ in range(30)])
    steps = {"STATE-1": "1,2,10000"}
    release = mechanism(lists, thresholds=steps).release(data, key=KEY, out=tmp_path)
    first = (tmp_path / "t1" / "part-00000.csv").read_text().splitlines()
    second = (tmp_path / "t2" / "part-00000.csv").read_text().splitlines()
    assert first[0] == "REGION_ID|REGION_TYPE|ITERATION_CODE|COUNT"
    assert second[0] == "REGION_ID|REGION_TYPE|ITERATION_CODE|AGESTART|AGEEND|SEX|COUNT"
    assert len(first) - 1 == release.tables["t1"].num_rows
    digest = CodeLists.read(lists).digest()
    assert (tmp_path / "t1.lists").read_text().strip() == digest
    assert release.tables["t1"].schema.metadata[b"stirred:code lists"].decode() == digest
    assert {path.name for path in release.files} == {"t1", "t2", "t1.lists"}


def test_sums_and_variances_agree(lists: Path) -> None:
    data = census([person(random.Random(3)) for _ in range(60)])
    steps = {f"{name}-1": "0,5,20" for name in ("STATE", "COUNTY", "USA", "PR-STATE")}
    release = mechanism(lists, thresholds=steps).release(data, key=KEY)
    t1, t2 = (frame_of(release.tables[name]) for name in ("t1", "t2"))
    keys = ["region_type", "region", "iteration"]
    cells = (
        t2.filter(pl.col("age_start") != "*")
        .group_by(keys)
        .agg(pl.col("count", "variance").sum(), n=pl.len())
    )
    joined = cells.join(t1, on=keys, suffix="_total")
    assert joined.height == cells.height
    assert (joined["count"] == joined["count_total"]).all()
    assert np.allclose(joined["variance"], joined["variance_total"])
    assert set(joined["n"]) <= {8, 18, 46}
    marginals = t2.filter(pl.col("age_start") == "*").group_by(keys).agg(pl.col("count").sum())
    assert marginals.sort(keys).equals(cells.select(*keys, "count").sort(keys))
    assert all(check.kept for check in release.checks)


def test_clamped_counts_are_not_negative(lists: Path) -> None:
    data = census([person(random.Random(3)) for _ in range(5)])
    plain, clamped = (
        mechanism(lists, clamp=clamp).release(data, key=KEY).tables["t1"] for clamp in (False, True)
    )
    assert min(plain["count"].to_pylist()) < 0
    assert min(clamped["count"].to_pylist()) == 0


def test_a_budget_of_zero_leaves_a_table_out(lists: Path) -> None:
    data = census([person(random.Random(3)) for _ in range(5)])
    run = mechanism(lists, budget={"USA-1": "0", "USA-2": "0", "STATE-1": "0"})
    release = run.release(data, key=KEY)
    frame = frame_of(release.tables["t1"])
    assert "USA" not in set(frame["region_type"])
    assert set(frame.filter(pl.col("region_type") == "STATE")["iteration"]) == {"5", "6", "8"}
    states, island = F("2.134") + F("0.167"), F("2.142") + F("0.167")
    assert F(run.specification(data).rho_squared.exact) == max(states, island)


def test_strange_values_are_dropped_and_nobody_is_told(lists: Path) -> None:
    """Records outside every universe change no table, raise nothing and stand in no note."""
    rng = random.Random(9)
    people = [person(rng) for _ in range(20)]
    more = [
        {**people[0], "sex": 7},
        {**people[0], "age": 300},
        {**people[0], "race_code_1": 55, "race_code_2": 0, "ethnicity_code": 1234},
    ]
    run = mechanism(lists, epsilon="inf")
    one, two = (run.release(census(rows), key=KEY) for rows in (people, people + more))
    assert one.tables["t1"].equals(two.tables["t1"])
    assert one.notes == two.notes
    assert one.specification == two.specification


@pytest.mark.parametrize(
    ("settings", "error", "told"),
    [
        ({"preset": ""}, BudgetError, "no table has a budget"),
        ({"preset": "", "budget": {"STATE-2": "1"}}, InputError, "no thresholds"),
        ({"preset": "ddhc"}, InputError, "preset"),
        ({"budget": {"STATE-3": "1"}}, InputError, "no region type with a level"),
        ({"budget": {"STATE-2": "-1"}}, BudgetError, "negative"),
        ({"thresholds": {"STATE-2": "5,4,3"}}, InputError, "rising"),
        ({"total": "0"}, BudgetError, "not above 0"),
        ({"first_stage": "1"}, InputError, "first_stage"),
        ({"suppression": "1"}, InputError, "suppression"),
        ({"sexes": ["1"]}, InputError, "two levels"),
        ({"most_codes": 1}, InputError, "most_codes"),
        ({"regions": {"NOWHERE": "x"}}, InputError, "region type"),
        ({"races": [], "ethnicity": ""}, InputError, "no column holds codes"),
        ({"races": "race_code_1"}, InputError, "races"),
        ({"total": 1.5}, BudgetError, "float"),
        ({"budget": {"STATE-2": 2.0}}, BudgetError, "float"),
        ({"budget": {"STATE-2": "much"}}, BudgetError, "budget"),
        ({"budget": "2"}, InputError, "budget"),
        ({"definition": "dp"}, InputError, "definition"),
        ({"epsilon": "1"}, InputError, "epsilon"),
        ({"codes": 5}, InputError, "codes"),
    ],
)
def test_settings_that_cannot_be_are_refused(
    lists: Path, settings: dict[str, Any], error: type[Exception], told: str
) -> None:
    with pytest.raises(error, match=told):
        mechanism(lists, **settings)


def test_a_total_scales_every_budget() -> None:
    run = SafeTabP(total="9.888")
    assert run.apportion().total_budget() == F("9.888")
    knob = run.knobs()[0]
    assert knob.turned(F(1)).apportion().total_budget() == 1  # type: ignore[attr-defined]


def test_a_row_that_is_not_shown_is_not_looked_up_as_zero(lists: Path, tmp_path: Path) -> None:
    rng = random.Random(5)
    same = {"state": "01", "county": "01001", "race_code_1": 11, "race_code_2": 0, "ethnicity_code": 99}
    run = mechanism(lists, budget={"COUNTY-1": "100"})
    made = run.release(census([{**person(rng), **same} for _ in range(30)]), key=KEY)
    save(made, tmp_path / "packet", accept_small_effect="a test")
    table = tmp_path / "packet/public/tables/t1.parquet"
    assert b"stirred:code lists" in pq.read_schema(table).metadata
    where = {"region_type": "COUNTY", "region": "01001"}
    assert 20 < look_up(tmp_path / "packet", {**where, "iteration": "1"}).count < 40
    assert look_up(tmp_path / "packet", {"region_type": "STATE", "region": "01", "iteration": "7"}).variance
    with pytest.raises(InputError, match="not a count of 0"):
        look_up(tmp_path / "packet", {**where, "iteration": "7"})  # nobody has it


def test_a_plan_is_proposed_for_a_synthetic_census(tmp_path: Path) -> None:
    write_preset("demo", tmp_path / "census", households=200)
    found = propose_plan(SafeTabP, tmp_path / "census", tmp_path / "plan.toml")
    found.write(tmp_path / "plan.toml")
    assert any("race_code_8" in choice for choice in found.choices)
    assert isinstance(load(tmp_path / "plan.toml").mechanisms[0], SafeTabP)


def test_the_noise_of_shown_rows_has_the_stated_variance(lists: Path) -> None:
    """Among groups without persons every published number is noise: its variance is the column's, its mean 0."""
    one = {
        "state": "01",
        "county": "01001",
        "sex": 1,
        "age": 9,
        "race_code_1": 55,
        "race_code_2": 0,
        "ethnicity_code": 99,
    }
    people = [{**one, "county": f"01{number:03d}"} for number in range(1, 250)]
    for definition in ("zcdp", "puredp"):
        run = mechanism(
            lists,
            definition=definition,
            suppression="0",
            thresholds={f"COUNTY-{level}": "-9999999,9999999,9999999" for level in (1, 2)},
        )
        release = run.release(census(people), key=KEY)
        for table in ("t1", "t2"):
            frame = frame_of(release.tables[table]).filter(region_type="COUNTY")
            for (variance,), rows in frame.group_by("variance"):
                number, scaled = rows.height, rows["count"].to_numpy() / variance**0.5
                assert number > 400
                assert abs(scaled.mean()) < 6 / number**0.5  # false alarm below 1e-8 each
                assert abs((scaled**2).mean() - 1) < 6 * (5 / number) ** 0.5  # a kurtosis of 6 at most


def test_a_census_of_persons_alone_has_no_housing_units(lists: Path, tmp_path: Path) -> None:
    """The persons that are protected must never become an invariant."""
    (tmp_path / "areas.csv").write_text("code,parent\n01,\n01001,01\n01003,01\n")
    people = [{**person(random.Random(seed)), "state": "01", "county": "01001"} for seed in range(9)]
    pl.DataFrame(people).write_csv(tmp_path / "person.csv")
    (tmp_path / "census.toml").write_text(
        '[geography]\nspine = ["state", "county"]\ntype = "text"\n[geography.areas]\nfiles = ["areas.csv"]\n'
        '[record.person]\nfiles = ["person.csv"]\n'
    )
    run = mechanism(lists)
    assert list(run.specification(read(tmp_path)).multiverse) == []
    shown = frame_of(run.release(read(tmp_path), key=KEY).tables["t1"])
    assert set(shown["region_type"]) >= {"USA", "STATE"}
    assert (
        list(mechanism(lists, invariants="none").specification(census(people)).multiverse) != []
    )  # no file of areas
