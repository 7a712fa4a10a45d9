"""Count the census's records in the workload's histogram, sparse, for every block."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred.census.geography import ancestors
from stirred.errors import DataError, InputError, did_you_mean
from stirred.mechanisms.topdown.areas import deciding
from stirred.mechanisms.topdown.histogram import Axis, Histogram
from stirred.mechanisms.topdown.spine import Spine
from stirred.mechanisms.topdown.workload import Workload

if TYPE_CHECKING:
    from stirred.census import Census

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Sparse:
    """Histograms of the nodes of one level: for node i the cells and counts from ``first[i]`` to ``first[i + 1]``.

    >>> s = Sparse.of(np.array([1, 0, 1]), np.array([5, 2, 5]), np.array([1, 4, 2]), 2, 10)
    >>> s.cells.tolist(), s.counts.tolist(), s.first.tolist()
    ([2, 5], [4, 3], [0, 1, 2])
    """

    first: Ints
    cells: Ints
    counts: Ints

    @staticmethod
    def of(node: Ints, cell: Ints, count: Ints, nodes: int, size: int) -> "Sparse":
        """From triples in any order; equal pairs are added, zeros dropped."""
        label = node * size + cell
        unique, inverse = np.unique(label, return_inverse=True)
        total = np.zeros(len(unique), np.int64)
        np.add.at(total, inverse, count)
        keep = total != 0
        unique, total = unique[keep], total[keep]
        return Sparse(np.searchsorted(unique // size, np.arange(nodes + 1)), unique % size, total)

    @property
    def nodes(self) -> Ints:
        """The node of each entry."""
        return np.repeat(np.arange(len(self.first) - 1), np.diff(self.first))

    def at(self, node: int) -> tuple[Ints, Ints]:
        """Cells and counts of one node."""
        part = slice(self.first[node], self.first[node + 1])
        return self.cells[part], self.counts[part]

    def up(self, parent: Ints, parents: int, size: int) -> "Sparse":
        """The same counts one level up."""
        return Sparse.of(parent[self.nodes], self.cells, self.counts, parents, size)

    @property
    def totals(self) -> Ints:
        """The total of every node."""
        result = np.zeros(len(self.first) - 1, np.int64)
        np.add.at(result, self.nodes, self.counts)
        return result


def stacked(entries: Sequence[tuple[Ints, Ints]]) -> Sparse:
    """Histograms of several geounits, one after the other."""
    none = np.zeros(0, np.int64)
    first = np.cumsum([0, *(len(cells) for cells, _ in entries)])
    return Sparse(
        first.astype(np.int64),
        np.concatenate([none, *(cells for cells, _ in entries)]),
        np.concatenate([none, *(counts for _, counts in entries)]),
    )


def axis_expression(axis: Axis, types: pl.Schema) -> pl.Expr:
    """The level of each record on an axis; null where the record has none."""
    source = axis.source
    if source is None:
        return pl.col(axis.name).cast(pl.Int64)
    for column in source.columns:
        if column not in types:
            raise InputError(
                f"axis {axis.name} needs the column {column}",
                why="the levels of the axis are computed from it",
                fix=did_you_mean(column, types.names()),
            )
    if source.product:
        whole: pl.Expr = pl.lit(0, dtype=pl.Int64)
        for part, size in source.product:
            inner = axis_expression(Axis(name=axis.name, size=size, source=part), types)
            whole = whole * size + pl.when((inner >= 0) & (inner < size)).then(inner)
        return whole
    if source.cases:
        expression: pl.Expr = pl.lit(None, dtype=pl.Int64)
        for level in range(len(source.cases) - 1, -1, -1):
            condition = pl.lit(True)
            for column, values in source.cases[level]:
                condition = condition & pl.col(column).is_in(list(values))
            expression = pl.when(condition).then(level).otherwise(expression)
        return expression
    value = pl.col(source.column)
    if source.cuts:
        expression = pl.lit(0, dtype=pl.Int64)
        for cut in source.cuts:
            expression = expression + (value >= cut).cast(pl.Int64)
        return expression
    if source.values:
        expression = pl.lit(None, dtype=pl.Int64)
        for level, values in enumerate(source.values):
            expression = pl.when(value.is_in(list(values))).then(level).otherwise(expression)
        return expression
    return value.cast(pl.Int64) - source.offset


def cell_expression(histogram: Histogram, types: pl.Schema) -> pl.Expr:
    """The number of the cell each record falls in."""
    cell: pl.Expr = pl.lit(0, dtype=pl.Int64)
    for axis in histogram.axes:
        level = axis_expression(axis, types)
        cell = cell * axis.size + pl.when((level >= 0) & (level < axis.size)).then(level)
    return cell


def leaf_table(census: "Census", workload: Workload) -> pl.DataFrame:
    """One row per leaf with its areas: from the public file of areas, else from the records with a home."""
    spine = list(census.schema.spine)
    if not spine:
        raise InputError(
            "the census has no geography",
            why="TopDown works from the top of a spine down to its leaves",
            fix="name its spine in census.toml: [geography] spine = […]",
        )
    if census.schema.geography.areas is not None:
        areas = ancestors(census.schema, census.folder).select(spine).collect()
        types = census.scan(workload.record, spine).collect_schema()
        return areas.select(pl.col(name).cast(types[name]) for name in spine)
    frames = [census.scan(record, spine).unique() for record in deciding(census)]
    return pl.concat(frames).unique().collect(engine="streaming")


def histograms(census: "Census", workload: Workload, spine: Spine) -> list[Sparse]:
    """The census's histograms at every level of the spine, root first."""
    leaf = census.schema.spine[-1]
    needed = [
        name
        for axis in workload.histogram.axes
        for name in (axis.source.columns if axis.source else (axis.name,))
    ]
    needed += [name for name, _ in workload.where]
    frame = census.scan(workload.record, list(dict.fromkeys([leaf, *needed])))
    for name, values in workload.where:
        frame = frame.filter(pl.col(name).is_in(list(values)))
    types = frame.collect_schema()
    cells = (
        frame.select(pl.col(leaf), cell_expression(workload.histogram, types).alias("cell"))
        .group_by(leaf, "cell")
        .agg(pl.len().alias("count"))
        .collect(engine="streaming")
    )
    strangers = int(cells.filter(pl.col("cell").is_null())["count"].sum())
    if strangers:
        raise no_cell(strangers, workload)
    depth = len(spine.levels) - 1
    number = pl.DataFrame({leaf: spine.codes[depth]}).with_row_index("number")
    joined = cells.join(number, on=leaf, how="left")
    lost = int(joined["number"].null_count())
    if lost:
        raise no_area(lost)
    size = workload.histogram.cells
    low = Sparse.of(
        joined["number"].to_numpy().astype(np.int64),
        joined["cell"].to_numpy().astype(np.int64),
        joined["count"].to_numpy().astype(np.int64),
        spine.size(depth),
        size,
    )
    result = [low]
    for d in range(depth, 0, -1):
        result.append(result[-1].up(spine.parent[d], spine.size(d - 1), size))
    return result[::-1]


def no_cell(strangers: int, workload: Workload) -> DataError:
    """The error for records outside the histogram."""
    return DataError(
        f"{strangers} {workload.record} records fall in no cell of workload {workload.name}",
        why="a value is missing or outside the axis",
        fix="check the census, or widen the axis' source in the workload",
    )


def no_area(lost: int) -> InputError:
    """The error for records outside the geography."""
    return InputError(
        f"{lost} cells lie in areas that the spine does not have",
        why="records name areas that the file of areas does not list",
        fix="add these areas to the file of areas",
    )
