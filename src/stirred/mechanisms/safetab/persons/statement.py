"""State the promise of a SafeTab-P run: its specification, its account and what must be said with it."""

from fractions import Fraction
from typing import TYPE_CHECKING, Literal

from stirred.languages import Phrase
from stirred.mechanisms.proposal import find_root
from stirred.mechanisms.safetab.factors import SAFETAB_P_CONVERSION
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

KnownInvariants = Literal["housing-units", "none"]
NeighbourKind = Literal["added-or-removed", "changed"]
PROVED_FACTOR, PUBLISHED_FACTOR = (
    SAFETAB_P_CONVERSION.proved.times,
    SAFETAB_P_CONVERSION.published.times,
)  # what ρ² is multiplied by for a changed record


def housing_unit_margins(census: "Census", counted: str) -> tuple[Margin, ...]:
    """Return the housing units by the lowest level of areas, the invariant that the paper lists for SafeTab.

    Nothing is computed from them, and no table shows them; the promise also holds without them (``invariants = "none"``).
    """
    if not census.schema.spine:
        return ()
    record, leaf = find_root(census.schema), census.schema.spine[-1]
    if record.name == counted:  # a census of persons alone has no housing units
        return ()
    where = None
    if record.kinds is not None:
        homes = (*record.kinds.occupied, *record.kinds.vacant, *record.kinds.housing_units)
        where = {record.kinds.column: [str(level) for level in homes]}
    return (Margin(record.name, (leaf,), where, Phrase("safetab.homes", level=leaf)),)


def make_budget(amount: Fraction | None, definition: Definition) -> Budget:
    """Return ρ, the root of the usual zCDP parameter, or ε; None means no noise."""
    if amount is None:
        return Budget.infinite()
    return Budget.sqrt(amount) if definition == "zcdp" else Budget.of(amount)


def choose_premetric(definition: Definition) -> OutputPremetric:
    """Return D_nor for zCDP, D_mult for pure DP."""
    return NormalizedRenyi() if definition == "zcdp" else Multiplicative()


def build_specification(
    census: "Census",
    allotment: Apportionment,
    record: str,
    compared: NeighbourKind,
    absent: tuple[str, ...],
    *,
    stated: KnownInvariants,
    released: Views,
) -> Specification:
    """Return the promise for persons added or removed, or for persons changed (Theorem 2)."""
    changed = compared == "changed"
    spent, definition = allotment.total_budget(), allotment.definition
    paid = spent * PROVED_FACTOR if changed and spent is not None else spent
    premetric: RecordPremetric = Hamming(record) if changed else SymmetricDifference(record)
    homes = housing_unit_margins(census, record) if stated == "housing-units" else ()
    source = "safetab.source.changed" if changed else "safetab.source.added"
    return Specification(
        domain=census.domain,
        multiverse=Multiverse.of(*homes, *tree_invariants(census)),
        input_premetric=premetric,
        output_premetric=choose_premetric(definition),
        budget=make_budget(paid, definition),
        evidence=Evidence(status="proved", source=Phrase(source)),
        notes=(*_write_notes(allotment, spent, absent, homes=bool(homes)), *census.notes),
        released=released,
    )


def _write_notes(
    allotment: Apportionment, spent: Fraction | None, absent: tuple[str, ...], *, homes: bool
) -> tuple[str, ...]:
    notes: list[str] = [Phrase("safetab.note.public"), Phrase("safetab.note.dropped")]
    if homes:
        notes.append(Phrase("safetab.note.homes"))
    if spent is not None and allotment.definition == "zcdp":
        published, proved = (str(Budget.of(spent * times)) for times in (PUBLISHED_FACTOR, PROVED_FACTOR))
        counted = str(Budget.of(spent))
        notes.append(Phrase("safetab.note.factors", counted=counted, published=published, proved=proved))
    elif spent is not None:
        figures = (str(Budget.of(spent)), str(Budget.of(2 * spent)))
        notes.append(Phrase("safetab.note.pure", counted=figures[0], changed=figures[1]))
    if all(allotment.split_programs()):
        notes.append(Phrase("safetab.note.apart"))
    if absent:
        notes.append(Phrase("safetab.note.absent", types=", ".join(absent)))
    return tuple(notes)


def build_ledger(allotment: Apportionment, compared: NeighbourKind, limit: Budget, by: str) -> Ledger:
    """Return the account of a run: one line for each region type and level of the larger program."""
    times = PROVED_FACTOR if compared == "changed" else 1
    account = Ledger(limit=limit, output_premetric=choose_premetric(allotment.definition))
    if allotment.total_budget() is None:
        return account.spend(by, "exact counts", Budget.infinite())
    larger = max(
        allotment.split_programs(), key=lambda lines: sum((line.budget or 0 for line in lines), Fraction(0))
    )
    for line in larger:
        amount = None if line.budget is None else line.budget * times
        account = account.spend(by, line.name, make_budget(amount, allotment.definition))
    return account
