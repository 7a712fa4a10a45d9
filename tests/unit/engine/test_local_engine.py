"""This machine as an engine: the bound on memory, and what waits in it."""

import pickle
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest

from flow_kernels import PART, Numbered, Sorted
from stirred.engine import Local
from stirred.engine.choice import engine_named
from stirred.engine.local_flow import LocalFlow
from stirred.engine.memory import LIBRARIES, bytes_of
from stirred.engine.threads import in_order
from stirred.errors import InputError


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_no_more_results_wait_than_there_are_workers(workers: int) -> None:
    taken = 0

    def tasks() -> object:
        nonlocal taken
        for i in range(50):
            taken += 1
            yield i

    ahead = []
    for done, result in enumerate(in_order(lambda i: i * i, tasks(), workers)):  # type: ignore[call-overload]
        assert result == done * done
        ahead.append(taken - done)
    assert max(ahead) <= workers
    assert taken == 50


def test_an_error_comes_through_threads() -> None:
    with pytest.raises(ZeroDivisionError):
        list(in_order(lambda i: 1 // i, [1, 0, 1], 2))


def test_a_bound_decides_what_fits() -> None:
    engine = Local(memory="2 GB")
    room = 2_000_000_000 - LIBRARIES
    assert engine.room == room
    assert engine.fits(room)
    assert not engine.fits(room + 1)
    # every worker holds a part four times over and they all stay within the room
    for size in (1, room, 7 * room + 3):
        parts = Local(memory="2 GB", workers=3).parts_for(size)
        assert 4 * 3 * -(-size // parts) <= room + 4 * 3
    with pytest.raises(InputError, match="too few"):
        Local(memory="100 MB")
    with pytest.raises(InputError, match="no amount of memory"):
        bytes_of("much")


def test_parts_lie_in_scratch_in_a_private_folder_until_they_are_dropped(tmp_path: Path) -> None:
    table = pa.table({"id": np.arange(1000, dtype=np.uint64)})
    engine = Local(scratch=tmp_path, workers=2)
    schema = table.schema.append(PART)
    parts = engine.exchange(engine.released(table).map(Numbered("id", 4), schema), by="part", parts=4)
    (folder,) = tmp_path.iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700
    kept = parts.map(Sorted("id"), schema.append(pa.field("seen", pa.uint16()))).kept()
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
    flow = Local(workers=1).released(pads.dataset(tmp_path / "made.parquet"))
    assert isinstance(flow, LocalFlow)
    before, held, seen = pa.total_allocated_bytes(), 0, 0
    for table in flow.run():
        time.sleep(0.005)  # whoever reads ahead has the time to
        held, seen = max(held, pa.total_allocated_bytes() - before), seen + table.num_rows
    assert seen == groups * rows
    assert held < 8 * group.nbytes


def test_kernels_of_the_tests_travel_as_those_of_mechanisms_must() -> None:
    assert pickle.loads(pickle.dumps(Numbered("id", 3))) == Numbered("id", 3)


def test_an_engine_by_its_name() -> None:
    assert engine_named("local").name == "local"
    with pytest.raises(InputError, match="no engine sparc") as told:
        engine_named("sparc")
    assert "did you mean spark" in told.value.fix
    with pytest.raises(InputError, match="a master is for Spark"):
        engine_named("local", master="local[2]")
    with pytest.raises(InputError, match="memory bounds the local engine"):
        engine_named("spark", memory="2 GB")
