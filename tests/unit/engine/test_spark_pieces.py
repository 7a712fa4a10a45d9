"""What Spark's tasks do, without Spark: messages, marks, hashes, errors that show nothing."""

import pickle
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flow_kernels import Sorted, sizes
from stirred.engine.spark import session
from stirred.engine.spark.faults import translate_error
from stirred.engine.spark.flow import SparkParts
from stirred.engine.spark.reading import AddAreaCodes, knows_type, read_slices
from stirred.engine.spark.session import ActionWatch
from stirred.engine.spark.tasks import (
    MARK_FLOW,
    MESSAGE_BYTES,
    CacheTask,
    PartTask,
    ReadBatches,
    ReadSlices,
    SendTask,
    divide_rows,
    guard_task,
    make_mark,
    pack_messages,
    pack_wire,
    read_parts,
    unpack_tables,
    write_error_line,
)
from stirred.engine.tables import PART_COLUMN, PlaceRows, hash_rows, to_plain
from stirred.errors import ClusterError, DataError, InputError, StirredError

TABLE = pa.table({"id": pa.array([5, 1, 4, 3], pa.uint64()), "part": [1, 0, 1, 0]})


def test_rows_are_cut_by_their_part_and_come_back() -> None:
    wired = [*divide_rows([TABLE.slice(0, 3), TABLE.slice(3)], "part", 3, 0), *map(make_mark, range(3))]
    found = dict(read_parts(wired, (TABLE.schema,)))
    assert {part: tables[0].column("id").to_pylist() for part, tables in found.items()} == {
        0: [1, 3],
        1: [5, 4],
        2: [],
    }
    assert all(tables[0].schema == TABLE.schema for tables in found.values())


def test_a_long_table_travels_in_several_messages() -> None:
    table = pa.table({"a": np.arange(3 * MESSAGE_BYTES // 8)})
    wired = list(pack_messages(table, 4, 1))
    assert len(wired) == 3
    assert {batch.column("part")[0].as_py() for batch in wired} == {4}
    assert pa.concat_tables(unpack_tables(wired, table.schema)) == table


def test_messages_start_where_compiled_kernels_expect_them() -> None:
    ((_, (table,)),) = read_parts([*pack_messages(TABLE, 0, 0), make_mark(0)], (TABLE.schema,))
    assert table.column("id").chunk(0).to_numpy().flags.aligned


def test_a_part_without_its_mark_is_an_error() -> None:
    with pytest.raises(StirredError, match="split a part"):
        list(read_parts(pack_messages(TABLE, 0, 0), (TABLE.schema,)))


@pytest.mark.parametrize("number", [[0, 3], [-1, 0]])
def test_a_part_that_is_not_there_is_refused(number: list[int]) -> None:
    with pytest.raises(InputError, match="names parts that do not exist"):
        list(divide_rows([pa.table({"part": number})], "part", 3, 0))


def test_a_row_without_a_part_is_refused() -> None:
    with pytest.raises(InputError, match="names no part for 1 rows"):
        list(divide_rows([pa.table({"part": pa.array([0, None])})], "part", 3, 0))


def test_kernels_run_one_after_the_other_on_every_part() -> None:
    kernels = ((Sorted("id"), TABLE.schema.append(pa.field("seen", pa.uint16()))), (sizes, SIZES))
    probed: list[int] = []
    parted = PartTask((TABLE.schema,), kernels, probed.append)
    wired = [*divide_rows([TABLE], "part", 3, 0), *map(make_mark, range(3))]
    assert pa.concat_tables(parted(wired)).to_pydict() == {"seen": [0, 1, 2], "rows0": [2, 2, 0]}
    assert probed == [0, 1, 2]
    held = list(CacheTask(parted)(wired))
    assert sorted(b.column("part")[0].as_py() for b in held if b.column("flow")[0].as_py() == MARK_FLOW) == [
        0,
        1,
        2,
    ]


SIZES = pa.schema([("seen", pa.int64()), ("rows0", pa.int64())])


def test_tasks_travel() -> None:
    parted = PartTask((TABLE.schema,), ((Sorted("id"), TABLE.schema),))
    assert pickle.loads(pickle.dumps(parted)) == parted
    assert pickle.loads(pickle.dumps(SendTask(ReadBatches()))) == SendTask(ReadBatches())


def number_batches(slices: int) -> Iterator[pa.RecordBatch]:
    """Return what Spark hands to the tasks that read slices: their numbers."""
    return (pa.record_batch({"id": pa.array([number], pa.int64())}) for number in range(slices))


def test_tasks_read_every_row_of_the_files_once_in_the_asked_order_of_columns(tmp_path: Path) -> None:
    odd = {
        "a.b": pa.array([f"t{i % 7}" for i in range(1000)]).dictionary_encode(),
        "b": pa.array(range(1000), pa.uint64()),
        "c {1}": pa.array([None if i % 5 else i / 4 for i in range(1000)]),
    }
    table = pa.table(odd)
    names = ["one.parquet", "[two]*.parquet"]
    for name, rows in zip(names, (table.slice(0, 611), table.slice(611)), strict=True):
        pq.write_table(rows, tmp_path / name, row_group_size=70)
    engine = SimpleNamespace(context=SimpleNamespace(defaultParallelism=2))
    engine.session = SimpleNamespace(range=lambda *numbers: numbers)
    columns = ["c {1}", "a.b", "b"]
    schema = to_plain(table.select(columns)).schema
    flow = read_slices(cast(Any, engine), [tmp_path / name for name in names], columns, schema)
    source = cast(ReadSlices, flow.source)
    assert flow.rows == 1000
    assert flow.frame == (0, len(source.slices), 1, len(source.slices))
    assert len(source.slices) >= 4  # two for each core
    read = pa.concat_tables(flow.tables(number_batches(len(source.slices))))
    assert read == to_plain(table.select(columns)).combine_chunks()
    assert pickle.loads(pickle.dumps(source)) == source


@pytest.mark.parametrize("change", ["gone", "another"])
def test_an_executor_that_sees_another_file_says_so_and_shows_no_name(tmp_path: Path, change: str) -> None:
    path = tmp_path / "household-4711SECRET.parquet"
    pq.write_table(TABLE, path)
    engine = SimpleNamespace(context=SimpleNamespace(defaultParallelism=1))
    engine.session = SimpleNamespace(range=lambda *numbers: numbers)
    flow = read_slices(cast(Any, engine), [path], TABLE.schema.names, TABLE.schema)
    if change == "gone":
        path.unlink()
    else:
        pq.write_table(TABLE.slice(0, 2), path)
    task = guard_task(SendTask(flow.tables))
    with pytest.raises(RuntimeError, match="an executor cannot read a file that the driver reads") as caught:
        list(task(number_batches(1)))
    assert "SECRET" not in str(caught.value)


class OneTask:
    """A data frame of one partition, and what an engine does with it."""

    probe = workers = None

    def __init__(self, wired: list[pa.RecordBatch]) -> None:
        self.wired, self.watch = wired, self

    def mapInArrow(self, task: Any, words: str) -> "OneTask":  # noqa: N802 — Spark's
        assert words
        return OneTask(list(task(self.wired)))

    def select(self, *names: str) -> "OneTask":
        return OneTask([batch.select(list(names)) for batch in self.wired])

    def toArrow(self) -> pa.Table:  # noqa: N802 — Spark's
        return pa.Table.from_batches(self.wired)

    def run(self, action: Callable[[], pa.Table], _steps: object, _total: int, **_: object) -> pa.Table:
        return action()

    def count_gathered(self, table: pa.Table) -> None:
        assert table.num_rows == 3  # a mark of each part


def test_an_attempt_that_ends_too_late_leaves_nothing_among_the_released_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = OneTask([*divide_rows([TABLE], "part", 3, 0), *map(make_mark, range(3))])
    parts = SparkParts(cast(Any, frame), frame, (TABLE.schema,), 3)
    rename = Path.rename

    def renamed(self: Path, target: Path) -> Path:
        (tmp_path / "made.parquet.part" / ".late").touch()
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", renamed)
    data = parts.write(tmp_path, "made")
    assert data.to_table().column("id").to_pylist() == [1, 3, 5, 4]
    assert [path.name for path in tmp_path.iterdir()] == ["made.parquet"]
    assert sorted(path.name for path in (tmp_path / "made.parquet").iterdir()) == [
        "part-0.parquet",
        "part-1.parquet",
    ]


def test_an_error_in_a_task_shows_no_value() -> None:
    def task(batches: object) -> object:
        raise KeyError("a secret value")

    with pytest.raises(RuntimeError) as raised:
        list(guard_task(task)([]))  # type: ignore[arg-type]
    assert "secret" not in str(raised.value)
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__
    assert "KeyError in test_spark_pieces.py" in str(translate_error(raised.value))


def test_our_errors_come_back_whole() -> None:
    ours = DataError("column a: 3 values\nare wrong", why="some {brace", fix="mend")
    again = translate_error(
        RuntimeError("Traceback …\nRuntimeError: " + write_error_line(ours) + "\n SQLSTATE: 38000")
    )
    assert type(again) is DataError
    assert (again.what, again.why, again.fix) == (ours.what, ours.why, ours.fix)


def test_errors_of_spark_show_their_name_only() -> None:
    words = str(translate_error(OSError("the value 977531 cannot be cast")))
    assert "977531" not in words
    assert "OSError" in words


def test_equal_values_hash_alike_wherever_they_stand() -> None:
    kinds = {
        "text": ["x", None, "yy", "x", None, ""],
        "number": pa.array([1, None, 2, 1, None, 0], pa.int16()),
        "wide": pa.array([2**64 - 1, None, 2, 2**64 - 1, None, 0], pa.uint64()),
        "real": [0.0, None, 1.5, -0.0, None, 2.0],
        "none": pa.array([np.nan, None, 1.5, np.copysign(np.nan, -1), None, 2.0]),
        "yes": [True, None, False, True, None, False],
        "day": pa.array([1, None, 2, 1, None, 3], pa.date32()),
        "span": pa.array([1, None, 2, 1, None, 3], pa.duration("us")),
        "decimal": pa.array([1, None, 2, 1, None, 3], pa.decimal128(20, 2)),
    }
    table = pa.table(kinds)
    for name in [*kinds, None]:
        keys = [name] if name else list(kinds)
        words = hash_rows(table, keys)
        assert words[0] == words[3], name
        assert words[1] == words[4], name
        assert len(set(words[[0, 1, 2, 5]].tolist())) >= 3, name
        cut_up = pa.concat_tables([table.slice(i, 1) for i in range(6)])
        assert (hash_rows(cut_up, keys) == words).all(), name
        assert (hash_rows(table.slice(2), keys) == words[2:]).all(), name


def test_parts_by_hash_are_even() -> None:
    table = pa.table({"id": np.arange(40_000)})
    number = PlaceRows(("id",), 8)(table).column(PART_COLUMN).to_numpy()
    # each count is Binomial(40000, 1/8), sd 66: six sd off happens by chance with probability < 2e-8 for all eight
    assert np.abs(np.bincount(number, minlength=8) - 5000).max() < 400


def test_codes_are_looked_up_once_each() -> None:
    small = pa.table({"tract": ["1", "1", "2"], "district": ["a", "b", "c"]})
    look_up = AddAreaCodes("tract", small, ("district",))
    table = pa.table({"tract": pa.array([2, 1, 3, None], pa.int64())})
    found = look_up(table)
    assert found.column("district").to_pylist() == ["c", "a", None, None]
    assert found.schema == look_up.schema(to_plain(table).schema)


@pytest.mark.parametrize(
    ("kind", "answer"),
    [
        (pa.dictionary(pa.int32(), pa.string()), True),
        (pa.int8(), True),
        (pa.date32(), True),
        (pa.timestamp("us"), False),
        (pa.decimal128(20, 0), False),
        (pa.list_(pa.int8()), False),
        (pa.binary(4), False),
        (pa.float16(), False),
    ],
)
def test_types_that_spark_would_change_do_not_go_through_its_reader(kind: pa.DataType, answer: bool) -> None:
    assert knows_type(kind) is answer


def test_a_wire_row_is_three_columns() -> None:
    assert pack_wire([1], [0], [b"x"]).to_pydict() == {"part": [1], "flow": [0], "message": [b"x"]}


def test_a_signal_that_ended_spark_too_is_not_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection is gone when jobs are cancelled: what stopped the run is still what is raised."""
    from py4j.protocol import Py4JNetworkError
    from pyspark import SparkContext

    # a session that was stopped in this process before leaves its gateway
    monkeypatch.setattr(SparkContext, "_gateway", None)

    def gone(*_: object) -> None:
        raise Py4JNetworkError("no answer")

    class Context:
        addJobTag = getLocalProperty = setJobDescription = staticmethod(lambda _: None)  # noqa: N815 — Spark's names
        removeJobTag = cancelJobsWithTag = staticmethod(gone)  # noqa: N815

    watch = ActionWatch(Context())
    monkeypatch.setattr(watch, "_count_retries", gone)

    def stopped(*_: object) -> int:
        raise SystemExit(143)

    with pytest.raises(SystemExit):
        watch.run(stopped)
    monkeypatch.setattr(watch, "_count_done", stopped)
    with pytest.raises(SystemExit):
        watch.run(lambda: time.sleep(0.5), lambda *_: None, 3)


class Waiting:
    """A context whose only action waits until it is cancelled, and whose executors are as a test says."""

    getLocalProperty = setJobDescription = removeJobTag = addJobTag = staticmethod(lambda _: None)  # noqa: N815

    def __init__(self) -> None:
        self.cancelled = threading.Event()
        self.cancelJobsWithTag = lambda _: self.cancelled.set()  # Spark's names
        self.setLocalProperty = lambda *_: None


def watch_with(executors: Iterator[tuple[int, int]], monkeypatch: pytest.MonkeyPatch) -> ActionWatch:
    from pyspark import SparkContext

    monkeypatch.setattr(SparkContext, "_gateway", None)
    monkeypatch.setattr(session, "PAUSE_SECONDS", 0.01)
    watch = ActionWatch(Waiting())
    monkeypatch.setattr(watch, "count_executors", lambda: next(executors))
    return watch


def test_executors_that_only_start_and_end_end_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster starts them again for ever, and nothing would be said."""
    watch = watch_with(iter([(2, 0), (1, 4), (2, 10)]), monkeypatch)
    with pytest.raises(ClusterError, match="end as soon as they start"):
        watch.run_first(lambda: watch.context.cancelled.wait(60))
    assert watch.context.cancelled.is_set()


def test_a_cluster_that_runs_no_task_is_told_and_can_be_left(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Java answers a second question of the thread that waits only when the first is answered: another thread waits."""

    def idle() -> Iterator[tuple[int, int]]:
        for _ in range(3):
            yield 0, 0
        raise SystemExit(143)

    monkeypatch.setattr(session, "WAITING_SECONDS", 0.0)
    watch = watch_with(idle(), monkeypatch)
    with pytest.raises(SystemExit):
        watch.run_first(lambda: watch.context.cancelled.wait(60))
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 3
    assert told[0].startswith("waiting for the cluster, which has run no task for 0 seconds")
    assert "spark.executor.memory" in told[0]


def test_of_a_first_action_that_ends_nothing_is_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    watch = watch_with(iter([(2, 0)] * 100), monkeypatch)
    assert watch.run_first(lambda: [1]) == [1]
    assert not caplog.records
