"""This machine as an engine: the bound on memory, and what waits in it."""

import pickle
import resource
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest

from flow_kernels import PART, Numbered, Sorted, refusing
from stirred.engine import Local, PartRows, local, tables
from stirred.engine.choice import choose_engine
from stirred.engine.local import COPIES, LIBRARY_BYTES, LocalFlow, LocalParts, parse_bytes
from stirred.engine.threads import BranchingTasks, Room, map_in_order
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


WEIGHTS = (30, 50, 90, 10, 10, 10, 250, 40, 40, 5, 100, 101, 20)


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_tasks_begin_only_while_their_bytes_stay_within_the_room(workers: int) -> None:
    """What runs and what waits for its turn, in bytes, when each task begins."""
    lock, held, seen = threading.Lock(), dict[int, int](), list[dict[int, int]]()

    def kernel(number: int) -> int:
        with lock:
            held[number] = WEIGHTS[number]
            seen.append(dict(held))
        time.sleep(0.002 * (number % 3))
        with lock:
            held[number] = WEIGHTS[number] // 10
        return number

    room: Room[int, int] = Room(100, WEIGHTS.__getitem__, lambda number: WEIGHTS[number] // 10)
    done = []
    for number in map_in_order(kernel, range(len(WEIGHTS)), workers, ahead=workers, room=room):
        done.append(number)
        with lock:
            del held[number]
    assert done == list(range(len(WEIGHTS)))
    assert all(sum(one.values()) <= 100 or len(one) == 1 for one in seen)
    assert workers == 1 or max(map(len, seen)) > 1, "they run side by side where they fit"


def test_a_task_that_fails_in_a_room_is_raised() -> None:
    room: Room[int, int] = Room(1, lambda _: 1, lambda _: 1)
    with pytest.raises(ZeroDivisionError):
        list(map_in_order(lambda i: 1 // i, [1, 0, 1], 2, room=room))


class Weighed:
    """A kernel that notes how many bytes of parts are worked on at once."""

    def __init__(self) -> None:
        self.lock, self.now, self.most, self.number, self.together = threading.Lock(), 0, 0, 0, 0

    def __call__(self, part: int, table: pa.Table) -> pa.Table:
        del part
        with self.lock:
            self.now, self.number = self.now + table.nbytes, self.number + 1
            self.most, self.together = max(self.most, self.now), max(self.together, self.number)
        time.sleep(0.01)
        with self.lock:
            self.now, self.number = self.now - table.nbytes, self.number - 1
        return table.slice(0, 1)


def test_parts_run_side_by_side_within_the_bound_alone(tmp_path: Path) -> None:
    """One part has most rows, as a stratum that is never divided; the others are of the same size."""
    cut = np.concatenate((np.repeat(np.arange(12), 500), np.full(20_000, 12)))
    schema = pa.schema([("part", pa.int64()), ("id", pa.int64())])
    flow = LocalFlow(lambda: iter([pa.table([cut, np.arange(cut.size)], schema=schema)]), schema, 4)
    parts = Local(scratch=tmp_path, workers=4).exchange(flow, by="part", parts=13)
    small, large = 16 * 500, 16 * 20_000
    assert [parts.weigh(part) for part in (0, 12)] == [COPIES * small, COPIES * large]
    for room, most, together in ((2 * COPIES * small, 2 * small, 2), (1, small, 1), (1 << 40, 4 * small, 4)):
        seen = Weighed()
        found = replace(parts, room=room).map(seen, schema)
        assert found.gather()["part"].to_pylist() == list(range(13))
        assert seen.most <= max(most, large if room < 1 << 40 else large + 3 * small)
        assert seen.together <= together
        assert room == 1 or seen.together > 1


class Pieces:
    """A kernel that yields the rows of a part as they come, each with the number of its piece."""

    def __call__(self, part: int, *flows: pa.Table) -> pa.Table:
        raise AssertionError("a part is never read whole")

    def run_pieces(self, part: int, *flows: PartRows) -> Iterator[pa.Table]:
        del part
        for number, table in enumerate(flows[0].read()):
            yield table.append_column("piece", pa.array(np.full(table.num_rows, number)))

    def weigh(self, *flows: PartRows) -> int:
        return flows[0].number


def test_rows_leave_a_part_in_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = made(tmp_path, 2)
    monkeypatch.setattr(local, "ROWS_PER_BATCH", 100)
    for one in (parts, parts.map(Sorted("id"), parts.schema.append(pa.field("seen", pa.uint16()))).keep()):
        batches = list(one.flow().run())  # also those of a part that is written whole
        assert sum(batch.num_rows for batch in batches) == 3000
        assert one is parts or max(batch.num_rows for batch in batches) == 100
    kept = one.map(Pieces(), one.schema.append(pa.field("piece", pa.int64())))
    assert kept.gather()["piece"].to_pylist() == 2 * [row // 100 for row in range(1500)]
    flowing = [batch.num_rows for batch in kept.flow().run()]
    assert flowing == 30 * [100]


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
