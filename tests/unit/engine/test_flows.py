"""Flows and parts: one behaviour, two engines."""

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flow_kernels import PART, Numbered, Renumbered, Sorted, doubled, failing, matched, refusing, sizes, slow
from stirred.engine import Engine, Flow, Local, Spark
from stirred.errors import DataError, InputError, StirredError

ROWS = pa.schema(
    [
        ("id", pa.uint64()),
        ("small", pa.uint8()),
        ("t", pa.string()),
        ("when", pa.timestamp("ns")),
        ("tag", pa.binary(2)),
        ("x", pa.float64()),
        ("yes", pa.bool_()),
    ]
)
NUMBERED = ROWS.append(PART)
SORTED = NUMBERED.append(pa.field("seen", pa.uint16()))


def rows(n: int, start: int = 2**63) -> pa.Table:
    """Values that lose something in a narrower type, and empty ones."""
    i = np.arange(n)
    columns = [
        pa.array(i.astype(np.uint64) * np.uint64(3) + np.uint64(start)),
        pa.array((i % 256).astype(np.uint8)),
        pa.array([None if k % 3 == 0 else f"é{k}" for k in i]),
        pa.array([None if k % 5 == 0 else int(k) * 1_000_000_007 for k in i], pa.timestamp("ns")),
        pa.array([bytes([k % 256, 0]) for k in i], pa.binary(2)),
        pa.array(np.where(i % 7 == 0, np.nan, i / 3)),
        pa.array([None if k % 4 == 0 else bool(k % 2) for k in i], pa.bool_()),
    ]
    return pa.Table.from_arrays(columns, schema=ROWS)


@pytest.fixture(params=["local", pytest.param("spark", marks=pytest.mark.spark("local"))])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    """Each engine in turn."""
    if request.param == "spark":
        yield request.getfixturevalue("spark")
    else:
        (tmp_path / "scratch").mkdir()
        yield Local(workers=2, scratch=tmp_path / "scratch")


def numbered(engine: Engine, table: pa.Table, parts: int) -> Flow:
    return engine.stream_released(table).map(Numbered("id", parts), NUMBERED)


def expected(table: pa.Table, parts: int) -> pa.Table:
    """By numpy alone: the rows of each part in the order of their ids, part after part."""
    number = table.column("id").to_numpy() % np.uint64(parts)
    order = np.lexsort((table.column("id").to_numpy(), number))
    taken = table.take(pa.array(order))
    made = taken.append_column(PART, pa.array(number[order].astype(np.int64)))
    return made.append_column("seen", pa.array(number[order].astype(np.uint16)))


def same(one: pa.Table, other: pa.Table) -> bool:
    """Equal in every bit, not a number included."""
    return bool(one.schema == other.schema) and one.to_pydict().__repr__() == other.to_pydict().__repr__()


def test_a_flow_maps_every_batch(engine: Engine) -> None:
    table = rows(100)
    found = engine.stream_released(table).map(doubled, ROWS).gather()
    assert found.schema == ROWS
    assert same(found.sort_by("id"), doubled(table).sort_by("id"))


def test_rows_meet_in_their_part_in_the_types_declared(engine: Engine) -> None:
    table = rows(500)
    parts = engine.exchange(numbered(engine, table, 7), by="part", parts=7).map(Sorted("id"), SORTED)
    assert parts.number == 7
    assert same(parts.gather(), expected(table, 7))


def test_an_empty_part_is_worked_on_too(engine: Engine) -> None:
    table = rows(1, start=3)
    schema = pa.schema([("seen", pa.int64()), ("rows0", pa.int64())])
    parts = engine.exchange(numbered(engine, table, 5), by="part", parts=5).map(sizes, schema)
    assert parts.gather().to_pydict() == {"seen": [0, 1, 2, 3, 4], "rows0": [0, 0, 0, 1, 0]}


def test_an_empty_flow_has_all_its_parts(engine: Engine) -> None:
    schema = pa.schema([("seen", pa.int64()), ("rows0", pa.int64())])
    parts = engine.exchange(numbered(engine, rows(0), 3), by="part", parts=3).map(sizes, schema)
    assert parts.keep().gather().to_pydict() == {"seen": [0, 1, 2], "rows0": [0, 0, 0]}
    assert engine.stream_released(rows(0)).gather() == rows(0)


def test_two_flows_meet(engine: Engine) -> None:
    left, right = rows(300, start=0), rows(60, start=300)
    flows = numbered(engine, left, 4), numbered(engine, right, 4)
    parts = engine.exchange(*flows, by="part", parts=4)
    both = parts.map(matched, pa.schema([("id", pa.uint64())])).gather()
    assert sorted(both.column("id").to_pylist()) == list(range(300, 480, 3))
    kept = parts.keep()
    assert kept.map(matched, pa.schema([("id", pa.uint64())])).gather() == both
    schema = pa.schema([("seen", pa.int64()), ("rows0", pa.int64()), ("rows1", pa.int64())])
    assert parts.map(sizes, schema).gather().to_pydict() == {
        "seen": [0, 1, 2, 3],
        "rows0": [75, 75, 75, 75],
        "rows1": [15, 15, 15, 15],
    }
    kept.drop()


def test_one_part_may_hold_nearly_all(engine: Engine) -> None:
    table = pa.concat_tables([rows(2000, start=0).slice(0, 1).take(pa.array([0] * 2000)), rows(3, start=1)])
    schema = pa.schema([("seen", pa.int64()), ("rows0", pa.int64())])
    parts = engine.exchange(numbered(engine, table, 3), by="part", parts=3).map(sizes, schema)
    assert parts.gather().column("rows0").to_pylist() == [2000, 3, 0]


def test_what_is_kept_can_be_mapped_twice_and_exchanged_again(engine: Engine) -> None:
    table = rows(200)
    told: list[tuple[int, int]] = []
    parts = engine.exchange(numbered(engine, table, 3), by="part", parts=3).map(Sorted("id"), SORTED)
    kept = parts.keep(lambda done, total: told.append((done, total)))
    assert told[-1] == (3, 3)
    assert [done for done, _ in told] == sorted({done for done, _ in told})
    schema = pa.schema([("seen", pa.int64()), ("rows0", pa.int64())])
    held = np.bincount((table.column("id").to_numpy() % np.uint64(3)).astype(int), minlength=3)
    assert kept.map(sizes, schema).gather().column("rows0").to_pylist() == held.tolist()
    assert same(kept.gather(), expected(table, 3))
    again = kept.flow().map(Renumbered("id", 5), SORTED)
    moved = engine.exchange(again, by="part", parts=5).map(sizes, schema)
    number = table.column("id").to_numpy() % np.uint64(5)
    assert moved.gather().column("rows0").to_pylist() == np.bincount(number.astype(int)).tolist()
    kept.drop()


def test_files_come_in_the_order_of_the_parts(engine: Engine, tmp_path: Path) -> None:
    table = rows(1000)
    parts = engine.exchange(numbered(engine, table, 12), by="part", parts=12).map(Sorted("id"), SORTED)
    told: list[tuple[int, int]] = []
    data = parts.write(tmp_path, "made", lambda done, total: told.append((done, total)))
    assert told[-1] == (12, 12)
    assert same(data.to_table(), expected(table, 12))
    path = tmp_path / "made.parquet"
    files = sorted(path.glob("*")) if path.is_dir() else [path]
    assert pa.concat_tables([pq.read_table(file) for file in files]).schema == SORTED
    assert {file.name for file in tmp_path.iterdir()} <= {"made.parquet", "scratch"}
    for file in files:
        metadata = pq.read_metadata(file).metadata or {}
        assert set(metadata) <= {b"ARROW:schema"}, "a released file says nothing about who wrote it where"
    again = parts.write(tmp_path, "made")
    assert same(again.to_table(), expected(table, 12))


def test_nothing_to_write_is_a_table_too(engine: Engine, tmp_path: Path) -> None:
    parts = engine.exchange(numbered(engine, rows(0), 2), by="part", parts=2).map(Sorted("id"), SORTED)
    assert parts.write(tmp_path, "none").to_table() == SORTED.empty_table()


def test_released_files_are_read_as_they_are(engine: Engine, tmp_path: Path) -> None:
    table = rows(50)
    parts = engine.exchange(numbered(engine, table, 2), by="part", parts=2).map(Sorted("id"), SORTED)
    data = parts.write(tmp_path, "made")
    found = engine.stream_released(data).gather()
    assert same(found.sort_by([("part", "ascending"), ("id", "ascending")]), expected(table, 2))


def test_an_engine_cuts_into_at_least_one_part(engine: Engine) -> None:
    assert engine.parts_for(0) >= 1
    assert engine.parts_for(10**12) > engine.parts_for(10**11)


@pytest.mark.spark("local")
def test_an_error_shows_no_value_and_keeps_our_words(spark: Engine) -> None:
    parts = spark.exchange(numbered(spark, rows(10), 2), by="part", parts=2)
    with pytest.raises(StirredError) as told:
        parts.map(failing, NUMBERED).gather()
    assert "secret" not in str(told.value)
    assert "ValueError in flow_kernels.py" in str(told.value)
    with pytest.raises(DataError, match="column t: 3 values are wrong") as ours:
        parts.map(refusing, NUMBERED).keep(lambda done, total: None)
    assert (ours.value.why, ours.value.fix) == ("they are", "mend them")


@pytest.mark.spark("local")
def test_a_part_that_is_not_there_is_refused(spark: Engine) -> None:
    flow = numbered(spark, rows(10), 4)
    with pytest.raises(InputError, match="names parts that do not exist"):
        spark.exchange(flow, by="part", parts=3).map(Sorted("id"), SORTED).gather()
    with pytest.raises(InputError, match="not Spark's"):
        spark.exchange(Local().stream_released(rows(1)), by="part", parts=3)


@pytest.mark.spark("local")
def test_steps_that_raise_stop_the_job(spark: Spark) -> None:
    parts = spark.exchange(numbered(spark, rows(10), 2), by="part", parts=2).map(slow, NUMBERED)

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        parts.keep(stop)
    context = spark.context._jsc.sc()
    assert list(context.statusTracker().getActiveJobIds()) == []


@pytest.mark.spark("local")
def test_what_is_gathered_and_shuffled_is_counted(spark: Spark) -> None:
    parts = spark.exchange(numbered(spark, rows(100), 2), by="part", parts=2).map(Sorted("id"), SORTED)
    kept = parts.keep()
    assert spark.gathered_rows == 0
    once = spark.count_shuffled_bytes()
    assert once > 100 * 8
    assert kept.gather().num_rows == spark.gathered_rows == 100
    assert spark.count_shuffled_bytes() == once, "what is kept is not shuffled again"
    cached = spark.context._jsc.getPersistentRDDs().size()
    kept.drop()
    assert spark.context._jsc.getPersistentRDDs().size() == cached - 1
    processes = {process for _, process in spark.worker_processes}
    assert processes  # two at most: on a busy machine one of them may do all of it
    assert os.getpid() not in processes


@pytest.mark.parametrize("parts", [2, 3])
def test_a_part_that_does_not_exist_is_an_error(engine: Engine, parts: int) -> None:
    flow = numbered(engine, rows(20), 5)  # rows name parts 0 to 4
    with pytest.raises(InputError, match="part"):
        engine.exchange(flow, by="part", parts=parts).map(Sorted("id"), SORTED).gather()
