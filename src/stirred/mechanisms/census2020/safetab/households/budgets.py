"""Divide the budget of SafeTab-H among tables, region types and levels, and state the promise of a run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from stirred.errors import InputError
from stirred.languages import Phrase
from stirred.mechanisms.census2020.config import SafeTabHConfig
from stirred.mechanisms.census2020.factors import (
    SAFETAB_H_CONVERSION,
    Definition,
    KnownInvariants,
    NeighbourKind,
)
from stirred.mechanisms.census2020.noise import choose_premetric, make_budget
from stirred.mechanisms.census2020.safetab.base import (
    ProductSettings,
    larger_sum,
    parse_thresholds,
    replace_budgets,
    sum_budgets,
)
from stirred.mechanisms.census2020.safetab.groups import (
    PUERTO_RICO,
    REGION_TYPES,
    UNITED_STATES,
    RegionType,
    choose_region_types,
)
from stirred.mechanisms.census2020.safetab.households.tables import (
    PRESETS,
    TENURES,
    THRESHOLDS_PER_TABLE,
    TYPES,
    Place,
    TypeAndTenure,
    parse_places,
)
from stirred.spec import (
    Budget,
    Evidence,
    Hamming,
    Ledger,
    Margin,
    Multiverse,
    Specification,
    SymmetricDifference,
)
from stirred.spec.invariants import Views

if TYPE_CHECKING:
    from stirred.census import Census


# What a run measures: its tables, region types and levels with exact budgets, from the settings and the schema alone.


@dataclass(frozen=True, slots=True, kw_only=True)
class HouseholderSource:
    """Where a household's codes are: in its own record, or in that of the person who is its householder."""

    record_type: str
    races: tuple[str, ...]
    ethnicity: str
    link: str = ""  # the column of a person with its household; empty: households are counted
    where: tuple[tuple[str, tuple[str, ...]], ...] = ()


def settle_budgets(config: SafeTabHConfig) -> ProductSettings[Place]:
    """Return the preset with given budgets and thresholds in the place of its own, scaled to a total."""
    found = PRESETS[config.preset]
    own = {place: Fraction(value) for text, value in config.budget.items() for place in parse_places(text)}
    cuts = {
        place: parse_thresholds(text, value, THRESHOLDS_PER_TABLE[place[0]])
        for text, value in config.thresholds.items()
        for place in parse_places(text)
    }
    return replace(
        found,
        budgets=replace_budgets(found.budgets, own, config.total),
        thresholds={**found.thresholds, **cuts},
    )


def list_places(
    census: "Census", settings: ProductSettings[Place], kinds: Mapping[str, RegionType], cells: TypeAndTenure
) -> tuple[Place, ...]:
    """Return the tables, region types and levels that have a budget and columns in the census."""
    tables = {"T3": bool(cells.type), "T4": bool(cells.tenure)}
    there = {kind.name for kind in choose_region_types(census, tuple(kinds.values()))}
    return tuple(
        place
        for place, budget in settings.budgets.items()
        if budget > 0 and tables[place[0]] and place[1] in there
    )


def reachable_columns(census: "Census", record_type: str) -> frozenset[str]:
    """Return the columns of a record type and of the records it is linked to."""
    linked = census.schema.record(record_type).linked_to
    return frozenset((*census.columns(record_type), *(census.columns(linked) if linked else ())))


def find_source(
    census: "Census", races: Sequence[str], ethnicity: str, householder: str, levels: Sequence[str]
) -> HouseholderSource:
    """Return the records whose codes are those of householders."""
    schema = census.schema
    for record in schema.records:
        if record.linked_to:
            continue
        there = census.columns(record.name)
        own = tuple(name for name in races if name in there)
        if own and record.name != "person":
            beside = ethnicity if ethnicity in there else ""
            return HouseholderSource(record_type=record.name, races=own, ethnicity=beside)
    for record in schema.records:
        there = census.columns(record.name)
        own = tuple(name for name in races if name in there)
        if own and record.linked_to and householder in there:
            return HouseholderSource(
                record_type=record.name,
                races=own,
                ethnicity=ethnicity if ethnicity in there else "",
                link=record.household,
                where=((householder, tuple(levels)),),
            )
    raise InputError(
        "the census has no detailed codes of householders",
        why=f"no household record has {races[0] if races else 'race codes'}, and no person record has it with {householder}",
        fix="name their columns: --races and --householder",
    )


def find_cells(
    census: "Census",
    record_type: str,
    columns: tuple[str, str],
    types: Mapping[str, str],
    tenures: Mapping[str, str],
) -> TypeAndTenure:
    """Return the cells that the census has the columns for."""
    there = reachable_columns(census, record_type)
    kind, tenure = columns
    return TypeAndTenure(
        type=kind if kind in there else "",
        tenure=tenure if tenure in there else "",
        types=_parse_levels("types", types, TYPES),
        tenures=_parse_levels("tenures", tenures, TENURES),
    )


def _parse_levels(name: str, levels: Mapping[str, str], most: int) -> tuple[tuple[str, int], ...]:
    for code in levels.values():
        if code not in {str(known) for known in range(1, most + 1)}:
            raise InputError(
                f"{name} gives a level the code {code[:20]!r}",
                why=f"the codes are 1 to {most}",
                fix=f'{name} = {{ "level" = "1" }}',
            )
    return tuple((level, int(code)) for level, code in levels.items())


# State the promise of SafeTab-H: its specification, its notes and the account of its budgets, before anything is read.

HOUSEHOLD = "household"
CHANGED_FACTOR = (
    SAFETAB_H_CONVERSION.proved.times
)  # what a budget is multiplied by for a changed household (proof.md, Theorem 2)


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
        budget=make_budget(spent, definition),
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
    larger = sum_budgets(budgets, PUERTO_RICO) > sum_budgets(budgets, UNITED_STATES)
    times = CHANGED_FACTOR if compared == "changed" else 1
    for (table, name, level), amount in budgets.items():
        if REGION_TYPES[name].island is larger:
            account = account.spend(
                "safetab-h", f"{table}: {name}, level {level}", make_budget(amount * times, definition)
            )
    return account
