"""Count the census's records in the workload's histogram, sparse, for every geounit of the tree."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred.errors import DataError, InputError, did_you_mean
from stirred.mechanisms.release import count_cells
from stirred.mechanisms.topdown.histogram import Query, cell_expression
from stirred.mechanisms.topdown.tree import Tree
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
        """Build histograms from triples in any order; equal pairs are added, zeros dropped."""
        label = node * size + cell
        unique, inverse = np.unique(label, return_inverse=True)
        total = np.zeros(len(unique), np.int64)
        np.add.at(total, inverse, count)
        keep = total != 0
        unique, total = unique[keep], total[keep]
        return Sparse(np.searchsorted(unique // size, np.arange(nodes + 1)), unique % size, total)

    @property
    def nodes(self) -> Ints:
        """Return the node of each entry."""
        return np.repeat(np.arange(len(self.first) - 1), np.diff(self.first))

    def at(self, node: int) -> tuple[Ints, Ints]:
        """Return cells and counts of one node."""
        part = slice(self.first[node], self.first[node + 1])
        return self.cells[part], self.counts[part]

    def up(self, parent: Ints, parents: int, size: int) -> "Sparse":
        """Return the same counts one level up."""
        return Sparse.of(parent[self.nodes], self.cells, self.counts, parents, size)

    @property
    def totals(self) -> Ints:
        """Return the total of every node."""
        result = np.zeros(len(self.first) - 1, np.int64)
        np.add.at(result, self.nodes, self.counts)
        return result


def stack_histograms(entries: Sequence[tuple[Ints, Ints]]) -> Sparse:
    """Stack the histograms of several geounits, one after the other."""
    none = np.zeros(0, np.int64)
    first = np.cumsum([0, *(len(cells) for cells, _ in entries)])
    return Sparse(
        first.astype(np.int64),
        np.concatenate([none, *(cells for cells, _ in entries)]),
        np.concatenate([none, *(counts for _, counts in entries)]),
    )


def count_histograms(census: "Census", workload: Workload, spine: Tree) -> list[Sparse]:
    """Return the census's histograms at every level of the spine, root first."""
    return place_counts(count_records(census, workload), workload, spine, census.schema.spine[-1])


def count_records(census: "Census", workload: Workload) -> pl.DataFrame:
    """Count the census's records by the code of their leaf and their cell."""
    leaf = census.schema.spine[-1]
    wanted = list(dict.fromkeys([leaf, *_list_columns(workload)]))
    frame = census.scan(workload.record, wanted, ordered=False)
    for name, values in workload.where:
        frame = frame.filter(pl.col(name).is_in(list(values)))
    types = frame.collect_schema()
    chosen = frame.select(pl.col(leaf), cell_expression(workload.histogram, types).alias("cell"))
    found = count_cells(chosen, [leaf, "cell"]).collect(engine="streaming")
    strangers = int(found.filter(pl.col("cell").is_null())["count"].sum())
    if strangers:
        raise no_cell_error(strangers, workload)
    return found


def _list_columns(workload: Workload) -> list[str]:
    """Return the columns by which a workload counts records."""
    axes = workload.histogram.axes
    needed = [name for axis in axes for name in (axis.source.columns if axis.source else (axis.name,))]
    return [*needed, *(name for name, _ in workload.where)]


def require_columns(census: "Census", workload: Workload) -> None:
    """Raise an error, before anything is counted, if the census lacks a column by which the workload counts."""
    schema = census.schema
    record = schema.record(workload.record)
    there = [*census.columns(record.name), *schema.spine, *(off.name for off in schema.geography.off_spine)]
    if record.linked_to:
        there += census.columns(record.linked_to)
    for name in _list_columns(workload):
        if name not in there:
            raise InputError(
                f"{record.name} records have no column {name}",
                why=f"workload {workload.name} counts by it",
                fix=did_you_mean(name, there),
            )


def place_counts(found: pl.DataFrame, workload: Workload, spine: Tree, leaf: str) -> list[Sparse]:
    """Return the counts of records as histograms of every level of the spine."""
    depth = len(spine.levels) - 1
    number = pl.DataFrame({leaf: spine.codes[depth]}).with_row_index("number")
    joined = found.join(number, on=leaf, how="left")
    lost = int(joined["number"].null_count())
    if lost:
        raise no_area_error(lost)
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


def no_cell_error(strangers: int, workload: Workload) -> DataError:
    """Return the error for records outside the histogram."""
    return DataError(
        f"{strangers} {workload.record} records fall in no cell of workload {workload.name}",
        why="a value is missing or outside the axis",
        fix="check the census, or widen the axis' source in the workload",
    )


def no_area_error(lost: int) -> InputError:
    """Return the error for records outside the geography."""
    return InputError(
        f"{lost} cells lie in areas that the spine does not have",
        why="records name areas that the file of areas does not list",
        fix="add these areas to the file of areas",
    )


def reorder_leaves(published: Tree, spine: Tree, leaves: Sparse, size: int) -> Sparse:
    """Return the leaf histograms of the measured tree in the order of the published geography."""
    if published is spine:
        return leaves
    number = {code: i for i, code in enumerate(published.codes[-1].to_list())}
    place = np.array([number[code] for code in spine.codes[-1].to_list()], np.int64)
    return Sparse.of(
        place[leaves.nodes], leaves.cells, leaves.counts, published.size(len(published.levels) - 1), size
    )


def sum_upward(spine: Tree, leaves: Sparse, size: int) -> list[Sparse]:
    """Return the histograms of every level, root first, from those of the leaves."""
    levels = [leaves]
    for d in range(len(spine.levels) - 1, 0, -1):
        levels.append(levels[-1].up(spine.parent[d], spine.size(d - 1), size))
    return levels[::-1]


def sum_answers(histograms: Sparse, query: Query) -> Ints:
    """Return the exact answers of a query for every node of a level."""
    index = query.of(histograms.cells)
    keep = index >= 0
    result = np.zeros((len(histograms.first) - 1, query.size), np.int64)
    np.add.at(result, (histograms.nodes[keep], index[keep]), histograms.counts[keep])
    return result
