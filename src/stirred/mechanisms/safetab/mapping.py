r"""From the codes of a record to its population groups: $(\bigcap_i A_i) \cup (\bigcup_i C_i) \cup E$.

$A_i$ are the "alone" iterations of the i-th race code, $C_i$ its "alone or in any combination" ones, and E the iterations
of the ethnicity (SafeTab-P documentation, Section 4).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from stirred.mechanisms.safetab.codes import LEVELS, CodeLists

Int32s = NDArray[np.int32]
NO_CODE = "Null"


@dataclass(frozen=True, slots=True)
class GroupMap:
    """The iterations of one level and granularity, numbered, with the map from codes to numbers."""

    codes: tuple[str, ...]  # of the iterations; the number is the position
    alone: dict[str, frozenset[int]]
    combined: dict[str, frozenset[int]]
    ethnic: dict[str, frozenset[int]]
    sensitivity: int

    @classmethod
    def of(cls, lists: CodeLists, level: int, *, fine: bool, most_codes: int) -> "GroupMap":
        """Return the part of the lists that one level tabulates."""
        kept = lists.list_iterations(level, fine=fine)
        number = {item.code: place for place, item in enumerate(kept)}
        kind = {item.code: item.alone for item in kept}

        def part(wanted: bool | None) -> dict[str, frozenset[int]]:
            found = {
                code: frozenset(number[to] for to in targets if to in number and kind[to] is wanted)
                for code, targets in lists.leads_to.items()
            }
            return {code: targets for code, targets in found.items() if targets}

        return cls(
            codes=tuple(item.code for item in kept),
            alone=part(True),
            combined=part(False),
            ethnic=part(None),
            sensitivity=lists.sensitivity(level, fine=fine, most_codes=most_codes),
        )

    def groups(self, races: Sequence[str], ethnicity: str) -> list[int]:
        """Return the numbers of a record's iterations, at most ``sensitivity`` of them.

        What goes beyond is cut, never trusted: a record touches no more groups than the promise says.
        """
        given = [code for code in dict.fromkeys(races) if code and code != NO_CODE]
        none: frozenset[int] = frozenset()
        alone = reduce(frozenset.__and__, (self.alone.get(code, none) for code in given)) if given else none
        combined = none.union(*(self.combined.get(code, none) for code in given))
        return sorted(alone | combined | self.ethnic.get(ethnicity, none))[: self.sensitivity]

    def table(self, profiles: Sequence[tuple[Sequence[str], str]]) -> tuple[Int32s, Int32s]:
        """Return where the groups of each combination of codes start, and the groups one after the other."""
        rows = [self.groups(races, ethnicity) for races, ethnicity in profiles]
        starts = np.zeros(len(rows) + 1, np.int32)
        starts[1:] = np.cumsum([len(row) for row in rows])
        return starts, np.array([group for row in rows for group in row], np.int32)


def make_group_maps(lists: CodeLists, most_codes: int) -> dict[tuple[int, bool], GroupMap]:
    """Return the map from codes to groups of each level, for fine and for coarse regions."""
    return {
        (level, fine): GroupMap.of(lists, level, fine=fine, most_codes=most_codes)
        for level in LEVELS
        for fine in (True, False)
    }
