"""Records that never take part: published as they are, hence invariants, or left out together with every trace."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stirred.errors import PrivacyError
from stirred.mechanisms.swapping.release_columns import Column, level_codes

if TYPE_CHECKING:
    from stirred.census.schema import Kinds

Where = dict[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stay:
    """The records with one of these levels of a variable: no swap touches them."""

    column: str
    levels: tuple[str, ...]
    codes: NDArray[Any]
    records: int
    why: str

    @property
    def where(self) -> Where:
        """The same as a restriction of a table."""
        return {self.column: self.levels}

    def words(self, subject: str) -> str:
        """What is invariant, short enough for a sentence."""
        return f"{subject} that {self.why} ({self.column} = {' or '.join(self.levels)}) with all variables and places"

    def told(self, record_type: str) -> str:
        """How many they are and what becomes of them."""
        return f"{self.records:,} {record_type} records {self.why}: they are never swapped and published as they are"


def by_kinds(kinds: "Kinds | None") -> bool:
    """Whether the schema knows records that never take part by their kind."""
    return kinds is not None and bool(kinds.vacant or kinds.group_quarters)


def by_kind(kinds: "Kinds | None", columns: dict[str, Column]) -> Stay | None:
    """Vacant units and group quarters, where the schema tells kinds apart; listed even when there are none today."""
    if kinds is None or not by_kinds(kinds):
        return None
    levels = tuple(str(level) for level in (*kinds.vacant, *kinds.group_quarters))
    column = columns[kinds.column]
    codes = level_codes(column, levels)
    return Stay(
        column=kinds.column,
        levels=levels,
        codes=codes,
        records=int(np.isin(column.codes, codes).sum()),
        why="take no part by their kind",
    )


def may_move(kinds: "Kinds", column: Column) -> NDArray[np.bool_]:
    """Which records the schema's kinds let move."""
    named = tuple(str(level) for level in (*kinds.occupied, *kinds.housing_units))
    if named:
        return np.isin(column.codes, level_codes(column, named))
    others = tuple(str(level) for level in (*kinds.vacant, *kinds.group_quarters))
    return ~np.isin(column.codes, level_codes(column, others))


def restriction(kinds: "Kinds", found: Sequence[object]) -> Where:
    """Which records may move, in levels: those the schema names, or those that records which may move have."""
    named = tuple(str(level) for level in (*kinds.occupied, *kinds.housing_units))
    return {kinds.column: named or tuple(sorted({str(value) for value in found}))}


def without(kinds: "Kinds", columns: dict[str, Column], stay: Stay) -> tuple[dict[str, Column], Where]:
    """The columns of the records that may move, and the restriction that says which these are.

    Values that only the others have go too: the dictionary of a column is published whole.
    """
    column = columns[stay.column]
    rows = np.flatnonzero(may_move(kinds, column)).astype(np.uint32)
    found = column.taken(rows).arrow().drop_null().unique().to_pylist()
    return {name: held.taken(rows).compacted().measured() for name, held in columns.items()}, restriction(
        kinds, found
    )


def refuse(stay: Stay, record_type: str) -> None:
    """Stop where records would be published untouched."""
    if stay.records:
        raise PrivacyError(
            f"{stay.records:,} {record_type} records would be published untouched",
            why="they are vacant units or group quarters, which the swap never moves",
            fix='untouched="publish" lists them among the invariants, untouched="drop" leaves them out',
        )
