"""One constraint of a workload, as it is declared."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from stirred.errors import InputError
from stirred.mechanisms.topdown.workload.histogram import AxisSource

if TYPE_CHECKING:
    pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One constraint as declared: what is held, where, and with which right-hand side.

    ``exact``: the query's answers at the level equal the census's. ``facilities``: the answers lie between the number
    of units of each kind and ``largest`` times it. ``zero``: the listed cells are empty in any census.
    ``at-least``, ``at-most``: a public number per answer. ``parts``: the exact answers of a total bound the answers of
    facilities in the same geounits, as in the code of the 2020 production; the tree that is cut by ``areas`` has this rule.
    """

    name: str
    kind: Literal["exact", "facilities", "zero", "at-least", "at-most", "parts"]
    query: str = ""
    level: str = ""
    cells: tuple[tuple[str, tuple[int, ...]], ...] = ()
    values: tuple[int, ...] = ()
    largest: int = 99_999
    lower: tuple[int, ...] = ()  # by answer, 1 if every facility has at least one resident
    units: str = ""  # the record type of the facilities
    kinds: AxisSource | None = None  # how a unit's own columns sort it by answer
    areas: str = field(default="", metadata={"later": True})  # the geography whose border makes parts

    @property
    def unit_source(self) -> AxisSource:
        """Return how the columns of a unit sort it by answer; every rule about facilities states it."""
        if self.kinds is None:
            raise InputError(
                f"rule {self.name} does not say how {self.units or 'units'} are sorted by answer",
                why="a rule about facilities counts units of each kind",
                fix="give it kinds, the source of the kind of a unit: kinds = { column = … }",
            )
        return self.kinds


def list_occupied_answers(rule: Rule) -> tuple[int, ...]:
    """Return the answers of a facility rule whose units always hold somebody: group quarters."""
    return tuple(answer for answer, least in enumerate(rule.lower) if least > 0)
