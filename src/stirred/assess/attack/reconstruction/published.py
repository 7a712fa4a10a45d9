"""The published numbers of many areas, from records that are tabulated or from tables that share an area."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred.assess.attack.reconstruction.block_tables import block_design, cell_of
from stirred.assess.attack.reconstruction.design import TableDesign
from stirred.errors import InputError

Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AreaCounts:
    """The published numbers: ``counts`` has a row for each of ``areas`` and a column for each number.

    ``bound`` is how far a number can be from the truth (0: tables of one file of records; None: not known), and
    ``zeros_kept`` says that a cell is zero where its number is.
    """

    design: TableDesign
    areas: pl.Series
    counts: Counts
    bound: int | None = 0
    zeros_kept: bool = True

    @property
    def digest(self) -> str:
        """Return a fingerprint of the published numbers and of the design."""
        parts = sha256(np.ascontiguousarray(self.counts).tobytes())
        parts.update(np.ascontiguousarray(self.design.members).tobytes())
        parts.update("\0".join(self.areas.to_list()).encode())
        parts.update(f"{self.bound} {self.zeros_kept}".encode())
        return parts.hexdigest()

    def select(self, chosen: Counts) -> "AreaCounts":
        """Return some of the areas, by their place."""
        return AreaCounts(
            design=self.design,
            areas=self.areas.gather(chosen),
            counts=self.counts[chosen],
            bound=self.bound,
            zeros_kept=self.zeros_kept,
        )


def tabulate_blocks(records: pl.DataFrame, area: str) -> AreaCounts:
    """Tabulate the 18 block tables from records with sex, age (or age_class), race and hispanic."""
    design = block_design()
    codes, areas = _place_areas(records[area])
    counts = design.tabulate_records(codes, cell_of(records), len(areas))
    return AreaCounts(design=design, areas=areas, counts=counts)


def tabulate_margins(records: pl.DataFrame, area: str, tables: Sequence[Sequence[str]]) -> AreaCounts:
    """Tabulate tables of some variables each from records.

    >>> people = pl.DataFrame({"block": ["a", "a"], "sex": [1, 2], "race": ["x", "y"]})
    >>> tabulate_margins(people, "block", [["sex"], ["race"]]).counts.tolist()
    [[1, 1, 1, 1]]
    """
    return collect_tables(
        {
            "×".join(by) or "total": records.group_by([area, *by]).agg(pl.len().alias("count"))
            for by in tables
        },
        area,
    )


def collect_tables(
    tables: Mapping[str, pl.DataFrame], area: str, *, bound: int | None = 0, zeros_kept: bool = True
) -> AreaCounts:
    """Collect published tables that share an area; a cell that a table does not list counts 0."""
    sharing = {name: table for name, table in tables.items() if area in table.columns}
    if not sharing:
        raise InputError(
            f"no table counts by {area}",
            why="a reconstruction needs tables that share an area",
            fix="name an area that the tables have, or publish tables of it",
        )
    by = {name: [c for c in table.columns if c not in (area, "count")] for name, table in sharing.items()}
    levels: dict[str, list[object]] = {}
    for name, table in sharing.items():
        for variable in by[name]:
            seen = table[variable].cast(pl.String).unique().to_list()
            levels[variable] = sorted({*levels.get(variable, []), *seen}, key=str)
    design = TableDesign.of_margins(levels, list(by.values()))
    _, areas = _place_areas(pl.concat([table[area].cast(pl.String) for table in sharing.values()]))
    counts = np.zeros((len(areas), design.numbers), dtype=np.int64)
    for (name, table), start in zip(sharing.items(), design.offsets, strict=False):
        code = np.zeros(table.height, dtype=np.int64)
        for variable in by[name]:
            code = code * len(levels[variable]) + _encode_levels(table[variable], levels[variable])
        place = _encode_levels(table[area], areas.to_list())
        np.add.at(counts, (place, start + code), table["count"].cast(pl.Int64).to_numpy())
    return AreaCounts(design=design, areas=areas, counts=counts, bound=bound, zeros_kept=zeros_kept)


def _place_areas(codes: pl.Series) -> tuple[Counts, pl.Series]:
    """Return the place of each record's area among the sorted areas, and the areas."""
    areas = codes.cast(pl.String).unique().sort()
    return _encode_levels(codes, areas.to_list()), areas


def _encode_levels(values: pl.Series, levels: Sequence[object]) -> Counts:
    named = pl.DataFrame({"level": pl.Series(list(levels), dtype=pl.String), "code": np.arange(len(levels))})
    asked = pl.DataFrame({"level": values.cast(pl.String)})
    joined = asked.join(named, on="level", how="left", maintain_order="left", nulls_equal=True)
    return joined["code"].to_numpy().astype(np.int64)
