"""This machine as an engine: the bound on memory, and what waits in it."""

import pickle
import resource
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest

from flow_kernels import PART, Numbered, Sorted, refusing
from stirred.engine import Local, tables
from stirred.engine.choice import choose_engine
from stirred.engine.local import LIBRARY_BYTES, LocalFlow, LocalParts, parse_bytes
from stirred.engine.threads import BranchingTasks, map_in_order
from stirred.errors import DataError, InputError


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_no_more_results_wait_than_there_are_workers(workers: int) -> None:
    taken = 0

    def tasks() -> object:
        nonlocal taken
        for i in range(50):
            taken += 1
            yield i

    ahead = []
    for done, result in enumerate(map_in_order(lambda i: i * i, tasks(), workers)):  # type: ignore[call-overload]
        assert result == done * done
        ahead.append(taken - done)
    assert max(ahead) <= workers
    assert taken == 50


def test_an_error_comes_through_threads() -> None:
    with pytest.raises(ZeroDivisionError):
        list(map_in_order(lambda i: 1 // i, [1, 0, 1], 2))


@pytest.mark.parametrize("workers", [1, 3])
def test_tasks_lead_to_others_and_errors_come_through(workers: int) -> None:
    tasks: BranchingTasks[int, int] = BranchingTasks(lambda n: 100 // (n - 7), workers)
    tasks.add((1,), 40)
    found = {}
    for task, result in tasks:
        found[task] = result
        if task > 20:
            tasks.add((2,), task - 10)
            tasks.add((0,), task - 11)
    assert found == {n: 100 // (n - 7) for n in (40, 30, 29, 20, 19, 18)}
    tasks.add((0,), 7)
    with pytest.raises(ZeroDivisionError):
        list(tasks)


def test_a_bound_decides_what_fits() -> None:
    engine = Local(memory="2 GB")
    room = 2_000_000_000 - LIBRARY_BYTES
    assert engine.memory_bytes == room
    assert engine.fits(room)
    assert not engine.fits(room + 1)
    # every worker holds a part four times over and they all stay within the room
    for size in (1, room, 7 * room + 3):
        parts = Local(memory="2 GB", workers=3).parts_for(size)
        assert 4 * 3 * -(-size // parts) <= room + 4 * 3
    with pytest.raises(InputError, match="too few"):
        Local(memory="100 MB")
    with pytest.raises(InputError, match="not an amount of memory"):
        parse_bytes("much")


def test_parts_lie_in_scratch_in_a_private_folder_until_they_are_dropped(tmp_path: Path) -> None:
    table = pa.table({"id": np.arange(1000, dtype=np.uint64)})
    engine = Local(scratch=tmp_path, workers=2)
    schema = table.schema.append(PART)
    parts = engine.exchange(engine.stream_released(table).map(Numbered("id", 4), schema), by="part", parts=4)
    (folder,) = tmp_path.iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700
    kept = parts.map(Sorted("id"), schema.append(pa.field("seen", pa.uint16()))).keep()
    assert len(list(tmp_path.iterdir())) == 2
    parts.drop()
    kept.drop()
    assert not list(tmp_path.iterdir())


def test_a_released_file_is_never_held_whole(tmp_path: Path) -> None:
    rows, groups = 1 << 17, 24
    group = pa.table({name: np.random.default_rng(3).integers(0, 2**60, rows) for name in "abcd"})
    with pq.ParquetWriter(tmp_path / "made.parquet", group.schema, use_dictionary=False) as writer:
        for _ in range(groups):
            writer.write_table(group)
    flow = Local(workers=1).stream_released(pads.dataset(tmp_path / "made.parquet"))
    assert isinstance(flow, LocalFlow)
    before, held, seen = pa.total_allocated_bytes(), 0, 0
    for table in flow.run():
        time.sleep(0.005)  # whoever reads ahead has the time to
        held, seen = max(held, pa.total_allocated_bytes() - before), seen + table.num_rows
    assert seen == groups * rows
    assert held < 8 * group.nbytes


def made(folder: Path, parts: int) -> LocalParts:
    table = pa.table({"id": np.arange(3000, dtype=np.uint64)})
    schema = table.schema.append(PART)
    engine = Local(scratch=folder, workers=2)
    return engine.exchange(
        engine.stream_released(table).map(Numbered("id", parts), schema), by="part", parts=parts
    )


def test_records_that_an_error_stops_leave_nothing_on_disk(tmp_path: Path) -> None:
    parts = made(tmp_path, 4)
    with pytest.raises(DataError) as seen:
        parts.map(refusing, parts.schema).keep()
    assert len(list(tmp_path.iterdir())) == 1, "the parts themselves can still be mapped otherwise"
    parts.drop()
    with pytest.raises(InputError) as told:
        Local(scratch=tmp_path).exchange(made(tmp_path, 4).flow(), by="part", parts=2)
    assert seen.value.__traceback__ is not None
    assert told.value.__traceback__ is not None  # both errors are still held, with all that they saw
    assert len(list(tmp_path.iterdir())) == 1  # what was exchanged first, not what failed


def test_a_file_does_not_show_how_many_parts_it_was_made_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "ROWS_PER_GROUP", 700)
    files = []
    for number in (1, 3, 40):
        table = pa.table({"id": np.arange(3000, dtype=np.uint64)})
        cut = pa.array(np.arange(3000) * number // 3000)
        engine = Local(scratch=tmp_path, workers=2)
        flow = engine.stream_released(table.append_column("part", cut))
        parts = engine.exchange(flow, by="part", parts=number).map(only_ids, table.schema)
        parts.write(tmp_path, f"of-{number}")
        files.append((tmp_path / f"of-{number}.parquet").read_bytes())
        assert pq.read_table(tmp_path / f"of-{number}.parquet") == table
    assert files[0] == files[1] == files[2]
    assert pq.read_metadata(tmp_path / "of-1.parquet").num_row_groups == 5


def only_ids(_: int, table: pa.Table) -> pa.Table:
    return table.select(["id"])


def test_there_may_be_more_parts_than_files_that_may_be_open(tmp_path: Path) -> None:
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(list(Path("/dev/fd").iterdir())) + 100, most))
    try:
        parts = made(tmp_path, 500)
        assert parts.gather().num_rows == 3000
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (now, most))


def test_kernels_of_the_tests_travel_as_those_of_mechanisms_must() -> None:
    assert pickle.loads(pickle.dumps(Numbered("id", 3))) == Numbered("id", 3)


def test_an_engine_by_its_name() -> None:
    assert choose_engine("local").name == "local"
    with pytest.raises(InputError, match="no engine sparc") as told:
        choose_engine("sparc")
    assert "did you mean spark" in told.value.fix
    with pytest.raises(InputError, match="a master was given"):
        choose_engine("local", master="local[2]")
    for name in ("local", "spark"):
        with pytest.raises(InputError, match="there is no folder nowhere"):
            choose_engine(name, scratch=Path("nowhere"))
    with pytest.raises(InputError, match="memory bounds the local engine"):
        choose_engine("spark", memory="2 GB")


def test_an_abandoned_iterator_is_closed_without_waiting() -> None:
    """The garbage collector closes it in any thread, also in one that holds a lock which joining a thread needs."""
    free = threading.Event()

    def kernel(number: int) -> int:
        if number:
            free.wait()
        return number

    for results in (map_in_order(kernel, range(4), 2), Local(workers=2).map(kernel, range(4))):
        assert next(results) == 0
        with getattr(threading, "_shutdown_locks_lock", threading.Lock()):
            results.close()  # type: ignore[attr-defined]
    free.set()
