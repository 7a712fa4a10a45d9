"""State the promise of a SafeTab-P run: its specification, its account and what must be said with it."""

from fractions import Fraction
from typing import TYPE_CHECKING, Literal

from stirred.languages import Phrase
from stirred.mechanisms.proposal import root
from stirred.mechanisms.safetab.factors import PERSONS
from stirred.mechanisms.safetab.noise import Definition
from stirred.mechanisms.safetab.persons.apportionment import Apportionment
from stirred.mechanisms.topdown.tree.leaves import tree_invariants
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
    RecordPremetric,
    Specification,
    SymmetricDifference,
)
from stirred.spec.released import Views

if TYPE_CHECKING:
    from stirred.census import Census

Stated = Literal["housing-units", "none"]
Compared = Literal["added-or-removed", "changed"]
PROVED, PUBLISHED = (
    PERSONS.proved.times,
    PERSONS.published.times,
)  # what ρ² is multiplied by for a changed record


def housing_units(census: "Census", counted: str) -> tuple[Margin, ...]:
    """Housing units by the lowest level of areas: the invariant that the paper's table lists for SafeTab.

    Nothing is computed from them, and no table shows them; the promise also holds without them (``invariants = "none"``).
    """
    if not census.schema.spine:
        return ()
    record, leaf = root(census.schema), census.schema.spine[-1]
    if record.name == counted:  # a census of persons alone has no housing units
        return ()
    where = None
    if record.kinds is not None:
        homes = (*record.kinds.occupied, *record.kinds.vacant, *record.kinds.housing_units)
        where = {record.kinds.column: [str(level) for level in homes]}
    return (Margin(record.name, (leaf,), where, Phrase("safetab.homes", level=leaf)),)


def budget(amount: Fraction | None, definition: Definition) -> Budget:
    """ρ, the root of the usual zCDP parameter, or ε; None means no noise."""
    if amount is None:
        return Budget.infinite()
    return Budget.sqrt(amount) if definition == "zcdp" else Budget.of(amount)


def output_premetric(definition: Definition) -> OutputPremetric:
    """D_nor for zCDP, D_mult for pure DP."""
    return NormalizedRenyi() if definition == "zcdp" else Multiplicative()


def specification(
    census: "Census",
    allotment: Apportionment,
    record: str,
    compared: Compared,
    absent: tuple[str, ...],
    *,
    stated: Stated,
    released: Views,
) -> Specification:
    """The promise for persons added or removed, as the production code counts, or for persons changed (Theorem 2)."""
    changed = compared == "changed"
    spent, definition = allotment.spent(), allotment.definition
    paid = spent * PROVED if changed and spent is not None else spent
    premetric: RecordPremetric = Hamming(record) if changed else SymmetricDifference(record)
    homes = housing_units(census, record) if stated == "housing-units" else ()
    source = "safetab.source.changed" if changed else "safetab.source.added"
    return Specification(
        domain=census.domain,
        multiverse=Multiverse.of(*homes, *tree_invariants(census)),
        input_premetric=premetric,
        output_premetric=output_premetric(definition),
        budget=budget(paid, definition),
        evidence=Evidence(status="proved", source=Phrase(source)),
        notes=(*_notes(allotment, spent, absent, homes=bool(homes)), *census.notes),
        released=released,
    )


def _notes(
    allotment: Apportionment, spent: Fraction | None, absent: tuple[str, ...], *, homes: bool
) -> tuple[str, ...]:
    notes: list[str] = [Phrase("safetab.note.public"), Phrase("safetab.note.dropped")]
    if homes:
        notes.append(Phrase("safetab.note.homes"))
    if spent is not None and allotment.definition == "zcdp":
        published, proved = (str(Budget.of(spent * times)) for times in (PUBLISHED, PROVED))
        counted = str(Budget.of(spent))
        notes.append(Phrase("safetab.note.factors", counted=counted, published=published, proved=proved))
    elif spent is not None:
        figures = (str(Budget.of(spent)), str(Budget.of(2 * spent)))
        notes.append(Phrase("safetab.note.pure", counted=figures[0], changed=figures[1]))
    if all(allotment.programs()):
        notes.append(Phrase("safetab.note.apart"))
    if absent:
        notes.append(Phrase("safetab.note.absent", types=", ".join(absent)))
    return tuple(notes)


def ledger(allotment: Apportionment, compared: Compared, limit: Budget, by: str) -> Ledger:
    """The account of a run: one line for each region type and level of the larger program."""
    times = PROVED if compared == "changed" else 1
    account = Ledger(limit=limit, output_premetric=output_premetric(allotment.definition))
    if allotment.spent() is None:
        return account.spend(by, "exact counts", Budget.infinite())
    larger = max(
        allotment.programs(), key=lambda lines: sum((line.budget or 0 for line in lines), Fraction(0))
    )
    for line in larger:
        amount = None if line.budget is None else line.budget * times
        account = account.spend(by, line.name, budget(amount, allotment.definition))
    return account
