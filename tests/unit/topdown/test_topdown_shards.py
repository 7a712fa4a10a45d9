"""TopDown by subtrees: the same release, bit for bit, wherever it is cut; and no two geounits with the same noise."""

from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest

from contract.registry import WORKLOAD
from matrices import mark_slow
from stirred.census import Census, read
from stirred.chance import Key
from stirred.engine import Local
from stirred.errors import InfeasibleError, InputError, StirredError
from stirred.mechanisms.topdown import TopDown, Workload
from stirred.mechanisms.topdown.measure import Measurements
from stirred.mechanisms.topdown.run.subtrees import batch as shard
from stirred.mechanisms.topdown.run.subtrees import gather as shard_geography
from stirred.mechanisms.topdown.run.subtrees import gather as shard_input
from stirred.mechanisms.topdown.run.subtrees import steps as shard_solve
from stirred.mechanisms.topdown.run.subtrees.batch import SubtreeBatch
from stirred.mechanisms.topdown.workload import Rule
from unit.topdown.shard_engines import Narrow, assert_same, content

KEY = Key.for_tests(1)
TOML = """name = "shards"
[geography]
spine = ["state", "county", "tract", "block_group", "block"]
[record.household]
files = ["household.parquet"]
id = "household_id"
[record.person]
files = ["person.parquet"]
household = "household_id"
"""
LEVELS = 6  # deeper than any cut of these censuses: the last one allowed is taken


@pytest.mark.parametrize(
    ("workload", "mode", "seed", "states", "every"),
    [
        ("small", "gls", 0, 1, False),
        pytest.param("small", "classic", 1, 2, False, marks=pytest.mark.slow),
        *(
            pytest.param(workload, mode, seed, seed + 1, True, marks=pytest.mark.slow)
            for workload in ("small", "pl94-persons")
            for mode in ("gls", "classic")
            for seed in (0, 1)
        ),
    ],
)
def test_the_same_release_wherever_it_is_cut(
    make_census, cut_at, monkeypatch, workload, mode, seed, states, every
):
    """Random trees with single children (bypassed across the cut), empty blocks and group quarters."""
    census = make_census(seed, states=states)
    mechanism = TopDown(workload=workload, mode=mode, rho_squared=Fraction(1, 2), replicates=0)
    whole = mechanism.release(census, key=KEY)
    for depth in range(LEVELS):
        cut_at(depth)
        # subtrees are worked on one by one, a few at a time, or all of a part together
        groups = (1, 4, 4096)
        for leaves in groups if every else groups[depth % 3 : depth % 3 + 1]:
            monkeypatch.setattr(shard, "MAX_BATCH_LEAVES", leaves)
            assert_same(mechanism.release(census, key=KEY, engine=Narrow()), whole)


@pytest.mark.parametrize("parts", [2, *(pytest.param(parts, marks=pytest.mark.slow) for parts in (1, 7))])
def test_the_same_release_from_any_number_of_parts_and_workers(make_census, monkeypatch, parts):
    monkeypatch.setattr(shard_input, "MIN_PARTS", 1)
    census = make_census(3, states=2)
    mechanism = TopDown(workload="pl94", rho_squared=1, replicates=0)
    whole = mechanism.release(census, key=KEY)
    for workers in (1, 3):
        assert_same(mechanism.release(census, key=KEY, engine=Narrow(parts=parts, workers=workers)), whole)


SETTINGS = ({"bypass": False}, {"emphasis": 3}, {"names": "bureau"}, {"rho_squared": "inf"})


@pytest.mark.parametrize(
    ("settings", "mode"),
    mark_slow(
        product(SETTINGS, ("gls", "classic")),
        quick=[*product(SETTINGS, ("gls",)), (SETTINGS[0], "classic"), (SETTINGS[3], "classic")],
    ),
    ids=str,
)
def test_every_setting(make_census, cut_at, settings, mode):
    """Quick: every setting with the mode ``gls``, and those that the estimate of ``classic`` knows."""
    cut_at(2)
    census = make_census(5)
    mechanism = TopDown(
        **{"workload": "pl94-persons", "mode": mode, "rho_squared": 1} | settings, replicates=0
    )
    whole = mechanism.release(census, key=KEY)
    assert_same(mechanism.release(census, key=KEY, engine=Narrow()), whole)


@pytest.mark.parametrize("mode", ["gls", pytest.param("classic", marks=pytest.mark.slow)])
@pytest.mark.parametrize("depth", [1, *(pytest.param(depth, marks=pytest.mark.slow) for depth in (0, 2))])
def test_rules_above_at_and_below_the_cut(make_census, cut_at, depth, mode):
    """Totals exact by county, at least and at most in places, kinds of quarters by block."""
    census = make_census(4, states=2)
    small = Workload.preset("small")
    rules = (
        Rule(name="counties", kind="exact", query="total", level="county"),
        Rule(name="adults", kind="exact", query="votingage", level="tract"),
        Rule(name="few", kind="at-most", query="race", level="block_group", values=(900,) * 8),
        Rule(name="some", kind="at-least", query="total", level="state", values=(1,)),
    )
    for wanted in (rules[:1], rules[1:2], (rules[0], rules[2]), rules[2:]):
        mechanism = TopDown(workload=replace(small, rules=wanted), mode=mode, replicates=0)
        cut_at(depth)
        whole = mechanism.release(census, key=KEY)
        assert_same(mechanism.release(census, key=KEY, engine=Narrow()), whole)


def test_the_workload_of_the_contract_on_one_and_two_levels(cut_at):
    rng = np.random.default_rng(7)
    for tops in (["a"], ["a", "b"]):
        homes = pl.DataFrame({
            "household_id": range(60), "state": rng.choice(tops, 60), "county": rng.choice(["x", "y"], 60),
            "tract": rng.choice(["1", "2"], 60),
        }).with_columns(county=pl.col("state") + pl.col("county")).with_columns(
            tract=pl.col("county") + pl.col("tract")
        )  # fmt: skip
        people = pl.DataFrame({
            "household_id": rng.integers(0, 60, 200), "age": rng.integers(0, 90, 200),
            "sex": rng.choice(["f", "m"], 200),
        })  # fmt: skip
        schema = {
            "geography": {"spine": ["state", "county", "tract"]},
            "record": {"household": {"id": "household_id"}, "person": {"household": "household_id"}},
        }
        census = Census.of(schema, {"household": homes, "person": people})
        for mode in ("gls", "classic"):
            mechanism = TopDown(workload=Workload.parse(WORKLOAD), mode=mode, replicates=0)
            whole = mechanism.release(census, key=KEY)
            for depth in range(3):
                cut_at(depth)
                assert_same(mechanism.release(census, key=KEY, engine=Narrow()), whole)


@pytest.mark.parametrize("spine", [["county"], ["state", "county"]])
@pytest.mark.parametrize("homes", [0, 1, 5])
def test_no_area_one_area_and_trees_of_one_level(spine, homes):
    codes = {name: [f"{name[0]}{i % 2 if name == spine[-1] else 0}" for i in range(homes)] for name in spine}
    household = pl.DataFrame({"household_id": range(homes), **codes}, strict=False)
    household = household.with_columns(pl.col(name).cast(pl.String) for name in spine)
    people = pl.DataFrame({"household_id": range(homes), "age": [30] * homes, "sex": ["f"] * homes})
    people = people.with_columns(pl.col("sex").cast(pl.String), pl.col("household_id", "age").cast(pl.Int64))
    schema = {
        "geography": {"spine": spine},
        "record": {"household": {"id": "household_id"}, "person": {"household": "household_id"}},
    }
    census = Census.of(schema, {"household": household, "person": people})
    workload = replace(Workload.parse(WORKLOAD), rules=())
    for mode in ("gls", "classic"):
        mechanism = TopDown(workload=workload, mode=mode, replicates=0)
        whole = mechanism.release(census, key=KEY)
        assert_same(mechanism.release(census, key=KEY, engine=Narrow()), whole)


@pytest.mark.parametrize("nodes", [1, 2, 5])
def test_a_level_too_wide_to_be_held_here_is_not_cut_at(make_census, monkeypatch, nodes):
    monkeypatch.setattr(shard_geography, "MAX_CUT_GEOUNITS", nodes)
    census = make_census(1, states=3)
    mechanism = TopDown(workload="small", replicates=0)
    assert_same(mechanism.release(census, key=KEY, engine=Narrow()), mechanism.release(census, key=KEY))


def test_the_order_of_records_changes_nothing(make_census):
    census = make_census(6)
    tables = {name: pl.from_arrow(census.table(name)) for name in ("household", "person")}
    mixed = Census.of(
        census.schema, {n: t.sample(fraction=1, shuffle=True, seed=1) for n, t in tables.items()}
    )
    mechanism = TopDown(workload="pl94", rho_squared=1, replicates=0)
    one = mechanism.release(census, key=KEY, engine=Narrow(rows=1000))
    assert_same(mechanism.release(mixed, key=KEY, engine=Narrow(rows=7)), one)


def test_a_private_key_travels_bound_to_the_run_only(make_census):
    """Kernels of these engines are pickled: an unbound private key would refuse."""
    key = Key.fresh()
    census = make_census(0)
    mechanism = TopDown(workload="small", replicates=0)
    assert_same(mechanism.release(census, key=key, engine=Narrow()), mechanism.release(census, key=key))


def test_microdata_go_to_a_file_in_the_order_of_the_spine(make_census, tmp_path):
    census = make_census(2, states=2)
    mechanism = TopDown(workload="small", replicates=0)
    made = mechanism.release(census, key=KEY, engine=Narrow(parts=7), out=tmp_path)
    assert (tmp_path / "person.parquet").exists()
    assert_same(made, mechanism.release(census, key=KEY))
    blocks = made.microdata["person"].to_table()["block"].to_pylist()
    assert blocks == sorted(blocks)


def test_little_is_gathered(make_census, monkeypatch):
    """One row for each subtree and part, however many records: fewer than 1 % of them."""
    census = make_census(3, states=1, width=3, units=400)
    monkeypatch.setattr(shard_input, "MIN_PARTS", 1)
    gathered: list[int] = []
    mechanism = TopDown(workload="small", replicates=0)
    folder_less = Narrow(parts=2, rows=5000, gathered=(gathered,))
    mechanism.release(census, key=KEY, engine=folder_less)
    records = census.count("person") + census.count("household")
    assert records > 8_000
    assert gathered.pop() == pl.DataFrame(mechanism.release(census, key=KEY).microdata["person"]).height
    assert sum(gathered) < records / 100  # all but the microdata, which were asked for in memory


# ---- noise -----------------------------------------------------------------------------------------------------------


class Draws:
    """Every draw of noise with the geounit it was for: level, query, position in the stream."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.owner: dict[tuple[str, str, int], str] = {}
        self.value: dict[tuple[str, str, int], int] = {}
        self.shared: list[tuple[str, str, int]] = []
        noise = Measurements.noise

        def recorded(own: Measurements, depth: int, start: int, query: Any, nodes: Any, numbers: Any) -> Any:
            drawn = noise(own, depth, start, query, nodes, numbers)
            spine = own.allotment.spine
            where = nodes if own.place is None else own.place[depth][nodes]
            for i, node in enumerate(nodes):
                code = str(spine.codes[depth][int(node)])
                for j, number in enumerate(numbers):
                    name = (spine.levels[depth], query.name, int(where[i]) * query.size + int(number))
                    # the tree above the cut does not know the codes below it
                    if code and self.owner.setdefault(name, code) != code:
                        self.shared.append(name)
                    if self.value.setdefault(name, int(drawn[i, j])) != int(drawn[i, j]):
                        self.shared.append(name)
            return drawn

        monkeypatch.setattr(Measurements, "noise", recorded)


@pytest.mark.parametrize("mode", ["gls", "classic"])
def test_no_two_geounits_share_noise_and_none_has_other_noise(make_census, cut_at, monkeypatch, mode):
    """Deterministic: every position of every stream belongs to one geounit, the same one as in memory."""
    census = make_census(1)
    mechanism = TopDown(workload="small", mode=mode, replicates=0)
    with monkeypatch.context() as patch:
        alone = Draws(patch)
        mechanism.release(census, key=KEY)
    assert alone.value
    assert not alone.shared
    for depth in range(4):
        cut_at(depth)
        with monkeypatch.context() as patch:
            apart = Draws(patch)
            mechanism.release(census, key=KEY, engine=Narrow(workers=1))
        assert not apart.shared
        assert apart.value == alone.value
        assert apart.owner.items() <= alone.owner.items()  # some are drawn above the cut alone


def test_a_shard_that_forgets_where_it_stands_is_caught(make_census, cut_at, monkeypatch):
    """The mutant numbers the geounits of every subtree from 0: two of them would share noise, a privacy bug."""
    right = SubtreeBatch.measurements

    def forgetful(grove: SubtreeBatch, key: Key | None, offsets: Any, emphasis: int) -> Measurements:
        return right(grove, key, np.zeros_like(offsets), emphasis)

    monkeypatch.setattr(SubtreeBatch, "measurements", forgetful)
    census = make_census(1)
    cut_at(2)
    with monkeypatch.context() as patch:
        draws = Draws(patch)
        made = TopDown(workload="small", replicates=0).release(census, key=KEY, engine=Narrow(workers=1))
    assert draws.shared
    with pytest.raises(AssertionError):
        assert_same(made, TopDown(workload="small", replicates=0).release(census, key=KEY))


# ---- errors ----------------------------------------------------------------------------------------------------------


def what_is_wrong(mechanism: TopDown, census: Census, engine: Local) -> tuple[type, str]:
    with pytest.raises(StirredError) as caught:
        mechanism.release(census, key=KEY, engine=engine)
    return type(caught.value), str(caught.value)


def both_ways(mechanism: TopDown, census: Census) -> list[tuple[type, str]]:
    """What is said in memory and by subtrees."""
    return [what_is_wrong(mechanism, census, engine) for engine in (Local(), Narrow(workers=1))]


def broken(census: Census, record: str, change: Any) -> Census:
    tables = {name: pl.from_arrow(census.table(name)) for name in ("household", "person")}
    tables[record] = change(tables[record])
    return Census.of(census.schema, tables)


BROKEN = {
    "no cell": ("person", lambda t: t.with_columns(race=pl.when(pl.col("age") < 9).then(99).otherwise("race"))),
    "two parents": ("household", lambda t: t.with_columns(block=pl.col("block").str.slice(1))),
    "two parents above": ("household", lambda t: t.with_columns(county=pl.lit("0"))),
    "no tract": ("household", lambda t: t.with_columns(
        tract=pl.when(pl.col("household_id") % 5 > 0).then("tract"))),
    "a child in a nursing home": ("person", lambda t: t.with_columns(age=pl.lit(3))),
}  # fmt: skip


@pytest.mark.parametrize("what", BROKEN)
def test_the_same_words_for_what_is_wrong(make_census, cut_at, what):
    cut_at(2)
    census = broken(make_census(2, states=2, quarters=0.9), *BROKEN[what])
    first, second = both_ways(TopDown(workload="pl94-persons", replicates=0), census)
    assert first == second


def test_a_rule_that_cannot_hold(make_census, cut_at):
    census = make_census(2)
    small = Workload.preset("small")
    for level in ("county", "block"):
        rule = Rule(name="crowd", kind="at-least", query="total", level=level, values=(10**6,))
        mechanism = TopDown(workload=replace(small, rules=(rule,)), replicates=0)
        wanted = what_is_wrong(mechanism, census, Local())
        assert wanted[0] is InfeasibleError
        for depth in range(4):
            cut_at(depth)
            assert what_is_wrong(mechanism, census, Narrow(workers=1)) == wanted
    unknown = Rule(name="crowd", kind="at-least", query="total", level="village", values=(1,))
    first, second = both_ways(TopDown(workload=replace(small, rules=(unknown,)), replicates=0), census)
    assert first == second


# ---- replicates and noisy measurements -------------------------------------------------------------------------------


def files(folder: Path) -> dict[str, bytes]:
    """The bytes of every file."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


SLOWER = [
    {"workload": "pl94-persons", "names": "bureau"},
    {"workload": "small", "rho_squared": "inf"},
    {"workload": "small", "bypass": False},
    {"workload": "small", "optimized_block_groups": []},
]


@pytest.mark.parametrize(
    ("settings", "mode"),
    [
        ({"workload": "small"}, "gls"),
        pytest.param({"workload": "small"}, "classic", marks=pytest.mark.slow),
        *(pytest.param(more, mode, marks=pytest.mark.slow) for more in SLOWER for mode in ("gls", "classic")),
    ],
    ids=str,
)
def test_replicates_are_the_same_wherever_it_is_cut(make_census, cut_at, tmp_path, settings, mode):
    """A replicate is a run on the release, by subtrees too; nothing but the release is left in the folder."""
    census = make_census(1, states=2)
    mechanism = TopDown(**settings, mode=mode, replicates=2)
    whole = mechanism.release(census, key=KEY)
    for depth in range(4):
        cut_at(depth)
        if depth % 2:
            assert_same(mechanism.release(census, key=KEY, engine=Narrow()), whole)
            continue
        out = tmp_path / str(depth)
        out.mkdir()
        assert_same(mechanism.release(census, key=KEY, engine=Narrow(), out=out), whole)
        assert [path.name for path in out.iterdir()] == ["person.parquet"]


@pytest.mark.parametrize(
    ("workload", "mode"),
    [
        ("small", "gls"),
        *(
            pytest.param(*more, marks=pytest.mark.slow)
            for more in (("small", "classic"), ("pl94", "gls"), ("pl94", "classic"))
        ),
    ],
)
def test_the_noisy_measurement_file_has_the_same_bytes(make_census, cut_at, tmp_path, workload, mode):
    census = make_census(4, states=2)
    mechanism = TopDown(workload=workload, mode=mode, keep_nmf=True, replicates=0)
    (tmp_path / "whole").mkdir()
    mechanism.release(census, key=KEY, out=tmp_path / "whole")
    wanted = {name: data for name, data in files(tmp_path / "whole").items() if name.startswith("nmf-")}
    assert wanted
    for depth in range(4):
        cut_at(depth)
        out = tmp_path / str(depth)
        out.mkdir()
        mechanism.release(census, key=KEY, engine=Narrow(), out=out)
        found = {name: data for name, data in files(out).items() if name.startswith("nmf-")}
        assert found == wanted


def test_reading_and_replicates_say_how_far_they_are(make_census, cut_at, tmp_path):
    told: dict[str, list[tuple[int, int]]] = {"tabulate": [], "replicates": []}

    def progress(step: str, done: int, total: int) -> None:
        told.get(step.rpartition(": ")[2], []).append((done, total))

    cut_at(1)
    census, mechanism = make_census(4, states=2), TopDown(workload="small", replicates=2)
    mechanism.release(census, key=KEY, engine=Narrow(), out=tmp_path, progress=progress)
    read = told["tabulate"][1:-1]  # it begins and ends as one step
    assert read == sorted(read)
    assert len(read) > 1
    assert read[-1][0] == read[-1][1] >= census.count("person")
    again = told["replicates"]
    assert again == sorted(again)
    assert again[0][0] == 0
    assert {30, 130} < {done for done, _ in again}
    assert again[-1] == (200, 200)


@pytest.mark.slow
@pytest.mark.spark("local")
def test_replicates_and_measurements_on_a_cluster(make_census, spark, tmp_path):
    """The default plan has replicates: it runs on Spark, to the same bytes, and few rows come back to the driver."""
    data = make_census(3, states=2, units=60)
    folder = tmp_path / "census"
    folder.mkdir()
    for name in ("household", "person"):
        pq.write_table(data.table(name), folder / f"{name}.parquet")
    (folder / "census.toml").write_text(TOML)
    census = read(folder)
    mechanism = TopDown(workload="small", replicates=2, keep_nmf=True)
    for place in ("whole", "cluster"):
        (tmp_path / place).mkdir()
    whole = mechanism.release(census, key=KEY, out=tmp_path / "whole")
    there = mechanism.release(spark.census(census), key=KEY, engine=spark, out=tmp_path / "cluster")
    assert_same(there, whole)
    wanted, found = (
        {name: data for name, data in files(tmp_path / place).items() if name.startswith("nmf-")}
        for place in ("whole", "cluster")
    )
    assert found == wanted
    assert sorted(path.name for path in (tmp_path / "cluster").iterdir()) == ["nmf-small", "person.parquet"]


def test_the_noisy_measurement_file_needs_a_folder(make_census):
    for engine in (Local(), Narrow()):
        with pytest.raises(InputError, match="needs a folder"):
            TopDown(workload="small", keep_nmf=True, replicates=0).release(
                make_census(0), key=KEY, engine=engine
            )


# ---- interrupted -----------------------------------------------------------------------------------------------------


def test_a_killed_run_ends_with_the_same_bytes(make_census, cut_at, monkeypatch, tmp_path: Path):
    census = make_census(3)
    cut_at(2)
    mechanism = TopDown(workload="small", replicates=0)
    whole = TopDown(workload="small", replicates=0).release(census, key=KEY)
    with monkeypatch.context() as patch:
        patch.setattr(shard_solve.SubtreeSolve, "of", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            mechanism.release(census, key=KEY, engine=Narrow(workers=1), state=tmp_path / "resume")
    finished = sorted(
        path.name for path in (tmp_path / "resume" / "small").iterdir() if path.suffix != ".seal"
    )
    assert finished == ["level-0.parquet", "level-1.parquet", "level-2.parquet", "run"]
    # what was finished is not solved again, by whichever way it goes on
    monkeypatch.setattr("stirred.mechanisms.topdown.solve.levels.Estimator.root", lambda _: 1 / 0)
    for engine in (Narrow(), Local()):
        folder = tmp_path / engine.__class__.__name__
        folder.mkdir()
        for path in (tmp_path / "resume" / "small").iterdir() if (tmp_path / "resume").exists() else ():
            (folder / "small").mkdir(exist_ok=True)
            (folder / "small" / path.name).write_bytes(path.read_bytes())
        again = mechanism.release(census, key=KEY, engine=engine, state=folder)
        assert content(again) == content(whole)
        assert not (folder / "small").exists()


def test_a_killed_run_goes_on_with_the_parts_that_are_left(make_census, cut_at, monkeypatch, tmp_path: Path):
    census = make_census(3)
    cut_at(2)
    mechanism = TopDown(workload="small", replicates=0)
    whole = TopDown(workload="small", replicates=0).release(census, key=KEY)
    solve, numbers = shard_solve.SubtreeSolve.__call__, []

    def counted(self, part, table):
        if len(numbers) == 2:
            raise KeyboardInterrupt
        numbers.append(part)
        return solve(self, part, table)

    with monkeypatch.context() as patch:
        patch.setattr(shard_solve.SubtreeSolve, "__call__", counted)
        with pytest.raises(KeyboardInterrupt):
            mechanism.release(census, key=KEY, engine=Narrow(workers=1), state=tmp_path / "state")
        kept = sorted(path.name for path in (tmp_path / "state" / "small").glob("part-*.parquet"))
        assert len(kept) == 2
        numbers.clear()
        patch.setattr(
            shard_solve.SubtreeSolve, "__call__", lambda *call: numbers.append(call[1]) or solve(*call)
        )
        again = mechanism.release(census, key=KEY, engine=Narrow(workers=1), state=tmp_path / "state")
    assert content(again) == content(whole)
    assert not {int(name.split("-")[1]) for name in kept} & set(numbers)  # they were not solved again
    assert not (tmp_path / "state" / "small").exists()


def test_a_killed_run_goes_on_with_the_replicates_that_are_left(make_census, cut_at, tmp_path: Path):
    census, mechanism = make_census(3), TopDown(workload="small", replicates=3)
    cut_at(2)
    for name in ("whole", "out"):
        (tmp_path / name).mkdir()
    whole = mechanism.release(census, key=KEY, engine=Narrow(), out=tmp_path / "whole")

    def stopped(step: str, done: int, total: int) -> None:
        if step.endswith("replicates") and done > 200:
            raise KeyboardInterrupt

    settings: dict[str, Any] = {"key": KEY, "out": tmp_path / "out", "state": tmp_path / "state"}
    with pytest.raises(KeyboardInterrupt):
        mechanism.release(census, engine=Narrow(), progress=stopped, **settings)
    kept = sorted(path.name for path in (tmp_path / "state" / "small").glob("replicate-*.parquet"))
    assert kept == ["replicate-0.parquet", "replicate-1.parquet"]
    for left in (tmp_path / "out").iterdir():  # as the writer of packets does
        left.unlink()
    told: list[int] = []

    def progress(step: str, done: int, total: int) -> None:
        if step.endswith("replicates"):
            told.append(done)

    again = mechanism.release(census, engine=Narrow(parts=5), progress=progress, **settings)
    assert content(again) == content(whole)
    assert min(told) == 200  # the first two were not made again
    assert files(tmp_path / "out") == files(tmp_path / "whole")
    assert not (tmp_path / "state" / "small").exists()
