"""Persons by detailed type of facility, in a product that agrees with an earlier one by kind of quarters."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from stirred.census import Census
from stirred.chance import Key
from stirred.engine import Local
from stirred.errors import InfeasibleError, InputError, PrivacyError
from stirred.mechanisms.topdown import TopDown, Workload, promise
from stirred.mechanisms.topdown.counts import Sparse, sum_answers, sum_upward
from stirred.mechanisms.topdown.dhc_given_pl.facility_types import (
    FacilityTypes,
    find_dividing_rule,
    repair_leaves,
)
from stirred.mechanisms.topdown.rules import Constraints, Record, list_structural_zeros, sum_bounds
from stirred.mechanisms.topdown.run.subtrees import gather as shard_geography
from stirred.mechanisms.topdown.run.task import Settings
from stirred.mechanisms.topdown.tree import Tree
from stirred.spec import Margin, Multiverse
from stirred.spec.files import save
from unit.topdown.runs import Outcome, run
from unit.topdown.shard_engines import Narrow, assert_same

KEY = Key.for_tests(7)
SPINE = ["state", "county", "tract", "block"]
CODES = (0, 101, 102, 301, 501, 701, 801, 802)
KINDS = (0, 1, 1, 3, 5, 7, 7, 7)  # of pl94-persons
WORKLOAD = Workload.parse("""
name = "office"
record = "person"
mode = "classic"
rho_squared = "2"
levels = ["state", "county", "tract", "block"]
given = "pl94-persons"
given_map = { hhgq = "kind", votingage = "votingage", hispanic = "hispanic", cenrace = "cenrace" }
[[axis]]
name = "type"
size = 11
source = { column = "code", values = [[0], [101], [102], [201], [301], [401], [501], [601], [701], [801], [802]] }
recodes = { kind = [0, 1, 1, 2, 3, 4, 5, 6, 7, 7, 7] }
[[axis]]
name = "age"
size = 4
source = { column = "age", cuts = [16, 18, 65] }
recodes = { votingage = [0, 0, 1, 1] }
[[axis]]
name = "hispanic"
size = 2
source = { column = "hispanic", offset = 1 }
[[axis]]
name = "cenrace"
size = 63
source = { column = "race", offset = 1 }
[[query]]
name = "type * age"
of = ["type", "age"]
[[query]]
name = "detailed"
of = ["type", "age", "hispanic", "cenrace"]
[[query]]
name = "types"
of = ["type"]
[level_shares]
state = "1/4"
county = "1/4"
tract = "1/4"
block = "1/4"
[query_shares]
state = { "type * age" = "1/2", "detailed" = "1/2" }
county = { "type * age" = "1/2", "detailed" = "1/2" }
tract = { "type * age" = "1/2", "detailed" = "1/2" }
block = { "type * age" = "1/2", "detailed" = "1/2" }
[[rule]]
name = "residents"
kind = "facilities"
query = "types"
level = "block"
units = "household"
kinds = { column = "code", values = [[0], [101], [102], [201], [301], [401], [501], [601], [701], [801], [802]] }
lower = [0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]
[[rule]]
name = "no minor in 301"
kind = "zero"
cells = { type = [4], age = [0, 1] }
[[rule]]
name = "nobody under 16 or over 64 in 802"
kind = "zero"
cells = { type = [10], age = [0, 3] }
""")


def made(seed: int) -> Census:
    """A random census; most blocks have several types of facilities, and some of these hold one person."""
    rng = np.random.default_rng(seed)
    homes, people, number = [], [], 0
    for block in range(12):
        codes = ["s", f"c{block // 6}", f"t{block // 3}", f"b{block:02}"]
        for code in [0, *rng.choice(CODES[1:], int(rng.integers(0, 6))).tolist()]:
            number += 1
            kind = KINDS[CODES.index(code)]
            homes.append((number, *codes, 3 if code else 1, kind, code))
            for _ in range(int(rng.integers(1, 3 if rng.random() < 0.6 else 9))):
                low, high = {301: (20, 90), 802: (16, 65)}.get(code, (0, 90))
                people.append(
                    (
                        number,
                        int(rng.integers(low, high)),
                        int(rng.integers(1, 3)),
                        int(rng.choice([1, 1, 2])),
                    )
                )
    household = pl.DataFrame(
        homes,
        schema=["household_id", *SPINE, "kind", "gq_type", "code"],
        orient="row",
        infer_schema_length=None,
    )
    person = pl.DataFrame(people, schema=["household_id", "age", "hispanic", "race"], orient="row")
    schema = {
        "geography": {"spine": SPINE},
        "record": {"household": {"id": "household_id"}, "person": {"household": "household_id"}},
    }
    return Census.of(schema, {"household": household, "person": person})


def persons(census: Census) -> pl.DataFrame:
    return census.scan("person", [*SPINE, "gq_type", "code", "age", "hispanic", "race"]).collect()


def earlier(census: Census, folder: Path, *, seed: int | None = None) -> Path:
    """A published file by block and kind: that of the census, or one with other persons that only fits the facilities."""
    frame = persons(census).select(
        *SPINE, "gq_type", (pl.col("age") >= 18).cast(pl.Int64).alias("votingage"),
        "hispanic", "race",
    )  # fmt: skip
    if seed is not None:
        rng = np.random.default_rng(seed)
        grown = pl.concat([frame, frame.sample(frame.height // 2, seed=seed)])
        adult = pl.Series(rng.integers(0, 2, grown.height))
        frame = grown.with_columns(
            pl.when(pl.col("gq_type") == 3).then(1).otherwise(adult).alias("votingage"),
            hispanic=pl.Series(rng.integers(1, 3, grown.height)),
            race=pl.Series(rng.integers(1, 3, grown.height)),
        )
    data = folder / "public" / "data"
    data.mkdir(parents=True)
    frame.write_parquet(data / "person.parquet")
    return folder


def office(census: Census, given: Path, *, noiseless: bool = False, workload: Workload = WORKLOAD) -> Outcome:
    settings = Settings(noiseless=noiseless)
    return run(census, workload, settings, key=KEY, engine=Local(workers=1), given=given)


def by_leaf(outcome: Outcome) -> Counter[tuple[str, int, int, int, int]]:
    """The released persons by block and levels, from the integers alone."""
    above = outcome.estimation.above
    leaves = outcome.estimation.published_levels[-1]
    levels = WORKLOAD.histogram.coordinates(leaves.cells)
    names = above.published.codes[-1].cast(pl.String).to_list()
    found: Counter[tuple[str, int, int, int, int]] = Counter()
    for node, *cell, count in zip(
        leaves.nodes.tolist(), *(x.tolist() for x in levels), leaves.counts.tolist(), strict=True
    ):
        found[names[node], *cell] += count
    return found


def truth_of(census: Census) -> Counter[tuple[str, int, int, int, int]]:
    sizes = WORKLOAD.histogram.axes[0].source.values
    code = {int(value[0]): level for level, value in enumerate(sizes)}
    return Counter(
        (block, code[int(own)], sum(age >= cut for cut in (16, 18, 65)), hispanic - 1, race - 1)
        for *_, block, _, own, age, hispanic, race in persons(census).rows()
    )


def test_without_noise_the_truth_comes_back(tmp_path):
    census = made(1)
    outcome = office(census, earlier(census, tmp_path), noiseless=True)
    assert outcome.estimation.above.types.found.sets  # blocks share sums among several types
    assert by_leaf(outcome) == truth_of(census)
    assert outcome.estimation.repairs == (0, 0)


@pytest.mark.parametrize("seed", [0, pytest.param(2, marks=pytest.mark.slow)])
def test_with_noise_every_block_and_type_is_within_its_bounds(tmp_path, seed):
    """Held against a count of the published file and of the facilities, record by record."""
    census = made(seed)
    given = earlier(census, tmp_path, seed=seed)
    outcome = office(census, given)
    found = by_leaf(outcome)
    kind = WORKLOAD.histogram.axes[0].recodes["kind"]
    mine: Counter[tuple[str, int, int, int, int]] = Counter()
    by_type: Counter[tuple[str, int]] = Counter()
    for (block, own, age, hispanic, race), count in found.items():
        mine[block, kind[own], int(age >= 2), hispanic + 1, race + 1] += count
        by_type[block, own] += count
        assert (own, age) not in {(4, 0), (4, 1), (10, 0), (10, 3)}
    file = pl.read_parquet(given / "public" / "data" / "person.parquet")
    assert mine == Counter(file.select("block", "gq_type", "votingage", "hispanic", "race").rows())
    code = {int(value[0]): level for level, value in enumerate(WORKLOAD.histogram.axes[0].source.values)}
    facilities = Counter(
        (block, code[own]) for block, own in census.scan("household", ["block", "code"]).collect().rows()
    )
    for place in {*by_type, *facilities}:
        least = facilities[place] if place[1] else 0
        assert least <= by_type[place] <= 99_999 * facilities[place]
    assert outcome.estimation.repairs[1] > 0  # otherwise the bounds were tested on nothing
    levels, spine = outcome.levels, outcome.spine
    for d in range(1, len(levels)):
        up = levels[d].up(spine.parent[d], spine.size(d - 1), outcome.constraints.histogram.cells)
        assert np.array_equal(up.cells, levels[d - 1].cells)
        assert np.array_equal(up.counts, levels[d - 1].counts)


@pytest.mark.parametrize(
    ("persons", "repairs", "after"),
    [
        # two siblings of the same types: one exchange, and their parent has the same persons
        ([(0, 8, 2, 3), (1, 9, 2, 3)], (1, 0), {(0, 8): 2, (0, 9): 1, (1, 8): 1, (1, 9): 2}),
        # in other sums nobody can be exchanged: one person of each block changes type
        ([(0, 8, 2, 3), (1, 9, 0, 3)], (0, 2), {(0, 8): 2, (0, 9): 1, (1, 8): 1, (1, 9): 2}),
        # nothing to do
        (
            [(0, 8, 2, 1), (0, 9, 2, 1), (1, 8, 2, 4), (1, 9, 2, 1)],
            (0, 0),
            {(0, 8): 1, (0, 9): 1, (1, 8): 4, (1, 9): 1},
        ),
    ],
)
def test_repair(persons, repairs, after):
    found, counts, _ = mended(persons, types=(8, 9))
    assert counts == repairs
    assert {key: count for key, count in found.items() if count} == after


def test_a_person_who_changes_type_changes_age_only_where_the_type_needs_it():
    """Nobody over 64 may be in 802: someone of 65 becomes younger and stays an adult; the second block has someone of 18."""
    found, counts, ages = mended([(0, 9, 3, 2), (1, 9, 3, 1), (1, 9, 2, 1)], types=(9, 10))
    assert counts == (0, 2)
    assert found == {(0, 9): 1, (0, 10): 1, (1, 9): 1, (1, 10): 1}
    assert ages == {(0, 9): [3], (0, 10): [2], (1, 9): [3], (1, 10): [2]}


def test_a_type_that_nobody_may_change_to_is_an_error():
    with pytest.raises(InfeasibleError, match="cannot meet constraint"):
        mended([(0, 9, 0, 2), (1, 9, 2, 2)], types=(9, 10), closed=True)


def mended(
    persons: list[tuple[int, int, int, int]], types: tuple[int, int], *, closed: bool = False
) -> tuple[dict[tuple[int, int], int], tuple[int, int], dict[tuple[int, int], list[int]]]:
    """Two blocks with one facility of each of two types and these persons (block, type, age, count), repaired."""
    base = WORKLOAD
    if closed:
        shut = replace(WORKLOAD.rules[-1], cells=(("type", (10,)), ("age", (0, 1, 3))))
        base = replace(WORKLOAD, rules=(*WORKLOAD.rules[:-1], shut))
    units = np.zeros((2, 11), np.int64)
    units[:, list(types)] = 1
    own = FacilityTypes(base=base, rule=base.rules[0])
    leaf, kind, age, count = np.array(persons).T
    shape = WORKLOAD.histogram.shape
    cells = np.ravel_multi_index((kind, age, 0 * age, 0 * age), shape)
    before = (leaf, own.earlier.of(cells), count)
    own = own.with_patterns(own.patterns(units, *before))
    spine = Tree(
        ("tract", "block"), (pl.Series(["t"]), pl.Series(["a", "b"])), (np.zeros(1, int), np.zeros(2, int))
    )
    low, query = units, own.workload.query("types")
    bounds = replace(sum_bounds("residents", query, low, low * 99, spine, 1), late=True)
    given = own.hold_sums("given", own.exact(units, *before), spine)
    rules = Constraints(
        (given, bounds), list_structural_zeros(own.workload), Record(), own.workload.histogram
    )
    leaves = own.extend_leaves(Sparse.of(leaf, cells, count, 2, WORKLOAD.histogram.cells), units)
    levels, counts = repair_leaves(own, rules, spine, sum_upward(spine, leaves, own.workload.histogram.cells))
    assert np.array_equal(sum_answers(levels[-1], given.query), given.low[-1])
    assert np.array_equal(levels[0].cells, levels[1].up(spine.parent[1], 1, rules.histogram.cells).cells)
    out = own.shorten_leaves(levels[-1])
    place = WORKLOAD.histogram.coordinates(out.cells)
    found: dict[tuple[int, int], int] = {}
    ages: dict[tuple[int, int], list[int]] = {}
    for node, own_type, own_age, number in zip(out.nodes, place[0], place[1], out.counts, strict=True):
        key = (int(node), int(own_type))
        found[key] = found.get(key, 0) + int(number)
        ages.setdefault(key, []).append(int(own_age))
    return found, counts, ages


def test_what_is_measured_does_not_change(tmp_path):
    """The same queries of the same size have the same exact answers: noise and accounting are those of the workload."""
    census = made(2)
    above = office(census, earlier(census, tmp_path, seed=2)).estimation.above
    plain = replace(WORKLOAD, rules=tuple(rule for rule in WORKLOAD.rules if rule.kind == "zero"))
    base = office(census, tmp_path, workload=plain).estimation.above
    for mine, theirs in zip(above.allotment.workload.queries, WORKLOAD.queries, strict=True):
        assert mine.size == theirs.size
        for own, other in zip(above.truth, base.truth, strict=True):
            assert np.array_equal(sum_answers(own, mine), sum_answers(other, theirs))


def test_both_ways_release_the_same_bytes(tmp_path, monkeypatch):
    census = made(2)
    given = earlier(census, tmp_path, seed=2)
    save(TopDown(workload="pl94-persons").specification(census), given / "public" / "spec.json")
    mechanism = TopDown(workload=WORKLOAD, given=given, replicates=2)
    monkeypatch.setattr(shard_geography, "choose_cut_level", lambda sizes: min(1, len(sizes) - 1))
    whole = mechanism.release(census, key=KEY)
    assert_same(mechanism.release(census, key=KEY, engine=Narrow(rows=50)), whole)
    assert whole.tables["office-repairs"]["moved"][0].as_py() > 0
    assert Margin("household", ("block", "code")) in set(whole.specification.multiverse)


def test_a_run_that_does_not_state_the_facilities_stops(tmp_path, monkeypatch):
    """The mutant: facilities by type are read and the specification does not say so."""
    census = made(1)
    given = earlier(census, tmp_path)
    save(TopDown(workload="pl94-persons").specification(census), given / "public" / "spec.json")
    stated = promise.declare_multiverse
    monkeypatch.setattr(
        promise,
        "declare_multiverse",
        lambda *args: Multiverse(frozenset(i for i in stated(*args) if "code" not in str(i))),
    )
    with pytest.raises(PrivacyError, match="does not list"):
        TopDown(workload=WORKLOAD, given=given, replicates=0).release(census, key=KEY)


def test_a_person_of_a_type_that_has_no_facility_is_refused_by_count(tmp_path):
    census = with_own_types(made(1))
    frame = pl.DataFrame(census.table("person"))
    homes = pl.DataFrame(census.table("household"))
    only = homes.filter(pl.col("code").is_in([101, 102])).group_by("block").agg(pl.col("code").unique())
    only = only.filter(pl.col("code").list.len() == 1).sort("block")
    place = homes.filter(pl.col("code").is_in([101, 102]) & (pl.col("block") == only["block"][0]))
    wrong = pl.when(pl.col("household_id") == place["household_id"][0]).then(203 - place["code"][0])
    census = Census.of(
        census.schema,
        {"household": homes, "person": frame.with_columns(wrong.otherwise(pl.col("code")).alias("code"))},
    )
    with pytest.raises(InfeasibleError, match="'residents' does not hold in the census") as caught:
        office(census, earlier(census, tmp_path))
    # one block is at fault: its persons are of a type without a facility, and a facility has nobody
    told = str(caught.value)
    assert "level block, the lowest at fault, has 1 geounit with fewer records than it asks for" in told
    assert "1 geounit with more records than it allows" in told
    # the area is named, since its code is public, and no other; how many records it has is not told
    assert [code for code in homes["block"].unique() if code in told] == [only["block"][0]]


def with_own_types(census: Census) -> Census:
    """The same census with the type of quarters in the records of persons, too."""
    types = census.scan("household", ["household_id", "code"]).collect()
    people = pl.DataFrame(census.table("person", ["household_id", "age", "hispanic", "race"]))
    people = people.join(types, on="household_id")
    return Census.of(census.schema, {"household": pl.DataFrame(census.table("household")), "person": people})


def test_an_earlier_product_of_another_census_is_refused(tmp_path):
    with pytest.raises(InputError, match="does not fit the facilities") as caught:
        office(made(1), earlier(made(2), tmp_path))
    assert "same census" in str(caught.value)


def test_units_without_types_keep_the_agreement_by_kind(tmp_path):
    """The rule is left out, and the specification says so."""
    full = with_own_types(made(1))
    homes = pl.DataFrame(full.table("household")).drop("code")
    census = Census.of(full.schema, {"household": homes, "person": pl.DataFrame(full.table("person"))})
    given = earlier(full, tmp_path)
    save(TopDown(workload="pl94-persons").specification(census), given / "public" / "spec.json")
    mechanism = TopDown(workload=WORKLOAD, given=given, replicates=0)
    stated = mechanism.specification(census)
    assert any("have no code" in str(note) for note in stated.notes)
    release = mechanism.release(census, key=KEY)
    assert "office-repairs" not in release.tables
    assert all(check.kept for check in release.checks)


def test_which_rule_divides():
    assert find_dividing_rule(WORKLOAD, "classic") is WORKLOAD.rules[0]
    assert find_dividing_rule(WORKLOAD, "gls") is None  # a bound like any other
    assert find_dividing_rule(replace(WORKLOAD, given=""), "classic") is None
    coarse = replace(WORKLOAD.rules[0], query="type * age")
    assert find_dividing_rule(replace(WORKLOAD, rules=(coarse,)), "classic") is None
    assert find_dividing_rule(Workload.preset("dhc-persons"), "classic").query == "hhgq25"
