"""Define which cells the published tables of small areas count, and collect the numbers of many areas."""

from bisect import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import combinations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred.errors import InputError, did_you_mean

# Which cells a record can lie in, and which published numbers count each cell.

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
    >>> design.tabulate(np.array([[2, 0, 0, 0, 0, 1]])).tolist()
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


# The 18 tables of blocks of the 2010 Summary File 1 that the reconstruction study used (P1, P6–P12, P12A–I, P14).

SEX, AGE_CLASS, RACE, HISPANIC = "sex", "age_class", "race", "hispanic"
AGE_STARTS = (*range(22), 22, 25, 30, 35, 40, 45, 50, 55, 60, 62, 65, 67, 70, 75, 80, 85)
"""Where each of the 38 age classes begins that P12 and P14 tell apart: 0, 1, … 21, 22–24, 25–29, … 85 and over."""

AGE_CLASSES = {age: bisect(AGE_STARTS, age) - 1 for age in range(AGE_STARTS[-1] + 1)}

P12_STARTS = (0, 5, 10, 15, 18, *AGE_STARTS[20:])
"""Where each of the 23 age classes of P12 begins."""

RACE_SETS: tuple[frozenset[int], ...] = tuple(
    frozenset(chosen) for several in range(1, 7) for chosen in combinations(range(6), several)
)
"""The races of the codes 1..63 (CENRACE): White, Black, AIAN, Asian, NHPI, other, then pairs, triples and so on."""

Integers = NDArray[np.int64]


def age_class(age: pl.Expr) -> pl.Expr:
    """Return the age class 0..37 of an age in years.

    >>> pl.DataFrame({"a": [0, 21, 24, 85, 110]}).select(age_class(pl.col("a")))["a"].to_list()
    [0, 21, 22, 37, 37]
    """
    return (
        age.cast(pl.Int64)
        .clip(0, AGE_STARTS[-1])
        .replace_strict(AGE_CLASSES, default=None, return_dtype=pl.Int64)
    )


def block_design() -> TableDesign:
    """Return the cells sex × age class × race × Hispanic origin and the tables that count them.

    P1 follows from P12, and P12A–G are one table here, because every person is counted in exactly one of them.

    >>> block_design().cells.height
    9576
    """
    parts = np.indices((2, len(AGE_STARTS), len(RACE_SETS), 2)).reshape(4, -1)
    sex, age, race, hispanic = (part.astype(np.int64) for part in parts)
    first = np.asarray(AGE_STARTS)[age]
    p12_age = np.searchsorted(P12_STARTS, first, side="right") - 1
    sexes_by_age = sex * len(P12_STARTS) + p12_age
    many = len(RACE_SETS)
    adult, nowhere = first >= 18, np.full_like(sex, -1)
    group = np.minimum(race, 6)  # the six races alone, then two or more
    not_hispanic_by_race = np.where(hispanic == 0, 1 + race, 0)  # P9 and P11: Hispanic, or not, by race
    tables = [
        _covering("P8", race, many),
        _covering("P9", not_hispanic_by_race, many + 1),
        _covering("P10", np.where(adult, race, nowhere), many),
        _covering("P11", np.where(adult, not_hispanic_by_race, nowhere), many + 1),
        _covering("P12", sexes_by_age, 2 * len(P12_STARTS)),
        _covering("P12A–G", group * 2 * len(P12_STARTS) + sexes_by_age, 7 * 2 * len(P12_STARTS)),
        _covering("P12H", np.where(hispanic == 1, sexes_by_age, nowhere), 2 * len(P12_STARTS)),
        _covering(
            "P12I", np.where((race == 0) & (hispanic == 0), sexes_by_age, nowhere), 2 * len(P12_STARTS)
        ),
        _covering("P14", np.where(first < 20, sex * 20 + first, nowhere), 40),
    ]
    for one in range(6):  # the six tallies of P6, and of P7 by Hispanic origin
        has = np.asarray([one in races for races in RACE_SETS])[race]
        tables.append(_covering(f"P6 {one + 1}", np.where(has, 0, nowhere), 1))
        tables.append(_covering(f"P7 {one + 1}", np.where(has, hispanic, nowhere), 2))
    cells = pl.DataFrame({SEX: sex + 1, AGE_CLASS: age, RACE: race + 1, HISPANIC: hispanic + 1})
    return TableDesign(cells=cells, coverings=tuple(tables))


def cell_of(records: pl.DataFrame) -> Integers:
    """Return the cell of ``block_design`` of each record.

    >>> cell_of(pl.DataFrame({"sex": [1], "age": [0], "race": [1], "hispanic": [2]})).tolist()
    [1]
    """
    if AGE_CLASS not in records.columns:
        records = records.with_columns(age_class(pl.col("age")).alias(AGE_CLASS))
    found = pl.lit(0, pl.Int64)
    for name, first, many in ((SEX, 1, 2), (AGE_CLASS, 0, len(AGE_STARTS)), (RACE, 1, 63), (HISPANIC, 1, 2)):
        found = found * many + pl.col(name).cast(pl.Int64) - first
    return records.select(found.alias("cell")).to_series().to_numpy().astype(np.int64)


def fits_blocks(records: pl.DataFrame) -> bool:
    """Return whether records have the variables of the block tables, in their codes."""
    ages = AGE_CLASS if AGE_CLASS in records.columns else "age"
    limits = {SEX: (1, 2), ages: (0, 37 if ages == AGE_CLASS else 150), RACE: (1, 63), HISPANIC: (1, 2)}
    for name, (low, high) in limits.items():
        if name not in records.columns or not records[name].dtype.is_integer():
            return False
        if records[name].null_count() or not records[name].cast(pl.Int64).is_between(low, high).all():
            return False
    return True


def _covering(name: str, codes: Integers, rows: int) -> Covering:
    return Covering(name=name, codes=codes.astype(np.int32), rows=rows)


# The published numbers of many areas, from records that are tabulated or from tables that share an area.


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
