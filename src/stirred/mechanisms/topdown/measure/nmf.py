"""The noisy measurement file: every noisy answer as Parquet, rows of geounit × query, in the public layout.

``<Level>.parquet/DPQuery`` and ``<Level>.parquet/Constraint`` hold geocode, query_name (``…_dpq`` or ``…_con``),
query_shape, value, variance, plb (the part of ρ² spent, as an exact fraction), sign, and one column per attribute with
the recode used. Each query of a level has a file of its own, so that rows are written as soon as they are drawn.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from stirred.file_names import make_file_name, path_in
from stirred.mechanisms.topdown.measure.noise import Measurements, variance
from stirred.mechanisms.topdown.rules.constraints import Constraints, HeldQuery
from stirred.mechanisms.topdown.tree.geounits import Tree
from stirred.mechanisms.topdown.workload.histogram import Query
from stirred.mechanisms.topdown.workload.workload import Workload

MIN_NODES_PER_WRITE, MAX_NODES_PER_WRITE = 512, 1 << 16  # geounits written at a time
ANSWERS_PER_WRITE = 1 << 20  # about as many answers are written at a time


def count_nodes_per_write(query: Query) -> int:
    """Return how many geounits are written at a time; the same for every division of a census."""
    return min(max(ANSWERS_PER_WRITE // query.size, MIN_NODES_PER_WRITE), MAX_NODES_PER_WRITE)


def list_answer_tables(measurements: Measurements, depth: int) -> list[int]:
    """Return the numbers of a level's tables of noisy answers, one per class and query."""
    allotment = measurements.allotment
    queries = allotment.workload.queries
    starts = np.unique(allotment.start[depth][allotment.start[depth] >= 0])
    return [
        int(start) * len(queries) + number
        for start in starts
        for number, query in enumerate(queries)
        if query.name in allotment.rho[int(start), depth]
    ]


def tabulate_answers(measurements: Measurements, depth: int, number: int) -> Iterator[pa.Table]:
    """Yield the noisy answers of one table, some geounits at a time."""
    allotment = measurements.allotment
    workload, spine = allotment.workload, allotment.spine
    start, query = divmod(number, len(workload.queries))
    asked = workload.queries[query]
    rho = allotment.rho[start, depth][asked.name]
    spread = 0.0 if measurements.key is None else variance(1 / rho)
    codes = spine.codes[depth].cast(pl.String)
    members = np.flatnonzero(allotment.start[depth] == start)
    step = count_nodes_per_write(asked)
    for at in range(0, len(members), step):
        nodes = members[at : at + step]
        value = measurements.answers(depth, start, asked, nodes, np.arange(asked.size))
        yield _rows(codes, nodes, f"{asked.name}_dpq", asked, value, workload, spread, str(rho), "")


def list_bound_tables(constraints: Constraints, depth: int) -> list[int]:
    """Return the numbers, all below zero, of a level's tables of bounds: two for each constraint."""
    return [
        -(1 + 2 * i + side)
        for i, held in enumerate(constraints.held)
        if depth < len(held.low)
        for side in (0, 1)
    ]


def tabulate_bounds(
    constraints: Constraints, spine: Tree, workload: Workload, depth: int, number: int
) -> pa.Table:
    """Return the lower or upper bounds of one constraint in the geounits of a level, without its name."""
    i, side = divmod(-1 - number, 2)
    held = constraints.held[i]
    value = held.query.arrange_answers((held.low, held.high)[side][depth])
    nodes = np.arange(len(value))
    return _rows(spine.codes[depth].cast(pl.String), nodes, "", held.query, value, workload, 0.0, "0", "=")


class MeasurementFiles:
    """The files of a noisy measurement file: one for each table of a level, written while its rows arrive."""

    def __init__(
        self,
        folder: Path,
        levels: Sequence[str],
        workload: Workload,
        held: Sequence[HeldQuery],
        equal: NDArray[np.bool_],
    ) -> None:
        self.workload, self.held, self.equal = workload, held, equal
        self.places = [path_in(folder, make_file_name(level), ".parquet") for level in levels]
        self.writers: dict[tuple[int, int], pq.ParquetWriter] = {}
        self.waiting: dict[tuple[int, int], list[pa.Table]] = {}
        for place in self.places:
            for kind in ("DPQuery", "Constraint"):
                (place / kind).mkdir(parents=True, exist_ok=True)

    def __enter__(self) -> "MeasurementFiles":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for (depth, number), tables in self.waiting.items():
            if kind is None and any(one.num_rows for one in tables):
                self._write(depth, number, pa.concat_tables(tables))
        for writer in self.writers.values():
            writer.close()

    def add(self, depth: int, number: int, rows: pa.Table) -> None:
        """Add rows of one table, in their order, and write every complete row group."""
        if number < 0:
            named = self._name_bounds(rows, depth, number)
            if named is None:
                return
            rows = named
            step = MAX_NODES_PER_WRITE
        else:
            step = count_nodes_per_write(self.workload.queries[number % len(self.workload.queries)])
        waiting = self.waiting.setdefault((depth, number), [])
        waiting.append(rows)
        count = sum(one.num_rows for one in waiting)
        if count < step:
            return
        whole = pa.concat_tables(waiting)
        for at in range(0, count - step + 1, step):
            self._write(depth, number, whole.slice(at, step))
        self.waiting[depth, number] = [whole.slice(count - count % step)]

    def _write(self, depth: int, number: int, rows: pa.Table) -> None:
        """Write one row group."""
        rows = rows.combine_chunks()
        writer = self.writers.get((depth, number))
        if writer is None:
            folder, place = ("DPQuery", number) if number >= 0 else ("Constraint", -1 - number)
            path = self.places[depth] / folder / f"part-{place}.parquet"
            writer = self.writers[depth, number] = pq.ParquetWriter(path, rows.schema, compression="zstd")
        writer.write_table(rows)

    def _name_bounds(self, rows: pa.Table, depth: int, number: int) -> pa.Table | None:
        """Return the bounds with their name and sign; None for the second table of an equality."""
        i, side = divmod(-1 - number, 2)
        if self.equal[i, depth]:
            if side:
                return None
            sign, suffix = "=", ""
        else:
            sign, suffix = ((">=", "_lb"), ("<=", "_ub"))[side]
        for column, text in (("query_name", f"{self.held[i].name}{suffix}_con"), ("sign", sign)):
            place = rows.schema.get_field_index(column)
            rows = rows.set_column(place, column, pa.repeat(text, rows.num_rows))
        return rows


def list_table_files(folder: Path) -> list[Path]:
    """Return the files of a folder in the order of their tables."""
    return sorted(folder.glob("part-*.parquet"), key=lambda path: int(path.stem.removeprefix("part-")))


def build_schema(workload: Workload, value: pa.DataType) -> pa.Schema:
    """Return the columns of a table: int32 for noisy answers, int64 for bounds."""
    return pa.schema([
        ("geocode", pa.string()), ("query_name", pa.string()), ("query_shape", pa.list_(pa.int32())),
        ("value", pa.list_(value)), ("variance", pa.float64()), ("plb", pa.string()), ("sign", pa.string()),
        *((axis.name, pa.string()) for axis in workload.histogram.axes),
    ])  # fmt: skip


def _rows(
    codes: pl.Series, nodes: np.ndarray, name: str, query: Query, value: np.ndarray, workload: Workload,
    spread: float, plb: str, sign: str,
) -> pa.Table:  # fmt: skip
    count, size = len(nodes), len(query.shape)
    flat = pa.array(value.ravel(), pa.int64() if sign else pa.int32())
    offsets = pa.array(np.arange(count + 1) * value.shape[1], pa.int32())
    shapes = pa.array(np.tile(np.array(query.shape, np.int32), count))
    columns = {
        "geocode": codes.gather(nodes).to_arrow().cast(pa.string()),
        "query_name": pa.repeat(name, count),
        "query_shape": pa.ListArray.from_arrays(pa.array(np.arange(count + 1) * size, pa.int32()), shapes),
        "value": pa.ListArray.from_arrays(offsets, flat),
        "variance": pa.repeat(spread, count),
        "plb": pa.repeat(plb, count),
        "sign": pa.repeat(sign, count),
    }
    for i, axis in enumerate(workload.histogram.axes):
        used = next((part for part in query.parts if part == axis.name or part in axis.recodes), "*")
        columns[axis.name] = pa.repeat(used if query.kept[i] else "*", count)
    return pa.table(columns)
