"""State the promise of SafeTab-H: its specification, its notes and the account of its budgets, before anything is read."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

from stirred.languages import Phrase
from stirred.mechanisms.safetab.factors import SAFETAB_H_CONVERSION
from stirred.mechanisms.safetab.households.design import larger_sum
from stirred.mechanisms.safetab.households.presets import Place
from stirred.mechanisms.safetab.noise import Definition
from stirred.mechanisms.safetab.regions import REGION_TYPES
from stirred.spec import (
    Budget,
    Evidence,
    Hamming,
    Ledger,
    Margin,
    Multiplicative,
    Multiverse,
    NormalizedRenyi,
    OutputPremetric,
    Specification,
    SymmetricDifference,
)
from stirred.spec.released import Views

if TYPE_CHECKING:
    from stirred.census import Census

NeighbourKind = Literal["added-or-removed", "changed"]
KnownInvariants = Literal["housing-units", "none"]
HOUSEHOLD = "household"
CHANGED_FACTOR = (
    SAFETAB_H_CONVERSION.proved.times
)  # what a budget is multiplied by for a changed household (proof.md, Theorem 2)


def choose_premetric(definition: Definition) -> OutputPremetric:
    """Return D_nor (zCDP) for Gaussian noise, D_mult (pure DP) for geometric noise."""
    return NormalizedRenyi() if definition == "zcdp" else Multiplicative()


def make_budget(definition: Definition, amount: Fraction | None) -> Budget:
    """Return ρ for zCDP (amounts are ρ²) or ε for pure DP; None is no noise."""
    if amount is None:
        return Budget.infinite()
    return Budget.sqrt(amount) if definition == "zcdp" else Budget.of(amount)


def housing_unit_multiverse(census: "Census") -> Multiverse:
    """Return housing units by the smallest area as invariant, if the census lists vacant ones; else none."""
    schema = census.schema
    if HOUSEHOLD not in schema.record_types or not schema.spine:
        return Multiverse.none()
    kinds = schema.record(HOUSEHOLD).kinds
    if kinds is None or not (kinds.vacant or kinds.housing_units):
        return Multiverse.none()
    units = [str(level) for level in (*kinds.occupied, *kinds.vacant, *kinds.housing_units)]
    words = Phrase("safetab_h.units", level=schema.spine[-1])
    return Multiverse.of(Margin(HOUSEHOLD, (schema.spine[-1],), {kinds.column: units}, label=words))


def build_specification(
    census: "Census",
    budgets: Mapping[Place, Fraction] | None,
    *,
    definition: Definition,
    compared: NeighbourKind,
    known: KnownInvariants,
    record_type: str,
    notes: Sequence[str],
    released: Views,
) -> Specification:
    """Return the promise per household added or removed, or changed; ``budgets`` None is no noise."""
    spent = None if budgets is None else larger_sum(budgets)
    changed = compared == "changed"
    if spent is not None and changed:
        spent *= CHANGED_FACTOR
    unit = HOUSEHOLD if HOUSEHOLD in census.schema.record_types else record_type
    return Specification(
        domain=census.domain,
        multiverse=housing_unit_multiverse(census) if known == "housing-units" else Multiverse.none(),
        input_premetric=Hamming(unit) if changed else SymmetricDifference(unit),
        output_premetric=choose_premetric(definition),
        budget=make_budget(definition, spent),
        evidence=Evidence(
            status="proved",
            source=Phrase("safetab_h.source.changed") if changed else Phrase("safetab_h.source.added"),
        ),
        notes=(*notes, *census.notes),
        released=released,
    )


def write_notes(asked: Mapping[Place, Fraction], places: Sequence[Place]) -> tuple[str, ...]:
    """Return the notes of the promise: what is read as public, and what is not tabulated."""
    kinds, tables = {name for _, name, _ in places}, {table for table, _, _ in places}
    without = dict.fromkeys(name for (_, name, _), amount in asked.items() if amount and name not in kinds)
    absent = dict.fromkeys(table for (table, _, _), amount in asked.items() if amount and table not in tables)
    found: list[str] = [Phrase("safetab_h.note.totals"), Phrase("safetab_h.note.unmapped")]
    if without:
        found.append(Phrase("safetab_h.note.without", names=", ".join(without)))
    if absent:
        found.append(Phrase("safetab_h.note.tables", names=", ".join(absent)))
    return tuple(found)


def build_ledger(
    budgets: Mapping[Place, Fraction] | None, definition: Definition, compared: NeighbourKind, limit: Budget
) -> Ledger:
    """Return one line for each table, region type and level, of the program that costs more."""
    account = Ledger(limit=limit, output_premetric=choose_premetric(definition))
    if budgets is None:
        return account.spend("safetab-h", "exact counts", Budget.infinite())
    sums = {
        island: sum(
            (v for (_, name, _), v in budgets.items() if REGION_TYPES[name].island is island), Fraction(0)
        )
        for island in (False, True)
    }
    larger = sums[True] > sums[False]
    times = CHANGED_FACTOR if compared == "changed" else 1
    for (table, name, level), amount in budgets.items():
        if REGION_TYPES[name].island is larger:
            account = account.spend(
                "safetab-h", f"{table}: {name}, level {level}", make_budget(definition, amount * times)
            )
    return account
