"""Other trees for the same geography: exact budgets on every path, only whole states are exact, ordinary tables come out."""

from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import isqrt
from typing import Any

import numpy as np
import polars as pl
import pytest

from stirred.census import Census
from stirred.census.synthetic import write_preset
from stirred.chance import Key
from stirred.cli.main import main
from stirred.engine import Local
from stirred.errors import InputError
from stirred.mechanisms.topdown import TopDown, Workload
from stirred.mechanisms.topdown.interest import build_areas, predict_areas
from stirred.mechanisms.topdown.measure import Allotment
from stirred.mechanisms.topdown.tree import Tree, split_tree
from stirred.mechanisms.topdown.workload import SpineOptions
from unit.topdown.shard_engines import Narrow, assert_same

SPINE = ("state", "county", "tract", "block_group", "block")
KEY = Key.for_tests(11)
TREES: list[dict[str, Any]] = [
    {"aian": "aiannh"},
    {"optimized_block_groups": ["place"]},
    {"aian": "aiannh", "optimized_block_groups": ["place", "aiannh"]},
    {"optimized_block_groups": []},
    {"primitives": ["place"]},
    {"aian": "aiannh", "optimized_block_groups": ["place"], "primitives": ["place", "aiannh"]},
]
OPTIONS = [
    SpineOptions(aian="aiannh"),
    SpineOptions(block_groups=("place",)),
    SpineOptions(aian="aiannh", block_groups=("place", "aiannh")),
    SpineOptions(block_groups=()),
    SpineOptions(primitives=("place",)),
    SpineOptions(aian="aiannh", block_groups=("place",), primitives=("place", "aiannh")),
]


def test_settings_describe_the_tree():
    assert [TopDown(**settings).spine for settings in TREES] == OPTIONS
    assert TopDown().spine is None
    assert TopDown(aian="none").spine == SpineOptions()


def measured(name: str, *, primitives: bool) -> Workload:
    """A preset; where primitive areas are asked for, they have a part of the share of tracts."""
    workload = Workload.preset(name)
    if not primitives:
        return workload
    place = workload.levels.index("tract")
    new = ("prim", "tract_subset_group")
    shares, queries = dict(workload.level_shares), dict(workload.query_shares)
    for level in new:
        shares[level], queries[level] = shares["tract"] / 3, queries["tract"]
    shares["tract"] /= 3
    levels = (*workload.levels[:place], *new, *workload.levels[place:])
    return replace(workload, levels=levels, level_shares=shares, query_shares=queries)


def leaves(seed: int, *, states: int = 2, width: int = 4) -> pl.DataFrame:
    """A random tree with a place and, for some blocks, an AIAN area."""
    rng = np.random.default_rng(seed)
    rows: list[tuple[str, ...]] = [()]
    for depth in range(len(SPINE)):
        rows = [
            (*row, f"{row[-1] if row else ''}{i}")
            for row in rows
            for i in range(states if depth == 0 else int(rng.integers(1, width + 1)))
        ]
    frame = pl.DataFrame(rows, schema=list(SPINE), orient="row")
    return frame.with_columns(
        place=pl.Series(rng.choice(["", "p1", "p2"], frame.height)),
        aiannh=pl.Series(rng.choice(["9999", "9999", "0010", "2040"], frame.height)),
    )


def census(seed: int, *, states: int = 2) -> Census:
    """People in those blocks; the geographies beside the spine stand with the households."""
    rng = np.random.default_rng(seed)
    frame = leaves(seed, states=states, width=3)
    homes = frame.select(pl.all().repeat_by(2).explode()).with_row_index("household_id")
    homes = homes.with_columns(pl.col("household_id").cast(pl.Int64), kind=pl.lit(1), gq_type=pl.lit(0))
    people = pl.DataFrame({
        "household_id": rng.integers(0, homes.height, 3 * homes.height),
        "age": rng.integers(0, 90, 3 * homes.height),
        "hispanic": rng.integers(1, 3, 3 * homes.height),
        "race": rng.choice([1, 2, 4, 63], 3 * homes.height),
    })  # fmt: skip
    schema = {
        "geography": {
            "spine": list(SPINE),
            "off_spine": {"place": {"of": "block"}, "aiannh": {"of": "block"}},
        },
        "record": {"household": {"id": "household_id"}, "person": {"household": "household_id"}},
    }
    return Census.of(schema, {"household": homes, "person": people})


@pytest.mark.parametrize("preset", ["small", "pl94-persons"])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_every_path_spends_exactly_the_total(options, preset):
    """Summed here again in Fractions, leaf by leaf, from what each geounit on its path spends."""
    workload = measured(preset, primitives=options.primitives is not None)
    for seed in range(6):
        for states in (1, 2):
            frame, levels, adapted = split_tree(options, leaves(seed, states=states), SPINE, workload)
            spine = Tree.of(frame, levels, root="us")
            for bypass in (True, False):
                allotment = Allotment.of(spine, adapted, bypass=bypass)
                for leaf in range(0, spine.size(len(spine.levels) - 1), 7):
                    spent, node = Fraction(0), leaf
                    for d in range(len(spine.levels) - 1, -1, -1):
                        start = int(allotment.start[d][node])
                        if start >= 0:
                            spent += sum(allotment.rho[start, d].values(), Fraction(0))
                        node = int(spine.parent[d][node])
                    assert spent == workload.rho_squared


def test_states_have_at_most_two_parts_and_parts_are_not_mixed():
    source = leaves(1)
    frame, levels, _ = split_tree(OPTIONS[0], source, SPINE, Workload.preset("small"))
    assert levels == ("state", "state_part", "county_part", "tract_part", "block_group_part", "block")
    assert frame.group_by("state").agg(pl.col("state_part").n_unique())["state_part"].max() == 2
    both = frame.join(source.select("block", "aiannh"), on="block")
    inside = both.group_by("tract_part").agg((pl.col("aiannh") != "9999").n_unique().alias("kinds"))
    assert inside["kinds"].max() == 1
    # the same border at every level: a part's flag is that of all its ancestors
    flags = frame.select(pl.col(level).str.slice(0, 1) for level in levels[1:-1])
    assert all(flags[name].equals(flags["state_part"], check_names=False) for name in flags.columns)


def test_groups_share_entities_and_obey_the_square_root_rule():
    rng = np.random.default_rng(3)
    n = 900
    source = pl.DataFrame({
        "state": ["s"] * n, "tract": [f"t{i % 2}" for i in range(n)], "block_group": ["x"] * n,
        "block": [f"b{i:04}" for i in range(n)], "place": rng.choice(["", "a", "b"], n),
    }).with_columns(block_group=pl.col("tract") + "x")  # fmt: skip
    frame, levels, _ = split_tree(
        SpineOptions(block_groups=("place",)),
        source,
        ("state", "tract", "block_group", "block"),
        Workload.preset("small"),
    )
    assert levels == ("state", "tract", "block_group_optimized", "block")
    both = frame.join(source.select("block", "place"), on="block").group_by("block_group_optimized")
    found = both.agg(pl.col("place").n_unique(), pl.len(), pl.col("tract").n_unique().alias("tracts"))
    assert found["place"].max() == 1
    assert found["tracts"].max() == 1
    assert found["len"].max() <= isqrt(450) + 12 + 1
    # no more groups than needed: an entity of m blocks has ⌈m/limit⌉
    sizes = source.group_by("tract", "place").len()["len"].to_numpy()
    assert found.height == int(np.ceil(sizes / (isqrt(450) + 13)).sum())


@pytest.mark.parametrize("mode", ["gls", "classic"])
@pytest.mark.parametrize("tree", [*TREES[:3], TREES[5]], ids=str)
@pytest.mark.parametrize("states", [1, 2])
def test_without_noise_the_ordinary_tables_come_back(tree, mode, states):
    data = census(2, states=states)
    workload = measured("small", primitives="primitives" in tree)
    mechanism = TopDown(workload=workload, mode=mode, rho_squared="inf", **tree, replicates=0)
    release = mechanism.release(data, key=KEY)
    made = pl.DataFrame(release.microdata["person"])
    assert made.columns == [*SPINE, "race", "votingage"]
    want = data.scan("person", [*SPINE]).collect()
    for level in SPINE:
        ours = made.select(pl.col(level).cast(pl.String)).group_by(level).len().sort(level)
        assert ours.equals(want.group_by(level).len().sort(level))


@pytest.mark.parametrize("mode", ["gls", "classic"])
def test_with_noise_only_whole_states_are_exact(mode):
    """The invariant is the state's population; its AIAN part is noisy (a mutant that fixed the parts would fail)."""
    data = census(4)
    plain = TopDown(workload="small", mode=mode, replicates=0)
    split = TopDown(workload="small", mode=mode, rho_squared="1/100", **TREES[0], replicates=0)
    assert split.specification(data).multiverse == plain.specification(data).multiverse
    release = split.release(data, key=KEY)
    assert all(check.kept for check in release.checks)
    aian = data.scan("household", ["block", "aiannh"]).unique().collect()
    made = pl.DataFrame(release.microdata["person"]).with_columns(pl.col("state", "block").cast(pl.String))
    truth = data.scan("person", ["state", "block"]).collect()
    assert made.group_by("state").len().sort("state").equals(truth.group_by("state").len().sort("state"))

    def part(frame: pl.DataFrame) -> int:
        return frame.join(aian, on="block").filter(pl.col("aiannh") != "9999").height

    assert part(made) != part(truth)


def test_the_specification_names_the_spine_and_streams_differ():
    data = census(1)
    ordinary = TopDown(workload="small")
    split = TopDown(workload="small", **TREES[2])
    assert (
        split.parameters() != ordinary.parameters()
    )  # the key is bound to them: no noise is used on two trees
    notes = " ".join(split.specification(data).notes)
    assert "AIAN" in notes
    assert "optimized block groups" in notes
    assert "AIAN" not in " ".join(ordinary.specification(data).notes)


def test_a_workload_file_may_name_the_spine():
    from importlib import resources

    text = (resources.files("stirred.mechanisms.topdown") / "presets" / "small.toml").read_text("utf8")
    text = text + '\n[spine]\naian = "aiannh"\noptimized_block_groups = ["place"]\n'
    workload = Workload.parse(text)
    assert workload.spine == SpineOptions(aian="aiannh", block_groups=("place",))
    assert "AIAN" in " ".join(TopDown(workload=workload).specification(census(1)).notes)


def test_only_declared_geography_shapes_the_tree():
    data = census(1)
    with pytest.raises(InputError, match="not a geography beside the spine"):
        TopDown(workload="small", aian="gq_type", replicates=0).release(data, key=KEY)


def test_rules_about_areas_that_are_cut_are_refused():
    from stirred.mechanisms.topdown.workload import Rule

    small = Workload.preset("small")
    county = replace(
        small, rules=(*small.rules, Rule(name="county", kind="exact", query="total", level="county"))
    )
    with pytest.raises(InputError, match="cuts into parts"):
        split_tree(OPTIONS[0], leaves(1), SPINE, county)
    split_tree(OPTIONS[1], leaves(1), SPINE, county)  # optimized block groups leave counties whole


def test_the_command_line_takes_both_options(tmp_path, capsys):
    from stirred.cli.main import main

    data = census(5, states=1)
    for record in ("household", "person"):
        data.scan(record).collect().write_parquet(tmp_path / f"{record}.parquet")
    (tmp_path / "census.toml").write_text(
        'name = "parts"\n[geography]\nspine = ["state", "county", "tract", "block_group", "block"]\n'
        '[geography.off_spine.place]\nof = "block"\n[geography.off_spine.aiannh]\nof = "block"\n'
        '[record.household]\nfiles = ["household.parquet"]\nid = "household_id"\n'
        '[record.person]\nfiles = ["person.parquet"]\nhousehold = "household_id"\nof = "household"\n'
    )
    words = [
        "topdown",
        str(tmp_path / "census.toml"),
        "--workload",
        "small",
        "--out",
        str(tmp_path / "packet"),
    ]
    assert (
        main([*words, "--aian", "aiannh", "--optimized-block-groups", "place", "--replicates", "2", "--json"])
        == 0
    )
    capsys.readouterr()
    people = pl.read_parquet(tmp_path / "packet" / "public" / "data" / "person.parquet")
    assert people.height == data.count("person")
    assert people.columns[:5] == list(SPINE)
    card = (tmp_path / "packet" / "public" / "card.md").read_text("utf8")
    assert "AIAN" in card
    again = pl.read_parquet(
        tmp_path / "packet" / "public" / "data" / "mechanism" / "small-replicates.parquet"
    )
    assert again.group_by("replicate").agg(pl.col("count").sum())["count"].unique().to_list() == [
        people.height
    ]


def test_a_level_that_is_added_is_not_called_missing():
    data = census(1)
    flat = leaves(1).select("state", "tract", "block")
    frame, levels, adapted = split_tree(
        SpineOptions(block_groups=()), flat, ("state", "tract", "block"), Workload.preset("small")
    )
    assert levels == ("state", "tract", "block_group_optimized", "block")
    assert "block_group_optimized" in adapted.levels
    assert frame.height == flat.height
    notes = " ".join(TopDown(workload="small", optimized_block_groups=[]).specification(data).notes)
    assert "no level block_group" not in notes


def test_production_presets_measure_the_parts_of_states_where_the_census_has_them():
    data = census(3)
    default, whole = TopDown(workload="pl94-persons"), TopDown(workload="pl94-persons", aian="none")
    workload = default.workloads[0]
    assert default.tree(workload, data.schema) == SpineOptions(aian="aiannh")
    assert not whole.tree(workload, data.schema)
    assert whole.identity() == default.identity()  # the bytes of whole states are those they always had
    parts = SpineOptions(aian="aiannh")
    assert default.identity(parts) == TopDown(workload="pl94-persons", aian="aiannh").identity()
    said = [" ".join(mechanism.specification(data).notes) for mechanism in (default, whole)]
    assert "split into AIAN areas" in said[0]
    assert "split into AIAN areas" not in said[1]
    assert ["inside the multiverse" in words for words in said] == [False, True]  # parts are not exact
    assert whole.settings()["aian"] == "none"
    assert TopDown(workload="small").tree(Workload.preset("small"), data.schema) is None
    own = TopDown(workload="pl94-stirred-persons")
    assert own.tree(own.workloads[0], data.schema) == SpineOptions(aian="aiannh")


def test_county_subdivisions_stand_for_places_in_strong_states():
    source = pl.DataFrame({
        "state": ["09"] * 4 + ["08"] * 4, "tract": ["09t"] * 4 + ["08t"] * 4, "block": [f"b{i}" for i in range(8)],
        "place": ["p", "q"] * 4, "mcd": ["m", "m", "n", "n"] * 2,
    })  # fmt: skip
    options = SpineOptions(block_groups=("place",), strong_mcd="mcd")
    frame, levels, _ = split_tree(options, source, ("state", "tract", "block"), Workload.preset("small"))
    groups = frame.join(source.select("block", "place", "mcd"), on="block").group_by("state", levels[-2])
    found = groups.agg(pl.col("place", "mcd").n_unique()).group_by("state").max().sort("state")
    assert found.select("place", "mcd").rows() == [(1, 2), (2, 1)]
    with pytest.raises(InputError, match="do not respect places"):
        SpineOptions(block_groups=(), strong_mcd="mcd")


def test_primitive_areas_lie_between_county_and_tract():
    """Pieces of a county in one place; tracts are cut by them, groups of subsets obey the square-root rule."""
    n = 1600
    source = pl.DataFrame({
        "state": ["s"] * n, "county": ["c"] * n, "tract": [f"t{i // 2:04}" for i in range(n)],
        "block": [f"b{i:04}" for i in range(n)], "place": ["p", "q"] * (n // 2),
    })  # fmt: skip
    spine = ("state", "county", "tract", "block")
    frame, levels, adapted = split_tree(
        SpineOptions(primitives=("place",)), source, spine, Workload.preset("dhc-persons")
    )
    added = ("prim", "tract_subset_group", "tract_subset", "block_group_optimized")
    assert levels == ("state", "county", *added, "block")
    assert adapted.levels == ("us", "state", "county", *added, "block")
    assert [frame[level].n_unique() for level in added] == [2, 2 * -(-800 // (isqrt(800) + 13)), 1600, 1600]
    sizes = frame.group_by("tract_subset_group").len()["len"]
    assert sizes.max() <= isqrt(800) + 13
    Tree.of(frame, levels)
    with pytest.raises(InputError, match="tracts in counties"):
        split_tree(SpineOptions(primitives=()), source, ("state", "tract", "block"), Workload.preset("small"))
    with pytest.raises(InputError, match="no share for level prim"):
        split_tree(SpineOptions(primitives=()), source, spine, Workload.preset("pl94-persons"))


def test_types_of_group_quarters_shape_block_groups_and_are_an_invariant():
    from stirred.mechanisms.topdown.run.task import Settings, Task
    from stirred.mechanisms.topdown.run.upper_tree import build_whole_tree

    data = census(3, states=1)
    homes = data.scan("household").collect().sort("household_id")
    blocks = homes["block"].unique().sort()
    kinds = {blocks[0]: 5, blocks[3]: 1, blocks[4]: 5}
    gq = pl.col("block").replace_strict(kinds, default=0)
    first = (pl.col("household_id") == pl.col("household_id").min().over("block")) & (gq > 0)
    homes = homes.with_columns(
        kind=pl.when(first).then(3).otherwise(pl.col("kind")), gq_type=pl.when(first).then(gq).otherwise(0)
    )
    people = data.scan("person", ["household_id", "age", "hispanic", "race"]).collect()
    residents = pl.DataFrame({"household_id": homes.filter(pl.col("kind") == 3)["household_id"]})
    more = residents.with_columns(age=pl.lit(30), hispanic=pl.lit(1), race=pl.lit(1)).select(
        pl.all().cast(pl.Int64)
    )
    schema = {
        "geography": {"spine": list(SPINE)},
        "record": {"household": {"id": "household_id"}, "person": {"household": "household_id"}},
    }
    data = Census.of(
        schema,
        {
            "household": homes.drop("place", "aiannh"),
            "person": pl.concat([people.select(more.columns), more]),
        },
    )
    options = SpineOptions(block_groups=(), quarters=True)
    for name, kept_apart in (("pl94-persons", True), ("pl94-units", False)):
        mechanism = TopDown(workload=name, optimized_block_groups=[], group_quarters_bits=True)
        task = Task(
            census=data,
            workload=Workload.preset(name),
            settings=Settings(spine=options),
            key=KEY,
            engine=Local(),
        )
        above = build_whole_tree(task)
        spine = above.spine
        group = dict(zip(spine.codes[-1].to_list(), spine.parent[-1].tolist(), strict=True))
        mixed = {
            group[block]: {kinds.get(b, 0) for b in group if group[b] == group[block]} for block in kinds
        }
        assert all(len(types) == 1 for types in mixed.values()) == kept_apart
        assert set(above.constraints.record.multiverse) <= set(mechanism.specification(data).multiverse)
    with pytest.raises(InputError, match="none are asked for"):
        TopDown(group_quarters_bits=True)


def test_the_key_knows_no_option_that_is_not_used():
    from stirred.mechanisms.topdown.workload import write_canonical

    assert (
        write_canonical(SpineOptions(aian="a"))
        == "SpineOptions(aian='a', block_groups=None, split_at='state')"
    )
    assert SpineOptions(aian="a").document() == {"aian": "a", "block_groups": None, "split_at": "state"}
    assert "quarters=True" in write_canonical(SpineOptions(block_groups=(), quarters=True))


def test_the_populations_of_parts_bound_them_and_are_stated():
    """Without group quarters a part has households alone, so that its bounds are its population, as in production."""
    data = census(4)
    mechanism = TopDown(
        workload="pl94-persons", rho_squared="1/100", aian="aiannh", part_bounds=True, replicates=0
    )
    stated = mechanism.specification(data).multiverse
    more = set(stated) - set(TopDown(workload="pl94-persons", **TREES[0]).specification(data).multiverse)
    assert [one.words() for one in more] == ["persons inside and outside aiannh by state"]
    aian = data.scan("household", ["block", "aiannh"]).unique().collect()
    truth = data.scan("person", ["state", "block"]).collect()

    def parts(frame: pl.DataFrame) -> dict[tuple[object, ...], int]:
        inside = frame.join(aian, on="block").select("state", inside=pl.col("aiannh") != "9999")
        return dict(sorted(inside.group_by("state", "inside").len().rows_by_key(["state", "inside"]).items()))

    release = mechanism.release(data, key=KEY)
    made = pl.DataFrame(release.microdata["person"])
    assert parts(made.with_columns(pl.col("state", "block").cast(pl.String))) == parts(truth)
    assert all(check.kept for check in release.checks)
    assert_same(mechanism.release(data, key=KEY, engine=Narrow(workers=1)), release)
    with pytest.raises(InputError, match="no area is split"):
        TopDown(part_bounds=True)


def test_bounds_from_a_total_are_those_of_production():
    from stirred.mechanisms.topdown.rules import HeldQuery, tighten_bounds

    workload = Workload.preset("pl94-persons")
    query = workload.query("hhgq")
    low = np.array([[0, 2, 0, 0, 0, 1, 0, 0], [0, 0, 0, 0, 0, 0, 0, 0], [0, 0, 0, 3, 0, 0, 0, 0]])
    high = np.array([[90, 200, 0, 0, 0, 100, 0, 0], [90, 0, 0, 0, 0, 0, 0, 0], [0, 0, 0, 300, 0, 0, 0, 0]])
    made = tighten_bounds(HeldQuery("facilities", query, (low,), (high,)), np.array([50, 7, 40]), 0)
    assert made.high[0].tolist() == [[47, 49, 0, 0, 0, 48, 0, 0], [7, *[0] * 7], [0, 0, 0, 40, 0, 0, 0, 0]]
    assert made.low[0].tolist() == [low[0].tolist(), [7, *[0] * 7], [0, 0, 0, 40, 0, 0, 0, 0]]


# ---- areas of interest ------------------------------------------------------------------------------------------------


def test_areas_of_interest_shape_the_tree_and_their_error_is_predicted():
    data = census(4)
    both = TopDown(workload="small", areas_of_interest=["place", "aiannh"])
    assert both.spine == SpineOptions(aian="aiannh", block_groups=("place", "aiannh"))
    assert TopDown(workload="small", areas_of_interest=["place"], aian="none").spine == SpineOptions(
        block_groups=("place",)
    )
    notes = [note for note in both.specification(data).notes if "areas of interest" in note]
    assert [note.split(", ")[1].split(":")[0] for note in notes] == ["place", "aiannh"]
    assert all("predicted absolute error of a total" in note for note in notes)
    with pytest.raises(InputError, match="parish is not a geography beside the spine"):
        TopDown(workload="small", areas_of_interest=["parish"]).specification(data)


def test_a_prediction_reads_the_geography_and_the_shares_alone():
    """Other persons in the same blocks: the same prediction. More of the budget: a smaller error, by its root."""
    data, small = census(4), Workload.preset("small")
    people = pl.DataFrame(data.table("person")).head(7)
    other = Census.of(data.schema, {"household": data.table("household"), "person": people})
    first, second = (predict_areas(one, small, None, ["place", "aiannh"]) for one in (data, other))
    assert first == second
    more = predict_areas(data, small.with_rho_squared(4 * small.rho_squared), None, ["place", "aiannh"])
    for one, better in zip(first, more, strict=True):
        assert better.error == pytest.approx(one.error / 2)
        assert one.error <= one.largest_error
    finer = predict_areas(data, small, SpineOptions(block_groups=("place",)), ["place"])
    assert finer[0].units < first[0].units
    assert finer[0].areas == first[0].areas  # the tree made anew has the same places
    homes = pl.DataFrame(data.table("household")).with_columns(
        place=pl.when(pl.col("place") == "").then(pl.lit("99999")).otherwise(pl.col("place"))
    )
    marked = Census.of(
        data.schema, {"household": homes, "person": people}
    )  # as the Bureau's files mark the remainder
    assert predict_areas(marked, small, None, ["place"]) == first[:1]


def test_the_smallest_number_of_areas_against_all_sums_of_them():
    """Every sum of geounits with coefficients -1, 0 and 1, for random areas of small trees."""
    rng = np.random.default_rng(2)
    for _ in range(12):
        sizes = rng.integers(1, 4, 2)
        tract = np.repeat(["a", "b"], sizes)
        frame = pl.DataFrame({"county": "c", "tract": tract, "block": [str(i) for i in range(len(tract))]})
        chosen = rng.random(len(tract)) < 0.6
        if not chosen.any():
            continue
        units = [np.ones(len(tract)), tract == "a", tract == "b", *np.eye(len(tract))]
        matrix = np.array(units, float)
        signs = np.array(list(product((-1, 0, 1), repeat=len(matrix))))
        fits = (signs @ matrix == chosen).all(axis=1)
        want = np.abs(signs[fits]).sum(axis=1).min()
        inside = frame.filter(pl.Series(chosen)).with_columns(area=pl.lit("x"))
        levels = ["county", "tract", "block"]
        assert build_areas(inside, frame, levels, dict.fromkeys(levels, 1.0)).to_list() == [want]


def test_plan_check_states_the_predicted_error_of_areas_of_interest(tmp_path, capsys):
    write_preset("demo", tmp_path / "census", households=100)
    plan = tmp_path / "plan.toml"
    step = '[[mechanism]]\nname = "topdown"\nworkload = "small"\nareas_of_interest = ["place"]\n'
    plan.write_text(f'title = "Places"\ncensus = "census/census.toml"\n{step}', encoding="utf-8")
    assert main(["plan", "check", str(plan)]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "areas of interest, place:" in told
    assert "predicted absolute error of a total" in told
