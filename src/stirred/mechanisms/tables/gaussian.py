"""Publish tables of counts with independent discrete Gaussian noise in every cell.

The promise is proved in gaussian_proof.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from stirred.census.schema import RecordSchema, Schema
from stirred.chance import DiscreteGaussian, Key
from stirred.engine import Engine
from stirred.errors import BudgetError, DataError, InputError, PlanError
from stirred.frames import frame_of
from stirred.languages import Phrase, unit
from stirred.mechanisms.base import Knob, require_inputs, totals_to_try
from stirred.mechanisms.contents import MeasuredNoise, table_digest
from stirred.mechanisms.effect import ExpectedEffect, gaussian_change, smallest_effect
from stirred.mechanisms.exhibits import Exhibit, Listing
from stirred.mechanisms.proposal import Proposal, choose_variables, find_root, list_tables
from stirred.mechanisms.release import MEASURE_COLUMNS, Check, Release, format_table
from stirred.mechanisms.tables.base import (
    MadeTables,
    RecordTables,
    name_table,
    read_promise,
    require_positive,
)
from stirred.mechanisms.tables.config import GaussianTablesConfig
from stirred.spec import (
    AtLeast,
    Budget,
    Evidence,
    Hamming,
    Ledger,
    Margin,
    Multiverse,
    NormalizedRenyi,
    Specification,
)
from stirred.spec.algebra import chain

if TYPE_CHECKING:
    from stirred.census import Census


# State the promise of tables with noise: of a census, and through an earlier release.


def state_noise(
    census: "Census", record: str, tables: Sequence[Sequence[str]], rho_squared: Fraction
) -> Specification:
    """Return the zCDP promise for one changed record, given which areas have records (Theorem 1)."""
    spine = census.schema.spine
    finest = {max((name for name in by if name in spine), key=spine.index, default="") for by in tables} - {
        ""
    }
    return Specification(
        domain=census.domain,
        multiverse=Multiverse.of(
            *(occupied_areas(record, level) for level in sorted(finest, key=spine.index))
        ),
        input_premetric=Hamming(record, link="free"),
        output_premetric=NormalizedRenyi(),
        budget=Budget.sqrt(rho_squared),
        evidence=Evidence(status="proved", source=Phrase("gaussian_tables.source")),
        measures=tuple(Margin(record, tuple(by)) for by in tables),
        notes=(Phrase("gaussian_tables.note.cells"), *census.notes),
    )


def occupied_areas(record: str, level: str) -> AtLeast:
    """Return the invariant that says which areas have records: only these have cells."""
    words = Phrase("gaussian_tables.areas", level=level, a_record=unit(record, "a_record"))
    return AtLeast(Margin(record, (level,)), 1, words)


def carry_promise(first: Specification, own: Specification, stability: Fraction) -> Specification | None:
    """Return the noise's promise through a stable first step, or None where no rule gives one."""
    found = chain(first, own, stability=stability)
    if found.also is not None:
        return found.also
    return found.specification if found.sharper else None


def annotate_promise(first: Specification, second: Specification | None, own: Specification) -> Specification:
    """Return the first step's promise, which the chain keeps, with a note on the bound of the noise."""
    if second is None:
        note = Phrase("gaussian_tables.note.after", rho_squared=own.rho_squared.exact)
    else:
        note = Phrase("gaussian_tables.note.both", rho_squared=second.rho_squared.exact)
    # what leaves of the first step's output are the tables with noise
    return replace(
        first, notes=(*first.notes, note), released=own.views if own.domain == first.domain else ()
    )


# The cells of a table that are listed without looking at the records: areas that have any, times listed levels.

Ints = NDArray[np.int64]
MAX_CELLS = 100_000_000
Z95 = 1.959963984540054
MAX_EXACT_DEVIATION = 10_000  # standard deviation from which on an interval is that of the normal law


@dataclass(frozen=True, slots=True)
class ListedCells:
    """All cells of a table with their true counts, the empty ones too; confidential."""

    by: tuple[str, ...]
    frame: pl.DataFrame  # by, count

    @staticmethod
    def of(counts: pl.DataFrame, by: Sequence[str], record: str, census: "Census") -> "ListedCells":
        """Complete the counts of occupied cells; a record without a listed level is refused."""
        areas = [name for name in by if name in census.schema.spine]
        frame = counts.select(areas).unique().sort(areas) if areas else pl.DataFrame({"__one": [0]})
        number = frame.height
        for name in (name for name in by if name not in areas):
            levels = pl.Series(name, list_levels(census, record, name)).cast(counts.schema[name])
            outside = int(
                counts.filter(~counts[name].is_in(levels.to_list()).fill_null(False))["count"].sum()
            )
            if outside:
                raise DataError(
                    f"{outside} {record} records have no listed level of {name}",
                    why="the value is missing, or the schema does not list it",
                    fix=f"edit the records, or complete the levels of {name} in census.toml",
                )
            number *= len(levels)
            if number > MAX_CELLS:
                raise InputError(
                    f"the table of {', '.join(by)} has more than {MAX_CELLS:,} cells",
                    why="every combination of levels gets noise, the empty ones too",
                    fix="publish fewer variables in one table, or coarser areas",
                )
            frame = frame.join(levels.to_frame(), how="cross", maintain_order="left_right")
        found = frame.join(counts, on=list(by), how="left", nulls_equal=True, maintain_order="left")
        return ListedCells(tuple(by), found.select(*by, pl.col("count").fill_null(0).cast(pl.Int64)))

    def add_noise(self, sigma_squared: Fraction, key: Key) -> pl.DataFrame:
        """Return the counts with noise."""
        noise = DiscreteGaussian(sigma_squared).draw(key.stream("noise", *self.by), self.frame.height)
        return self.frame.with_columns(pl.col("count") + pl.Series(noise))


def list_levels(census: "Census", record: str, name: str) -> tuple[str, ...]:
    """Return the listed levels of a variable, which must not be read from the records."""
    linked = census.schema.record(record).linked_to
    for kind in (record, linked):
        levels = census.domain.levels(kind, name) if kind else None
        if levels is not None:
            return levels
    raise InputError(
        f"the levels of {name} are open",
        why="every level has cells with noise, so that the levels shown must not depend on the records",
        fix=f"declare the levels of {name} in census.toml, or count by levels of the geography",
    )


def sum_cells(
    release: Sequence[pl.DataFrame], variances: Sequence[Fraction], by: Sequence[str]
) -> pl.DataFrame | None:
    """Return counts by some variables from the table with the least variance, or None without one."""
    best: tuple[float, pl.DataFrame] | None = None
    for frame, variance in zip(release, variances, strict=True):
        if not {*by} <= {*frame.columns} - {*MEASURE_COLUMNS}:
            continue
        found = (
            frame.group_by(list(by)).agg(pl.col("count").sum(), cells=pl.len())
            if by
            else frame.select(pl.col("count").sum(), cells=pl.len())
        )
        found = found.with_columns(variance=pl.col("cells") * float(variance))
        worst = float(found["variance"].max() or 0)  # type: ignore[arg-type]
        if best is None or worst < best[0]:
            best = (worst, found)
    return None if best is None else best[1]


def half_width(variance: float, cells: int) -> float:
    """Return half the width of a 95 % interval: exact for one cell, normal for a sum of several.

    >>> half_width(1.0, 1), half_width(0.05, 1)
    (2.0, 0.0)
    """
    if cells != 1 or variance > MAX_EXACT_DEVIATION**2:
        return float(ceil(Z95 * variance**0.5))
    steps = np.arange(ceil(12 * variance**0.5) + 2)
    chances = np.exp(-(steps.astype(float) ** 2) / (2 * variance)) * np.where(steps > 0, 2, 1)
    return float(steps[np.searchsorted(np.cumsum(chances) / chances.sum(), 0.95)])


# What a report says about tables with noise: the error of each of them.


def make_exhibits(
    tables: Sequence[Sequence[str]], variances: Sequence[Fraction], *, continues: bool
) -> Sequence[Exhibit]:
    """Return the standard error of a cell and its interval, by table."""
    columns = tuple(
        Phrase(f"gaussian_tables.errors.{name}") for name in ("table", "rho_squared", "error", "half")
    )
    rows = [
        (
            " × ".join(by),
            str(1 / variance),
            float(f"{float(variance) ** 0.5:.3g}"),
            half_width(float(variance), 1),
        )
        for by, variance in zip(tables, variances, strict=True)
    ]
    return (
        Exhibit(
            title=Phrase("gaussian_tables.errors.title"),
            finding=Phrase(
                "gaussian_tables.errors.continues" if continues else "gaussian_tables.errors.finding"
            ),
            parts=(
                Listing(
                    caption=Phrase("gaussian_tables.errors.caption"),
                    columns=columns,
                    rows=rows,
                    numeric=columns[2:],
                ),
            ),
            note=Phrase("gaussian_tables.errors.note"),
            chapter="method",
        ),
    )


# Tables with noise that the schema of a census suggests.


def propose(schema: Schema) -> Proposal:
    """Return tables of the coarsest area, if there is one, by the first categories with listed levels."""
    record = find_root(schema)
    found = [variable for variable in choose_variables(schema, record) if variable.all_levels is not None][:3]
    if not found:
        raise PlanError(
            "this mechanism cannot be proposed for this census",
            why=f"no variable of {record.name} records has listed levels, which its tables need",
            fix=f"say in census.toml what may occur in {_candidates(schema, record)}: levels = [1, 2]; "
            "or --mechanism cell-key, which needs no levels and promises no finite budget",
        )
    tables, why = list_tables(schema, record, found)
    return Proposal(
        settings={
            "tables": tables,
            "rho_squared": "1/2",
            "record": record.name,
        },
        reasons={
            "tables": why,
            "rho_squared": "a start: plan tune finds the ρ² that an error asks for",
            "record": "the records that are counted and protected",
        },
        undecided=("which tables are published: all of them share one ρ²",),
    )


def _candidates(schema: Schema, record: RecordSchema) -> str:
    """Return the first variables that could have levels, in words."""
    names = [variable.name for variable in choose_variables(schema, record)][:3]
    return " or ".join(names) or "a variable"


# Tables of counts by variables, each cell with independent discrete Gaussian noise; also of released records.


class GaussianTables(RecordTables):
    r"""Tables with noise in every cell: table t has the share $\rho_t^2$ of the budget and $\sigma_t^2 = 1/\rho_t^2$.

    A changed record leaves one cell of a table and enters another, so a table moves by at most √2: proof.md.

    >>> GaussianTables(tables=[["county"], ["tenure"]], rho_squared="1/2").variances
    (Fraction(4, 1), Fraction(4, 1))
    """

    name: ClassVar[str] = "gaussian-tables"
    config: GaussianTablesConfig

    @classmethod
    def propose(cls, schema: Schema) -> Proposal | None:
        """Return small tables of the coarsest areas."""
        return propose(schema)

    def check_settings(self) -> None:
        """Refuse a table that is empty or named twice, and budgets that cannot be spent."""
        super().check_settings()
        if not all(self.tables):
            raise InputError(
                "a table has no variables",
                why="it would count all records, and their number is exact in any case",
                fix='tables=[["county", "tenure"]]',
            )
        if len({frozenset(by) for by in self.tables}) < len(self.tables):
            raise InputError(
                "a table is named twice",
                why="its budget would be spent twice, for two counts of one cell",
                fix="name each set of variables once, with a larger share",
            )
        require_positive(self.rho_squared)
        shares = [Fraction(share) for share in self.config.shares]
        if shares and (len(shares) != len(self.tables) or min(shares) <= 0 or sum(shares) != 1):
            raise BudgetError(
                "the shares do not fit the tables",
                why="there is one above 0 for each table, and they add up to 1",
                fix='shares = ["3/4", "1/4"] for two tables, or leave them out',
            )

    @property
    def rho_squared(self) -> Fraction:
        """Return the total ρ² of all tables."""
        return Fraction(self.config.rho_squared)

    @property
    def variances(self) -> tuple[Fraction, ...]:
        """Return σ² of the noise in each table."""
        number = len(self.tables)
        shares = [Fraction(share) for share in self.config.shares] or [Fraction(1, number)] * number
        return tuple(1 / (self.rho_squared * share) for share in shares)

    def refuse(self, census: "Census", engine: Engine | None = None) -> None:
        """Stop where levels are not listed, or a stability is stated of nothing."""
        stability = self.config.stability
        if stability is not None and (self.given is None or Fraction(stability) <= 0):
            raise InputError(
                "there is no stability to state",
                why="it relates a given release to the census, and is above 0",
                fix='given = "swap" with stability = "1", or leave stability out',
            )
        if self.given is None:
            census.scan(self.config.record, self.columns_read)
        for name in self.columns_read:
            if name not in census.schema.spine:
                list_levels(census, self.config.record, name)
        super().refuse(census, engine)  # last: it counts

    def specification(self, census: "Census", *, engine: Engine | None = None) -> Specification:
        """Return the zCDP promise of the noise; for released records, the earlier promise with it."""
        require_inputs(census, engine)
        own = self._state_own(census)
        return (
            own
            if self.given is None
            else annotate_promise(read_promise(self.given), self._carry_own(census), own)
        )

    def expected_effect(self, census: "Census", *, engine: Engine | None = None) -> ExpectedEffect | None:  # noqa: ARG002
        """Return the chance that the noise of a cell is not 0, in the table with the least noise."""
        if self.given is not None:
            return None
        names = (" × ".join(by) for by in self.tables)
        return smallest_effect(dict(zip(names, map(gaussian_change, self.variances), strict=True)))

    def noise_specification(self, census: "Census") -> Specification | None:
        """Return what the noise alone promises of the census, or None without a ``stability``."""
        return self._state_own(census) if self.given is None else self._carry_own(census)

    def make_tables(
        self,
        census: "Census",
        promise: Specification,  # noqa: ARG002
        key: Key,
        engine: Engine,  # noqa: ARG002
    ) -> MadeTables:
        """Return every table with noise in every cell; counts may be negative."""
        cells = [self._list_cells(census, by) for by in self.tables]
        # the digest of all counts with their labels: the same key never gives one noise to two data sets
        digest = key.digest(*(table_digest(one.frame).encode() for one in cells))
        own = key.bind(self.name, repr(sorted(self.parameters().items())), digest)
        made = {
            name_table(one.by): format_table(one.add_noise(variance, own), one.by)
            for one, variance in zip(cells, self.variances, strict=True)
        }
        if self.given is not None:
            return MadeTables(tables=made)
        spent = Ledger(output_premetric=NormalizedRenyi())
        for by, variance in zip(self.tables, self.variances, strict=True):
            spent = spent.spend(self.name, " × ".join(by), Budget.sqrt(1 / variance))
        return MadeTables(tables=made, ledger=spent, checks=self._check_areas(census, made))

    def read_table(self, release: Release, by: Sequence[str], weight: str) -> pa.Table | None:
        """Return a table, or sums of its cells, with its error, from the table with the least error."""
        if weight:
            return None
        frames = [frame_of(release.tables[name_table(own)]) for own in self.tables]
        found = sum_cells(frames, self.variances, by)
        if found is None:
            raise InputError(
                f"no table has {', '.join(by) or 'a variable'}",
                why="counts are summed inside one table with noise",
                fix="name the variables together in the setting tables",
            )
        if self.given is not None:  # an interval would be about the released records, not about the census
            return format_table(found.select(*by, "count", "variance"), by)
        widths = {
            cells: half_width(variance, cells)
            for cells, variance in found.select("cells", "variance").unique().iter_rows()
        }
        count, half = (
            pl.col("count").cast(pl.Float64),
            pl.col("cells").replace_strict(widths, return_dtype=pl.Float64),
        )
        return format_table(
            found.select(
                *by,
                "count",
                estimate=count,
                standard_error=pl.col("variance").sqrt(),
                low=(count - half).clip(lower_bound=0.0),
                high=(count + half).clip(lower_bound=0.0),
            ),
            by,
        )

    def measured_noise(
        self,
        census: "Census",  # noqa: ARG002
        *,
        key: Key,  # noqa: ARG002
        engine: Engine | None = None,  # noqa: ARG002
    ) -> Sequence[MeasuredNoise]:
        """Return the law of every cell of each table; none for the records of an earlier release."""
        if self.given is not None:
            return ()
        return [
            MeasuredNoise(
                name=name_table(by),
                kind="gaussian",
                parameter=variance,
                loss=1 / variance,
                table=name_table(by),
                record=self.config.record,
            )
            for by, variance in zip(self.tables, self.variances, strict=True)
        ]

    def details(self) -> Mapping[str, object]:
        """Return the variance of each table's noise."""
        return {"sigma_squared": [str(variance) for variance in self.variances]}

    def exhibits(self, release: Release | None, *, engine: Engine | None = None) -> Sequence[Exhibit]:  # noqa: ARG002
        """Return the error of each table."""
        return make_exhibits(self.tables, self.variances, continues=self.given is not None)

    def knobs(self) -> Sequence[Knob]:
        """Return the knob of the total ρ²."""
        return (
            Knob(
                name="rho_squared",
                effect="a larger ρ² is a larger budget of the noise and has a smaller error",
                settings=totals_to_try(self.rho_squared),
                turned=lambda total: self.replace(rho_squared=total),
            ),
        )

    def _state_own(self, census: "Census") -> Specification:
        return state_noise(census, self.config.record, self.tables, self.rho_squared)

    def _carry_own(self, census: "Census") -> Specification | None:
        stability = self.config.stability
        if self.given is None or stability is None:
            return None
        return carry_promise(read_promise(self.given), self._state_own(census), Fraction(stability))

    def _list_cells(self, census: "Census", by: Sequence[str]) -> ListedCells:
        text = self.counts(census, by).with_columns(
            pl.selectors.by_dtype(pl.Categorical, pl.Enum).cast(pl.String)
        )
        return ListedCells.of(text, by, self.config.record, census)

    def _check_areas(self, census: "Census", made: Mapping[str, pa.Table]) -> tuple[Check, ...]:
        """Check that the areas that are shown are those that have records."""
        found = []
        for by in self.tables:
            areas = [name for name in by if name in census.schema.spine]
            if areas:
                shown = frame_of(made[name_table(by)]).select(areas).n_unique()
                real = frame_of(census.counts(self.config.record, areas)).height
                words = str(Phrase("gaussian_tables.check", level=areas[-1], table=", ".join(by)))
                found.append(Check(invariant=words, kept=shown == real, numbers=real))
        return tuple(found)
