"""TopDown by subtrees on other trees: a file of areas, the AIAN split, optimized block groups, wide parents, DHC."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from stirred.census import Census, read
from stirred.census.synthetic import write_preset
from stirred.chance import Key
from stirred.errors import InputError
from stirred.mechanisms.topdown import TopDown, Workload
from stirred.spec.files import save
from trusted import trusted
from unit.topdown.shard_engines import Narrow, assert_same

KEY = Key.for_tests(3)
SPINE = ["state", "county", "tract", "block_group", "block"]
TREES = [
    {"aian": "aiannh"},
    {"optimized_block_groups": ["place"]},
    {"aian": "aiannh", "optimized_block_groups": ["place", "aiannh"]},
    {"optimized_block_groups": []},
]


def leaves(seed: int, states: int, widths: tuple[int, ...]) -> pl.DataFrame:
    """A random tree with a place and, for some blocks, an AIAN area."""
    rng = np.random.default_rng(seed)
    rows: list[tuple[str, ...]] = [()]
    for depth in range(len(SPINE)):
        width = states if depth == 0 else int(widths[depth - 1])
        rows = [
            (*row, f"{row[-1] if row else ''}{i:03}")
            for row in rows
            for i in range(states if depth == 0 else int(rng.integers(1, width + 1)))
        ]
    frame = pl.DataFrame(rows, schema=SPINE, orient="row")
    return frame.with_columns(
        place=pl.Series(rng.choice(["", "p1", "p2"], frame.height)),
        aiannh=pl.Series(rng.choice(["9999", "9999", "0010"], frame.height)),
    )


def peopled(
    frame: pl.DataFrame, seed: int, *, persons: int = 3, off_spine: object = None, quarters: bool = False
) -> Census:
    """People in those blocks; the geographies beside the spine stand with the households."""
    rng = np.random.default_rng(seed)
    homes = frame.with_row_index("household_id").with_columns(
        pl.col("household_id").cast(pl.Int64), kind=pl.lit(1), gq_type=pl.lit(0)
    )
    count = persons * homes.height
    people = pl.DataFrame({
        "household_id": rng.integers(0, homes.height, count),
        "age": rng.integers(0, 90, count),
        "hispanic": rng.integers(1, 3, count),
        "race": rng.choice([1, 2, 4, 63], count),
    })  # fmt: skip
    if quarters:  # a facility with one resident in every third block
        count = homes.height
        more = homes.gather_every(3).with_columns(pl.col("household_id") + count, kind=pl.lit(3))
        more = more.with_columns(gq_type=1 + 4 * (pl.col("household_id") % 2).cast(pl.Int32))
        homes = pl.concat([homes, more])
        resident = {
            name: pl.lit(value, pl.Int64) for name, value in (("age", 30), ("hispanic", 1), ("race", 1))
        }
        people = pl.concat([people, more.select("household_id", **resident)])
    beside = {"place": {"of": "block"}, "aiannh": {"of": "block"}} if off_spine is None else off_spine
    schema = {
        "geography": {"spine": SPINE, "off_spine": beside},
        "record": {"household": {"id": "household_id"}, "person": {"household": "household_id"}},
    }
    return Census.of(schema, {"household": homes, "person": people})


@pytest.mark.parametrize("mode", ["gls", pytest.param("classic", marks=pytest.mark.slow)])
@pytest.mark.parametrize("tree", TREES, ids=str)
@pytest.mark.parametrize("states", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_other_spines(cut_at, tree, states, mode):
    """The published order is the ordinary one although another tree was measured; a state is cut into parts whole."""
    census = peopled(leaves(2, states, (2, 2, 2, 3)), 2)
    mechanism = TopDown(workload="small", mode=mode, **tree, replicates=0)
    whole = mechanism.release(census, key=KEY)
    for depth in range(4):
        cut_at(depth)
        assert_same(mechanism.release(census, key=KEY, engine=Narrow()), whole)


def test_primitive_areas(cut_at):
    census = peopled(leaves(2, 1, (2, 2, 2, 3)), 2)
    small = Workload.preset("small")
    shares, queries, place = dict(small.level_shares), dict(small.query_shares), small.levels.index("tract")
    for level in ("prim", "tract_subset_group"):
        shares[level], queries[level] = shares["tract"] / 3, queries["tract"]
    shares["tract"] /= 3
    levels = (*small.levels[:place], "prim", "tract_subset_group", *small.levels[place:])
    workload = replace(small, levels=levels, level_shares=shares, query_shares=queries)
    mechanism = TopDown(workload=workload, primitives=["place"], replicates=0)
    whole = mechanism.release(census, key=KEY)
    cut_at(1)
    assert_same(mechanism.release(census, key=KEY, engine=Narrow()), whole)


def test_types_of_group_quarters(cut_at):
    """Subtrees take the types from the counts of units that their rule reads."""
    census = peopled(leaves(2, 1, (2, 2, 2, 6)), 2, quarters=True)
    mechanism = TopDown(
        workload="pl94-persons", optimized_block_groups=[], group_quarters_bits=True, replicates=0
    )
    whole = mechanism.release(census, key=KEY)
    cut_at(2)
    assert_same(mechanism.release(census, key=KEY, engine=Narrow()), whole)


def test_areas_in_several_areas_beside_the_spine_are_refused(cut_at):
    frame = leaves(2, 1, (2, 2, 2, 3))
    twice = pl.concat([frame, frame.with_columns(place=pl.lit("p9"))])
    census = trusted(peopled(twice, 2))
    mechanism = TopDown(workload="small", optimized_block_groups=["place"], replicates=0)
    for engine in (None, Narrow()):
        with pytest.raises(InputError, match="lie in several areas of place"):
            mechanism.release(census, key=KEY, engine=engine)
    unknown = TopDown(workload="small", optimized_block_groups=["plce"], replicates=0)
    with pytest.raises(InputError, match="not a geography beside the spine"):
        unknown.release(census, key=KEY, engine=Narrow())


@pytest.mark.parametrize("mode", ["gls", "classic"])
def test_a_public_file_of_areas(tmp_path: Path, cut_at, mode):
    """Empty blocks are leaves too; codes are looked up in the file, not in the records."""
    write_preset("demo", tmp_path / "census", households=60)
    census = read(tmp_path / "census" / "census.toml")
    assert census.schema.geography.areas is not None
    mechanism = TopDown(workload="small", mode=mode, replicates=0)
    whole = mechanism.release(census, key=KEY)
    for depth in (1, 2):
        cut_at(depth)
        made = mechanism.release(census, key=KEY, engine=Narrow(rows=5000))
        assert_same(made, whole)


def test_records_in_areas_that_the_file_lacks(tmp_path: Path, cut_at):
    write_preset("demo", tmp_path / "census", households=60)
    census = trusted(read(tmp_path / "census" / "census.toml"))
    path = tmp_path / "census" / "areas.parquet"
    areas = pl.read_parquet(path)
    homes = census.scan("household", ["block", "kind"]).filter(pl.col("kind") == 1).collect()
    gone = str(homes["block"][0])
    areas.filter(pl.col("code").cast(pl.String) != gone).write_parquet(path)
    said = set()
    for engine in (None, Narrow(rows=5000)):
        cut_at(2)
        with pytest.raises(InputError, match="areas that the spine does not have") as caught:
            TopDown(workload="small", replicates=0).release(census, key=KEY, engine=engine)
        said.add(str(caught.value))
    assert len(said) == 1


@pytest.mark.parametrize("mode", ["gls", pytest.param("classic", marks=pytest.mark.slow)])
@pytest.mark.parametrize("widths", [(400, 1, 1, 1), (2, 1, 1, 400)], ids=["above the cut", "in a subtree"])
def test_wide_parents(cut_at, widths, mode):
    _wide(cut_at, widths, mode)


@pytest.mark.slow
@pytest.mark.parametrize("widths", [(2500, 1, 1, 1), (2, 1, 1, 2500)], ids=["above the cut", "in a subtree"])
def test_parents_of_2500(cut_at, widths):
    _wide(cut_at, widths, "gls")


def _wide(cut_at, widths: tuple[int, ...], mode: str) -> None:
    rows = [("0",)]
    for width in widths:
        rows = [(*row, f"{row[-1]}{i:04}") for row in rows for i in range(width)]
    # two homes in each block: areas that hold one record each are refused
    census = peopled(pl.DataFrame(2 * rows, schema=SPINE, orient="row"), 5, off_spine={})
    mechanism = TopDown(workload="small", mode=mode, replicates=0)
    whole = mechanism.release(census, key=KEY)
    for depth in (0, 1):
        cut_at(depth)
        assert_same(mechanism.release(census, key=KEY, engine=Narrow(rows=1000)), whole)


@pytest.mark.slow
def test_dhc_after_pl(tmp_path: Path, cut_at):
    """The earlier product is read by flows too and agrees in every block; both products by subtrees."""
    write_preset("demo", tmp_path / "census", households=200)
    census = read(tmp_path / "census" / "census.toml")
    (tmp_path / "public" / "data").mkdir(parents=True)
    pl94 = TopDown(workload="pl94", replicates=0)
    cut_at(2)
    release = pl94.release(census, key=KEY, out=tmp_path / "public" / "data", engine=Narrow(rows=5000))
    assert_same(release, pl94.release(census, key=KEY))
    save(release.specification, tmp_path / "public" / "spec.json")
    mechanism = TopDown(workload="dhc-persons", given=tmp_path, replicates=0)
    whole = mechanism.release(census, key=KEY)
    assert_same(mechanism.release(census, key=KEY, engine=Narrow(rows=5000)), whole)
