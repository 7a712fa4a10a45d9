"""Which budget is spent on which table, region type and iteration level, and the noise that it pays for."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from stirred.errors import BudgetError, InputError, did_you_mean
from stirred.mechanisms.phsafe.counting.tables import STATE, TABULATION_BY_NAME, TABULATIONS, USA
from stirred.mechanisms.phsafe.presets import LEVELS, Preset
from stirred.mechanisms.safetab.noise import CellNoise, Definition

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
    try:
        amount = Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise BudgetError(
            f"the budget {name} is not an exact number",
            why="a budget is a text such as 1/2 or 0.5",
            fix=f'budget = {{ "{name}" = "0.5" }}',
        ) from None
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
