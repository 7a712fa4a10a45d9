"""State the promise of PHSafe: its specification, its ledger and its notes, from the settings and the schema alone."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from stirred.languages import Phrase, unit
from stirred.mechanisms.phsafe.amounts import MeasuredTable
from stirred.mechanisms.phsafe.counting.tables import TABULATIONS
from stirred.mechanisms.phsafe.counting.tabulate import housing_unit_filter
from stirred.mechanisms.phsafe.counting.variables import CensusColumns
from stirred.mechanisms.phsafe.factors import PHSAFE_FACTORS, PromisedUnit
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


PREMETRICS: Final[Mapping[PromisedUnit, RecordPremetric]] = {
    "added-or-removed": SymmetricDifference("person"),
    "changed": Hamming("person", link="free"),
    "household": Hamming("household"),
}


def choose_premetric(definition: Definition) -> NormalizedRenyi | Multiplicative:
    """Return D_nor for zCDP, D_mult for pure DP."""
    return NormalizedRenyi() if definition == "zcdp" else Multiplicative()


def make_budget(amount: Fraction | None, definition: Definition) -> Budget:
    """Return a budget of the settings in its output premetric: ρ for ρ², ε as it is; None is infinite."""
    if amount is None:
        return Budget.infinite()
    return Budget.sqrt(amount) if definition == "zcdp" else Budget.of(amount)


def sum_budgets(measured: Sequence[MeasuredTable]) -> Fraction | None:
    """Return the cost of all measurements together; None is infinite."""
    amounts = [item.budget for item in measured]
    return None if None in amounts else sum((a for a in amounts if a is not None), Fraction(0))


def occupied_areas(census: "Census", columns: CensusColumns) -> AtLeast:
    """Return the invariant of areas with a housing unit, which the list of regions may reveal."""
    leaf = census.schema.spine[-1] if census.schema.spine else columns.state
    words = Phrase("phsafe.areas", level=leaf, a_record=unit("housing unit", "a_record"))
    return AtLeast(Margin("household", (leaf,), housing_unit_filter(columns)), 1, words)


def build_specification(
    census: "Census",
    columns: CensusColumns,
    measured: Sequence[MeasuredTable],
    definition: Definition,
    *,
    neighbours: PromisedUnit,
    nation: bool,
    released: Views,
) -> Specification:
    """Return the specification for persons, with the budgets of all measurements together."""
    whole, factor = sum_budgets(measured), PHSAFE_FACTORS[definition][neighbours]
    return Specification(
        domain=census.domain,
        multiverse=Multiverse.of(occupied_areas(census, columns)),
        input_premetric=PREMETRICS[neighbours],
        output_premetric=choose_premetric(definition),
        budget=make_budget(None if whole is None else whole * factor, definition),
        evidence=Evidence(status="proved", source=Phrase(_neighbour_key("source", neighbours))),
        notes=(
            Phrase(_neighbour_key("unit", neighbours)),
            *write_notes(columns, measured, definition, nation=nation),
            *census.notes,
        ),
        released=released,
    )


def _neighbour_key(part: str, neighbours: PromisedUnit) -> str:
    """Return the key of the text about one kind of neighbours."""
    return f"phsafe.{part}.{neighbours.replace('-', '_')}"


def write_notes(
    columns: CensusColumns, measured: Sequence[MeasuredTable], definition: Definition, *, nation: bool
) -> tuple[str, ...]:
    """Return notes: what is left out, what a changed record costs, and which tables are not made."""
    said: list[str] = [Phrase("phsafe.note.truncated")]
    whole = sum_budgets(measured)
    if whole is not None and definition == "zcdp":
        said.append(
            Phrase(
                "phsafe.note.changed",
                half=_round_up(whole / 2),
                twice=_round_up(whole * 2),
                four=_round_up(whole * 4),
            )
        )
    elif whole is not None:
        said.append(Phrase("phsafe.note.changed_pure", once=_round_up(whole), twice=_round_up(whole * 2)))
    made = {item.table for item in measured}
    lacking = [table.name for table in TABULATIONS if not table.possible_levels(columns.available)]
    if lacking:
        said.append(Phrase("phsafe.note.lacking", tables=", ".join(lacking)))
    elif not made:
        said.append(Phrase("phsafe.note.nothing"))
    if not nation:
        said.append(Phrase("phsafe.note.no_nation"))
    return tuple(said)


def _round_up(value: Fraction) -> Decimal:
    """Return the value rounded up, as budgets are shown."""
    return Decimal(str(Budget.of(value)))


def build_ledger(
    measured: Sequence[MeasuredTable], definition: Definition, neighbours: PromisedUnit
) -> Ledger:
    """Return the account of a run: one line for each table, region type and iteration level."""
    factor = PHSAFE_FACTORS[definition][neighbours]
    amounts = [(item.place, None if item.budget is None else item.budget * factor) for item in measured]
    whole = sum_budgets(measured)
    return Ledger(
        limit=make_budget(None if whole is None else whole * factor, definition),
        output_premetric=choose_premetric(definition),
        entries=tuple(
            Entry(by="phsafe", on=place, budget=make_budget(amount, definition)) for place, amount in amounts
        ),
    )
