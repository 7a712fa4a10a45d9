"""Release one table of counts with exact margins, and noise in the free cells.

The promise is proved in exact_margins_proof.md.

The data sets of one universe differ by tables with zero margins, an integer lattice whose coordinates are the
cells outside the last row and column. Independent discrete Gaussian noise on those coordinates, carried to the last row
and column so that every margin stays, is the paper's Example 1 with a subspace mechanism (its Appendix A). No solver,
no post-processing: the table is unbiased, and some cells may be negative.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from stirred.census.schema import Schema
from stirred.chance import DiscreteGaussian, Key
from stirred.engine import Engine
from stirred.errors import DataError, InputError, PlanError
from stirred.languages import Phrase
from stirred.mechanisms.base import Knob, require_inputs, totals_to_try
from stirred.mechanisms.contents import MeasuredNoise, table_digest
from stirred.mechanisms.effect import ExpectedEffect, gaussian_change
from stirred.mechanisms.proposal import Proposal, choose_variables, find_root, list_areas_if_any
from stirred.mechanisms.release import Check, Release, find_own_table, format_table
from stirred.mechanisms.tables.base import CountedTables, MadeTables, require_positive
from stirred.mechanisms.tables.config import ExactMarginsConfig
from stirred.spec import Budget, Evidence, Hamming, Ledger, Margin, Multiverse, NormalizedRenyi, Specification
from stirred.spec.invariants import Views, describe_table

if TYPE_CHECKING:
    from stirred.census import Census


# A table with exact margins that the schema of a census suggests.


def propose(schema: Schema) -> Proposal:
    """Return a table of the coarsest area by the first category, or of the first two categories."""
    record = find_root(schema)
    areas = list_areas_if_any(schema, record)
    names = [*areas[:1], *(variable.name for variable in choose_variables(schema, record))]
    if len(names) < 2:
        raise PlanError(
            "this mechanism cannot be proposed for this census",
            why=f"it makes one table of two variables, and {record.name} records have {' and '.join(names) or 'none'}",
            fix='list the levels of a variable in census.toml: tenure = { levels = ["own", "rent"] }',
        )
    level, column = names[:2]
    return Proposal(
        settings={"rows": level, "columns": column, "rho_squared": "1/2", "record": record.name},
        reasons={
            "rows": f"the {'coarsest level of the geography' if areas else 'first category'}; its totals stay exact",
            "columns": f"the {'first' if areas else 'second'} category; its totals stay exact",
            "rho_squared": "a start, not a choice: tune it on a stand-in with stirred plan tune",
            "record": "the records that are counted",
        },
    )


# The mechanism.

Ints = NDArray[np.int64]
Z95 = 1.959963984540054


class ExactMargins(CountedTables):
    r"""A two-way table whose row totals (and column totals, with ``both``) are exact.

    Changing d records inside a universe changes the free cells by u with $\|u\| \le d$ when both margins are kept and
    $\|u\| \le \sqrt2\,d$ when only the rows are, so $\sigma^2 = 1/(2\rho^2)$ and $1/\rho^2$: proof.md.

    >>> ExactMargins(rows="county", columns="tenure", rho_squared="1/2").sigma_squared
    Fraction(1, 1)
    """

    name: ClassVar[str] = "exact-margins"
    config: ExactMarginsConfig

    def check_settings(self) -> None:
        """Refuse a budget that cannot be spent."""
        require_positive(self.rho_squared)

    @property
    def rho_squared(self) -> Fraction:
        """Return the total ρ²."""
        return Fraction(self.config.rho_squared)

    @property
    def sigma_squared(self) -> Fraction:
        """Return the variance of the noise on a free cell."""
        return 1 / (2 * self.rho_squared) if self.config.both else 1 / self.rho_squared

    @property
    def tables(self) -> Sequence[Sequence[str]]:
        """Return the variables of the one table."""
        return ((self.config.rows, self.config.columns),)

    @property
    def table_name(self) -> str:
        """Return the name of the one table."""
        return f"{self.config.rows}-by-{self.config.columns}"

    @classmethod
    def propose(cls, schema: Schema) -> Proposal | None:
        """Return a table of the coarsest area by the first category."""
        return propose(schema)

    def refuse(self, census: "Census", engine: Engine | None = None) -> None:
        """Stop where there is nothing to count, where levels are not listed, and at columns that identify records."""
        self.require_unidentifying(census, engine)
        self._count_table(engine.census(census) if engine else census)

    def specification(self, census: "Census", *, engine: Engine | None = None) -> Specification:
        """Return the zCDP promise on the universes of the margins."""
        require_inputs(census, engine)
        kept = [Margin(self.config.record, (self.config.rows,))]
        if self.config.both:
            kept.append(Margin(self.config.record, (self.config.columns,)))
        return Specification(
            domain=census.domain,
            multiverse=Multiverse.of(*kept),
            input_premetric=Hamming(self.config.record),
            output_premetric=NormalizedRenyi(),
            budget=Budget.sqrt(self.rho_squared),
            evidence=Evidence(status="proved", source=Phrase("margins.source")),
            measures=self.views(census),
            notes=(
                Phrase("margins.note", rows=self.config.rows, columns=self.config.columns),
                *census.notes,
            ),
        )

    def expected_effect(self, census: "Census", *, engine: Engine | None = None) -> ExpectedEffect | None:  # noqa: ARG002
        """Return the chance that the noise of a free cell is not 0."""
        return ExpectedEffect(kind="cells", share=gaussian_change(self.sigma_squared))

    def make_tables(
        self,
        census: "Census",
        promise: Specification,
        key: Key,
        engine: Engine,  # noqa: ARG002
    ) -> MadeTables:
        """Return the noisy table as counts by row and column, zero cells included."""
        table, rows, columns = self._count_table(census)
        counted = _make_grid({self.config.rows: rows, self.config.columns: columns}, table)
        # with the labels: the same key never gives one noise to two data sets, also where an area has another name
        own = key.bind(
            self.name, repr(sorted(self.parameters().items())), key.digest(table_digest(counted).encode())
        )
        noisy = table + draw_lattice_noise(table.shape, self.sigma_squared, own, both=self.config.both)
        checks = [
            _check_equal(
                describe_table(self.config.record, self.config.rows), noisy.sum(axis=1), table.sum(axis=1)
            )
        ]
        if self.config.both:
            checks.append(
                _check_equal(
                    describe_table(self.config.record, self.config.columns),
                    noisy.sum(axis=0),
                    table.sum(axis=0),
                )
            )
        grid = _make_grid({self.config.rows: rows, self.config.columns: columns}, noisy)
        spent = Ledger(limit=promise.budget, output_premetric=NormalizedRenyi()).spend(
            self.name, f"{self.config.rows} × {self.config.columns}", promise.budget
        )
        return MadeTables(tables={self.table_name: grid}, ledger=spent, checks=tuple(checks))

    def views(self, census: "Census") -> Views:  # noqa: ARG002
        """Return the one table."""
        return (Margin(self.config.record, (self.config.rows, self.config.columns)),)

    def keeps(self, by: Sequence[str], schema: "Schema | None" = None) -> bool:  # noqa: ARG002
        """Return whether a table is one of the margins, which are exact."""
        return set(by) <= {self.config.rows} or (self.config.both and set(by) <= {self.config.columns})

    def read_table(self, release: Release, by: Sequence[str], weight: str) -> pa.Table | None:
        """Return the noisy table or one of its margins, with standard error and 95 % interval of every cell."""
        grid = find_own_table(release, self.tables[0])
        if grid is None or weight or not set(by) <= set(self.tables[0]):
            return None
        columns, rows = grid[self.config.columns].n_unique(), grid[self.config.rows].n_unique()
        place = np.arange(grid.height)
        # the last cell of a row holds minus the sum of the others, and so does the last row
        variance = float(self.sigma_squared) * np.where(place % columns < columns - 1, 1, columns - 1)
        if self.config.both:
            variance = variance * np.where(place // columns < rows - 1, 1, rows - 1)
        if self.keeps(by):
            variance = np.zeros(grid.height)
        # rows have independent noise, unless both margins are exact and so is every sum
        cells = grid.with_columns(pl.Series("variance", variance)).group_by(list(by))
        summed = cells.agg(pl.col("count", "variance").sum())
        error, count = pl.col("variance").sqrt(), pl.col("count").cast(pl.Float64)
        found = summed.select(
            *by,
            "count",
            estimate=count,
            standard_error=error,
            low=(count - Z95 * error).clip(lower_bound=0.0),
            high=(count + Z95 * error).clip(lower_bound=0.0),
        )
        return format_table(found, by)

    def measured_noise(
        self, census: "Census", *, key: Key, engine: Engine | None = None
    ) -> Sequence[MeasuredNoise]:
        """Return the law of the free cells: all but the last of each row and, with both, of each column."""
        table, rows, columns = self._count_table(engine.census(census) if engine else census)
        del key
        free = (
            np.arange(table.size)
            .reshape(table.shape)[: len(rows) - self.config.both, : len(columns) - 1]
            .ravel()
        )
        return [
            MeasuredNoise(
                name="free cells",
                kind="gaussian",
                parameter=self.sigma_squared,
                loss=self.rho_squared,
                table=self.table_name,
                rows=tuple(free.tolist()),
                record=self.config.record,
            )
        ]

    def knobs(self) -> Sequence[Knob]:
        """Return the knob of the total ρ²."""
        return (
            Knob(
                name="rho_squared",
                effect="a larger ρ² is a larger budget and has a smaller error",
                settings=totals_to_try(self.rho_squared),
                turned=lambda total: self.replace(rho_squared=total),
            ),
        )

    def _count_table(self, census: "Census") -> tuple[Ints, list[object], list[object]]:
        counts = pl.DataFrame(census.counts(self.config.record, [self.config.rows, self.config.columns]))
        if counts.is_empty():
            raise InputError(
                f"there are no {self.config.record} records to count",
                why="the mechanism counts them",
                fix='record="…": name a record type that has records',
            )
        # Levels come from the margins, which are released anyway: a level without records is not shown.
        rows = counts[self.config.rows].unique().sort().to_list()
        columns = counts[self.config.columns].unique().sort().to_list()
        if not self.config.both:
            # Which columns have records is not an invariant here, so it must not be read from the records.
            levels = census.domain.levels(self.config.record, self.config.columns)
            if levels is None:
                raise InputError(
                    f"the levels of {self.config.columns} are open",
                    why="without exact column totals, the levels shown must not depend on the records",
                    fix=f"declare the levels of {self.config.columns} in census.toml, or keep both margins",
                )
            own = counts[self.config.columns].dtype
            columns = pl.Series(levels).cast(own).to_list()
            inside = pl.col(self.config.columns).is_in(columns)  # null where the value is missing
            outside = int(counts.filter(~inside.fill_null(False))["count"].sum())
            if outside:
                raise DataError(
                    f"{outside} {self.config.record} records have no listed level of {self.config.columns}",
                    why="the value is missing, or the schema does not list it",
                    fix=f"edit the records, or complete the levels of {self.config.columns} in census.toml",
                )
        table = np.zeros((len(rows), len(columns)), np.int64)
        for row, column, count in counts.select(self.config.rows, self.config.columns, "count").iter_rows():
            table[rows.index(row), columns.index(column)] = count
        return table, rows, columns


def _make_grid(labels: Mapping[str, Sequence[object]], counts: Ints) -> pa.Table:
    """Return a table of counts in long form: one line for each row and column."""
    (row_name, rows), (column_name, columns) = labels.items()
    return pa.table({
        row_name: pa.array(np.repeat(np.array(rows, object), len(columns))),
        column_name: pa.array(np.tile(np.array(columns, object), len(rows))),
        "count": counts.ravel(),
    })  # fmt: skip


def draw_lattice_noise(shape: tuple[int, ...], sigma_squared: Fraction, key: Key, *, both: bool) -> Ints:
    """Return integer noise with zero row sums (and zero column sums, with ``both``)."""
    rows, columns = shape
    free = (rows - 1 if both else rows, columns - 1)
    noise = np.zeros((rows, columns), np.int64)
    if free[0] > 0 and free[1] > 0:
        drawn = DiscreteGaussian(sigma_squared).draw(key.stream("lattice"), free[0] * free[1]).reshape(free)
        noise[: free[0], : free[1]] = drawn
    noise[: free[0], -1] = -noise[: free[0]].sum(axis=1)
    if both and rows > 0:
        noise[-1] = -noise[:-1].sum(axis=0)
    return noise


def _check_equal(name: str, got: Ints, want: Ints) -> Check:
    return Check(invariant=name, kept=bool(np.array_equal(got, want)), numbers=len(want))
