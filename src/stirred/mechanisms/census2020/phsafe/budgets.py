"""Divide the budget of PHSafe among tables, region types and iteration levels, and state the promise.

Source: Census Bureau, PHSafe production configuration (DAS_2020_SDHC_Production_Code): ρ² per person added or removed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from stirred.errors import BudgetError, InputError, did_you_mean
from stirred.languages import Phrase, unit
from stirred.mechanisms.census2020.factors import PHSAFE_FACTORS, Definition, PromisedUnit
from stirred.mechanisms.census2020.noise import CellNoise, choose_premetric, make_budget
from stirred.mechanisms.census2020.phsafe.counting import (
    STATE,
    TABULATION_BY_NAME,
    TABULATIONS,
    USA,
    CensusColumns,
    housing_unit_filter,
)
from stirred.spec import (
    AtLeast,
    Budget,
    Evidence,
    Hamming,
    Ledger,
    Margin,
    Multiverse,
    Specification,
    SymmetricDifference,
)
from stirred.spec.algebra import Entry
from stirred.spec.input_premetrics import RecordPremetric
from stirred.spec.invariants import Views

if TYPE_CHECKING:
    from stirred.census import Census


# The production settings of the Supplemental DHC File of 2020, as exact numbers.

Amounts = Mapping[str, Mapping[str, Fraction]]  # by table and level, such as "state_A-G"


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """A budget for every table and level, and how many persons of a household count.

    >>> SDHC_2020.total
    Fraction(1257281, 1000000)
    """

    name: str
    amounts: Amounts
    tau: Mapping[str, int]

    @property
    def total(self) -> Fraction:
        """Return ρ² of all tables."""
        return sum((amount for levels in self.amounts.values() for amount in levels.values()), Fraction(0))


def _level_budgets(usa: str, state: str, races: str) -> dict[str, Fraction]:
    return {
        "usa_A-G": Fraction(usa),
        "usa_H,I": Fraction(usa),
        "usa_*": Fraction(usa),
        "state_A-G": Fraction(races),
        "state_H,I": Fraction(state),
        "state_*": Fraction(state),
    }


def _total_budgets(usa: str, state: str) -> dict[str, Fraction]:
    return {"usa_*": Fraction(usa), "state_*": Fraction(state)}


_PERSONS = _level_budgets("0.002619", "0.016371", "0.141622")
_HOUSEHOLDS = _level_budgets("0.000022", "0.000135", "0.00117")
SDHC_2020: Final = Preset(
    name="sdhc-2020",
    amounts={
        "PH1_num": _PERSONS,
        "PH1_denom": _HOUSEHOLDS,
        "PH2": _total_budgets("0.002619", "0.016371"),
        "PH3": _level_budgets("0.001061", "0.00663", "0.662976"),
        "PH4": _PERSONS,
        "PH5_denom": _HOUSEHOLDS,
        "PH6": _total_budgets("0.001061", "0.00663"),
        "PH7": _PERSONS,
        "PH8_denom": _HOUSEHOLDS,
    },
    tau={"PH1_num": 10, "PH2": 10, "PH3": 6, "PH4": 10, "PH6": 6, "PH7": 10},
)
EMPTY_PRESET: Final = Preset(name="", amounts={name: {} for name in SDHC_2020.amounts}, tau={})
PRESETS: Final = {preset.name: preset for preset in (SDHC_2020, EMPTY_PRESET)}
LEVELS: Final = tuple(SDHC_2020.amounts["PH1_num"])


# Which budget is spent on which table, region type and iteration level, and the noise that it pays for.

REGION_TYPES = {"usa": USA, "state": STATE}


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredTable:
    """One table of one region type and one iteration level, with its budget (None: infinite) and its sensitivity."""

    table: str
    region_type: str
    level: str
    budget: Fraction | None
    sensitivity: int
    definition: Definition

    @property
    def noise(self) -> CellNoise:
        """Return the law of the noise on each of its counts."""
        return _make_noise(self.definition, self.budget, self.sensitivity)

    @property
    def place(self) -> str:
        """Return its name in the settings.

        >>> parts = {"region_type": "STATE", "level": "A-G", "budget": None, "sensitivity": 14, "definition": "zcdp"}
        >>> MeasuredTable(table="PH3", **parts).place
        'PH3.state_A-G'
        """
        return f"{self.table}.{self.region_type.lower()}_{self.level}"


@lru_cache(maxsize=256)
def _make_noise(definition: Definition, budget: Fraction | None, sensitivity: int) -> CellNoise:
    """Return the law, made once: tables with the same budget share what its sampler prepares."""
    return CellNoise(definition, budget, Fraction(sensitivity) ** 2)


def sensitivity(table: str, tau: Mapping[str, int]) -> int:
    """Return how far one person, with two unit records changed, moves the counts: 2τ + 2, or 2 for households.

    >>> sensitivity("PH3", {"PH3": 6}), sensitivity("PH1_denom", {})
    (14, 2)
    """
    return 2 * tau[table] + 2 if TABULATION_BY_NAME[table].persons else 2


def divide_budget(
    preset: Preset, changed: Mapping[str, str], total: Fraction | None, *, infinite: bool
) -> dict[tuple[str, str], Fraction | None]:
    """Return the budget of every table and level above 0 (None: infinite), after changes and scaling."""
    found: dict[tuple[str, str], Fraction | None] = {
        (table, level): amount for table, levels in preset.amounts.items() for level, amount in levels.items()
    }
    for name, text in changed.items():
        for place in _parse_places(name):
            found[place] = None if text == "inf" else _parse_amount(name, text)
    found = {place: amount for place, amount in found.items() if amount is None or amount > 0}
    if infinite:
        return dict.fromkeys(found)
    if total is None:
        return found
    finite = [amount for amount in found.values() if amount is not None]
    if len(finite) < len(found) or not finite:
        raise BudgetError(
            "these budgets cannot be scaled to a total",
            why="one of them is infinite, or all are 0",
            fix="leave the total out, or give finite budgets",
        )
    factor = total / sum(finite, Fraction(0))
    return {place: amount * factor for place, amount in found.items() if amount is not None}


def _parse_places(name: str) -> list[tuple[str, str]]:
    table, _, level = name.partition(".")
    if table not in TABULATION_BY_NAME:
        raise InputError(
            f"there is no budget {name!r}",
            why="the first part names a table that is measured",
            fix=did_you_mean(table, TABULATION_BY_NAME),
        )
    own = [one for one in LEVELS if one.partition("_")[2] in TABULATION_BY_NAME[table].levels]
    if level and level not in own:
        raise InputError(
            f"there is no budget {name!r}",
            why=f"the second part names a level of {table}",
            fix=did_you_mean(level, own),
        )
    return [(table, one) for one in own if level in ("", one)]


def _parse_amount(name: str, text: str) -> Fraction:
    amount = Fraction(text)
    if amount < 0:
        raise BudgetError(
            f"the budget {name} is negative",
            why="a budget is 0 or more",
            fix=f'budget = {{ "{name}" = "0" }}',
        )
    return amount


def list_measured(
    amounts: Mapping[tuple[str, str], Fraction | None],
    tau: Mapping[str, int],
    definition: Definition,
    available: frozenset[str],
    *,
    nation: bool,
) -> tuple[MeasuredTable, ...]:
    """Return the tables that a census with these variables has measured, in order; the rest costs nothing."""
    found = []
    for table in TABULATIONS:
        possible = table.possible_levels(available)
        for name in LEVELS:
            region, _, level = name.partition("_")
            if (table.name, name) in amounts and level in possible and (nation or region != "usa"):
                found.append(
                    MeasuredTable(
                        table=table.name,
                        region_type=REGION_TYPES[region],
                        level=level,
                        budget=amounts[table.name, name],
                        sensitivity=sensitivity(table.name, tau),
                        definition=definition,
                    )
                )
    return tuple(found)


# State the promise of PHSafe: its specification, its ledger and its notes, from the settings and the schema alone.

PREMETRICS: Final[Mapping[PromisedUnit, RecordPremetric]] = {
    "added-or-removed": SymmetricDifference("person"),
    "changed": Hamming("person", link="free"),
    "household": Hamming("household"),
}


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
