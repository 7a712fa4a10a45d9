"""State the promise of SafeTab-H: its specification, its notes and the account of its budgets, before anything is read."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

from stirred.languages import Phrase
from stirred.mechanisms.safetab.factors import HOUSEHOLDS
from stirred.mechanisms.safetab.households.design import spent_by
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

Compared = Literal["added-or-removed", "changed"]
Known = Literal["housing-units", "none"]
HOUSEHOLD = "household"
CHANGED = (
    HOUSEHOLDS.proved.times
)  # what a budget is multiplied by for a changed household (proof.md, Theorem 2)


def premetric(definition: Definition) -> OutputPremetric:
    """zCDP for Gaussian noise, pure DP for geometric noise."""
    return NormalizedRenyi() if definition == "zcdp" else Multiplicative()


def budget(definition: Definition, amount: Fraction | None) -> Budget:
    """ρ for zCDP (amounts are ρ²), ε for pure DP; None is no noise."""
    if amount is None:
        return Budget.infinite()
    return Budget.sqrt(amount) if definition == "zcdp" else Budget.of(amount)


def housing_units(census: "Census") -> Multiverse:
    """All housing units by the smallest area, where the census lists vacant ones too; else nothing is taken as known."""
    schema = census.schema
    if HOUSEHOLD not in schema.record_types or not schema.spine:
        return Multiverse.none()
    kinds = schema.record(HOUSEHOLD).kinds
    if kinds is None or not (kinds.vacant or kinds.housing_units):
        return Multiverse.none()
    units = [str(level) for level in (*kinds.occupied, *kinds.vacant, *kinds.housing_units)]
    words = Phrase("safetab_h.units", level=schema.spine[-1])
    return Multiverse.of(Margin(HOUSEHOLD, (schema.spine[-1],), {kinds.column: units}, label=words))


def specification(
    census: "Census",
    budgets: Mapping[Place, Fraction] | None,
    *,
    definition: Definition,
    compared: Compared,
    known: Known,
    record_type: str,
    notes: Sequence[str],
    released: Views,
) -> Specification:
    """The promise per household added or removed, or per changed household; ``budgets`` None is no noise."""
    spent = None if budgets is None else spent_by(budgets)
    changed = compared == "changed"
    if spent is not None and changed:
        spent *= CHANGED
    unit = HOUSEHOLD if HOUSEHOLD in census.schema.record_types else record_type
    return Specification(
        domain=census.domain,
        multiverse=housing_units(census) if known == "housing-units" else Multiverse.none(),
        input_premetric=Hamming(unit) if changed else SymmetricDifference(unit),
        output_premetric=premetric(definition),
        budget=budget(definition, spent),
        evidence=Evidence(
            status="proved",
            source=Phrase("safetab_h.source.changed") if changed else Phrase("safetab_h.source.added"),
        ),
        notes=(*notes, *census.notes),
        released=released,
    )


def notes(asked: Mapping[Place, Fraction], places: Sequence[Place]) -> tuple[str, ...]:
    """What the promise says beside its numbers: what is read as public, and what is not tabulated."""
    kinds, tables = {name for _, name, _ in places}, {table for table, _, _ in places}
    without = dict.fromkeys(name for (_, name, _), amount in asked.items() if amount and name not in kinds)
    absent = dict.fromkeys(table for (table, _, _), amount in asked.items() if amount and table not in tables)
    found: list[str] = [Phrase("safetab_h.note.totals"), Phrase("safetab_h.note.unmapped")]
    if without:
        found.append(Phrase("safetab_h.note.without", names=", ".join(without)))
    if absent:
        found.append(Phrase("safetab_h.note.tables", names=", ".join(absent)))
    return tuple(found)


def ledger(
    budgets: Mapping[Place, Fraction] | None, definition: Definition, compared: Compared, limit: Budget
) -> Ledger:
    """One line for each table, region type and level; of the two programs the one that costs more."""
    account = Ledger(limit=limit, output_premetric=premetric(definition))
    if budgets is None:
        return account.spend("safetab-h", "exact counts", Budget.infinite())
    sums = {
        island: sum(
            (v for (_, name, _), v in budgets.items() if REGION_TYPES[name].island is island), Fraction(0)
        )
        for island in (False, True)
    }
    larger = sums[True] > sums[False]
    times = CHANGED if compared == "changed" else 1
    for (table, name, level), amount in budgets.items():
        if REGION_TYPES[name].island is larger:
            account = account.spend(
                "safetab-h", f"{table}: {name}, level {level}", budget(definition, amount * times)
            )
    return account
