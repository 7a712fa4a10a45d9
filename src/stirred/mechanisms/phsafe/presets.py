"""The production settings of the Supplemental DHC File of 2020, as exact numbers.

Source: Census Bureau, PHSafe production configuration (DAS_2020_SDHC_Production_Code): ρ² per person added or removed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

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
