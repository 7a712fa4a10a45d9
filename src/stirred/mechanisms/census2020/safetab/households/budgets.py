"""Divide the budget of SafeTab-H among tables, region types and levels, and state the promise of a run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from stirred.errors import BudgetError, InputError, did_you_mean, require_kind
from stirred.languages import Phrase
from stirred.mechanisms.census2020.factors import SAFETAB_H_CONVERSION
from stirred.mechanisms.census2020.noise import Definition
from stirred.mechanisms.census2020.safetab.groups import (
    PUERTO_RICO,
    REGION_TYPES,
    UNITED_STATES,
    RegionType,
    choose_region_types,
)
from stirred.mechanisms.census2020.safetab.households.tables import (
    TENURES,
    THRESHOLDS_PER_TABLE,
    TYPES,
    HouseholdSettings,
    Place,
    TypeAndTenure,
    find_preset,
    parse_places,
)
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
from stirred.spec.invariants import Views

if TYPE_CHECKING:
    from stirred.census import Census


# What a run measures: its tables, region types and levels with exact budgets, from the settings and the schema alone.

CHOICES: Mapping[str, tuple[str | None, ...]] = {
    "definition": ("zcdp", "puredp"),
    "neighbours": ("added-or-removed", "changed"),
    "invariants": ("housing-units", "none"),
    "epsilon": ("inf", None),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class HouseholderSource:
    """Where a household's codes are: in its own record, or in that of the person who is its householder."""

    record_type: str
    races: tuple[str, ...]
    ethnicity: str
    link: str = ""  # the column of a person with its household; empty: households are counted
    where: tuple[tuple[str, tuple[str, ...]], ...] = ()


def require_settings(settings: Mapping[str, object], paths: Sequence[str]) -> None:
    """Refuse settings of the wrong type, and choices that do not exist."""
    for name in paths:
        if settings[name] is not None:
            fix = f'{name}=Path("{name}")'
            require_kind(name, settings[name], (str, Path), wanted="a path", fix=fix)
    for name in ("budget", "thresholds", "types", "tenures", "regions"):
        require_kind(name, settings[name], Mapping, wanted="a dictionary", fix=f"{name}={{}}")
    for name in ("races", "householders"):
        require_kind(name, settings[name], (list, tuple), wanted="a list of names", fix=f'{name}=["a"]')
    most = settings["most_codes"]
    require_kind("most_codes", most, int, wanted="a whole number", fix="most_codes=8")
    if isinstance(most, int) and most < 1:
        raise InputError("most_codes is below 1", why="a householder may have a code", fix="most_codes=8")
    for name, known in CHOICES.items():
        if settings[name] not in known:
            words = [word for word in known if word is not None]
            raise InputError(
                f"{name} of SafeTab-H is unknown",
                why=f"it is one of {', '.join(words)}",
                fix=did_you_mean(str(settings[name]), words),
            )


def parse_exact(name: str, value: object) -> Fraction:
    """Return an exact number from a text, a whole number or a fraction; refuse a float.

    >>> parse_exact("total", "8.9")
    Fraction(89, 10)
    """
    try:
        if isinstance(value, str | int | Fraction) and not isinstance(value, bool):
            return Fraction(value)
    except (ValueError, ZeroDivisionError):
        pass
    raise BudgetError(
        f"{name} is not an exact number",
        why="a float is rounded" if isinstance(value, float) else "it is neither p/q nor a decimal",
        fix=f'{name} = "1/2"',
    )


def settle_budgets(
    name: str, budgets: Mapping[str, str], thresholds: Mapping[str, str], total: Fraction | None
) -> HouseholdSettings:
    """Return the preset with given budgets and thresholds in the place of its own, scaled to a total."""
    found = find_preset(name)
    own = {
        place: parse_exact(f"budget of {text}", v)
        for text, v in budgets.items()
        for place in parse_places(text)
    }
    for text, value in budgets.items():
        if parse_exact(text, value) < 0:
            raise BudgetError(
                f"the budget of {text} is negative", why="a budget is 0 or more", fix=f'{text} = "1/2"'
            )
    cuts = {
        place: _parse_thresholds(place, text, value)
        for text, value in thresholds.items()
        for place in parse_places(text)
    }
    both = replace(found, budgets={**found.budgets, **own}, thresholds={**found.thresholds, **cuts})
    if total is None:
        return both
    spent = larger_sum(both.budgets)
    if total <= 0 or not spent:
        raise BudgetError(
            "the total budget cannot be divided",
            why="it is not above 0" if total <= 0 else "no table has a budget",
            fix='total = "8.9", with a preset or budgets of your own',
        )
    return replace(both, budgets={place: value * total / spent for place, value in both.budgets.items()})


def larger_sum(budgets: Mapping[Place, Fraction]) -> Fraction:
    """Return the cost of one household: the larger sum of the United States and Puerto Rico."""
    sums = HouseholdSettings(budgets=budgets)
    return max(sums.sum_budgets(UNITED_STATES), sums.sum_budgets(PUERTO_RICO))


def _parse_thresholds(place: Place, text: str, value: str) -> tuple[int, ...]:
    table, words = place[0], value.replace(",", " ").split()
    number = THRESHOLDS_PER_TABLE[table]
    try:
        found = tuple(int(word) for word in words)[:number]
    except ValueError:
        found = ()
    if len(found) < number or list(found) != sorted(found):
        raise InputError(
            f"the thresholds of {text} are not as they should be",
            why=f"{table} needs {number} whole number{'s' if number > 1 else ''}, rising",
            fix=f'{text} = "471,971,6971"' if table == "T3" else f'{text} = "471"',
        )
    return found


def list_places(
    census: "Census", settings: HouseholdSettings, kinds: Mapping[str, RegionType], cells: TypeAndTenure
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


# State the promise of SafeTab-H: its specification, its notes and the account of its budgets, before anything is
# read.

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
