"""Which cells a record can lie in, and which published numbers count each cell."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred.errors import InputError, did_you_mean

Codes = NDArray[np.int32]
Counts = NDArray[np.int64]
MAX_CELLS = 2_000_000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Covering:
    """One published table of an area: the row that counts each cell, −1 where none does."""

    name: str
    codes: Codes
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TableDesign:
    """The cells of the histogram (one row of ``cells`` each) and the tables that count them, in any area.

    ``x`` records in the cells give the published numbers ``A x``; ``members[t, j]`` is the number of table t that counts
    cell j.

    >>> design = TableDesign.of_margins({"sex": [1, 2], "race": [1, 2, 3]}, [["sex"], ["race"]])
    >>> design.tabulated(np.array([[2, 0, 0, 0, 0, 1]])).tolist()
    [[2, 1, 2, 0, 1]]
    """

    cells: pl.DataFrame
    coverings: tuple[Covering, ...]

    @staticmethod
    def of_margins(levels: Mapping[str, Sequence[object]], tables: Sequence[Sequence[str]]) -> "TableDesign":
        """Build the design of all combinations of levels, counted by tables of some variables each."""
        for name in {name for by in tables for name in by}:
            if name not in levels:
                raise InputError(
                    f"no levels are given for {name}",
                    why="a table counts by it",
                    fix=did_you_mean(name, levels),
                )
        many = int(np.prod([len(of) for of in levels.values()], dtype=np.float64))
        if many > MAX_CELLS:
            raise InputError(
                f"the tables have {many:,} combinations of levels",
                why=f"a reconstruction takes {MAX_CELLS:,} at most",
                fix="attack fewer tables, or tables of coarser variables",
            )
        index = np.indices([len(of) for of in levels.values()]).reshape(len(levels), -1)
        code = dict(zip(levels, index, strict=True))
        cells = pl.DataFrame({name: pl.Series(list(of)).gather(code[name]) for name, of in levels.items()})
        coverings = []
        for by in tables:
            codes = np.zeros(many, dtype=np.int64)
            for name in by:
                codes = codes * len(levels[name]) + code[name]
            rows = int(np.prod([len(levels[name]) for name in by], dtype=np.int64))
            coverings.append(Covering(name="×".join(by) or "total", codes=codes.astype(np.int32), rows=rows))
        return TableDesign(cells=cells, coverings=tuple(coverings))

    @property
    def offsets(self) -> list[int]:
        """Return where the numbers of each table begin in the vector of all published numbers."""
        ends = np.cumsum([0, *(table.rows for table in self.coverings)])
        return [int(end) for end in ends]

    @property
    def members(self) -> Codes:
        """Return the number by which each table counts each cell; −1 where it does not."""
        rows = [
            np.where(table.codes < 0, -1, table.codes + start).astype(np.int32)
            for table, start in zip(self.coverings, self.offsets, strict=False)
        ]
        return np.stack(rows)

    @property
    def numbers(self) -> int:
        """Return how many numbers are published for an area."""
        return self.offsets[-1]

    def tabulate(self, histograms: NDArray[np.integer]) -> Counts:
        """Return the published numbers of areas with these histograms (areas × cells)."""
        found = np.zeros((histograms.shape[0], self.numbers), dtype=np.int64)
        area, cell = np.nonzero(histograms)
        self._add(found, area, cell, histograms[area, cell].astype(np.int64))
        return found

    def tabulate_records(self, area: Counts, cell: Counts, areas: int) -> Counts:
        """Return the published numbers of areas whose records lie in these cells."""
        found = np.zeros((areas, self.numbers), dtype=np.int64)
        self._add(found, area, cell, np.ones(len(cell), dtype=np.int64))
        return found

    def _add(self, found: Counts, area: Counts, cell: Counts, many: Counts) -> None:
        flat = found.reshape(-1)
        for rows in self.members:
            row = rows[cell]
            counted = row >= 0
            np.add.at(flat, area[counted] * self.numbers + row[counted], many[counted])
