"""Records that never take part: they are published unchanged and are therefore invariants, or left out completely.

The schema alone decides who takes part. A level that only records show would make the invariants, and so the
meaning of the promise, depend on the data.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from stirred.errors import PrivacyError
from stirred.languages import Phrase, unit
from stirred.mechanisms.participation import list_staying_levels
from stirred.mechanisms.swapping.records.columns import Column, find_level_codes
from stirred.spec import Margin
from stirred.spec.invariants.margins import describe_condition

if TYPE_CHECKING:
    from stirred.census.codebook.schema import Kinds, RecordSchema

Where = dict[str, tuple[str, ...]]
BY_KIND: Final = "kind"  # why records take no part
IMPUTED: Final = "imputed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stay:
    """The records with one of these levels of a variable, which no swap touches."""

    column: str
    levels: tuple[str, ...]
    codes: NDArray[Any]
    records: int
    why: Literal["kind", "imputed"]

    @property
    def where(self) -> Where:
        """Return the same levels as a restriction of a table."""
        return {self.column: self.levels}

    def words(self, subject: str) -> Phrase:
        """Return what is invariant, short enough for a sentence."""
        levels = describe_condition(self.column, self.levels)
        return Phrase(f"swap.stay.{self.why}", subject=subject, condition=levels)

    def describe(self, record_type: str) -> str:
        """Describe how many records these are and what happens to them."""
        return Phrase(f"swap.stay.{self.why}_told", number=self.records, records=unit(record_type, "records"))


def find_stay(kinds: "Kinds | None", columns: dict[str, Column]) -> Stay | None:
    """Return vacant units and group quarters as records that stay, or None if the schema has no such kinds.

    They are listed even if the census has none.
    """
    levels = list_staying_levels(kinds)
    if kinds is None or not levels:
        return None
    column = columns[kinds.column]
    codes = find_level_codes(column, levels)
    return Stay(
        column=kinds.column,
        levels=levels,
        codes=codes,
        records=int(np.isin(column.codes, codes).sum()),
        why=BY_KIND,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseRule:
    """The rule for which records are released if others are left out: by listed levels, or all but some levels.

    With ``levels`` a record whose level is empty or not listed is left out. Without (the schema lists no level that
    takes part) every record is released but those of ``left_out``. Either rule covers every data set of the domain.
    """

    column: str
    levels: tuple[str, ...] | None
    left_out: tuple[str, ...]

    @property
    def among(self) -> Phrase:
        """Return the rule in words."""
        if self.levels is None:
            return Phrase("invariant.without", condition=describe_condition(self.column, self.left_out))
        return Phrase("invariant.only", condition=describe_condition(self.column, self.levels))

    def find_released(self, column: Column) -> NDArray[np.bool_]:
        """Return which records are released."""
        if self.levels is None:
            return ~np.isin(column.codes, find_level_codes(column, self.left_out))
        return np.isin(column.codes, find_level_codes(column, self.levels))

    def keep_released(self, columns: dict[str, Column]) -> dict[str, Column]:
        """Return the columns of the records that are released.

        Values that only other records have are removed too, because the whole dictionary of a column is published.
        """
        rows = np.flatnonzero(self.find_released(columns[self.column])).astype(np.uint32)
        return {
            name: held.take_rows(rows).drop_unused_values().store_reach() for name, held in columns.items()
        }

    def margins(
        self, record_type: str, by: tuple[str, ...], *, where: Mapping[str, tuple[str, ...]], label: str
    ) -> tuple[Margin, ...]:
        """Return a table of the released records as invariants.

        A restriction lists levels. Where the released levels have no list, the table of all records and the table of those
        left out determine it together: it is their difference.
        """
        if self.levels is not None:
            only = _intersect(where, {self.column: self.levels})
            return (Margin(record_type, by, where=only, label=_limit_label(label, self.among)),)
        rest = Phrase("invariant.only", condition=describe_condition(self.column, self.left_out))
        return (
            Margin(record_type, by, where=where, label=label),
            Margin(
                record_type,
                by,
                where=_intersect(where, {self.column: self.left_out}),
                label=_limit_label(label, rest),
            ),
        )

    def describe_others(self, record_type: str) -> str:
        """Describe what happens to records with no level, or with a level that the schema does not list."""
        if self.levels is None:
            levels, key = describe_condition(self.column, self.left_out), "swap.note.some_left_out"
        else:
            levels, key = describe_condition(self.column, self.levels), "swap.note.only_released"
        records = unit(record_type, "records")
        return Phrase(key, records=records, condition=levels, variable=self.column)


def _limit_label(label: str, among: Phrase) -> str:
    """Add the rule of who is counted to the name of a table; leave an empty name empty."""
    return label and Phrase("invariant.limited", table=label, among=among)


def _intersect(one: Mapping[str, tuple[str, ...]], other: Mapping[str, tuple[str, ...]]) -> Where:
    """Combine two restrictions."""
    return {
        name: tuple(
            level for level in one.get(name, other.get(name, ())) if name not in other or level in other[name]
        )
        for name in (*one, *(name for name in other if name not in one))
    }


def find_release_rule(record: "RecordSchema", untouched: str) -> ReleaseRule | None:
    """Return which records a swap with ``untouched="drop"`` releases, or None if none is left out.

    The levels that take part are those of occupied homes and housing units; without these, the declared levels of the
    variable except vacant units and group quarters.
    """
    kinds, others = record.kinds, list_staying_levels(record.kinds)
    if untouched != "drop" or kinds is None or not others:
        return None
    named = tuple(str(level) for level in (*kinds.occupied, *kinds.housing_units))
    for variable in record.variables:
        if variable.name == kinds.column and not named:
            named = tuple(str(level) for level in variable.all_levels or () if str(level) not in others)
    return ReleaseRule(column=kinds.column, levels=named or None, left_out=others)


def refuse_staying(stays: Sequence[Stay], record_type: str) -> None:
    """Raise an error if vacant units or group quarters would be published unchanged."""
    records = sum(stay.records for stay in stays if stay.why == BY_KIND)
    if records:
        raise PrivacyError(
            f"{records:,} {record_type} records would be published untouched",
            why="they are vacant units or group quarters, which the swap never moves",
            fix='untouched="publish" lists them among the invariants, untouched="drop" leaves them out',
        )
