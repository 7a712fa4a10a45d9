"""The digest of what a release says: blind to cuts, dictionaries and files, and to nothing else."""

from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as pq
import pytest

from stirred.mechanisms.contents import digest

TABLE = pa.table(
    {
        "t": pa.array(["a", None, "", "bc", "é", "a"]),
        "n": pa.array([1, 2, None, 4, 5, 6], pa.int16()),
        "x": pa.array([0.5, 1.0, 2.0, None, 1e300, -1.0]),
        "b": pa.array([True, None, False, True, True, False]),
    }
)


def test_cuts_dictionaries_and_files_leave_no_trace(tmp_path: Path) -> None:
    told = digest(TABLE)
    cut = pa.concat_tables([TABLE.slice(0, 1), TABLE.slice(1, 0), TABLE.slice(1, 3), TABLE.slice(4)])
    coded = TABLE.set_column(0, "t", TABLE["t"].dictionary_encode())
    large = TABLE.set_column(0, "t", TABLE["t"].cast(pa.large_string()))
    pq.write_table(coded, tmp_path / "one.parquet", row_group_size=2)
    assert {digest(t) for t in (cut, coded, large, pads.dataset(tmp_path / "one.parquet"))} == {told}
    assert digest(TABLE.slice(2).combine_chunks()) == digest(TABLE.slice(2))


@pytest.mark.parametrize(
    "other",
    [
        TABLE.take([1, 0, 2, 3, 4, 5]),
        TABLE.slice(0, 5),
        TABLE.rename_columns(["t", "m", "x", "b"]),
        TABLE.set_column(1, "n", TABLE["n"].cast(pa.int32())),
        TABLE.set_column(0, "t", pa.array(["a", "", "", "bc", "é", "a"])),
        TABLE.set_column(0, "t", pa.array(["a", None, "b", "c", "é", "a"])),
        TABLE.set_column(2, "x", pa.array([0.5, 1.0, 2.0, 0.0, 1e300, -1.0])),
        TABLE.set_column(3, "b", pa.array([True, None, False, True, True, True])),
    ],
    ids=["order", "a row less", "a name", "a type", "empty is not missing", "letters moved", "zero", "a bit"],
)
def test_everything_else_is_seen(other: pa.Table) -> None:
    assert digest(other) != digest(TABLE)
