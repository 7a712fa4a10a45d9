"""The settings of published products as exact constants: the Detailed DHC-B of 2020.

Census Bureau, DAS_2020_DDHCB_Production_Code (SafeTab-H 3.0.0), production configuration: ρ² per household added or removed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from stirred.errors import InputError, did_you_mean
from stirred.mechanisms.safetab.households.cells import TableName
from stirred.mechanisms.safetab.regions import PUERTO_RICO, REGION_TYPES, UNITED_STATES, RegionType

Place = tuple[TableName, str, int]  # a table, a region type and a level
TABLES: tuple[TableName, ...] = ("T3", "T4")
THRESHOLDS_PER_TABLE: Mapping[TableName, int] = {"T3": 3, "T4": 1}  # how many thresholds a table has
PLACES: tuple[Place, ...] = tuple(
    (table, kind, level) for table in TABLES for kind in REGION_TYPES for level in (1, 2)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HouseholdSettings:
    """What a product fixes: a budget and thresholds for every table, region type and level.

    >>> [str(DDHC_B_2020.spent(kinds)) for kinds in (UNITED_STATES, PUERTO_RICO)]
    ['4447651/500000', '2377067/500000']
    """

    budgets: Mapping[Place, Fraction] = field(default_factory=dict)
    thresholds: Mapping[Place, tuple[int, ...]] = field(default_factory=dict)

    def sum_budgets(self, kinds: Iterable[RegionType]) -> Fraction:
        """Return the budget of some region types together."""
        names = {kind.name for kind in kinds}
        return sum((budget for (_, name, _), budget in self.budgets.items() if name in names), Fraction(0))


def _preset_budget(kind: str, level: int) -> Fraction:
    if level == 1:
        return Fraction(0) if kind == "AIANNH" else Fraction("0.006915")
    return Fraction("1.9208") if REGION_TYPES[kind].fine else Fraction("0.142869")


def _preset_thresholds(kind: str, level: int) -> tuple[int, ...]:
    fine = REGION_TYPES[kind].fine
    if level == 2:
        return (471, 971, 6971) if fine else (971, 4971, 19971)
    if kind == "AIANNH":
        return (971, 4971, 19971)
    return (4971, 19971, 149971) if fine else (4971, 19971, 149970)


DDHC_B_2020 = HouseholdSettings(
    budgets={place: _preset_budget(*place[1:]) for place in PLACES},
    thresholds={place: _preset_thresholds(*place[1:])[: THRESHOLDS_PER_TABLE[place[0]]] for place in PLACES},
)
PRESETS = {"": HouseholdSettings(), "ddhc-b-2020": DDHC_B_2020}


def find_preset(name: str) -> HouseholdSettings:
    """Return the settings of that name."""
    if name not in PRESETS:
        raise InputError(
            f"there is no preset {name!r}",
            why="a preset fixes budgets and thresholds",
            fix=did_you_mean(name, PRESETS) + '; or preset = "" with budget and thresholds of your own',
        )
    return PRESETS[name]


def parse_places(text: str) -> tuple[Place, ...]:
    """Return the tables, region type and level that a text names; without a table, both tables.

    >>> parse_places("T3-PR-STATE-2")
    (('T3', 'PR-STATE', 2),)
    >>> len(parse_places("USA-1"))
    2
    """
    table, _, rest = text.partition("-")
    named = tuple(name for name in TABLES if name == table)
    name, _, level = (rest if named else text).rpartition("-")
    if name not in REGION_TYPES or level not in ("1", "2"):
        known = [f"{table}-{name}-{level}" for table, name, level in PLACES]
        raise InputError(
            f"{text!r} is no table, region type and level",
            why="a budget and thresholds belong to one of each",
            fix=did_you_mean(text, known),
        )
    return tuple((table, name, int(level)) for table in named or TABLES)


__all__ = [
    "DDHC_B_2020",
    "PLACES",
    "PRESETS",
    "PUERTO_RICO",
    "TABLES",
    "THRESHOLDS_PER_TABLE",
    "UNITED_STATES",
    "HouseholdSettings",
    "Place",
    "find_preset",
    "parse_places",
]  # fmt: skip
