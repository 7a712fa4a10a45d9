"""Share what SafeTab-P and SafeTab-H have in common: presets, budgets and thresholds by place, and their mechanism.

A place is what a budget and thresholds belong to. Its last two parts are a region type and a level; SafeTab-H has a table
before them.
"""

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import ClassVar, Generic, TypeVar

from stirred.errors import BudgetError, InputError
from stirred.mechanisms.base import Knob, Mechanism, totals_to_try
from stirred.mechanisms.census2020.config import SafeTabConfig
from stirred.mechanisms.census2020.safetab.groups import (
    PUERTO_RICO,
    UNITED_STATES,
    CodeLists,
    RegionType,
    set_columns,
)

# What a published product fixes, and what the settings of a run put in its place.

Place = TypeVar("Place", bound=tuple[object, ...])


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductSettings(Generic[Place]):
    """What a product fixes: a budget and thresholds for every place, and the two shares of SafeTab-P."""

    budgets: Mapping[Place, Fraction] = field(default_factory=dict)
    thresholds: Mapping[Place, tuple[int, ...]] = field(default_factory=dict)
    first_stage: Fraction = Fraction(1, 10)  # of a budget: it decides how much detail a group gets
    suppression: Fraction = Fraction(
        "0.9999"
    )  # the least probability that a group without records is not shown

    def sum_budgets(self, kinds: Iterable[RegionType]) -> Fraction:
        """Return the budget of some region types together."""
        return sum_budgets(self.budgets, kinds)


def sum_budgets(budgets: Mapping[Place, Fraction], kinds: Iterable[RegionType]) -> Fraction:
    """Return the budget of some region types together."""
    names = {kind.name for kind in kinds}
    return sum((budget for place, budget in budgets.items() if place[-2] in names), Fraction(0))


def larger_sum(budgets: Mapping[Place, Fraction]) -> Fraction:
    """Return the cost of one record: the larger sum of the United States and Puerto Rico."""
    return max(sum_budgets(budgets, UNITED_STATES), sum_budgets(budgets, PUERTO_RICO))


def replace_budgets(
    usual: Mapping[Place, Fraction], own: Mapping[Place, Fraction], total: str | None
) -> dict[Place, Fraction]:
    """Return the budget of every place, a preset's unless it is given, scaled to a total if there is one."""
    found = {**usual, **own}
    for place, budget in own.items():
        if budget < 0:
            name = "-".join(map(str, place))
            raise BudgetError(
                f"the budget of {name} is negative",
                why="a budget is spent; 0 leaves a table out",
                fix=f'budget = {{ "{name}" = "0" }}',
            )
    if total is None:
        return found
    wanted, spent = Fraction(total), larger_sum(found)
    if wanted <= 0 or not spent:
        raise BudgetError(
            "the total budget cannot be divided",
            why="it is not above 0" if wanted <= 0 else "no table has a budget",
            fix='total = "4.944", with a preset or budgets of your own',
        )
    return {place: value * wanted / spent for place, value in found.items()}


def parse_thresholds(name: str, text: str, number: int) -> tuple[int, ...]:
    """Return the first ``number`` of at most three rising thresholds.

    >>> parse_thresholds("STATE-2", "1,2,3", 3), parse_thresholds("STATE-2", "1,2,3", 1)
    ((1, 2, 3), (1,))
    """
    try:
        found = tuple(int(part) for part in text.replace(",", " ").split())
    except ValueError:
        found = ()
    if not number <= len(found) <= 3 or list(found) != sorted(found):
        raise InputError(
            f"the thresholds of {name} are not as they should be",
            why=f"it needs {number} whole number{'s' if number > 1 else ''}, rising",
            fix=f'thresholds = {{ "{name}" = "{"471,971,6971" if number > 1 else "471"}" }}',
        )
    return found[:number]


# What both mechanisms are made of: code lists, region types, a total budget.


class SafeTab(Mechanism):
    """Counts of detailed population groups in the regions of the public geography."""

    config: SafeTabConfig
    bytes_per_record: ClassVar[int] = 200

    @property
    def is_noiseless(self) -> bool:
        """Return whether the budget is infinite: no noise, no protection."""
        return self.config.epsilon == "inf"

    @property
    def lists(self) -> CodeLists:
        """Return the code lists."""
        return CodeLists.own() if self.config.codes is None else CodeLists.read(Path(self.config.codes))

    @property
    def code_columns(self) -> tuple[str, ...]:
        """Return the columns with codes of race and ethnicity, which every table counts."""
        return (*self.config.races, *filter(None, [self.config.ethnicity]))

    @property
    def region_types(self) -> dict[str, RegionType]:
        """Return all region types by name, with the columns of the settings."""
        return set_columns(self.config.regions)

    @property
    @abstractmethod
    def total_budget(self) -> Fraction | None:
        """Return the budget of all tables, per record added or removed; None is infinite."""

    def knobs(self) -> Sequence[Knob]:
        """Return the knob of the total budget."""
        start = self.total_budget
        if start is None:
            return ()
        return (
            Knob(
                name="total",
                effect="a larger total is a larger budget and has a smaller error",
                settings=totals_to_try(start),
                turned=lambda total: self.replace(total=total),
            ),
        )
