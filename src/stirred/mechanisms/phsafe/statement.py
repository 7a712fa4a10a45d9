"""State the promise of PHSafe: its specification, its ledger and its notes, from the settings and the schema alone."""

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from stirred.languages import Phrase, unit
from stirred.mechanisms.phsafe.amounts import Measured
from stirred.mechanisms.phsafe.counting.tables import TABULATIONS
from stirred.mechanisms.phsafe.counting.tabulate import housing_units
from stirred.mechanisms.phsafe.counting.variables import CensusColumns
from stirred.mechanisms.safetab.noise import Definition
from stirred.spec import (
    AtLeast,
    Budget,
    Evidence,
    Ledger,
    Margin,
    Multiplicative,
    Multiverse,
    NormalizedRenyi,
    Specification,
    SymmetricDifference,
)

if TYPE_CHECKING:
    from stirred.census import Census


def premetric(definition: Definition) -> NormalizedRenyi | Multiplicative:
    """zCDP or pure DP."""
    return NormalizedRenyi() if definition == "zcdp" else Multiplicative()


def budget_of(amount: Fraction | None, definition: Definition) -> Budget:
    """A budget of the settings in its output premetric: ρ for ρ², ε as it is; None is infinite."""
    if amount is None:
        return Budget.infinite()
    return Budget.sqrt(amount) if definition == "zcdp" else Budget.of(amount)


def total(measured: Sequence[Measured]) -> Fraction | None:
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
    measured: Sequence[Measured],
    definition: Definition,
    *,
    nation: bool,
) -> Specification:
    """ρ-DP(X, D_c, d_Sym(person), D_nor), or ε under D_mult: the budgets of all measurements together."""
    return Specification(
        domain=census.domain,
        multiverse=Multiverse.of(some_unit(census, columns)),
        input_premetric=SymmetricDifference("person"),
        output_premetric=premetric(definition),
        budget=budget_of(total(measured), definition),
        evidence=Evidence(status="proved", source=Phrase("phsafe.source")),
        notes=(*notes(columns, measured, definition, nation=nation), *census.notes),
    )


def notes(
    columns: CensusColumns, measured: Sequence[Measured], definition: Definition, *, nation: bool
) -> tuple[str, ...]:
    """What the promise is about, what a changed record costs, and which tables are not made."""
    said: list[str] = [Phrase("phsafe.note.unit"), Phrase("phsafe.note.truncated")]
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


def _shown(value: Fraction) -> str:
    return str(Budget.of(value))


def ledger(measured: Sequence[Measured], definition: Definition) -> Ledger:
    """The account of a run: one line for each table, region type and iteration level."""
    account = Ledger(limit=budget_of(total(measured), definition), output_premetric=premetric(definition))
    for item in measured:
        account = account.spend("phsafe", item.place, budget_of(item.budget, definition))
    return account
