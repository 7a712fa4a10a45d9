"""The noisy measurement file: every noisy answer as Parquet, rows of geounit × query, in the public layout.

``<Level>.parquet/DPQuery`` and ``<Level>.parquet/Constraint`` hold geocode, query_name (``…_dpq`` or ``…_con``),
query_shape, value, variance, plb (the part of ρ² spent, as an exact fraction), sign, and one column per attribute with
the recode used.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from stirred.file_names import file_name, path_in
from stirred.mechanisms.topdown.measure.noise import Measurements, variance
from stirred.mechanisms.topdown.rules.constraints import Constraints, HeldQuery
from stirred.mechanisms.topdown.tree.geounits import Tree
from stirred.mechanisms.topdown.workload.histogram import Query
from stirred.mechanisms.topdown.workload.workload import Workload

NODES = 512  # geounits written at a time
Rows = Callable[[int, int], Iterator[pa.Table]]  # of a level and the number of one of its tables


def measured_tables(measurements: Measurements, depth: int) -> list[int]:
    """The numbers of a level's tables of noisy answers: one for each class of geounits and each of its queries."""
    allotment = measurements.allotment
    queries = allotment.workload.queries
    starts = np.unique(allotment.start[depth][allotment.start[depth] >= 0])
    return [
        int(start) * len(queries) + number
        for start in starts
        for number, query in enumerate(queries)
        if query.name in allotment.rho[int(start), depth]
    ]


def answers(measurements: Measurements, depth: int, number: int) -> Iterator[pa.Table]:
    """The noisy answers of one table, some geounits at a time."""
    allotment = measurements.allotment
    workload, spine = allotment.workload, allotment.spine
    start, query = divmod(number, len(workload.queries))
    asked = workload.queries[query]
    rho = allotment.rho[start, depth][asked.name]
    spread = 0.0 if measurements.key is None else variance(1 / rho)
    codes = spine.codes[depth].cast(pl.String)
    members = np.flatnonzero(allotment.start[depth] == start)
    for at in range(0, len(members), NODES):
        nodes = members[at : at + NODES]
        value = measurements.answers(depth, start, asked, nodes, np.arange(asked.size))
        yield _rows(codes, nodes, f"{asked.name}_dpq", asked, value, workload, spread, str(rho), "")


def bound_tables(constraints: Constraints, depth: int) -> list[int]:
    """The numbers, all below zero, of a level's tables of bounds: two for each constraint."""
    return [
        -(1 + 2 * i + side)
        for i, held in enumerate(constraints.held)
        if depth < len(held.low)
        for side in (0, 1)
    ]


def bounds(constraints: Constraints, spine: Tree, workload: Workload, depth: int, number: int) -> pa.Table:
    """The lower or upper bounds of one constraint in the geounits of a level, not yet named."""
    i, side = divmod(-1 - number, 2)
    held = constraints.held[i]
    value = (held.low, held.high)[side][depth]
    nodes = np.arange(len(value))
    return _rows(spine.codes[depth].cast(pl.String), nodes, "", held.query, value, workload, 0.0, "0", "=")


def write(
    folder: Path,
    levels: Sequence[str],
    workload: Workload,
    held: Sequence[HeldQuery],
    equal: NDArray[np.bool_],
    rows: Rows,
) -> int:
    """Write all levels from their tables; returns how many noisy answers there are."""
    written = 0
    for depth, level in enumerate(levels):
        place = path_in(folder, file_name(level), ".parquet")
        (place / "DPQuery").mkdir(parents=True, exist_ok=True)
        (place / "Constraint").mkdir(parents=True, exist_ok=True)
        writer = None
        for number in range((depth + 1) * len(workload.queries)):
            for table in _regrouped(rows(depth, number)):
                writer = writer or pq.ParquetWriter(
                    place / "DPQuery" / "part-0.parquet", table.schema, compression="zstd"
                )
                writer.write_table(table)
                written += len(table["value"].combine_chunks().flatten())
        if writer is not None:
            writer.close()
        tables = []
        for i, one in enumerate(held):
            if depth < len(one.low):
                sides = [("=", "")] if equal[i, depth] else [(">=", "_lb"), ("<=", "_ub")]
                for side, (sign, suffix) in enumerate(sides):
                    found = list(rows(depth, -(1 + 2 * i + side)))
                    tables += _named(found, f"{one.name}{suffix}_con", sign)
        if tables:
            pq.write_table(
                pa.concat_tables(tables), place / "Constraint" / "part-0.parquet", compression="zstd"
            )
    return written


def _regrouped(tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """The same rows, NODES at a time."""
    waiting: list[pa.Table] = []
    for table in tables:
        waiting.append(table)
        while sum(one.num_rows for one in waiting) >= NODES:
            whole = pa.concat_tables(waiting)
            yield whole.slice(0, NODES).combine_chunks()
            waiting = [whole.slice(NODES)]
    if any(one.num_rows for one in waiting):
        yield pa.concat_tables(waiting).combine_chunks()


def _named(tables: Sequence[pa.Table], name: str, sign: str) -> list[pa.Table]:
    """The bounds with their name and sign, as one table."""
    if not tables:
        return []
    whole = pa.concat_tables(tables).combine_chunks()
    for column, text in (("query_name", name), ("sign", sign)):
        place = whole.schema.get_field_index(column)
        whole = whole.set_column(place, column, pa.array([text] * whole.num_rows, pa.string()))
    return [whole]


def schema(workload: Workload, value: pa.DataType) -> pa.Schema:
    """The columns of a table whose numbers have this type: int32 for noisy answers, int64 for bounds."""
    return pa.schema([
        ("geocode", pa.string()), ("query_name", pa.string()), ("query_shape", pa.list_(pa.int32())),
        ("value", pa.list_(value)), ("variance", pa.float64()), ("plb", pa.string()), ("sign", pa.string()),
        *((axis.name, pa.string()) for axis in workload.histogram.axes),
    ])  # fmt: skip


def _rows(
    codes: pl.Series, nodes: np.ndarray, name: str, query: Query, value: np.ndarray, workload: Workload,
    spread: float, plb: str, sign: str,
) -> pa.Table:  # fmt: skip
    count = len(nodes)
    flat = pa.array(value.ravel(), pa.int64() if sign else pa.int32())
    offsets = pa.array(np.arange(count + 1) * value.shape[1], pa.int32())
    columns = {
        "geocode": codes.gather(nodes).to_arrow().cast(pa.string()),
        "query_name": pa.array([name] * count),
        "query_shape": pa.array([list(query.shape)] * count, pa.list_(pa.int32())),
        "value": pa.ListArray.from_arrays(offsets, flat),
        "variance": pa.array([spread] * count, pa.float64()),
        "plb": pa.array([plb] * count),
        "sign": pa.array([sign] * count),
    }
    for i, axis in enumerate(workload.histogram.axes):
        used = next((part for part in query.parts if part == axis.name or part in axis.recodes), "*")
        columns[axis.name] = pa.array([used if query.kept[i] else "*"] * count)
    return pa.table(columns)
