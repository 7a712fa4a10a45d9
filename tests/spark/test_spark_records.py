"""Records and counts on Spark are those of one machine: values, types, order, empty fields, errors."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest

from flow_kernels import slow
from stirred.census import Census, read
from stirred.engine import Local, Spark
from stirred.errors import DataError, InputError, StirredError

pytestmark = pytest.mark.spark("local")

HOMES, PEOPLE = 400, 1500
SCHEMA = """name = "town"
[geography]
spine = ["county", "tract", "block"]
[geography.areas]
files = ["areas.csv"]
[geography.off_spine.district]
of = "tract"
files = ["districts.csv"]
key = "tract"
[record.household]
files = ["HOUSEHOLD"]
id = "home"
size = "size"
weight = "weight"
[record.household.variables]
size = {type = "integer", range = "1..9"}
tenure = {levels = ["own", "rent", "x"], missing = {policy = "level", empty_as = "x"}}
income = {column = "INC", type = "integer", missing = {policy = "keep", codes = [-9]}}
race = {levels = ["1", "2", "3"]}
[record.person]
files = ["person.parquet"]
household = "home"
of = "household"
[record.person.variables]
age = {type = "integer", range = "0..115"}
sex = {levels = ["f", "m"]}
"""


def tables() -> dict[str, pa.Table]:
    """Two record types in the types that Spark stumbles over: unsigned, dictionaries, floats for integers, empty text."""
    rng = np.random.default_rng(11)
    home = np.arange(HOMES) * 7 + 3
    household = pa.table(
        {
            "home": pa.array(home),
            "block": rng.choice(["a1x", "a1y", "a2x", "b1x"], HOMES),
            "size": pa.array(rng.integers(1, 10, HOMES), pa.uint8()),
            "tenure": pa.array(rng.choice(["own", "rent", ""], HOMES)).dictionary_encode(),
            "INC": pa.array(
                np.where(rng.random(HOMES) < 0.2, -9, rng.integers(0, 10**6, HOMES)).astype(float)
            ),
            "race": pa.array(rng.integers(1, 4, HOMES), pa.int8()),
            "weight": pa.array(rng.integers(1, 50, HOMES), pa.uint64()),
            "unused": pa.array(rng.random(HOMES)),
        }
    )
    link = np.where(rng.random(PEOPLE) < 0.02, 10**9, rng.choice(home, PEOPLE)).astype(object)
    link[::100] = None
    person = pa.table(
        {
            "home": pa.array(link.tolist(), pa.int64()),
            "age": pa.array(rng.integers(0, 116, PEOPLE), pa.int16()),
            "sex": rng.choice(["f", "m"], PEOPLE),
        }
    )
    return {"household": household, "person": person}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Parquet files, one of them partitioned, and files of areas."""
    path = tmp_path_factory.mktemp("town with space")
    found = tables()
    pq.write_table(found["household"], path / "household.parquet", row_group_size=150)
    pq.write_table(found["person"], path / "person.parquet", row_group_size=400)
    pads.write_dataset(
        found["household"],
        path / "partitioned",
        format="parquet",
        partitioning=pads.partitioning(pa.schema([("race", pa.int8())]), flavor="hive"),
    )
    (path / "areas.csv").write_text("code,parent\na,\nb,\na1,a\na2,a\nb1,b\na1x,a1\na1y,a1\na2x,a2\nb1x,b1\n")
    (path / "districts.csv").write_text("tract,district\na1,D1\na2,D2\n")
    home, person = f"file:{path}/household.parquet", f"file:{path}/person.parquet"
    (path / "addresses.toml").write_text(SCHEMA.replace("HOUSEHOLD", home).replace("person.parquet", person))
    (path / "census.toml").write_text(SCHEMA.replace("HOUSEHOLD", "household.parquet"))
    (path / "partitioned.toml").write_text(SCHEMA.replace("HOUSEHOLD", "partitioned"))
    return path


@pytest.fixture(params=["parquet", "partitioned", "memory"])
def census(request: pytest.FixtureRequest, folder: Path) -> Census:
    """The same town as files and as tables in memory."""
    if request.param == "partitioned":
        return read(folder / "partitioned.toml")
    files = read(folder / "census.toml")
    if request.param == "parquet":
        return files
    memory = Census.of(files.schema, tables())
    return Census(schema=memory.schema, files=memory.files, folder=folder)


def in_order(table: pa.Table) -> pa.Table:
    return table.sort_by([(name, "ascending") for name in table.column_names]).combine_chunks()


@pytest.mark.parametrize(
    ("record_type", "columns"),
    [
        ("household", ["home", "size", "tenure", "income", "race", "weight"]),
        ("household", ["district", "county", "size"]),
        ("person", ["sex", "age"]),
        ("person", ["age", "income", "tenure", "weight", "county", "district", "home"]),
    ],
)
def test_records_are_those_of_one_machine(
    spark: Spark, census: Census, record_type: str, columns: list[str]
) -> None:
    here = Local().records(census, record_type, columns)
    there = spark.records(census, record_type, columns)
    assert there.schema == here.schema
    assert in_order(there.gather()) == in_order(here.gather())


COUNTS: list[tuple[str, list[str], Mapping[str, Sequence[str]] | None]] = [
    ("household", [], None),
    ("household", ["tenure", "size"], None),
    ("household", ["income"], {"tenure": ["own"]}),
    ("household", ["district", "race"], None),
    ("person", ["county", "sex"], None),
    ("person", ["tract"], {"size": ["1", "2"], "sex": ["f"]}),
    ("person", [], {"age": ["200"]}),
    ("person", ["age"], {"sex": ["nobody"]}),
]


def test_counts_are_those_of_one_machine(spark: Spark, census: Census) -> None:
    counted = spark.census(census)
    # what is counted is read as records are, whichever source they have: all questions are asked of one
    plain = not census.files and census.schema.record("household").source.files[0] == "household.parquet"
    asked = COUNTS if plain else COUNTS[3:6]
    for record_type, by, where in asked:
        here, there = census.counts(record_type, by, where), counted.counts(record_type, by, where)
        assert there.schema == here.schema, by
        assert there == here, by
    assert counted.count("person") == PEOPLE
    assert counted.count("household") == HOMES
    assert counted.sum_weights("household", ["size"]) == census.sum_weights("household", ["size"])
    assert spark.gathered_rows <= sum(c.num_rows for c in [census.counts(*one) for one in asked]) + 200


def test_a_scan_of_a_census_on_spark_is_the_same(spark: Spark, census: Census) -> None:
    counted = spark.census(census)
    columns = ["age", "tenure", "county"]
    assert counted.table("person", columns) == census.table("person", columns)
    assert counted.domain == census.domain


def test_files_may_be_addresses(spark: Spark, folder: Path) -> None:
    here, there = read(folder / "census.toml"), spark.read(folder / "addresses.toml")
    assert there.counts("person", ["county", "sex"]) == here.counts("person", ["county", "sex"])
    columns = ["age", "weight", "race", "district"]
    found = in_order(spark.records(there, "person", columns).gather())
    assert found == in_order(Local().records(here, "person", columns).gather())
    # what scans records streams them through this process, and that is counted
    before = spark.gathered_rows
    assert (
        there.scan("person", ["age"])
        .collect()
        .sort("age")
        .equals(here.scan("person", ["age"]).collect().sort("age"))
    )
    assert spark.gathered_rows - before == PEOPLE
    text = (folder / "addresses.toml").read_text().replace("person.parquet", "nobody.parquet")
    (folder / "wrong.toml").write_text(text)
    with pytest.raises(StirredError, match=r"stopped the job"):
        spark.read(folder / "wrong.toml")


def test_a_flat_person_file_is_split_here_and_never_read_whole_on_spark(spark: Spark, tmp_path: Path) -> None:
    flat = {"hid": [1, 1, 2, 3], "county": ["a", "a", "b", "a"], "sex": ["f", "m", "f", "m"]}
    pq.write_table(pa.table(flat), tmp_path / "p.parquet")
    text = """
    geography.spine = ["county"]
    record.household = {files = ["FILE"], household_from = "hid", size = "size"}
    record.person = {files = ["FILE"], household = "hid"}
    """
    (tmp_path / "census.toml").write_text(text.replace("FILE", "p.parquet"))
    here = read(tmp_path)
    there = spark.census(here)
    assert there.count("household") == 3
    assert there.counts("person", ["county", "size", "sex"]) == here.counts(
        "person", ["county", "size", "sex"]
    )
    assert "county" not in there.columns("person")
    (tmp_path / "census.toml").write_text(text.replace("FILE", f"file:{tmp_path}/p.parquet"))
    with pytest.raises(StirredError, match="cannot be split on Spark"):
        spark.read(tmp_path / "census.toml")


def test_keys_of_several_columns_link_on_spark_as_here(spark: Spark, tmp_path: Path) -> None:
    homes = {
        "dwelling": ["a", "a", "b|", "b"],
        "number": [1.0, 2.0, 1.0, 1.0],
        "county": ["x", "y", "x", "y"],
    }
    people = {
        "dwelling": ["a", "a", "b", "b|", "a"],
        "number": [1, 2, 1, 1, 2],
        "sex": ["f", "m", "f", "m", "m"],
    }
    pq.write_table(pa.table(homes), tmp_path / "h.parquet")
    pq.write_table(pa.table(people), tmp_path / "p.parquet")
    (tmp_path / "census.toml").write_text("""
    geography.spine = ["county"]
    record.household = {files = ["h.parquet"], id = ["dwelling", "number"]}
    record.person = {files = ["p.parquet"], household = ["dwelling", "number"]}
    """)
    here = read(tmp_path)
    there = spark.census(here)
    assert here.counts("person", ["county", "sex"]).to_pydict() == {
        "county": ["x", "x", "y", "y"], "sex": ["f", "m", "f", "m"], "count": [1, 1, 1, 2],
    }  # fmt: skip
    assert there.counts("person", ["county", "sex"]) == here.counts("person", ["county", "sex"])
    assert there.columns("person") == here.columns("person") == ("sex", "dwelling+number")


def of(**columns: Any) -> Census:
    """Two record types; columns are the household's."""
    schema = {
        "geography": {"spine": ["county"]},
        "record": {"household": {"id": "home"}, "person": {"household": "home", "of": "household"}},
    }
    return Census.of(schema, {"household": columns, "person": {"home": [1, 2, 2], "sex": ["f", "m", "m"]}})


def test_an_identifier_used_twice_stops_the_join_unshown(spark: Spark) -> None:
    twice = of(home=[1, 977_531, 977_531, 977_531], county=["a", "b", "b", "b"])
    with pytest.raises(DataError, match=r"household\.home: at least 2 identifiers were used before") as told:
        spark.records(twice, "person", ["sex", "county"]).gather()
    assert "977" not in str(told.value)
    with pytest.raises(DataError, match=r"household\.home: 2 identifiers were used before"):
        spark.census(twice).table("person", ["sex", "county"])
    once = of(home=[1, 2, None, None], county=["a", "b", "b", "b"])
    assert spark.records(once, "person", ["county"]).gather().num_rows == 3


def test_identifiers_of_two_types_meet_as_text(spark: Spark) -> None:
    town = of(home=["1", "2"], county=["a", "b"])
    found = spark.records(town, "person", ["sex", "county"]).gather()
    assert in_order(found) == in_order(Local().records(town, "person", ["sex", "county"]).gather())


def test_a_column_that_is_nowhere_is_told(spark: Spark, census: Census) -> None:
    with pytest.raises(InputError, match="person records have no column ages") as told:
        spark.records(census, "person", ["ages"])
    assert "did you mean age" in told.value.fix


def test_a_value_that_does_not_fit_is_told_unshown(spark: Spark, folder: Path, tmp_path: Path) -> None:
    bad = tables()["household"].set_column(2, "size", pa.array(["977531x"] * HOMES))
    pq.write_table(bad, tmp_path / "household.parquet")
    pq.write_table(tables()["person"], tmp_path / "person.parquet")
    (tmp_path / "census.toml").write_text((folder / "census.toml").read_text())
    with pytest.raises(StirredError, match="column size: 400 values of a batch are not a number") as told:
        spark.records(read(tmp_path), "household", ["size"]).gather()
    assert "977531" not in str(told.value)


def test_files_that_differ_are_refused(spark: Spark, folder: Path, tmp_path: Path) -> None:
    home = tables()["household"]
    (tmp_path / "some").mkdir()
    pq.write_table(home, tmp_path / "some" / "a.parquet")
    pq.write_table(home.drop_columns(["tenure"]), tmp_path / "some" / "b.parquet")
    pq.write_table(tables()["person"], tmp_path / "person.parquet")
    (tmp_path / "census.toml").write_text(SCHEMA.replace("HOUSEHOLD", "some"))
    with pytest.raises(DataError, match="the files differ in their columns or types"):
        spark.records(read(tmp_path), "household", ["tenure"]).gather()


def test_what_was_laid_in_scratch_is_laid_once_and_removed(spark: Spark, census: Census) -> None:
    before = set(spark.scratch.iterdir())
    spark.records(census, "household", ["size"])
    spark.records(census, "household", ["size"])
    in_memory = bool(census.files)
    assert len(set(spark.scratch.iterdir()) - before) == int(in_memory)
    spark.stop()
    assert not spark.scratch.exists()


def test_copies_in_scratch_are_sealed_and_closed(spark: Spark) -> None:
    names = pa.table({"name": [f"a rather rare surname {i}" for i in range(200)]})
    flow = spark.stream_released(names)
    (path,) = spark.scratch.glob("*.parquet")
    assert path.stat().st_mode & 0o777 == 0o600
    assert b"rare surname" not in path.read_bytes()
    assert flow.gather().sort_by("name") == names.sort_by("name")


def test_jobs_are_named_by_code_and_never_by_a_value(spark: Spark) -> None:
    names = pa.table({"part": pa.array([0, 1] * 50, pa.int64()), "name": ["a rather rare surname"] * 100})
    spark.name_work("permutation-swapping")
    spark.exchange(spark.stream_released(names), by="part", parts=2).keep().drop()
    store = spark.context._jsc.sc().statusStore()
    told = [store.job(job) for job in spark.context.statusTracker().getJobIdsForGroup(None)]
    said = [job.description().get() for job in told if job.description().isDefined()]
    assert "stirred: permutation-swapping: keep" in said
    assert not any("surname" in words for words in said)
    assert spark.context.getLocalProperty("spark.job.description") is None


def test_a_long_job_without_steps_is_told_and_can_be_stopped(
    spark: Spark, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No job of a run is silent for long: gathers have no steps of their own."""
    told: list[tuple[str, int, int]] = []

    def stop(*event: Any) -> None:
        told.append(event)
        raise InterruptedError

    monkeypatch.setattr("stirred.engine.spark.session.TELL_AFTER_SECONDS", 0.0)
    spark.name_work("swap", stop)
    flow = spark.stream_released(pa.table({"part": pa.array([0, 1], pa.int64())}))
    with pytest.raises(InterruptedError):
        spark.exchange(flow, by="part", parts=2).map(slow, flow.schema).gather()
    spark.name_work("")
    assert [(step, whole) for step, _, whole in told] == [("cluster", 100)]  # a busy machine tells it at half
