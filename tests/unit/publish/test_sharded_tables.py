"""Tables counted in parts equal those counted in memory, to the last bit."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from stirred.assess.conclusions import regression
from stirred.census import Census
from stirred.chance import Key
from stirred.engine import Local
from stirred.engine.tables import PART_COLUMN
from stirred.mechanisms.release import UNIT, Release, ReleasedRecords, count_in_parts
from stirred.mechanisms.swap import PermutationSwapping
from stirred.mechanisms.swap.estimates import Moments, count_stratum_sizes, finish_cells
from stirred.publish.documents import assess_questions
from stirred.publish.plan import TablePlan, parse

SCHEMA: dict[str, Any] = {
    "geography": {"spine": ["state", "county", "tract"]},
    "record": {
        "household": {
            "id": "hid",
            "kind": {"column": "kind", "occupied": ["1"], "vacant": ["2"], "group_quarters": ["3"]},
        },
        "person": {"household": "hid", "of": "household"},
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Narrow(Local):
    """An engine on which nothing fits."""

    parts: int = 5

    def fits(self, size: int) -> bool:
        return False

    def parts_for(self, size: int) -> int:
        return self.parts


def census(n: int = 900) -> Census:
    number, rng = range(n), np.random.default_rng(6)  # answers that tell nothing of the place
    home = pl.DataFrame(
        {
            "hid": [5 * i + 1 for i in number],
            "state": [str(i % 2) for i in number],
            "county": [f"{i % 2}{i % 6}" for i in number],
            "tract": [f"{i % 2}{i % 6}{i % 12:02d}" for i in number],
            "kind": [3 if i % 31 == 0 else 2 if i % 17 == 0 else 1 for i in number],
            "size": [int(size) if i % 17 else 0 for i, size in enumerate(rng.integers(0, 4, n))],
            "tenure": [None if i % 13 == 0 else "own" if (i * i) % 5 < 3 else "rent" for i in number],
            "age": rng.integers(20, 80, n),
        }
    )
    person = home.select("hid", n=pl.int_ranges(0, "size")).explode("n").drop_nulls()
    index = pl.int_range(pl.len())
    ages = pl.Series(rng.integers(0, 90, person.height))
    person = person.select("hid", age=ages, sex=pl.when(index % 2 == 0).then(1).otherwise(2))
    return Census.of(SCHEMA, {"household": home, "person": person})


def swapped(match: list[str]) -> tuple[PermutationSwapping, Release]:
    mechanism = PermutationSwapping(match=match, swap=["county", "tract"], rate="1/3")
    return mechanism, mechanism.release(census(), key=Key.for_tests(3))


TABLES = [
    TablePlan(name="kept", record_type="household", by=("county", "size")),
    TablePlan(name="moved", record_type="household", by=("tract", "tenure")),
    TablePlan(name="held", record_type="household", by=("tenure", "kind")),
    TablePlan(name="persons", record_type="person", by=("county", "age")),
    TablePlan(name="both", record_type="person", by=("tract", "sex", "tenure")),
    TablePlan(name="own", record_type="person", by=("sex",)),
]


@pytest.mark.parametrize("match", [["state", "size"], []], ids=["strata", "one stratum"])
@pytest.mark.parametrize("table", TABLES, ids=lambda t: t.name)
@pytest.mark.parametrize("parts", [1, 5])
def test_in_parts_as_in_memory(table: TablePlan, match: list[str], parts: int) -> None:
    mechanism, release = swapped(match)
    whole = table.tabulate(release, mechanism)
    made = table.tabulate(release, mechanism, engine=Narrow(parts=parts))
    assert made.to_pylist() == whole.to_pylist()
    assert made.schema.names == whole.schema.names
    assert not [field for field in whole.schema if pa.types.is_dictionary(field.type)]


def test_counts_of_records_whose_uncertainty_is_unknown() -> None:
    _, release = swapped(["state"])
    schema = census().schema
    records = ReleasedRecords(
        engine=Narrow(), release=release, schema=schema, record_type="person", folder=None
    )
    people, homes = (pl.DataFrame(pl.from_arrow(release.microdata[name])) for name in ("person", "household"))
    joined = people.join(homes.drop("age"), on="hid").with_columns(pl.col("tenure").cast(pl.String))
    expected = joined.group_by("tenure", "age").len().sort("tenure", "age", nulls_last=False)
    assert count_in_parts(records, ["tenure", "age"]).rows() == expected.rows()


def test_a_stratum_cut_in_two_is_seen() -> None:
    """The mutant: records of one stratum in several parts have other moments."""
    mechanism, release = swapped([])
    schema = census().schema
    records = ReleasedRecords(
        engine=Narrow(), release=release, schema=schema, record_type="household", folder=None
    )
    flow = records.choose_columns("household", ["county", "tract", "tenure"], (UNIT,), 5)
    kernel = Moments(("tract", "tenure"), (), ("county", "tract"), mechanism.rate)
    cut = [
        kernel(0, table)
        for table in (flow.gather().filter(pa.compute.equal(flow.gather()[PART_COLUMN], p)) for p in range(5))
    ]
    wrong = finish_cells([pl.DataFrame(pl.from_arrow(t)) for t in cut], ["tract", "tenure"])
    right = TABLES[1].tabulate(release, mechanism)
    assert wrong["standard_error"].to_list() != right["standard_error"].to_pylist()


@pytest.mark.parametrize("match", [("state", "size"), ()], ids=["strata", "one stratum"])
def test_sizes_of_strata(match: tuple[str, ...]) -> None:
    mechanism, release = swapped(list(match))
    homes = pl.DataFrame(pl.from_arrow(release.microdata["household"])).filter(pl.col("kind") == 1)
    sizes = Counter(Counter(homes.select(match).rows()).values()) if match else {homes.height: 1}
    for engine in (Local(), Narrow()):
        assert dict(count_stratum_sizes(mechanism, release, engine).rows()) == dict(sizes)


PLAN = """title = "t"
census = "census.toml"
[[mechanism]]
name = "permutation-swapping"
match = ["state", "size"]
swap = ["county", "tract"]
rate = "1/3"
[[table]]
name = "tenure"
record_type = "household"
by = ["tract", "tenure"]
[assess]
relations = [["county", "tenure"], ["size", "tenure"]]
segregation = [["tract", "tenure"]]
districts = ["county"]
propensity = ["county", "tenure"]
improbable = "tract"
[[assess.regression]]
outcome = "age"
on = ["size", "county"]
"""


def test_questions_answered_in_parts() -> None:
    data = census()
    plan = parse(PLAN, folder=Path())
    mechanism = plan.mechanisms[0]
    release = mechanism.release(data, key=Key.for_tests(3))
    tables = {t.name: t.tabulate(release, mechanism) for t in plan.tables}
    whole = assess_questions(plan, data, [release], tables)
    made = assess_questions(plan, data, [release], tables, Narrow())
    assert made.relations == whole.relations
    assert made.conclusions == whole.conclusions
    assert whole.conclusions.coefficients
    assert whole.conclusions.changes


def test_cells_with_counts_say_what_records_say() -> None:
    records = pl.DataFrame(pl.from_arrow(census().table("household", ["age", "size", "county"])))
    cells = records.group_by("age", "size", "county").agg(count=pl.len())
    one, other = (regression(frame, "age", ["size", "county"]) for frame in (records, cells))
    assert [item.name for item in one] == [item.name for item in other]
    for a, b in zip(one, other, strict=True):
        assert a.value == pytest.approx(b.value, rel=1e-9)
        assert a.error == pytest.approx(b.error, rel=1e-9)
