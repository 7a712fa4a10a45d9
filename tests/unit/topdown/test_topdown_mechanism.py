"""The mechanism end to end on small random censuses: exact without noise, consistent with it, honest about its promise."""

import argparse
import pickle
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest

from stirred.chance import Key
from stirred.cli.mechanism import add_flags, settings
from stirred.engine import Local
from stirred.errors import BudgetError, InfeasibleError, InputError, PrivacyError
from stirred.mechanisms.base import Mechanism
from stirred.mechanisms.topdown import TopDown, Workload
from stirred.mechanisms.topdown.config import TopDownConfig
from stirred.mechanisms.topdown.counts import sum_answers
from stirred.mechanisms.topdown.measure import Allotment
from stirred.mechanisms.topdown.rules import Record
from stirred.mechanisms.topdown.run.task import Settings
from stirred.mechanisms.topdown.tree import Tree
from stirred.mechanisms.topdown.workload import Rule
from stirred.spec import Budget, Custom, Hamming, Margin
from unit.topdown.runs import run

KEY = Key.for_tests(1)


def expanded(release, record):
    return pl.DataFrame(release.microdata[record]).select(pl.all().cast(pl.String)).sort(pl.all())


def truth(census, workload, record):
    """The census's own records in the same columns, counted independently of the mechanism."""
    spine = list(census.schema.spine)
    if record == "household":
        frame = census.scan("household", [*spine, "kind"]).filter(pl.col("kind") < 3).collect()
        return frame.with_columns(h1=(pl.col("kind") == 1).cast(pl.Int16)).select(*spine, "h1")
    frame = census.scan("person", [*spine, "gq_type", "age", "hispanic", "race"]).collect()
    adult = (pl.col("age") >= 18).cast(pl.Int16).alias("votingage")
    if workload == "small":
        alone = pl.when(pl.col("race") <= 6).then(pl.col("race")).otherwise(7)
        race = pl.when(pl.col("hispanic") == 2).then(0).otherwise(alone).alias("race")
        return frame.select(*spine, race, adult)
    return frame.select(*spine, "gq_type", adult, "hispanic", "race")


@pytest.mark.parametrize("mode", ["gls", "classic"])
@pytest.mark.parametrize("workload", ["small", "pl94-persons", "pl94-units"])
@pytest.mark.parametrize("seed", [1, 2])
def test_without_noise_the_census_comes_back(make_census, workload, mode, seed):
    census = make_census(seed)
    mechanism = TopDown(workload=workload, mode=mode, rho_squared="inf", replicates=0)
    release = mechanism.release(census, key=KEY)
    record = "household" if workload == "pl94-units" else "person"
    want = truth(census, workload, record).select(pl.all().cast(pl.String)).sort(pl.all())
    assert expanded(release, record).equals(want)
    assert not release.private
    assert not release.specification.budget.is_finite


@pytest.mark.parametrize("mode", ["gls", "classic"])
@pytest.mark.parametrize("states", [1, 2])
@pytest.mark.parametrize("seed", range(4))
def test_with_noise_every_constraint_holds(make_census, seed, mode, states):
    """Random trees (single children, empty blocks, group quarters), little budget: all checks from the outside."""
    census = make_census(seed, states=states)
    release = TopDown(workload="pl94", mode=mode, rho_squared=Fraction(1, 2), replicates=0).release(
        census, key=KEY
    )
    people = pl.DataFrame(release.microdata["person"]).with_columns(pl.col("block", "state").cast(pl.String))
    records = census.scan("person", ["state", "block", "gq_type"]).collect()
    assert people.group_by("state").len().sort("state").equals(records.group_by("state").len().sort("state"))
    homes = census.scan("household", ["block", "gq_type", "kind"]).collect()
    facilities = homes.group_by("block", "gq_type").len("units")
    here = people.group_by("block", pl.col("gq_type").cast(pl.Int64)).len("people")
    both = here.join(facilities, on=["block", "gq_type"], how="full", coalesce=True)
    assert both["units"].null_count() == 0  # nobody lives where no unit of the kind stands
    quarters = both.filter(pl.col("gq_type") > 0)
    assert (quarters["people"].fill_null(0) >= quarters["units"]).all()
    assert people.filter((pl.col("gq_type") == 3) & (pl.col("votingage") == 0)).is_empty()
    units = pl.DataFrame(release.microdata["household"]).with_columns(pl.col("block").cast(pl.String))
    wanted = homes.filter(pl.col("kind") < 3).group_by("block").len()
    assert units.group_by("block").len().sort("block").equals(wanted.sort("block"))
    assert all(check.kept for check in release.checks)


def outcome(census, name="pl94-persons", **settings):
    workload = Workload.preset(name) if isinstance(name, str) else name
    return run(census, workload, Settings(**settings), key=KEY.bind("t"), engine=Local(workers=1))


@pytest.mark.parametrize("mode", ["gls", "classic"])
def test_children_add_up_and_workers_do_not_matter(make_census, mode):
    census = make_census(3, width=4)
    one = outcome(census, mode=mode)
    two = run(
        census,
        Workload.preset("pl94-persons"),
        Settings(mode=mode),
        key=KEY.bind("t"),
        engine=Local(workers=2),
    )
    for a, b in zip(one.levels, two.levels, strict=True):
        assert np.array_equal(a.cells, b.cells)
        assert np.array_equal(a.counts, b.counts)
    for d in range(len(one.levels) - 1, 0, -1):
        up = one.levels[d].up(one.spine.parent[d], one.spine.size(d - 1), 2016)
        assert np.array_equal(up.cells, one.levels[d - 1].cells)
        assert np.array_equal(up.counts, one.levels[d - 1].counts)


def test_drawing_few_cells_equals_drawing_all(make_census):
    made = outcome(make_census(5), mode="classic")
    measurements, spine = made.measurements, made.spine
    for query in measurements.allotment.workload.queries:
        depth = len(spine.levels) - 1
        start = int(measurements.allotment.start[depth][0])
        nodes = np.flatnonzero(measurements.allotment.start[depth] == start)[:3]
        everything = measurements.answers(depth, start, query, nodes, np.arange(query.size))
        some = np.unique(np.linspace(0, query.size - 1, 5).astype(np.int64))
        assert np.array_equal(
            measurements.answers(depth, start, query, nodes[::-1], some), everything[::-1][:, some]
        )


def test_keeping_the_measurements_changes_no_byte_of_the_microdata(make_census, tmp_path):
    census = make_census(6)
    for name, keep in (("a", False), ("b", True)):
        (tmp_path / name).mkdir()
        TopDown(keep_nmf=keep, replicates=0).release(census, key=KEY, out=tmp_path / name)
    assert (tmp_path / "a/person.parquet").read_bytes() == (tmp_path / "b/person.parquet").read_bytes()
    table = pq.read_table(tmp_path / "b/nmf-pl94-persons/block.parquet/DPQuery")
    assert {"geocode", "query_name", "query_shape", "value", "variance", "plb", "hhgq", "cenrace"} <= set(
        table.column_names
    )
    detailed = next(r for r in table.to_pylist() if r["query_name"] == "detailed_dpq")
    assert detailed["query_shape"] == [8, 2, 2, 63]
    assert len(detailed["value"]) == 2016


def test_every_path_spends_the_total_and_missing_levels_move_down(make_census):
    census = make_census(7)
    workload = Workload.preset("pl94-persons")
    made = outcome(census)
    assert made.measurements.allotment.moved == (("us", "state"),)
    made.measurements.allotment.check_paths()
    frame = pl.DataFrame({"state": ["a"] * 4, "county": ["x", "x", "y", "y"], "block": ["1", "2", "3", "4"]})
    spine = Tree.of(frame, ("state", "county", "block"))
    whole = Allotment.of(spine, workload)
    assert dict(whole.moved) == {"us": "state", "tract": "block", "block_group": "block"}
    spent = sum((sum(parts.values()) for parts in whole.rho.values()), Fraction(0))
    assert spent == workload.rho_squared
    broken = replace(whole, rho={**whole.rho, (0, 0): {"total": Fraction(1, 7)}})
    with pytest.raises(BudgetError, match="a path of the spine spends"):
        broken.check_paths()


def test_a_single_child_is_bypassed_and_measured_once():
    frame = pl.DataFrame({"state": ["a"] * 3, "county": ["x", "y", "y"], "block": ["1", "2", "3"]})
    spine = Tree.of(frame, ("state", "county", "block"))
    allotment = Allotment.of(spine, Workload.preset("small"))
    assert allotment.start[1].tolist() == [-1, 1]  # county x has one block: not measured
    assert allotment.start[2].tolist() == [1, 2, 2]  # its block spends both parts
    level, node = allotment.find_holders(1, np.array([0, 1]))
    assert (level.tolist(), node.tolist()) == ([2, 1], [0, 1])


def test_the_promise(make_census):
    census = make_census(8)
    spec = TopDown(workload="pl94").specification(census)
    assert spec.rho_squared == Budget.of(Fraction(293764, 114921) + Fraction(11417641, 152349649))
    assert str(spec.rho_squared.upper(8)) == "2.63116925"
    assert spec.input_premetric == Hamming("person")
    assert Margin("person", ("state",)) in spec.multiverse.invariants
    assert Margin("household", ("block", "gq_type")) in spec.multiverse.invariants
    assert any("no level us" in note for note in spec.notes)
    release = TopDown(workload="pl94", replicates=0).release(census, key=KEY)
    assert release.specification == spec
    assert release.ledger is not None
    assert release.ledger.total == spec.budget
    assert isinstance(TopDown(), Mechanism)


def test_a_run_never_conditions_on_more_than_it_says(make_census, monkeypatch):
    """The mutant of the production code: also fix part totals at a lower level without saying so."""
    census = make_census(9)
    used = Record.truth

    def greedy(self, level, rule, workload, histograms):
        self.used.add(Margin("person", ("county",)))
        return used(self, level, rule, workload, histograms)

    monkeypatch.setattr(Record, "truth", greedy)
    with pytest.raises(PrivacyError, match="does not list"):
        TopDown(replicates=0).release(census, key=KEY)


def own_rule(**fields):

    base = Workload.preset("pl94-persons")
    return replace(base, rules=(*base.rules, Rule(**fields)))


def test_a_users_exact_marginal_holds_and_is_listed(make_census):
    census = make_census(10, width=3)
    workload = own_rule(name="adults by county", kind="exact", query="votingage", level="county")
    made = outcome(census, workload)
    query = workload.query("votingage")
    assert np.array_equal(sum_answers(made.levels[1], query), sum_answers(made.measurements.truth[1], query))
    listed = TopDown(workload=workload).specification(census).multiverse
    assert any(isinstance(i, Custom) and "votingage" in i.words() for i in listed)


@pytest.mark.parametrize("first", ["votingage", "race"])
def test_two_exact_marginals_of_the_root_hold_together(make_census, first):
    """Whichever is listed first, both are kept: an exact partition must not push the other rule aside."""
    base = Workload.preset("small")
    names = ["votingage", "race"] if first == "votingage" else ["race", "votingage"]
    rules = tuple(Rule(name=f"{n} of the state", kind="exact", query=n, level="state") for n in names)
    workload = replace(base, rules=(*base.rules, *rules))
    for seed in (10, 14):
        made = outcome(make_census(seed, width=3), workload)
        for name in names:
            query = workload.query(name)
            assert np.array_equal(
                sum_answers(made.levels[0], query), sum_answers(made.measurements.truth[0], query)
            )


def test_constraints_that_cannot_hold_are_named(make_census):
    census = make_census(11)
    impossible = own_rule(name="crowded", kind="at-least", query="total", level="block", values=(10**6,))
    with pytest.raises(InfeasibleError, match="crowded"):
        TopDown(workload=impossible, replicates=0).release(census, key=KEY)
    empty = own_rule(name="no households", kind="zero", cells=(("hhgq", (0,)),))
    with pytest.raises(InfeasibleError, match="no households"):
        TopDown(workload=empty, replicates=0).release(census, key=KEY)


def test_a_child_without_a_parent_is_refused():
    frame = pl.DataFrame({"state": ["a", None], "block": ["1", "2"]})
    with pytest.raises(InputError, match="1 areas have no state"):
        Tree.of(frame, ("state", "block"))
    frame = pl.DataFrame({"state": ["a", "a"], "county": ["x", "y"], "block": ["1", "1"]})
    with pytest.raises(InputError, match="have two parents"):
        Tree.of(frame, ("state", "county", "block"))


@pytest.mark.parametrize(("stop", "workers"), [(1, 1), (3, 1), (3, 2)])
def test_a_killed_run_resumes_to_the_same_bytes(make_census, tmp_path: Path, monkeypatch, stop, workers):
    from stirred.mechanisms.topdown.solve.batch import LevelSolver

    census, engine = make_census(12, width=3), Local(workers=workers)
    (tmp_path / "whole").mkdir()
    (tmp_path / "resumed").mkdir()
    TopDown(replicates=0).release(census, key=KEY, engine=engine, out=tmp_path / "whole")
    solve = LevelSolver.solve

    def dies(self, family):
        if self.depth == stop and family.parents.stop == self.estimator.allotment.spine.size(stop - 1):
            raise KeyboardInterrupt
        return solve(self, family)

    monkeypatch.setattr(LevelSolver, "solve", dies)
    mechanism, state = TopDown(replicates=0), tmp_path / "state"
    with pytest.raises(KeyboardInterrupt):
        mechanism.release(census, key=KEY, engine=engine, out=tmp_path / "resumed", state=state)
    kept = [int(file.stem[6:]) for file in state.glob("*/level-*.parquet")]
    again = []

    def counts(self, family):
        again.append(self.depth)
        return solve(self, family)

    monkeypatch.setattr(LevelSolver, "solve", counts)
    mechanism.release(census, key=KEY, engine=engine, out=tmp_path / "resumed", state=state)
    assert min(again) == max(kept) + 1  # finished levels were taken up
    assert 0 < max(kept) + 1 <= stop
    assert workers > 1 or max(kept) + 1 == stop
    assert (tmp_path / "whole/person.parquet").read_bytes() == (
        tmp_path / "resumed/person.parquet"
    ).read_bytes()
    (tmp_path / "state/pl94-persons").mkdir(parents=True, exist_ok=True)
    (tmp_path / "state/pl94-persons/run").write_text("another")
    with pytest.raises(PrivacyError, match="another key"):
        mechanism.release(census, key=KEY, out=tmp_path / "resumed", state=state)


def test_floats_and_wrong_budgets_are_refused():
    with pytest.raises(BudgetError, match="float"):
        TopDown(rho_squared=2.63)
    with pytest.raises(BudgetError, match="positive"):
        _ = TopDown(rho_squared="-1").workloads
    with pytest.raises(InputError, match="did you mean"):
        _ = TopDown(workload="pl49-persons").workloads


def test_an_empty_census_and_one_record(make_census):
    import pyarrow as pa

    census = make_census(1)
    nobody = type(census)(
        schema=census.schema, files={**census.files, "person": census.files["person"].head(0)}
    )
    with pytest.raises(InfeasibleError, match="persons by facilities"):  # occupied facilities without anybody
        TopDown(replicates=0).release(nobody, key=KEY)
    homes = census.files["household"].filter(pl.col("gq_type") == 0)
    empty = type(census)(
        schema=census.schema, files={"household": homes, "person": census.files["person"].head(0)}
    )
    table = TopDown(replicates=0).release(empty, key=KEY).microdata["person"]
    assert isinstance(table, pa.Table)
    assert table.num_rows == 0
    nothing = type(census)(
        schema=census.schema, files={name: frame.head(0) for name, frame in census.files.items()}
    )
    for workload in ("pl94-persons", "pl94-stirred"):  # no tree at all, and tables of its uncertainty
        made = TopDown(workload=workload, replicates=2).release(nothing, key=KEY)
        assert made.microdata["person"].num_rows == 0
    one = homes.filter(pl.col("kind") == 1).head(1)
    alone = type(census)(
        schema=census.schema,
        files={
            "household": one,
            "person": census.files["person"].join(one.select("household_id"), on="household_id").head(1),
        },
    )
    assert TopDown(replicates=0).release(alone, key=KEY).microdata["person"].num_rows == 1


def test_the_receipt_names_every_setting_and_the_key_only_those_that_may_change_the_noise(make_census):
    plain = TopDown(workload="small", replicates=0)
    other = plain.replace(names="bureau", replicates=2, keep_nmf=True)
    assert other.identity() == plain.identity()
    changed = {name for name in plain.parameters() if plain.parameters()[name] != other.parameters()[name]}
    assert changed == {"names", "replicates", "keep_nmf"}
    assert plain.release(make_census(0), key=KEY).parameters == plain.parameters()


def test_a_workload_made_in_python_is_kept_and_a_plan_names_it():
    small = Workload.preset("small")
    other = replace(small, rules=())
    made = TopDown(workload=small, replicates=0)
    assert made.workloads == (small,)
    assert made.settings()["workload"] == made.config.model_dump()["workload"] == "small"
    assert made.parameters() == TopDown(workload="small", replicates=0).parameters()
    assert made.replace(mode="classic").workloads == (small,)
    assert pickle.loads(pickle.dumps(made)) == TopDown(workload=small, replicates=0) == made
    assert made != TopDown(workload=other, replicates=0)  # also of the name small
    assert made.identity() != TopDown(workload=other, replicates=0).identity()
    assert TopDown(workload=Path("own.toml")).config.workload == "own.toml"
    assert TopDownConfig.model_json_schema()["properties"]["workload"]["type"] == "string"
    with pytest.raises(InputError, match="valid string"):
        TopDown(workload=3)


def test_plans_and_commands_have_the_same_defaults():
    parser = argparse.ArgumentParser()
    add_flags(parser, TopDownConfig)
    assert settings(parser.parse_args([]), TopDownConfig) == TopDownConfig()


def test_a_rule_about_facilities_says_how_units_are_sorted(make_census):
    rule = Rule(name="quarters", kind="facilities", query="total", level="block", units="household")
    workload = replace(Workload.preset("small"), rules=(rule,))
    with pytest.raises(InputError, match="sorted by answer"):
        TopDown(workload=workload).specification(make_census(0))


def test_the_report_shows_the_noise_of_the_run(make_census):
    """This census has no level us, whose part went to the state; σ is 1/√ρ of what the geounits really spent."""
    census = make_census(8)
    mechanism = TopDown(workload="pl94-persons", replicates=0)
    release = mechanism.release(census, key=KEY)
    series, costs = mechanism.exhibits(release)[0].parts
    asked = Workload.preset("pl94-persons")
    shown = {(row["level"], row["query"]): row["standard deviation"] for row in series.rows}
    assert {level for level, _ in shown} <= set(census.schema.spine)
    both = asked.rho("us", "total") + asked.rho("state", "total")
    assert shown["state", "total"] == pytest.approx(float(both) ** -0.5)
    assert shown["block", "total"] == pytest.approx(float(asked.rho("block", "total")) ** -0.5)
    assert not any(" within us" in str(row[0]) for row in costs.rows)
    measured = pl.DataFrame(pl.from_arrow(release.tables["pl94-persons-noise"])).filter(query="total")
    leaves = census.scan("household", ["block"]).unique().collect().height
    assert measured.filter(level="block")["geounits"].sum() == leaves
    before, _ = mechanism.exhibits(None)[0].parts
    assert "us" in {row["level"] for row in before.rows}  # before a run nothing is known of the census
