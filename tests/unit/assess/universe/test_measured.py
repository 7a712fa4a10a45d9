"""The universe of a census: sizes against enumeration, implied cells against the ranges of spec/nearest."""

from itertools import product
from math import log2

import numpy as np
import polars as pl
import pytest

from oracles.cells import find_cell_range
from stirred.assess.universe import (
    CountTables,
    cell_bounds,
    check_candidates,
    measure_universe,
    trade,
    variations,
)
from stirred.assess.universe.bounds import find_separators
from stirred.census import Census
from stirred.mechanisms.swap import PermutationSwapping
from stirred.spec import AtLeast, Domain, Margin, Multiverse, RecordType, Variable
from stirred.spec.verdict import DataSet

LABELLED = "ways to assign all values (labelled)"
UNLABELLED = "tables that agree with the invariants (unlabelled)"
PLACES = "ways to place records whose other values are known"


def toy(rows: list[tuple[str, str, str]]) -> Census:
    names = ("size", "tenure", "block")
    columns = {name: [row[place] for row in rows] for place, name in enumerate(names)}
    schema = {
        "geography": {"spine": ["block"]},
        "record": {"household": {"variables": {"size": ["1", "2"], "tenure": ["o", "r"]}}},
    }
    return Census.of(schema, {"household": columns})


SIX = toy(
    [("1", "o", "a"), ("1", "r", "a"), ("1", "r", "b"), ("2", "o", "b"), ("2", "o", "a"), ("2", "o", "b")]
)
SWAP = Multiverse.of(Margin("household", ("size", "tenure")), Margin("household", ("size", "block")))


def enumerated(census: Census, multiverse: Multiverse) -> tuple[int, int]:
    """Labelled and unlabelled data sets with the same exact tables, by trying every assignment."""
    n = census.count("household")
    values = list(product("12", "or", "ab"))

    def tables(rows: tuple[tuple[str, str, str], ...]) -> tuple[object, ...]:
        names = {"size": 0, "tenure": 1, "block": 2}
        return tuple(
            tuple(sorted(tuple(row[names[v]] for v in m.by) for row in rows))
            for m in multiverse
            if isinstance(m, Margin)
        )

    truth = tables(
        tuple(
            census.table("household")
            .select(["size", "tenure", "block"])
            .to_pandas()
            .itertuples(index=False, name=None)
        )
    )
    labelled, unlabelled = 0, set()
    for rows in product(values, repeat=n):
        if tables(rows) == truth:
            labelled += 1
            unlabelled.add(tuple(sorted(rows)))
    return labelled, len(unlabelled)


@pytest.mark.parametrize(
    "multiverse",
    [
        SWAP,
        Multiverse.of(Margin("household", ("block",))),
        Multiverse.of(
            Margin("household", ("size",)), Margin("household", ("tenure",)), Margin("household", ("block",))
        ),
    ],
    ids=["swap", "one table", "three tables"],
)
def test_sizes_are_those_of_enumeration(multiverse: Multiverse) -> None:
    census = toy([("1", "o", "a"), ("1", "r", "a"), ("1", "r", "b"), ("2", "o", "b")])
    labelled, unlabelled = enumerated(census, multiverse)
    found = measure_universe(multiverse, census, variables={"household": ["size", "tenure", "block"]})
    assert found.measure(LABELLED).value == pytest.approx(log2(labelled) / 4)
    assert found.measure(LABELLED).baselines[0].value == 3
    assert found.measure(UNLABELLED).value == pytest.approx(log2(unlabelled) / 4)
    assert all(m.public and m.kind == "absolute" for m in found.measures)


def test_singletons_and_implied_records() -> None:
    found = measure_universe(SWAP, SIX)  # the stratum of size 2 has one tenure: nothing is exchanged there
    strata = found.tables["household-strata"]
    assert strata.filter("single")["size"].to_list() == ["2"]
    assert found.measure("strata with one data set").value == 0.5
    assert found.measure("records in strata with one data set").value == 0.5
    assert found.measure("records in cells whose count is implied").value == 0.5
    assert found.measure(PLACES).value == pytest.approx(log2(9) / 6)  # 3 ways in each stratum


def test_a_swap_states_its_universe() -> None:
    psa = PermutationSwapping(match=["size"], swap=["block"], rate="1/4")
    found = measure_universe(psa.specification(SIX), SIX)
    assert found.measure(LABELLED) == measure_universe(SWAP, SIX).measure(LABELLED)


def test_a_record_consists_of_all_its_variables_where_one_table_is_exact() -> None:
    found = measure_universe(Multiverse.of(Margin("household", ("block",), {"size": ["1"]})), SIX)
    assert found.measure(LABELLED).baselines[0].value == 2
    assert found.measure(UNLABELLED).value == pytest.approx(
        log2(3 * 2) / 3
    )  # 2 in a, 1 in b, two tenures each
    assert found.measure("records in cells whose count is implied").value == 0


def test_places_below_an_exact_area_are_counted_by_the_smallest() -> None:
    schema = {"geography": {"spine": ["state", "tract", "block"]}, "record": {"household": {}}}
    places = {"state": ["s"] * 4, "tract": ["t", "t", "u", "u"], "block": ["1", "2", "3", "4"]}
    census = Census.of(schema, {"household": places})
    found = measure_universe(Multiverse.of(Margin("household", ("state",))), census)
    assert found.measure(LABELLED).value == pytest.approx(2)  # any of four blocks
    finer = measure_universe(Multiverse.of(Margin("household", ("tract",))), census).measure(LABELLED)
    assert finer.value == pytest.approx(log2(6) / 4 + 1)  # two in each tract, then any of two blocks


def test_members_tell_households_apart() -> None:
    schema = {
        "geography": {"spine": ["block"]},
        "record": {
            "household": {"id": "hid", "variables": {"size": ["1", "2"]}},
            "person": {"household": "hid", "of": "household", "variables": {"age": "0..99"}},
        },
    }
    homes = {"hid": [1, 2, 3], "block": ["a", "b", "b"], "size": ["1", "1", "1"]}
    census = Census.of(schema, {"household": homes, "person": {"hid": [1, 2, 3], "age": [30, 30, 40]}})
    psa = PermutationSwapping(match=["size"], swap=["block"], rate="1/4")
    strata = measure_universe(psa.specification(census), census).tables["household-strata"]
    assert strata["held_types"].to_list() == [2]
    assert np.exp(strata["log_tables"].to_list()) == pytest.approx([2])  # the person of 40 years in a or in b


def test_bounds_are_the_ranges_of_the_geometry() -> None:
    counts = np.array([[[2, 0], [1, 1]], [[0, 3], [1, 0]]])
    names = ("x", "y", "z")
    records = [
        ({n: str(v) for n, v in zip(names, place, strict=True)}, int(counts[place]))
        for place in np.ndindex(*counts.shape)
    ]
    variables = tuple(Variable(name=name, levels=("0", "1")) for name in names)
    domain = Domain(name="toy", record_types=(RecordType(name="unit", variables=variables),))
    data = DataSet.of("unit", records)
    for margins in ([[0], [1, 2]], [[0, 1], [1, 2]], [[0, 1], [1, 2], [0, 2]]):
        tables = Multiverse.of(*(Margin("unit", [names[axis] for axis in axes]) for axes in margins))
        found = cell_bounds(counts, margins)
        for place in np.ndindex(*counts.shape):
            cell = {n: str(v) for n, v in zip(names, place, strict=True)}
            known = find_cell_range(domain, tables, data, "unit", cell)
            assert (found.low[place], found.high[place]) == (known.low, known.high)


def test_a_triangle_of_tables_is_not_decomposable() -> None:
    assert find_separators([frozenset("ab"), frozenset("bc"), frozenset("ac")]) is None
    triangle = Multiverse.of(
        *(Margin("household", pair) for pair in (("size", "tenure"), ("tenure", "block"), ("size", "block")))
    )
    found = measure_universe(triangle, SIX)
    assert found.measure(LABELLED).value is None
    assert "decomposable" in found.measure(LABELLED).reason


def test_the_trade_varies_one_invariant_at_a_time() -> None:
    chart = trade(variations(SWAP), SIX, record_type="household", variables=["size", "tenure", "block"])
    assert chart["invariants"].to_list()[0] == "as stated"
    sizes = dict(zip(chart["invariants"], chart["bits"], strict=True))
    assert sizes["none"] == pytest.approx(3)
    assert all(value >= sizes["as stated"] - 1e-9 for value in sizes.values())
    assert chart["attack"].null_count() == chart.height


def test_invariants_that_hold_between_two_tables() -> None:
    truth = CountTables.of(
        ("person", pl.DataFrame({"state": ["s"] * 2, "block": ["a", "b"], "count": [3, 2]}))
    )
    other = CountTables.of(
        ("person", pl.DataFrame({"state": ["s"] * 2, "block": ["a", "b"], "count": [5, 0]}))
    )
    by_block = Margin("person", ("block",))
    found = check_candidates([Margin("person", ("state",)), by_block, AtLeast(by_block, 1)], truth, other)
    assert [(k.holds, k.differ, k.total) for k in found] == [(True, 0, 0), (False, 2, 4), (False, 1, None)]
