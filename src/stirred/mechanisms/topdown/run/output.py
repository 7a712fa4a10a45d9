"""Make the released tables: microdata of the lowest level, totals, estimates with intervals, certificates."""

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import chain
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from stirred.arrow import pads
from stirred.engine.local.released import ReleasedFile
from stirred.engine.plain import plain_schema
from stirred.mechanisms.topdown.estimate import gls
from stirred.mechanisms.topdown.estimate.informed import TreeEstimate
from stirred.mechanisms.topdown.measure.allotment import Allotment
from stirred.mechanisms.topdown.rules.divided import FacilityTypes
from stirred.mechanisms.topdown.solve.problem import Certificate
from stirred.mechanisms.topdown.tree.counts import Sparse
from stirred.mechanisms.topdown.tree.geounits import Tree
from stirred.mechanisms.topdown.workload.histogram import name_column
from stirred.mechanisms.topdown.workload.workload import Workload

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
ROWS_PER_PIECE = 1 << 20
EMPTY_TYPE = pa.string()  # the type of the column of a table without levels
REPLICATE_FIELDS = (pa.field("replicate", pa.int16()), pa.field("count", pa.int32()))
Z90 = 1.6448536269514722


def make_microdata(
    workload: Workload, spine: Tree, leaves: Sparse, *, bureau: bool = False
) -> Iterator[pa.Table]:
    """Yield one row per record, by area and cell: an order that reveals nothing of the confidential file."""
    names = dict(workload.columns) if bureau else {}
    levels = list_shown_levels(spine)
    dictionaries = {d: _read_codes(spine, d) for d, _ in levels}
    node, entry = leaves.nodes, 0
    while entry < len(node) or entry == 0:
        end = int(np.searchsorted(np.cumsum(leaves.counts[entry:]), ROWS_PER_PIECE)) + 1 + entry
        rows = np.repeat(np.arange(entry, min(end, len(node))), leaves.counts[entry:end])
        columns: dict[str, pa.Array] = {}
        for d, level in levels:
            index = _find_ancestors(spine, node[rows], d)
            columns[level] = pa.DictionaryArray.from_arrays(pa.array(index, pa.int32()), dictionaries[d])
        for axis, value in zip(
            workload.histogram.axes, workload.histogram.coordinates(leaves.cells[rows]), strict=True
        ):
            name, offset = name_column(axis, names)
            columns[name] = pa.array(value + offset, pa.int16())
        yield pa.table(columns)
        entry = max(end, 1)


def list_shown_levels(spine: Tree) -> list[tuple[int, str]]:
    """Return depth and name of the levels in the records: all except a root that is not an area."""
    unnamed = spine.size(0) and str(spine.codes[0][0]) == ""
    first = 1 if spine.levels[0] == "root" or unnamed else 0
    return list(enumerate(spine.levels))[first:]


def collect_pieces(pieces: Iterator[pa.Table], path: Path | None) -> "pa.Table | pads.Dataset":
    """Return the pieces as one table, or write them to a Parquet file and open it."""
    if path is None:
        return pa.concat_tables(list(pieces))
    first = next(pieces)
    with closing(ReleasedFile(path, first.schema)) as file:
        for piece in chain([first], pieces):
            file.add(piece)
    return pads.dataset(path)


def tabulate_totals(spine: Tree, depth: int, value: Ints) -> pa.Table:
    """Return the totals of one level."""
    return pa.table({**_name_geounits(spine, depth), "total": pa.array(value, pa.int64())})


def tabulate_estimates(spine: Tree, informed: TreeEstimate) -> list[pa.Table]:
    """Return unbiased totals with exact standard deviations and 90 % intervals, by level above the leaves."""
    covariance = gls.covariances(informed.algebra, informed.levels, informed.leaves, leaves_too=False)
    return [
        tabulate_level_estimates(spine, d, informed, level.e, covariance[d])
        for d, level in enumerate(informed.levels)
    ]


def sum_noise(parts: Sequence[pa.Table], allotment: Allotment) -> pa.Table:
    """Count the geounits of all parts of the tree by level, query and standard deviation."""
    whole = pl.DataFrame(pl.from_arrow(pa.concat_tables(parts)))
    queries = pl.Enum([query.name for query in allotment.workload.queries])
    found = whole.group_by("depth", "level", "query", "standard_deviation").agg(pl.col("geounits").sum())
    found = found.sort("depth", pl.col("query").cast(queries), "standard_deviation")
    return found.drop("depth").to_arrow().cast(parts[0].schema.remove(0))


def join_tables(
    above: Sequence[pa.Table], below: Sequence[pa.Table], empty: pa.DataType = EMPTY_TYPE
) -> pa.Table:
    """Join the tables of all levels into one; those of subtrees are many and small."""
    tables = [*above]
    if below:
        tables.append(pa.concat_tables(below).combine_chunks())
    return pa.concat_tables(tables) if tables else pa.table({"level": pa.array([], empty)})


def assemble_pieces(pieces: Iterator[pa.Table], folder: Path | None) -> pa.Table:
    """Return the pieces as one table, in memory or mapped from an unnamed file in the folder."""
    if folder is None:
        return pa.concat_tables(list(pieces))
    first = next(pieces)
    descriptor, name = tempfile.mkstemp(prefix=".", dir=folder)
    os.close(descriptor)
    try:
        plain = plain_schema(first.schema)
        with pa.OSFile(name, "wb") as sink, pa.ipc.new_file(sink, plain) as writer:
            for piece in chain([first], pieces):
                writer.write_table(piece.cast(plain))
        with pa.memory_map(name) as source:
            return pa.ipc.open_file(source).read_all()
    finally:
        Path(name).unlink()


def tabulate_replicate(
    workload: Workload, spine: Tree, leaves: Sparse, number: int, *, bureau: bool = False
) -> pa.Table:
    """Return one replicate: the columns of the microdata, ``replicate`` and ``count``, by leaf and cell."""
    once = Sparse(leaves.first, leaves.cells, np.ones_like(leaves.counts))
    table = pa.concat_tables(list(make_microdata(workload, spine, once, bureau=bureau)))
    table = table.append_column(REPLICATE_FIELDS[0], pa.array(np.full(table.num_rows, number), pa.int16()))
    return table.append_column(REPLICATE_FIELDS[1], pa.array(leaves.counts, pa.int32()))


def tabulate_noise(allotment: Allotment, depths: range) -> pa.Table:
    """Return the standard deviation of the noise by level and query, and the number of its geounits."""
    rows = allotment.list_deviations(depths)
    names = ("depth", "level", "query", "standard_deviation", "geounits")
    kinds = (pa.int64(), pa.string(), pa.string(), pa.float64(), pa.int64())
    columns = [pa.array([row[i] for row in rows], kind) for i, kind in enumerate(kinds)]
    return pa.table(columns, names=list(names))


def tabulate_level_estimates(
    spine: Tree, depth: int, informed: TreeEstimate, e: Floats, covariance: Floats
) -> pa.Table:
    """Return the estimates of one level."""
    algebra = informed.algebra
    value = gls.sum_in_order(e)
    variance = gls.variances(algebra, covariance, np.zeros(algebra.K, np.int64), 0)[:, 0]
    sd = np.sqrt(np.maximum(variance, 0.0))
    return pa.table({
        **_name_geounits(spine, depth),
        "estimate": value,
        "standard_deviation": sd,
        "lower_90": value - Z90 * sd,
        "upper_90": value + Z90 * sd,
    })  # fmt: skip


def _name_geounits(spine: Tree, depth: int) -> dict[str, pa.Array]:
    """Return level and code of every geounit of a level."""
    return {
        "level": pa.array([spine.levels[depth]] * spine.size(depth), pa.string()),
        "code": pa.array([str(code) for code in spine.codes[depth]], pa.string()),
    }


def tabulate_certificates(parts: Sequence[Certificate]) -> pa.Table:
    """Return the certificates of every level as a table."""
    return pa.table({
        "level": [c.level for c in parts],
        "parents": [c.parents for c in parts],
        "distance": [c.distance for c in parts],
        "violation": [c.violation for c in parts],
        "iterations": [c.iterations for c in parts],
        "multipliers": [c.multipliers for c in parts],
        "generic": [c.generic for c in parts],
    })  # fmt: skip


def tabulate_repairs(types: FacilityTypes, counts: Sequence[Sequence[int]]) -> pa.Table:
    """Return how many persons were exchanged between leaves, or changed type in one, for bounds by type."""
    exchanged, moved = np.array(counts, np.int64).sum(axis=0).tolist()
    return pa.table({"rule": [types.rule.name], "exchanged": [exchanged], "moved": [moved]})


def _read_codes(spine: Tree, depth: int) -> pa.Array:
    """Return the codes of a level as plain values, text or integers as in the census."""
    codes = spine.codes[depth]
    return (
        codes.to_arrow() if codes.dtype.is_integer() else pa.array([str(code) for code in codes], pa.string())
    )


def _find_ancestors(spine: Tree, leaf: Ints, depth: int) -> Ints:
    node = leaf
    for d in range(len(spine.levels) - 1, depth, -1):
        node = spine.parent[d][node]
    return node
