"""The noisy measurement file: every noisy answer as Parquet, rows of geounit × query, in the public layout.

``<Level>.parquet/DPQuery`` and ``<Level>.parquet/Constraint`` hold geocode, query_name (``…_dpq`` or ``…_con``),
query_shape, value, variance, plb (the part of ρ² spent, as an exact fraction), sign, and one column per attribute with
the recode used.
"""

from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from stirred.mechanisms.topdown.measure.noise import Measurements, variance
from stirred.mechanisms.topdown.rules.constraints import Constraints
from stirred.mechanisms.topdown.workload.histogram import Query
from stirred.mechanisms.topdown.workload.workload import Workload

NODES = 512  # geounits written at a time


def write(folder: Path, measurements: Measurements, constraints: Constraints) -> int:
    """Write all levels; returns how many noisy answers there are."""
    allotment = measurements.allotment
    spine, workload = allotment.spine, allotment.workload
    written = 0
    for d, level in enumerate(spine.levels):
        codes = spine.codes[d].cast(pl.String)
        place = folder / f"{level}.parquet"
        (place / "DPQuery").mkdir(parents=True, exist_ok=True)
        (place / "Constraint").mkdir(parents=True, exist_ok=True)
        writer = None
        for start in np.unique(allotment.start[d][allotment.start[d] >= 0]):
            members = np.flatnonzero(allotment.start[d] == start)
            parts = allotment.rho[int(start), d]
            for query in workload.queries:
                if query.name not in parts:
                    continue
                for at in range(0, len(members), NODES):
                    nodes = members[at : at + NODES]
                    value = measurements.answers(d, int(start), query, nodes, np.arange(query.size))
                    rho = parts[query.name]
                    spread = 0.0 if measurements.key is None else variance(1 / rho)
                    table = _rows(
                        codes, nodes, f"{query.name}_dpq", query, value, workload, spread, str(rho), ""
                    )
                    writer = writer or pq.ParquetWriter(
                        place / "DPQuery" / "part-0.parquet", table.schema, compression="zstd"
                    )
                    writer.write_table(table)
                    written += value.size
        if writer is not None:
            writer.close()
        _constraints(place / "Constraint" / "part-0.parquet", d, codes, constraints, workload)
    return written


def _constraints(
    path: Path, depth: int, codes: pl.Series, constraints: Constraints, workload: Workload
) -> None:
    tables = []
    nodes = np.arange(len(codes))
    for held in constraints.held:
        if depth < len(held.low):
            exact = bool((held.low[depth] == held.high[depth]).all())
            sides = [("=", held.low[depth])] if exact else [(">=", held.low[depth]), ("<=", held.high[depth])]
            for sign, value in sides:
                suffix = {"=": "", ">=": "_lb", "<=": "_ub"}[sign]
                name = f"{held.name}{suffix}_con"
                tables.append(_rows(codes, nodes, name, held.query, value, workload, 0.0, "0", sign))
    if tables:
        pq.write_table(pa.concat_tables(tables), path, compression="zstd")


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
