"""The settings of published products as exact constants: the Detailed DHC-A of 2020."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from stirred.errors import InputError, did_you_mean
from stirred.mechanisms.safetab.regions import PUERTO_RICO, REGION_TYPES, UNITED_STATES, RegionType

Place = tuple[str, int]  # a region type and a level
Thresholds = tuple[int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class DetailedSettings:
    """What a product fixes: a budget and three thresholds for every region type and level, and three numbers.

    >>> DDHC_A_2020.spent(UNITED_STATES), DDHC_A_2020.spent(PUERTO_RICO)
    (Fraction(618, 125), Fraction(2643, 1000))
    """

    budgets: Mapping[Place, Fraction]
    thresholds: Mapping[Place, Thresholds]
    first_stage: Fraction  # the share of a budget that decides how much detail a group gets
    suppression: Fraction  # with at least this probability a group without records is not shown
    most_codes: int  # race codes of one person

    def sum_budgets(self, kinds: Iterable[RegionType]) -> Fraction:
        """Return the budget of some region types together."""
        names = {kind.name for kind in kinds}
        return sum((budget for (name, _), budget in self.budgets.items() if name in names), Fraction(0))


_FINE, _COARSE, _REGIONAL = Fraction("2.134"), Fraction("0.159"), Fraction("0.008")
_DETAILED: Mapping[bool, Thresholds] = {True: (471, 971, 6971), False: (971, 4971, 19971)}

DDHC_A_2020 = DetailedSettings(
    budgets={
        **{(name, 1): Fraction(0) if name == "AIANNH" else _REGIONAL for name in REGION_TYPES},
        **{(name, 2): _FINE if kind.fine else _COARSE for name, kind in REGION_TYPES.items()},
    },
    thresholds={
        **{(name, 1): (4971, 19971, 149971) for name in REGION_TYPES},
        **{(name, 2): _DETAILED[kind.fine] for name, kind in REGION_TYPES.items()},
    },
    first_stage=Fraction(1, 10),
    suppression=Fraction("0.9999"),
    most_codes=8,
)
EMPTY_SETTINGS = DetailedSettings(
    budgets={}, thresholds={}, first_stage=Fraction(1, 10), suppression=Fraction("0.9999"), most_codes=8
)
PRESETS = {"": EMPTY_SETTINGS, "ddhc-a-2020": DDHC_A_2020}


def find_preset(name: str) -> DetailedSettings:
    """Return the settings of that name."""
    if name not in PRESETS:
        raise InputError(
            f"there is no preset {name!r}",
            why="a preset fixes budgets and thresholds",
            fix=did_you_mean(name, PRESETS) + '; or preset = "" with budget and thresholds of your own',
        )
    return PRESETS[name]


def parse_place(text: str) -> Place:
    """Return the region type and level that a text of the settings names.

    >>> parse_place("PR-STATE-2")
    ('PR-STATE', 2)
    """
    name, _, level = text.rpartition("-")
    if name not in REGION_TYPES or level not in ("1", "2"):
        known = [f"{name}-{level}" for name in REGION_TYPES for level in (1, 2)]
        raise InputError(
            f"{text!r} is no region type with a level",
            why="a budget and thresholds belong to one of each",
            fix=did_you_mean(text, known),
        )
    return name, int(level)


__all__ = [
    "DDHC_A_2020",
    "PRESETS",
    "PUERTO_RICO",
    "UNITED_STATES",
    "DetailedSettings",
    "find_preset",
    "parse_place",
]
