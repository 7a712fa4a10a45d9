"""Tables of counts by variables, each cell with independent discrete Gaussian noise; also of released records."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import polars as pl
import pyarrow as pa

from stirred.chance import Key
from stirred.engine import Engine, Progress
from stirred.errors import BudgetError, InputError
from stirred.frames import frame_of
from stirred.languages import Phrase
from stirred.mechanisms.arguments import require_inputs
from stirred.mechanisms.base import Check, Knob, Mechanism, MechanismConfig, Release, totals_to_try
from stirred.mechanisms.chains.earlier import read_promise
from stirred.mechanisms.chains.tables import RecordTables, name_table
from stirred.mechanisms.contents import MeasuredNoise, table_digest
from stirred.mechanisms.effect import ExpectedEffect, gaussian_change, smallest_effect
from stirred.mechanisms.exhibits import Exhibit
from stirred.mechanisms.gaussian_tables.cells import ListedCells, half_width, list_levels, sum_cells
from stirred.mechanisms.gaussian_tables.config import GaussianTablesConfig
from stirred.mechanisms.gaussian_tables.exhibits import make_exhibits
from stirred.mechanisms.gaussian_tables.proposal import propose
from stirred.mechanisms.gaussian_tables.statement import annotate_promise, carry_promise, state_noise
from stirred.mechanisms.proposal import Proposal
from stirred.mechanisms.released import format_table
from stirred.spec import Budget, Ledger, NormalizedRenyi, Specification

if TYPE_CHECKING:
    from stirred.census import Census, Schema


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianTables(RecordTables):
    r"""Tables with noise in every cell: table t has the share $\rho_t^2$ of the budget and $\sigma_t^2 = 1/\rho_t^2$.

    A changed record leaves one cell of a table and enters another, so a table moves by at most √2: proof.md.

    >>> GaussianTables(tables=[["county"], ["tenure"]], rho_squared="1/2").variances
    (Fraction(4, 1), Fraction(4, 1))
    """

    name: ClassVar[str] = "gaussian-tables"
    Config: ClassVar[type[MechanismConfig]] = GaussianTablesConfig

    rho_squared: Fraction | str | int
    shares: Sequence[Fraction | str | int] = ()
    stability: Fraction | str | int | None = None

    def __post_init__(self) -> None:
        RecordTables.__post_init__(self)
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
        amounts = [self.rho_squared, *self.shares, *([] if self.stability is None else [self.stability])]
        if any(isinstance(amount, float) for amount in amounts):
            raise BudgetError("a budget is a float", why="floats are not exact", fix='rho_squared="1/2"')
        if Fraction(str(self.rho_squared)) <= 0:
            raise BudgetError(
                "rho_squared must be positive",
                why="with a budget of 0 nothing can be measured",
                fix='rho_squared="1/2"',
            )
        shares = [Fraction(str(share)) for share in self.shares]
        if shares and (len(shares) != len(self.tables) or min(shares) <= 0 or sum(shares) != 1):
            raise BudgetError(
                "the shares do not fit the tables",
                why="there is one above 0 for each table, and they add up to 1",
                fix='shares = ["3/4", "1/4"] for two tables, or leave them out',
            )

    @classmethod
    def propose(cls, schema: "Schema") -> Proposal | None:
        """Return small tables of the coarsest areas."""
        return propose(schema)

    @property
    def variances(self) -> tuple[Fraction, ...]:
        """Return σ² of the noise in each table."""
        total = Fraction(str(self.rho_squared))
        shares = [Fraction(str(share)) for share in self.shares] or [Fraction(1, len(self.tables))] * len(
            self.tables
        )
        return tuple(1 / (total * share) for share in shares)

    def parameters(self) -> dict[str, object]:
        """Return the canonical JSON parameters, without the path of a given release."""
        return {
            name: value for name, value in self.settings().items() if value is not None and name != "given"
        }

    def settings(self) -> dict[str, object]:
        """Return the keys of a [[mechanism]]."""
        found = RecordTables.settings(self)
        found["rho_squared"] = str(Fraction(str(self.rho_squared)))
        found["shares"] = [str(Fraction(str(share))) for share in self.shares]
        found["stability"] = None if self.stability is None else str(Fraction(str(self.stability)))
        return found

    def refuse(self, census: "Census", engine: Engine | None = None) -> None:
        """Stop where levels are not listed, or a stability is stated of nothing."""
        if self.stability is not None and (self.given is None or Fraction(str(self.stability)) <= 0):
            raise InputError(
                "there is no stability to state",
                why="it relates a given release to the census, and is above 0",
                fix='given = "swap" with stability = "1", or leave stability out',
            )
        if self.given is None:
            census.scan(self.record, self.columns)
        for name in self.columns:
            if name not in census.schema.spine:
                list_levels(census, self.record, name)
        RecordTables.refuse(self, census, engine)  # last: it counts

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
        """Release every table with noise in every cell; counts may be negative."""
        census = self.admit_census(census, key, engine)
        cells = [self._list_cells(census, by) for by in self.tables]
        # the digest of all counts with their labels: the same key never gives one noise to two data sets
        digest = key.digest(*(table_digest(one.frame).encode() for one in cells))
        own = key.bind(self.name, repr(sorted(self.parameters().items())), digest)
        made = {
            name_table(one.by): format_table(one.add_noise(variance, own), one.by)
            for one, variance in zip(cells, self.variances, strict=True)
        }
        promise = self.specification(census)
        if self.given is not None:
            return self.make_release(census, key, promise, made)
        spent = Ledger(output_premetric=NormalizedRenyi())
        for by, variance in zip(self.tables, self.variances, strict=True):
            spent = spent.spend(self.name, " × ".join(by), Budget.sqrt(1 / variance))
        return self.make_release(
            census, key, promise, made, ledger=spent, checks=self._check_areas(census, made)
        )

    def table(
        self,
        release: Release,
        by: Sequence[str],
        *,
        record_type: str = "",
        weight: str = "",
        engine: Engine | None = None,
    ) -> pa.Table:
        """Return a table, or sums of its cells, with its error, from the table with the least error."""
        if weight or (record_type or self.record) != self.record:
            return Mechanism.table(self, release, by, record_type=record_type, weight=weight, engine=engine)
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
                record=self.record,
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
                settings=totals_to_try(Fraction(str(self.rho_squared))),
                turned=lambda total: replace(self, rho_squared=total),
            ),
        )

    def _state_own(self, census: "Census") -> Specification:
        return state_noise(census, self.record, self.tables, Fraction(str(self.rho_squared)))

    def _carry_own(self, census: "Census") -> Specification | None:
        if self.given is None or self.stability is None:
            return None
        return carry_promise(read_promise(self.given), self._state_own(census), Fraction(str(self.stability)))

    def _list_cells(self, census: "Census", by: Sequence[str]) -> ListedCells:
        text = self.counts(census, by).with_columns(
            pl.selectors.by_dtype(pl.Categorical, pl.Enum).cast(pl.String)
        )
        return ListedCells.of(text, by, self.record, census)

    def _check_areas(self, census: "Census", made: Mapping[str, pa.Table]) -> tuple[Check, ...]:
        """Check that the areas that are shown are those that have records."""
        found = []
        for by in self.tables:
            areas = [name for name in by if name in census.schema.spine]
            if areas:
                shown = frame_of(made[name_table(by)]).select(areas).n_unique()
                real = frame_of(census.counts(self.record, areas)).height
                words = str(Phrase("gaussian_tables.check", level=areas[-1], table=", ".join(by)))
                found.append(Check(invariant=words, kept=shown == real, numbers=real))
        return tuple(found)
