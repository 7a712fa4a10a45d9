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
from stirred.mechanisms.topdown.estimate.informed import Informed
from stirred.mechanisms.topdown.measure.allotment import Allotment
from stirred.mechanisms.topdown.rules.divided import DividedTypes
from stirred.mechanisms.topdown.solve.problem import Certificate
from stirred.mechanisms.topdown.tree.counts import Sparse
from stirred.mechanisms.topdown.tree.geounits import Tree
from stirred.mechanisms.topdown.workload.histogram import column
from stirred.mechanisms.topdown.workload.workload import Workload

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
ROWS = 1 << 20
EMPTY = pa.string()  # the type of the column of a table without levels
REPLICATE = (pa.field("replicate", pa.int16()), pa.field("count", pa.int32()))
Z90 = 1.6448536269514722


def microdata(workload: Workload, spine: Tree, leaves: Sparse, *, bureau: bool = False) -> Iterator[pa.Table]:
    """One row per record, by area and cell, in pieces: an order that reveals nothing about the confidential file."""
    names = dict(workload.columns) if bureau else {}
    levels = shown(spine)
    dictionaries = {d: _codes(spine, d) for d, _ in levels}
    node, entry = leaves.nodes, 0
    while entry < len(node) or entry == 0:
        end = int(np.searchsorted(np.cumsum(leaves.counts[entry:]), ROWS)) + 1 + entry
        rows = np.repeat(np.arange(entry, min(end, len(node))), leaves.counts[entry:end])
        columns: dict[str, pa.Array] = {}
        for d, level in levels:
            index = _ancestors(spine, node[rows], d)
            columns[level] = pa.DictionaryArray.from_arrays(pa.array(index, pa.int32()), dictionaries[d])
        for axis, value in zip(
            workload.histogram.axes, workload.histogram.coordinates(leaves.cells[rows]), strict=True
        ):
            name, offset = column(axis, names)
            columns[name] = pa.array(value + offset, pa.int16())
        yield pa.table(columns)
        entry = max(end, 1)


def shown(spine: Tree) -> list[tuple[int, str]]:
    """The depths and names of the levels in the records: all except a root that is not an area."""
    unnamed = spine.size(0) and str(spine.codes[0][0]) == ""
    first = 1 if spine.levels[0] == "root" or unnamed else 0
    return list(enumerate(spine.levels))[first:]


def collected(pieces: Iterator[pa.Table], path: Path | None) -> "pa.Table | pads.Dataset":
    """The pieces as one table, or streamed to a Parquet file and opened there."""
    if path is None:
        return pa.concat_tables(list(pieces))
    first = next(pieces)
    with closing(ReleasedFile(path, first.schema)) as file:
        for piece in chain([first], pieces):
            file.add(piece)
    return pads.dataset(path)


def level_totals(spine: Tree, depth: int, value: Ints) -> pa.Table:
    """The totals of one level."""
    return pa.table({**_names(spine, depth), "total": pa.array(value, pa.int64())})


def estimates(spine: Tree, informed: Informed) -> list[pa.Table]:
    """Unbiased totals with exact standard deviations and 90 % intervals, for every level that is known above the leaves."""
    covariance = gls.covariances(informed.algebra, informed.levels, informed.leaves, leaves_too=False)
    return [
        level_estimates(spine, d, informed, level.e, covariance[d]) for d, level in enumerate(informed.levels)
    ]


def summed(parts: Sequence[pa.Table], allotment: Allotment) -> pa.Table:
    """The geounits of all parts of the tree by level, query and standard deviation."""
    whole = pl.DataFrame(pl.from_arrow(pa.concat_tables(parts)))
    queries = pl.Enum([query.name for query in allotment.workload.queries])
    found = whole.group_by("depth", "level", "query", "standard_deviation").agg(pl.col("geounits").sum())
    found = found.sort("depth", pl.col("query").cast(queries), "standard_deviation")
    return found.drop("depth").to_arrow().cast(parts[0].schema.remove(0))


def joined(above: Sequence[pa.Table], below: Sequence[pa.Table], empty: pa.DataType = EMPTY) -> pa.Table:
    """The tables of all levels as one; those of subtrees are many and small."""
    tables = [*above]
    if below:
        tables.append(pa.concat_tables(below).combine_chunks())
    return pa.concat_tables(tables) if tables else pa.table({"level": pa.array([], empty)})


def assembled(pieces: Iterator[pa.Table], folder: Path | None) -> pa.Table:
    """The pieces as one table: in memory, or with a folder in a file without a name that is mapped, not read."""
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


def replicate(
    workload: Workload, spine: Tree, leaves: Sparse, number: int, *, bureau: bool = False
) -> pa.Table:
    """One replicate: the columns of the microdata, ``replicate`` and ``count``, one row for each cell of a leaf."""
    once = Sparse(leaves.first, leaves.cells, np.ones_like(leaves.counts))
    table = pa.concat_tables(list(microdata(workload, spine, once, bureau=bureau)))
    table = table.append_column(REPLICATE[0], pa.array(np.full(table.num_rows, number), pa.int16()))
    return table.append_column(REPLICATE[1], pa.array(leaves.counts, pa.int32()))


def noise(allotment: Allotment, depths: range) -> pa.Table:
    """The standard deviation of the noise by level and query, and the number of geounits that were measured with it."""
    rows = allotment.deviations(depths)
    names = ("depth", "level", "query", "standard_deviation", "geounits")
    kinds = (pa.int64(), pa.string(), pa.string(), pa.float64(), pa.int64())
    columns = [pa.array([row[i] for row in rows], kind) for i, kind in enumerate(kinds)]
    return pa.table(columns, names=list(names))


def level_estimates(spine: Tree, depth: int, informed: Informed, e: Floats, covariance: Floats) -> pa.Table:
    """The estimates of one level."""
    algebra = informed.algebra
    value = gls.sums(e)
    variance = gls.variances(algebra, covariance, np.zeros(algebra.K, np.int64), 0)[:, 0]
    sd = np.sqrt(np.maximum(variance, 0.0))
    return pa.table({
        **_names(spine, depth),
        "estimate": value,
        "standard_deviation": sd,
        "lower_90": value - Z90 * sd,
        "upper_90": value + Z90 * sd,
    })  # fmt: skip


def _names(spine: Tree, depth: int) -> dict[str, pa.Array]:
    """Level and code of every geounit of a level."""
    return {
        "level": pa.array([spine.levels[depth]] * spine.size(depth), pa.string()),
        "code": pa.array([str(code) for code in spine.codes[depth]], pa.string()),
    }


def certificates(parts: Sequence[Certificate]) -> pa.Table:
    """The certificates of every level as a table."""
    return pa.table({
        "level": [c.level for c in parts],
        "parents": [c.parents for c in parts],
        "distance": [c.distance for c in parts],
        "violation": [c.violation for c in parts],
        "iterations": [c.iterations for c in parts],
        "multipliers": [c.multipliers for c in parts],
        "generic": [c.generic for c in parts],
    })  # fmt: skip


def repairs(types: DividedTypes, counts: Sequence[Sequence[int]]) -> pa.Table:
    """How many persons were exchanged between leaves, or changed type in one, to meet the bounds by type."""
    exchanged, moved = np.array(counts, np.int64).sum(axis=0).tolist()
    return pa.table({"rule": [types.rule.name], "exchanged": [exchanged], "moved": [moved]})


def _codes(spine: Tree, depth: int) -> pa.Array:
    """The codes of a level as plain values, text or integers as in the census."""
    codes = spine.codes[depth]
    return (
        codes.to_arrow() if codes.dtype.is_integer() else pa.array([str(code) for code in codes], pa.string())
    )


def _ancestors(spine: Tree, leaf: Ints, depth: int) -> Ints:
    node = leaf
    for d in range(len(spine.levels) - 1, depth, -1):
        node = spine.parent[d][node]
    return node
