"""The files of a noisy measurement file do not depend on how its rows arrive."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stirred.mechanisms.topdown import Workload, measurement_files
from stirred.mechanisms.topdown.rules import HeldQuery
from stirred.mechanisms.topdown.run.subtrees.steps import split_runs, tag_rows

WORKLOAD = Workload.preset("small")
GEOUNITS = 700  # more than are written at a time
NUMBER = next(i for i, query in enumerate(WORKLOAD.queries) if query.size == 1)


def rows(begin: int, end: int, value: pa.DataType) -> pa.Table:
    """Rows of a query with one answer for some geounits."""
    count = end - begin
    columns: dict[str, pa.Array] = {
        name: pa.repeat(name, count) for name in measurement_files.build_schema(WORKLOAD, value).names
    }
    flat = pa.array(np.arange(begin, end), value)
    columns["geocode"] = pa.array([str(i) for i in range(begin, end)])
    columns["value"] = pa.ListArray.from_arrays(pa.array(np.arange(count + 1), pa.int32()), flat)
    columns["query_shape"] = pa.ListArray.from_arrays(
        pa.array(np.arange(count + 1), pa.int32()), pa.array(np.ones(count), pa.int32())
    )
    columns["variance"] = pa.repeat(1.0, count)
    return pa.table(columns, schema=measurement_files.build_schema(WORKLOAD, value))


def written(folder: Path, cuts: list[int]) -> Path:
    """The files of one level, from pieces that end at the cuts; answers and bounds of both signs arrive in turns."""
    query = WORKLOAD.queries[NUMBER]
    held = (HeldQuery("total", query, (), ()), HeldQuery("facilities", query, (), ()))
    equal = np.array([[True], [False]])
    with measurement_files.MeasurementFiles(folder, ("block",), WORKLOAD, held, equal) as files:
        for begin, end in zip([0, *cuts], [*cuts, GEOUNITS], strict=True):
            files.add(0, NUMBER, rows(begin, end, pa.int32()))
            for number in (-1, -2, -3, -4):
                files.add(0, number, rows(begin, end, pa.int64()))
    return folder


def test_files_have_the_same_bytes_however_rows_arrive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measurement_files, "MAX_NODES_PER_WRITE", 64)
    whole = written(tmp_path / "whole", [])
    parts = written(tmp_path / "parts", [1, 63, 65, 128, 333, 699])
    found = sorted(path.relative_to(whole) for path in whole.rglob("*.parquet") if path.is_file())
    assert len(found) == 4  # answers, one equality, two bounds
    for path in found:
        assert (whole / path).read_bytes() == (parts / path).read_bytes()
    answers = pq.read_table(whole / "block.parquet" / "DPQuery")
    assert answers["value"].combine_chunks().flatten().to_pylist() == list(range(GEOUNITS))
    names = [
        set(pq.read_table(path)["query_name"].to_pylist())
        for path in measurement_files.list_table_files(whole / "block.parquet" / "Constraint")
    ]
    assert names == [{"total_con"}, {"facilities_lb_con"}, {"facilities_ub_con"}]


def test_files_of_a_run_that_fails_hold_no_further_rows(tmp_path: Path) -> None:
    files = measurement_files.MeasurementFiles(tmp_path, ("block",), WORKLOAD, (), np.zeros((0, 1), bool))
    files.add(0, NUMBER, rows(0, 3, pa.int32()))
    files.__exit__(KeyError, KeyError(), None)
    assert not list(tmp_path.rglob("part-*.parquet"))


def test_tagged_rows_are_divided_where_the_table_changes() -> None:
    one, other = rows(0, 3, pa.int32()), rows(3, 5, pa.int32())
    table = pa.concat_tables(
        [tag_rows(one, 2, 0), tag_rows(other, 2, 0), tag_rows(one, 2, 7), tag_rows(other, 3, 7)]
    )
    assert [(depth, number, part.num_rows) for depth, number, part in split_runs(table)] == [
        (2, 0, 5), (2, 7, 3), (3, 7, 2),
    ]  # fmt: skip
    assert list(split_runs(table.slice(0, 0))) == []
