"""Parquet files that are small on disk and large in memory: read in slices, or refused by what they declare."""

import os
import subprocess
import sys
from datetime import date
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stirred.census.readers import parquet
from stirred.census.readers.parquet import SLICED_GROUP_BYTES, _require_parquet, require_parquet, scan_slices
from stirred.errors import DataError

ROWS = 1 << 23  # below the number from which few bytes for many records are refused
MOST = 450  # MB; it takes 250, and took 660 with the whole row group
READ = """
import sys
from pathlib import Path
import polars as pl
from stirred.census.schema import Source
from stirred.census.readers import open_source
frame = open_source(Source(files=("household.parquet",)), Path(sys.argv[1]))
letters = frame.select(pl.all().str.len_bytes().sum()).collect(engine="streaming")
assert set(letters.row(0)) == {40 * int(sys.argv[2])}
# the most that this process held; what the system tells its parent counts the parent too
print(next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")))
"""


def constant(path: Path, columns: int, rows: int = ROWS) -> None:
    """One row group of equal records: a few kilobytes on disk."""
    same = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int8)), pa.array(["x" * 40]))
    table = pa.table({f"c{i}": same for i in range(columns)})
    pq.write_table(table, path, row_group_size=rows, store_schema=False, write_statistics=False)


@pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="the system does not tell what a process held"
)
def test_a_large_row_group_of_equal_records_is_read_in_little_memory(tmp_path: Path) -> None:
    constant(tmp_path / "household.parquet", 4)
    assert (tmp_path / "household.parquet").stat().st_size < 1_000_000
    words = [sys.executable, "-c", READ, str(tmp_path), str(ROWS)]
    paths = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    told = subprocess.run(words, env={**os.environ, **paths}, capture_output=True, text=True, check=True)
    assert int(told.stdout.split()[1]) < MOST * 1000, told.stdout


def test_slices_hold_what_the_file_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "MAX_SLICE_ROWS", 7)
    frame = pl.DataFrame(
        {
            "text": ["a", None, "ä", ""] * 10,
            "kind": pl.Series(["u", "v", None, "u"] * 10, dtype=pl.Categorical),
            "number": [1, None, -3, 4] * 10,
            "share": [0.5, None, float("inf"), -0.0] * 10,
            "day": [date(2020, 4, 1), None, date(1, 1, 1), date(9999, 12, 31)] * 10,
            "told": [True, False, None, True] * 10,
        }
    )
    paths = [tmp_path / f"state={name}" / "part.parquet" for name in ("044", "a%20b")]
    for path in paths:
        path.parent.mkdir()
        frame.write_parquet(path, row_group_size=15)
    whole = pl.scan_parquet(paths, hive_partitioning=True, hive_schema={"state": pl.String}, glob=False)
    sliced = scan_slices(paths, whole.collect_schema())
    assert sliced.collect().equals(whole.collect())
    assert sliced.select("number").filter(pl.col("number") > 1).collect().height == 20
    assert (
        sliced.head(43)
        .select("state", "text")
        .collect()
        .equals(whole.head(43).select("state", "text").collect())
    )
    assert sliced.select(pl.len()).collect().item() == 80
    assert sliced.select("state").unique().collect().height == 2


def test_files_with_other_columns_are_not_read_as_one(tmp_path: Path) -> None:
    for name in ("a", "b"):
        pl.DataFrame({name: [1]}).write_parquet(tmp_path / f"{name}.parquet")
    paths = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    with pytest.raises(Exception, match="the files differ in their columns"):
        scan_slices(paths, {"a": pl.Int64()}).collect()


def test_pages_that_do_not_fit_in_memory_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = 1 << 16
    table = pa.table({f"c{i}": np.zeros(rows) for i in range(9)})
    one = {"data_page_size": 1 << 30, "max_rows_per_page": rows}
    pq.write_table(table, tmp_path / "a.parquet", use_dictionary=False, compression="zstd", **one)
    require_parquet(tmp_path / "a.parquet")
    _require_parquet.cache_clear()
    monkeypatch.setattr(parquet, "MAX_PAGES_BYTES", 8 * rows * 8)
    with pytest.raises(DataError, match="its pages take"):
        require_parquet(tmp_path / "a.parquet")


def zigzag(number: int) -> bytes:
    """A number as a Parquet footer has it."""
    number, found = 2 * number, bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


def test_pages_that_are_larger_than_their_column_declares_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"c": np.zeros(1 << 19)}), path, use_dictionary=False, compression="zstd")
    assert 1 << 21 < require_parquet(path) < SLICED_GROUP_BYTES
    true = zigzag(pq.read_metadata(path).row_group(0).column(0).total_uncompressed_size)
    content = path.read_bytes()
    foot = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    small = bytes([true[0], *[128] * (len(true) - 2), 0])  # a small number in as many bytes
    assert true in content[foot:]
    path.write_bytes(content[:foot] + content[foot:].replace(true, small))
    with pytest.raises(DataError, match="larger than the column declares"):
        require_parquet(path)
