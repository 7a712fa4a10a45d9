"""A bound of memory holds for a whole process: the peak of a swap by parts whose strata are a third of the records each."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stirred.engine.local import parse_bytes

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="the peak is read as Linux tells it"),
]
HOUSEHOLDS, ROWS, BOUND = 6_000_000, 500_000, "1.2 GB"
CENSUS = """name = "three strata"
[geography]
spine = ["county", "block"]
[record.household]
files = ["household.parquet"]
id = "hid"
[record.household.variables]
size = {type = "integer", range = "1..3"}
county = {type = "text"}
block = {type = "text"}
tenure = {levels = ["own", "rent"]}
rooms = {type = "integer", range = "1..9"}
"""
PROGRAM = f"""import sys
from pathlib import Path
from stirred import Key, Local, PermutationSwapping, read
here = Path(sys.argv[1])
engine = Local(memory="{BOUND}", workers=2, scratch=here)
swap = PermutationSwapping(match=["size"], swap=["county", "block"], rate="1/20")
census = read(here / "census.toml")
release = swap.release(census, key=Key.for_tests(1), engine=engine, out=here)
assert release.microdata["household"].count_rows() == {HOUSEHOLDS}
print(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1])
"""


def write_census(folder: Path) -> None:
    """Write the households, of which a third have each size."""
    rng = np.random.default_rng(5)
    (folder / "census.toml").write_text(CENSUS)
    blocks = pa.array([f"{number:015d}" for number in range(30_000)])
    counties = pa.array([f"{number:05d}" for number in range(100)])
    writer = None
    for start in range(0, HOUSEHOLDS, ROWS):
        place = rng.integers(0, len(blocks), ROWS)
        table = pa.table(
            {
                "hid": np.arange(start, start + ROWS) * 3,
                "size": pa.array(rng.integers(1, 4, ROWS), pa.int8()),
                "county": counties.take(pa.array(place // 300)),
                "block": blocks.take(pa.array(place)),
                "tenure": pa.array(["own", "rent"]).take(pa.array(rng.integers(0, 2, ROWS))),
                "rooms": pa.array(rng.integers(1, 10, ROWS), pa.int8()),
            }
        )
        writer = writer or pq.ParquetWriter(folder / "household.parquet", table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()


def test_the_peak_of_a_swap_stays_within_its_bound(tmp_path: Path) -> None:
    write_census(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)], check=True, capture_output=True, text=True
    )
    assert int(done.stdout) * 1024 < parse_bytes(BOUND)
