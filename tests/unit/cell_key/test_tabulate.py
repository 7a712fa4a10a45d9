"""Cells counted with a table of all combinations are those counted by groups, whatever the values are."""

import numpy as np
import pyarrow as pa
import pyarrow.dataset as pads
import pytest

from stirred.chance import Key
from stirred.engine import Flow, Local
from stirred.engine.local import LocalFlow
from stirred.mechanisms.tables.cell_key import cells as cells_module
from stirred.mechanisms.tables.cell_key.cells import KeyedCells, RecordKeys, count_keyed_cells

TEXT = pa.array(["a", "b", None, "c"] * 50)


@pytest.mark.parametrize(
    "column",
    [
        TEXT,
        pa.array(["x", "y", "z", "x"] * 50),
        pa.array([-3, 2, None, 5] * 50, pa.int16()),
        pa.array(np.arange(200) % 7 - 3),
        pa.array([0, 10**12] * 100),
        pa.array([0.5, float("nan"), None, 2.0] * 50),
        pa.array([True, False, None, True] * 50),
    ],
    ids=lambda column: str(column.type),
)
@pytest.mark.parametrize("modulus", [256, 10**8, 10**17])
def test_both_ways_find_the_same_cells(
    column: pa.Array, modulus: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(1)
    table = pa.table(
        {"a": column, "b": rng.integers(1, 4, 200), "id": np.arange(200)},
    )
    cells = KeyedCells(("a", "b"), RecordKeys(Key.for_tests(1), "id", modulus))
    assert cells._count_by_place(table) is not None
    quick = cells(table)
    monkeypatch.setattr(cells_module, "CELLS_PER_ROW", 0)
    assert cells._count_by_place(table) is None
    slow = cells(table)
    assert quick.schema == slow.schema
    assert sorted(map(str, quick.to_pylist())) == sorted(map(str, slow.to_pylist()))


def test_more_combinations_than_records_are_grouped() -> None:
    table = pa.table({"a": np.arange(50), "b": np.arange(50), "id": np.arange(50)})
    cells = KeyedCells(("a", "b"), RecordKeys(Key.for_tests(1), "id", 256))
    assert cells._count_by_place(table) is None
    assert cells(table).num_rows == 50


@pytest.mark.parametrize("modulus", [256, 10**17])
@pytest.mark.parametrize("by", [(), ("a",), ("a", "b")])
def test_batches_are_merged_to_what_one_batch_gives(
    by: tuple[str, ...], modulus: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sorted, with keys added exactly: 300 keys of 17 digits exceed 64 bits, whichever way cells are counted."""
    rng = np.random.default_rng(2)
    rows = 600
    text = rng.choice(["b", "a", "ü"], rows)
    table = pa.table({"a": text, "b": rng.integers(-2, 1, rows).astype(np.int8), "id": np.arange(rows)})
    cells = KeyedCells(by, RecordKeys(Key.for_tests(1), "id", modulus))
    keys = cells.keys.of(table).tolist()
    wanted: dict[tuple[object, ...], list[int]] = {}
    for row, key in zip(table.select(list(by)).to_pylist() if by else [{}] * rows, keys, strict=True):
        wanted.setdefault(tuple(row.values()), []).append(key)
    expected = [(*cell, len(found), sum(found) % modulus) for cell, found in sorted(wanted.items())]

    class Batches(Local):
        def released(self, data: pa.Table | pads.Dataset) -> Flow:
            assert isinstance(data, pa.Table)
            parts = [data.slice(start, 200) for start in range(0, rows, 200)]
            return LocalFlow(lambda: iter(parts), data.schema, 1)

    for room in (4, 0):
        monkeypatch.setattr(cells_module, "CELLS_PER_ROW", room)
        assert count_keyed_cells(Batches().stream_released(table), cells).rows() == expected
        assert count_keyed_cells(Local().stream_released(table), cells).rows() == expected
