"""Release one table of counts with exact margins, and noise in the free cells.

The promise is proved in exact_margins_proof.md.

The data sets of one universe differ by tables with zero margins, an integer lattice whose coordinates are the
cells outside the last row and column. Independent discrete Gaussian noise on those coordinates, carried to the last row
and column so that every margin stays, is the paper's Example 1 with a subspace mechanism (its Appendix A). No solver,
no post-processing: the table is unbiased, and some cells may be negative.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from stirred._support import load_on_demand
from stirred.census.schema import Schema
from stirred.chance import DiscreteGaussian, Key
from stirred.engine import Engine, Progress
from stirred.errors import BudgetError, DataError, InputError, PlanError, require_kind
from stirred.languages import Phrase
from stirred.mechanisms.base import Knob, Mechanism, check_inputs, require_inputs, totals_to_try
from stirred.mechanisms.config import MechanismConfig
from stirred.mechanisms.contents import MeasuredNoise, table_digest
from stirred.mechanisms.effect import ExpectedEffect, gaussian_change
from stirred.mechanisms.identifiers import require_unidentifying
from stirred.mechanisms.proposal import Proposal, choose_variables, find_root, list_areas_if_any
from stirred.mechanisms.release import Check, Release, find_own_table, format_table
from stirred.mechanisms.tables.config import ExactMarginsConfig
from stirred.spec import Budget, Evidence, Hamming, Ledger, Margin, Multiverse, NormalizedRenyi, Specification
from stirred.spec.invariants import Views, describe_table

if TYPE_CHECKING:
    from stirred.census import Census, Schema


# One table whose margins are exact, with noise in the free cells. The promise is proved in proof.md.

__getattr__ = load_on_demand(
    __name__,
    {
        "mechanism": ("ExactMargins",),
    },
)


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


# Release one table of counts with exact margins, and noise in the free cells.
#
# The data sets of one universe differ by tables with zero margins, an integer lattice whose coordinates are the
# cells outside the last row and column. Independent discrete Gaussian noise on those coordinates, carried to the last
# row
# and column so that every margin stays, is the paper's Example 1 with a subspace mechanism (its Appendix A). No
# solver,
# no post-processing: the table is unbiased, and some cells may be negative.

Ints = NDArray[np.int64]
Z95 = 1.959963984540054


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactMargins(Mechanism):
    r"""A two-way table whose row totals (and column totals, with ``both``) are exact.

    Changing d records inside a universe changes the free cells by u with $\|u\| \le d$ when both margins are kept and
    $\|u\| \le \sqrt2\,d$ when only the rows are, so $\sigma^2 = 1/(2\rho^2)$ and $1/\rho^2$: proof.md.

    >>> ExactMargins(rows="county", columns="tenure", rho_squared="1/2").sigma_squared
    Fraction(1, 1)
    """

    name: ClassVar[str] = "exact-margins"
    Config: ClassVar[type[MechanismConfig]] = ExactMarginsConfig

    rows: str
    columns: str
    rho_squared: Fraction | str | int
    record: str = "household"
    both: bool = True

    def __post_init__(self) -> None:
        for name in ("rows", "columns", "record"):
            require_kind(name, getattr(self, name), str, wanted="a name", fix=f'{name}="county"')
        if isinstance(self.rho_squared, float):
            raise BudgetError("rho_squared is a float", why="floats are not exact", fix='rho_squared="1/2"')
        if Fraction(str(self.rho_squared)) <= 0:
            raise BudgetError(
                "rho_squared must be positive",
                why="with a budget of 0 nothing can be measured",
                fix='rho_squared="1/2"',
            )

    @property
    def sigma_squared(self) -> Fraction:
        """Return the variance of the noise on a free cell."""
        rho_squared = Fraction(str(self.rho_squared))
        return 1 / (2 * rho_squared) if self.both else 1 / rho_squared

    @classmethod
    def propose(cls, schema: "Schema") -> Proposal | None:
        """Return a table of the coarsest area by the first category."""
        return propose(schema)

    @property
    def record_type(self) -> str:
        """Return the record type that is counted."""
        return self.record

    def parameters(self) -> dict[str, object]:
        """Return the canonical JSON parameters."""
        return {
            "record": self.record, "rows": self.rows, "columns": self.columns, "both": self.both,
            "rho_squared": str(Fraction(str(self.rho_squared))),
        }  # fmt: skip

    def refuse(self, census: "Census", engine: Engine | None = None) -> None:
        """Stop where there is nothing to count, where levels are not listed, and at columns that identify records."""
        require_unidentifying(census, self.record, (self.rows, self.columns), engine=engine)
        self._count_table(engine.census(census) if engine else census)

    def specification(self, census: "Census", *, engine: Engine | None = None) -> Specification:
        """Return the zCDP promise on the universes of the margins."""
        require_inputs(census, engine)
        kept = [Margin(self.record, (self.rows,))]
        if self.both:
            kept.append(Margin(self.record, (self.columns,)))
        return Specification(
            domain=census.domain,
            multiverse=Multiverse.of(*kept),
            input_premetric=Hamming(self.record),
            output_premetric=NormalizedRenyi(),
            budget=Budget.sqrt(Fraction(str(self.rho_squared))),
            evidence=Evidence(status="proved", source=Phrase("margins.source")),
            measures=self.views(census),
            notes=(
                Phrase("margins.note", rows=self.rows, columns=self.columns),
                *census.notes,
            ),
        )

    def expected_effect(self, census: "Census", *, engine: Engine | None = None) -> ExpectedEffect | None:  # noqa: ARG002
        """Return the chance that the noise of a free cell is not 0."""
        return ExpectedEffect(kind="cells", share=gaussian_change(self.sigma_squared))

    def release(
        self,
        census: "Census",
        *,
        key: Key,
        engine: Engine | None = None,
        out: Path | None = None,  # noqa: ARG002
        state: Path | None = None,  # noqa: ARG002
        progress: Progress | None = None,  # noqa: ARG002
    ) -> Release:
        """Release the noisy table as counts by row and column, zero cells included."""
        census = check_inputs(census, key, engine)
        require_unidentifying(census, self.record, (self.rows, self.columns), engine=engine)
        census = engine.census(census) if engine else census
        promise = self.specification(census)
        table, rows, columns = self._count_table(census)
        counted = _make_grid({self.rows: rows, self.columns: columns}, table)
        # with the labels: the same key never gives one noise to two data sets, also where an area has another name
        own = key.bind(
            self.name, repr(sorted(self.parameters().items())), key.digest(table_digest(counted).encode())
        )
        noisy = table + draw_lattice_noise(table.shape, self.sigma_squared, own, both=self.both)
        checks = [_check_equal(describe_table(self.record, self.rows), noisy.sum(axis=1), table.sum(axis=1))]
        if self.both:
            checks.append(
                _check_equal(describe_table(self.record, self.columns), noisy.sum(axis=0), table.sum(axis=0))
            )
        grid = _make_grid({self.rows: rows, self.columns: columns}, noisy)
        return Release(
            mechanism=self.name,
            parameters=self.parameters(),
            specification=promise,
            tables={f"{self.rows}-by-{self.columns}": grid},
            checks=tuple(checks),
            ledger=Ledger(limit=promise.budget, output_premetric=NormalizedRenyi()).spend(
                self.name, f"{self.rows} × {self.columns}", promise.budget
            ),
            private=key.private,
            effect=self.expected_effect(census),
            schema=census.schema,
            folder=census.folder,
        )

    def released_columns(self, census: "Census") -> Mapping[str, Sequence[str]]:  # noqa: ARG002
        """Return the variables of the one table."""
        return {self.record: (self.rows, self.columns)}

    def views(self, census: "Census") -> Views:  # noqa: ARG002
        """Return the one table."""
        return (Margin(self.record, (self.rows, self.columns)),)

    def keeps(self, by: Sequence[str], schema: "Schema | None" = None) -> bool:  # noqa: ARG002
        """Return whether a table is one of the margins, which are exact."""
        return set(by) <= {self.rows} or (self.both and set(by) <= {self.columns})

    def table(
        self,
        release: Release,
        by: Sequence[str],
        *,
        record_type: str = "",
        weight: str = "",
        engine: Engine | None = None,
    ) -> pa.Table:
        """Return the noisy table or one of its margins, with standard error and 95 % interval of every cell."""
        grid = find_own_table(release, [self.rows, self.columns])
        if grid is None or weight or not set(by) <= {self.rows, self.columns}:
            return Mechanism.table(self, release, by, record_type=record_type, weight=weight, engine=engine)
        columns, rows = grid[self.columns].n_unique(), grid[self.rows].n_unique()
        place = np.arange(grid.height)
        # the last cell of a row holds minus the sum of the others, and so does the last row
        variance = float(self.sigma_squared) * np.where(place % columns < columns - 1, 1, columns - 1)
        if self.both:
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
        free = np.arange(table.size).reshape(table.shape)[: len(rows) - self.both, : len(columns) - 1].ravel()
        return [
            MeasuredNoise(
                name="free cells",
                kind="gaussian",
                parameter=self.sigma_squared,
                loss=Fraction(str(self.rho_squared)),
                table=f"{self.rows}-by-{self.columns}",
                rows=tuple(free.tolist()),
                record=self.record,
            )
        ]

    def knobs(self) -> Sequence[Knob]:
        """Return the knob of the total ρ²."""
        return (
            Knob(
                name="rho_squared",
                effect="a larger ρ² is a larger budget and has a smaller error",
                settings=totals_to_try(Fraction(str(self.rho_squared))),
                turned=lambda total: replace(self, rho_squared=total),
            ),
        )

    def _count_table(self, census: "Census") -> tuple[Ints, list[object], list[object]]:
        counts = pl.DataFrame(census.counts(self.record, [self.rows, self.columns]))
        if counts.is_empty():
            raise InputError(
                f"there are no {self.record} records to count",
                why="the mechanism counts them",
                fix='record="…": name a record type that has records',
            )
        # Levels come from the margins, which are released anyway: a level without records is not shown.
        rows = counts[self.rows].unique().sort().to_list()
        columns = counts[self.columns].unique().sort().to_list()
        if not self.both:
            # Which columns have records is not an invariant here, so it must not be read from the records.
            levels = census.domain.levels(self.record, self.columns)
            if levels is None:
                raise InputError(
                    f"the levels of {self.columns} are open",
                    why="without exact column totals, the levels shown must not depend on the records",
                    fix=f"declare the levels of {self.columns} in census.toml, or keep both margins",
                )
            own = counts[self.columns].dtype
            columns = pl.Series(levels).cast(own).to_list()
            inside = pl.col(self.columns).is_in(columns)  # null where the value is missing
            outside = int(counts.filter(~inside.fill_null(False))["count"].sum())
            if outside:
                raise DataError(
                    f"{outside} {self.record} records have no listed level of {self.columns}",
                    why="the value is missing, or the schema does not list it",
                    fix=f"edit the records, or complete the levels of {self.columns} in census.toml",
                )
        table = np.zeros((len(rows), len(columns)), np.int64)
        for row, column, count in counts.select(self.rows, self.columns, "count").iter_rows():
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
