"""What tuning is asked for where a mechanism knows its errors in closed form: how accurate which tables, at what cost."""

import re
from dataclasses import dataclass
from fractions import Fraction

from stirred.errors import InputError

_GOAL = re.compile(r"^\s*(mae|mape)?\s*(.+?)\s*(<=|≤)\s*([0-9.]+)\s*(%?)\s*$", re.IGNORECASE)
_CAP = re.compile(r"^\s*(.+?)\s*(<=|≤)\s*([0-9./]+)\s*$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """The mean absolute error that a table by these variables and one level of the geography may have."""

    by: tuple[str, ...]
    limit: float

    @staticmethod
    def parse(text: str) -> "Goal":
        """Read a goal as a person writes it.

        >>> Goal.parse("mae hispanic×county <= 2")
        Goal(by=('hispanic', 'county'), limit=2.0)
        """
        found = _GOAL.match(text)
        if not found or float(found.group(4)) <= 0:
            raise InputError(
                "the goal cannot be read",
                why=f"{text!r}",
                fix='write for instance "mae hispanic×county <= 2", or "mae total×block <= 3"',
            )
        metric, variables, _, number, percent = found.groups()
        if percent or (metric or "mae").lower() == "mape":
            raise InputError(
                "a goal is an absolute error",
                why="a relative one needs the counts, and shares are chosen without them",
                fix='write for instance "mae hispanic×county <= 2"',
            )
        names = (name.strip() for name in re.split(r"[×*,]\s*|\s+x\s+|\s+by\s+", variables))
        return Goal(by=tuple(name for name in names if name and name != "total"), limit=float(number))

    def __str__(self) -> str:
        return " × ".join(self.by) if len(self.by) > 1 else f"total × {self.by[0]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cap:
    """The largest ε for a change of one attribute, or for a move inside an area of one level."""

    what: str
    epsilon: Fraction

    @staticmethod
    def parse(text: str) -> "Cap":
        """Read a limit as a person writes it.

        >>> Cap.parse("hispanic <= 12")
        Cap(what='hispanic', epsilon=Fraction(12, 1))
        """
        found = _CAP.match(text)
        try:
            epsilon = Fraction(found.group(3)) if found else Fraction(0)
        except (ValueError, ZeroDivisionError):
            epsilon = Fraction(0)
        if not found or epsilon <= 0:
            raise InputError(
                "the limit of ε cannot be read",
                why=f"{text!r}",
                fix='write an attribute or a level and its largest ε: "hispanic <= 12" or "county <= 14"',
            )
        return Cap(what=found.group(1), epsilon=epsilon)
