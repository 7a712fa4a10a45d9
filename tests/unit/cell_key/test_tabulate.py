"""Cells counted with a table of all combinations are those counted by groups, whatever the values are."""

import numpy as np
import pyarrow as pa
import pytest

from stirred.chance import Key
from stirred.mechanisms.cell_key import tabulate
from stirred.mechanisms.cell_key.tabulate import KeyedCells, RecordKeys

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
@pytest.mark.parametrize("modulus", [256, 10**8])
def test_both_ways_find_the_same_cells(
    column: pa.Array, modulus: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(1)
    table = pa.table(
        {"a": column, "b": rng.integers(1, 4, 200), "id": np.arange(200)},
    )
    cells = KeyedCells(("a", "b"), RecordKeys(Key.for_tests(1), "id", modulus))
    assert cells._by_place(table) is not None
    quick = cells(table)
    monkeypatch.setattr(tabulate, "EXACT", 0)
    assert cells._by_place(table) is None
    slow = cells(table)
    assert quick.schema == slow.schema
    assert sorted(map(str, quick.to_pylist())) == sorted(map(str, slow.to_pylist()))


def test_more_combinations_than_records_are_grouped() -> None:
    table = pa.table({"a": np.arange(50), "b": np.arange(50), "id": np.arange(50)})
    cells = KeyedCells(("a", "b"), RecordKeys(Key.for_tests(1), "id", 256))
    assert cells._by_place(table) is None
    assert cells(table).num_rows == 50
