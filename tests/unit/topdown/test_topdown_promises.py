"""The tree of a TopDown run is public or declared: data sets that agree on the declared invariants have one tree."""

import json
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import combinations_with_replacement
from pathlib import Path

import polars as pl
import pyarrow.dataset as pads
import pytest

from stirred import ExactMargins
from stirred.census import Census, read
from stirred.chance import Key
from stirred.engine import Engine, Local
from stirred.errors import DataError, PrivacyError
from stirred.mechanisms.release import Release
from stirred.mechanisms.topdown import TopDown, Workload
from stirred.mechanisms.topdown import promise as promise_module
from stirred.mechanisms.topdown import tree as areas
from stirred.mechanisms.topdown import tree as tree_module
from stirred.mechanisms.topdown.rules import Record
from stirred.mechanisms.topdown.run import release as running
from stirred.mechanisms.topdown.run.subtrees.gather import list_areas
from stirred.mechanisms.topdown.run.task import Settings
from stirred.mechanisms.topdown.workload import SpineOptions
from stirred.spec import AtLeast, Custom, Margin, Multiverse, Specification
from stirred.spec.files import dumps, from_json
from trusted import trusted
from unit.topdown.runs import run
from unit.topdown.shard_engines import Narrow, assert_same

KEY = Key.for_tests(3)
PLACES = {"a1": ("s", "a"), "a2": ("s", "a"), "b1": ("s", "b")}  # the tracts of one state and their counties
WORKLOAD = Workload.parse("""
name = "w"
record = "household"
rho_squared = 1
levels = ["state", "county", "tract"]
axis = [{ name = "tenure", size = 2, source = { column = "tenure" } }]
query = [{ name = "cells", of = ["tenure"] }]
level_shares = { tract = 1 }
query_shares = { tract = { cells = 1 } }
""")
LEAF = "tract"


def census(homes: Sequence[str], quarters: Sequence[str], *, beside: bool = False) -> Census:
    """A household in each tract of the first list, a group quarters in each of the second."""

    def records(key: str, tracts: Sequence[str]) -> pl.DataFrame:
        codes = {"state": [PLACES[t][0] for t in tracts], "county": [PLACES[t][1] for t in tracts]}
        columns = {**codes, "tract": list(tracts), "reservation": ["r" if t == "a2" else "" for t in tracts]}
        frame = pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))
        return frame.with_row_index(key).with_columns(pl.col(key).cast(pl.Int64))

    geography = {"spine": ["state", "county", "tract"]}
    if beside:
        geography["off_spine"] = {"reservation": {"of": "tract"}}
    schema = {
        "name": "toy",
        "geography": geography,
        "record": {"household": {"id": "hid"}, "group quarters": {"id": "gid"}},
    }
    households = records("hid", homes).with_columns(tenure=pl.col("hid") % 2)
    return Census.of(schema, {"household": households, "group quarters": records("gid", quarters)})


def on_disk(data: Census, folder: Path, geography: str = "") -> Census:
    """The same census in files; with a public file of areas its records have the lowest level only."""
    for name, file in (("household", "h"), ("group quarters", "g")):
        frame = data.scan(name).drop(["state", "county"] if geography else [])
        frame.collect().write_parquet(folder / f"{file}.parquet")
    (folder / "census.toml").write_text(
        f'name = "toy"\n[geography]\nspine = ["state", "county", "tract"]\n{geography}'
        '[record.household]\nfiles = ["h.parquet"]\nid = "hid"\n'
        '[record."group quarters"]\nfiles = ["g.parquet"]\nid = "gid"\n'
    )
    return read(folder)


def every(*, beside: bool = False) -> list[Census]:
    """All data sets of two households and at most two group quarters in three tracts: 6 × 10."""
    some = [c for n in range(3) for c in combinations_with_replacement(PLACES, n)]
    return [census(h, q, beside=beside) for h in some if len(h) == 2 for q in some]


def agreed(data: Census, promise: Specification) -> Hashable:
    """The values of the declared invariants, counted by ``realised`` and not by the mechanism."""
    return tuple(tuple(map(str, i.tabulate(data).to_pylist())) for i in promise.multiverse)


def told_apart(data: Iterable[Census], tree: Callable[[Census], Hashable]) -> int:
    """How many pairs agree on everything declared and have different trees: each is an infinite loss."""
    found: dict[Hashable, list[Hashable]] = {}
    for one in data:
        found.setdefault(agreed(one, TopDown(workload=WORKLOAD).specification(one)), []).append(tree(one))
    return sum(a != b for trees in found.values() for i, a in enumerate(trees) for b in trees[:i])


def in_memory(data: Census, options: SpineOptions | None = None) -> Hashable:
    """All codes of the tree that is measured, with the number of each one's parent."""
    made = run(data, WORKLOAD, Settings(spine=options), key=KEY, engine=Local(workers=1))
    spine = made.spine
    pairs = zip(spine.codes, spine.parent, strict=True)
    return tuple(tuple(zip(codes.to_list(), parent.tolist(), strict=True)) for codes, parent in pairs)


def in_parts(data: Census, options: SpineOptions | None = None) -> Hashable:
    """All areas that the path by subtrees lists."""
    parts = list_areas(Narrow(), data, WORKLOAD, options, 2).parts
    table = parts.gather()
    parts.drop()
    return tuple(sorted(tuple(row.values()) for row in table.to_pylist()))


def only_the_first(data: Census) -> tuple[AtLeast, ...]:
    """The fault: the leaves come from all record types, the first one's are declared."""
    whole = (
        AtLeast(Margin(record.name, (LEAF,)), 1) for record in data.schema.records if not record.linked_to
    )
    return tuple(whole)[:1]


# ---- every pair of small data sets ---------------------------------------------------------------------------------


@pytest.mark.parametrize("tree", [in_memory, in_parts])
def test_what_agrees_on_the_invariants_has_one_tree(tree):
    assert told_apart(every(), tree) == 0


@pytest.mark.parametrize("tree", [in_memory, in_parts])
def test_what_agrees_on_the_invariants_has_one_split_into_parts(tree):
    """The areas beside the spine are asked of all types too, so that all engines split the same tree."""
    options = SpineOptions(aian="reservation", split_at="state")
    assert told_apart(every(beside=True), lambda data: tree(data, options)) == 0


@pytest.mark.parametrize("tree", [in_memory, in_parts])
def test_the_check_finds_a_tree_that_is_declared_for_one_type_only(tree, monkeypatch):
    monkeypatch.setattr(areas, "tree_invariants", only_the_first)
    assert told_apart(every(), tree) > 0


def test_both_ways_list_the_same_leaves():
    for data in every()[::7]:
        memory = in_memory(data)
        assert isinstance(memory, tuple)
        parts = in_parts(data)
        assert isinstance(parts, tuple)
        assert sorted(code for code, _ in memory[-1]) == [row[-1] for row in parts]


# ---- the release ---------------------------------------------------------------------------------------------------


def small_memory(monkeypatch: pytest.MonkeyPatch) -> Local:
    """This machine with a bound that the census is said to exceed."""
    monkeypatch.setattr(running, "estimate_bytes", lambda *_: 10**12)
    return Local(memory="2 GB", workers=2)


def published(release: Release) -> set[str]:
    """The areas above the leaves as the release lists them."""
    return set(release.tables["w-totals"]["code"].to_pylist())


@pytest.mark.parametrize("engine", ["memory", "parts", "bounded memory"])
def test_the_specification_lists_the_tree_on_every_engine(engine, monkeypatch):
    data = census(("a1", "a2"), ("b1",))
    chosen: Engine = Local()
    if engine != "memory":
        chosen = Narrow() if engine == "parts" else small_memory(monkeypatch)
    before = TopDown(workload=WORKLOAD).specification(data)
    release = TopDown(workload=WORKLOAD, replicates=0).release(data, key=KEY, engine=chosen)
    assert set(before.multiverse) == {
        AtLeast(Margin("household", (LEAF,)), 1),
        AtLeast(Margin("group quarters", (LEAF,)), 1),
    }
    assert release.specification == before
    assert from_json(json.loads(dumps(before))) == before
    # county b has no household: the group quarters put it there, which is declared
    assert published(release) == {"s", "a", "b"}
    assert "which areas of level tract hold a group quarters record" in str(release.specification)


@pytest.mark.spark("local")
def test_the_cluster_declares_and_reads_the_same_tree(spark, tmp_path: Path):
    data = on_disk(census(("a1", "a2"), ("b1",)), tmp_path)
    whole = TopDown(workload=WORKLOAD, replicates=0).release(data, key=KEY)
    there = TopDown(workload=WORKLOAD, replicates=0).release(spark.census(data), key=KEY, engine=spark)
    assert_same(there, whole)
    assert len(there.specification.multiverse) == 2


@pytest.mark.parametrize("engine", [None, Narrow()], ids=["memory", "parts"])
def test_a_run_that_reads_an_undeclared_tree_stops(engine, monkeypatch):
    declared = promise_module.declare_multiverse

    def forgetful(data: Census, workload: Workload, options: SpineOptions | None) -> Multiverse:
        kept = declared(data, workload, options)
        return Multiverse(frozenset(i for i in kept if "quarters" not in str(i)))

    monkeypatch.setattr(promise_module, "declare_multiverse", forgetful)
    with pytest.raises(PrivacyError, match="does not list"):
        TopDown(workload=WORKLOAD, replicates=0).release(
            census(("a1", "a2"), ("b1",)), key=KEY, engine=engine
        )


def test_engines_agree_where_only_group_quarters_tell_of_a_reservation(monkeypatch):
    """Tract a2 has no household: in memory its reservation was once unknown, and in parts it was known."""
    data = census(("a1", "b1"), ("a2",), beside=True)
    split = TopDown(workload=WORKLOAD, mode="classic", aian="reservation", replicates=0)
    whole = split.release(data, key=KEY)
    parts = split.release(data, key=KEY, engine=Narrow())
    assert_same(parts, whole)
    tree = in_memory(data, SpineOptions(aian="reservation"))
    assert isinstance(tree, tuple)
    assert [code for code, _ in tree[1]] == ["0|s", "1|s"]
    # the mutant: only the first record type is asked where its areas lie
    monkeypatch.setattr(tree_module, "area_record_types", lambda _: ("household",))
    assert split.release(data, key=KEY).input_digest != parts.input_digest


def test_a_public_file_of_areas_decides_alone(tmp_path: Path):
    """Then records decide nothing, nothing about the tree is declared, and all data sets have one tree."""
    code = ["s", "a", "b", *PLACES]
    parent = ["", "s", "s", *(county for _, county in PLACES.values())]
    pl.DataFrame({"code": code, "parent": parent}).write_csv(tmp_path / "areas.csv")
    trees = set()
    for homes, quarters in ((("a1", "a1"), ("b1",)), (("a1", "a2"), ())):
        listing = '[geography.areas]\nfiles = ["areas.csv"]\n'
        public = on_disk(census(homes, quarters), tmp_path, listing)
        assert areas.area_record_types(public.schema) == ()
        assert TopDown(workload=WORKLOAD).specification(public).multiverse.is_vacuous
        trees |= {("memory", in_memory(public)), ("parts", in_parts(public))}
    assert len(trees) == 2  # one for each way of listing it


def test_released_records_stand_in_areas_of_the_tree():
    data = census(("a1", "a2"), ("b1",))
    for seed in range(20):
        made = (
            TopDown(workload=WORKLOAD, replicates=0)
            .release(data, key=Key.for_tests(seed))
            .microdata["household"]
        )
        table = made.to_table() if isinstance(made, pads.Dataset) else made
        assert set(table["tract"].to_pylist()) <= set(PLACES)


# ---- what is not listed twice ----------------------------------------------------------------------------------------


def test_a_restricted_statistic_is_not_dropped():
    """Households by block and kind do not show which of them are vacant."""
    vacant = Margin("household", ("block", "kind"), {"vacant": ["1"]})
    coarse, kinds = Custom("coarse kinds where vacant", (vacant,)), Margin("household", ("block", "kind"))
    assert set(Record({coarse, kinds}).multiverse) == {coarse, kinds}


@pytest.mark.parametrize(
    ("needed", "kept", "dropped"),
    [
        (Margin("household", ("block",)), Margin("household", ("block", "kind")), True),
        (Margin("household", ("block",), {"kind": ["1"]}), Margin("household", ("block", "kind")), True),
        (Margin("household", ("block",)), Margin("household", ("block",), {"kind": ["1"]}), False),
        (
            Margin("household", ("block",), {"kind": ["1"]}),
            Margin("household", ("block", "size"), {"kind": ["1"]}),
            True,
        ),
        (
            Margin("household", ("block",), {"kind": ["1"]}),
            Margin("household", ("block", "size"), {"kind": ["1", "2"]}),
            False,
        ),
        (Margin("person", ("block",)), Margin("household", ("block",)), False),
        (Margin("household", ("block", "size")), Margin("household", ("block",)), False),
    ],
    ids=str,
)
def test_only_sums_of_a_listed_margin_are_dropped(needed, kept, dropped):
    for other in (Custom("other", (needed,)), AtLeast(needed, 1)):
        assert set(Record({other, kept}).multiverse) == ({kept} if dropped else {other, kept})


# ---- the small sibling -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["unheard of", None])
def test_exact_margins_refuse_a_level_that_the_schema_does_not_list(value):
    """With open columns the table's levels are the schema's; the refusal does not show the record's value."""
    schema = {
        "geography": {"spine": ["county"]},
        "record": {"household": {"variables": {"tenure": {"levels": ["own", "rent"]}}}},
    }
    homes = {"county": ["a", "a", "b"], "tenure": ["own", "rent", value]}
    one = ExactMargins(rows="county", columns="tenure", rho_squared="1/2", both=False)
    with pytest.raises(DataError, match="1 household records have no listed level of tenure") as caught:
        one.release(trusted(Census.of(schema, {"household": homes})), key=KEY)
    assert "unheard" not in repr(caught.value)
