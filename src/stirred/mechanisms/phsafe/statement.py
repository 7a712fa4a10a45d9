"""State the promise of PHSafe: its specification, its ledger and its notes, from the settings and the schema alone."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from stirred.languages import Phrase, unit
from stirred.mechanisms.phsafe.amounts import MeasuredTable
from stirred.mechanisms.phsafe.counting.tables import TABULATIONS
from stirred.mechanisms.phsafe.counting.tabulate import housing_units
from stirred.mechanisms.phsafe.counting.variables import CensusColumns
from stirred.mechanisms.phsafe.factors import FACTORS, PromisedUnit
from stirred.mechanisms.safetab.noise import Definition
from stirred.spec import (
    AtLeast,
    Budget,
    Evidence,
    Hamming,
    Ledger,
    Margin,
    Multiplicative,
    Multiverse,
    NormalizedRenyi,
    Specification,
    SymmetricDifference,
)
from stirred.spec.ledger import Entry
from stirred.spec.premetrics import RecordPremetric
from stirred.spec.released import Views

if TYPE_CHECKING:
    from stirred.census import Census


UNITS: Final[Mapping[PromisedUnit, RecordPremetric]] = {
    "added-or-removed": SymmetricDifference("person"),
    "changed": Hamming("person", link="free"),
    "household": Hamming("household"),
}


def premetric(definition: Definition) -> NormalizedRenyi | Multiplicative:
    """zCDP or pure DP."""
    return NormalizedRenyi() if definition == "zcdp" else Multiplicative()


def budget_of(amount: Fraction | None, definition: Definition) -> Budget:
    """A budget of the settings in its output premetric: ρ for ρ², ε as it is; None is infinite."""
    if amount is None:
        return Budget.infinite()
    return Budget.sqrt(amount) if definition == "zcdp" else Budget.of(amount)


def total(measured: Sequence[MeasuredTable]) -> Fraction | None:
    """What all measurements cost together; None: infinite."""
    amounts = [item.budget for item in measured]
    return None if None in amounts else sum((a for a in amounts if a is not None), Fraction(0))


def some_unit(census: "Census", columns: CensusColumns) -> AtLeast:
    """Whether an area of the finest level has a housing unit: what the list of regions may reveal."""
    leaf = census.schema.spine[-1] if census.schema.spine else columns.state
    words = Phrase("phsafe.areas", level=leaf, a_record=unit("housing unit", "a_record"))
    return AtLeast(Margin("household", (leaf,), housing_units(columns)), 1, words)


def specification(
    census: "Census",
    columns: CensusColumns,
    measured: Sequence[MeasuredTable],
    definition: Definition,
    *,
    neighbours: PromisedUnit,
    nation: bool,
    released: Views,
) -> Specification:
    """ρ-DP(X, D_c, d_Sym(person), D_nor), or ε under D_mult: the budgets of all measurements together."""
    whole, factor = total(measured), FACTORS[definition][neighbours]
    return Specification(
        domain=census.domain,
        multiverse=Multiverse.of(some_unit(census, columns)),
        input_premetric=UNITS[neighbours],
        output_premetric=premetric(definition),
        budget=budget_of(None if whole is None else whole * factor, definition),
        evidence=Evidence(status="proved", source=Phrase(_named("source", neighbours))),
        notes=(
            Phrase(_named("unit", neighbours)),
            *notes(columns, measured, definition, nation=nation),
            *census.notes,
        ),
        released=released,
    )


def _named(part: str, neighbours: PromisedUnit) -> str:
    """The key of what is said about one kind of neighbours."""
    return f"phsafe.{part}.{neighbours.replace('-', '_')}"


def notes(
    columns: CensusColumns, measured: Sequence[MeasuredTable], definition: Definition, *, nation: bool
) -> tuple[str, ...]:
    """What is left out, what a changed record costs, and which tables are not made."""
    said: list[str] = [Phrase("phsafe.note.truncated")]
    whole = total(measured)
    if whole is not None and definition == "zcdp":
        said.append(
            Phrase(
                "phsafe.note.changed", half=_shown(whole / 2), twice=_shown(whole * 2), four=_shown(whole * 4)
            )
        )
    elif whole is not None:
        said.append(Phrase("phsafe.note.changed_pure", once=_shown(whole), twice=_shown(whole * 2)))
    made = {item.table for item in measured}
    lacking = [table.name for table in TABULATIONS if not table.possible(columns.available)]
    if lacking:
        said.append(Phrase("phsafe.note.lacking", tables=", ".join(lacking)))
    elif not made:
        said.append(Phrase("phsafe.note.nothing"))
    if not nation:
        said.append(Phrase("phsafe.note.no_nation"))
    return tuple(said)


def _shown(value: Fraction) -> Decimal:
    """Rounded up, as budgets are shown."""
    return Decimal(str(Budget.of(value)))


def ledger(measured: Sequence[MeasuredTable], definition: Definition, neighbours: PromisedUnit) -> Ledger:
    """The account of a run: one line for each table, region type and iteration level."""
    factor = FACTORS[definition][neighbours]
    amounts = [(item.place, None if item.budget is None else item.budget * factor) for item in measured]
    whole = total(measured)
    return Ledger(
        limit=budget_of(None if whole is None else whole * factor, definition),
        output_premetric=premetric(definition),
        entries=tuple(
            Entry(by="phsafe", on=place, budget=budget_of(amount, definition)) for place, amount in amounts
        ),
    )
