"""Make a product agree with an earlier one: its published microdata as exact sums of the new histogram, H(Z) = P."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred.errors import InputError, did_you_mean
from stirred.mechanisms.release import count_cells
from stirred.mechanisms.topdown.dhc_given_pl.facility_types import build_given_query
from stirred.mechanisms.topdown.histogram import Query, name_column
from stirred.mechanisms.topdown.rules import HeldQuery, sum_bounds
from stirred.mechanisms.topdown.tree import Tree
from stirred.mechanisms.topdown.workload import Workload
from stirred.spec import Specification
from stirred.spec.files import load

if TYPE_CHECKING:
    from stirred.census import Census


Ints = NDArray[np.int64]


def find_public_folder(packet: Path) -> Path:
    """Return the public part of a packet."""
    folder = packet / "public" if (packet / "public").is_dir() else packet
    if not (folder / "data").is_dir():
        raise InputError(
            "the given packet holds no microdata",
            why="the earlier counts are taken from its microdata",
            fix="--given a packet that stirred topdown --workload pl94 wrote",
        )
    return folder


def load_promise(packet: Path) -> Specification:
    """Return the promise of the given packet; its budget composes with that of the new product."""
    return load(find_public_folder(packet) / "spec.json")


@dataclass(frozen=True, slots=True)
class EarlierProduct:
    """The files of the earlier product, and the cell of the new histogram's query for each of its records."""

    path: Path
    query: Query
    columns: tuple[tuple[str, int, int], ...]  # name, what is subtracted, how many levels

    @staticmethod
    def of(workload: Workload, packet: Path) -> "EarlierProduct":
        """Open the microdata of a packet; only its columns are read here."""
        earlier = Workload.preset(workload.given)
        path = find_public_folder(packet) / "data" / f"{earlier.record}.parquet"
        if not path.exists():
            raise InputError(
                f"the given packet has no {earlier.record} records",
                why="the workload builds on these records",
                fix=f"--given a packet of workload {workload.given}",
            )
        query = build_given_query(workload)
        names = {axis: name_column(earlier.histogram.axis(axis), {}) for axis, _ in workload.given_map}
        there = pl.scan_parquet(path).collect_schema().names()
        for name, _ in names.values():
            if name not in there:
                raise InputError(
                    f"the given microdata have no column {name}",
                    why="an axis of the earlier workload needs it",
                    fix=did_you_mean(name, there),
                )
        shape = [size for size, kept in zip(query.shape, query.kept, strict=True) if kept]
        order = sorted(workload.given_map, key=lambda pair: _place(workload, pair[1]))
        columns = [(*names[axis], size) for (axis, _), size in zip(order, shape, strict=True)]
        return EarlierProduct(path, query, tuple(columns))

    @property
    def cell(self) -> pl.Expr:
        """Return the answer of the query that each record is counted in."""
        cell = pl.lit(0, dtype=pl.Int64)
        for name, offset, size in self.columns:
            cell = cell * size + (pl.col(name).cast(pl.Int64) - offset)
        return cell


def build_agreement(census: "Census", workload: Workload, spine: Tree, packet: Path) -> HeldQuery:
    """Return the sums that the new histogram must have in every leaf: the published earlier histogram.

    Nothing confidential is read: the right-hand sides come from the packet.
    """
    earlier = EarlierProduct.of(workload, packet)
    depth = len(spine.levels) - 1
    leaf, number, count = count_earlier_records(census, earlier, spine)
    exact = np.zeros((spine.size(depth), earlier.query.size), np.int64)
    exact[leaf, number] = count
    return sum_bounds(name_agreement(workload), earlier.query, exact, exact, spine, depth)


def count_earlier_records(census: "Census", earlier: EarlierProduct, spine: Tree) -> tuple[Ints, Ints, Ints]:
    """Count the earlier product's records by leaf and answer: numbers of both, and counts."""
    leaf = census.schema.spine[-1]
    published = pl.scan_parquet(earlier.path).select(pl.col(leaf).cast(pl.String), earlier.cell.alias("cell"))
    counts = count_cells(published, [leaf, "cell"]).collect()
    depth = len(spine.levels) - 1
    number = pl.DataFrame({leaf: [str(code) for code in spine.codes[depth]]}).with_row_index("number")
    joined = counts.join(number, on=leaf, how="inner")
    places, cell, count = (joined[name].cast(pl.Int64).to_numpy() for name in ("number", "cell", "count"))
    return places, cell, count


def name_agreement(workload: Workload) -> str:
    """Return the name of the agreement."""
    return f"the published {workload.given}"


def _place(workload: Workload, target: str) -> int:
    for i, axis in enumerate(workload.histogram.axes):
        if target == axis.name or target in axis.recodes:
            return i
    raise InputError(
        f"the workload has no axis or recode {target}",
        why="a line of given_map names it",
        fix="name an axis or a recode of the workload in given_map",
    )
