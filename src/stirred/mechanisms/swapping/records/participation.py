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
from stirred.mechanisms.participation import staying_levels
from stirred.mechanisms.swapping.records.columns import Column, level_codes
from stirred.spec import Margin
from stirred.spec.invariants.margins import condition

if TYPE_CHECKING:
    from stirred.census.codebook.schema import Kinds, RecordSchema

Where = dict[str, tuple[str, ...]]
BY_KIND: Final = "kind"  # why records take no part
IMPUTED: Final = "imputed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stay:
    """The records with one of these levels of a variable: no swap touches them."""

    column: str
    levels: tuple[str, ...]
    codes: NDArray[Any]
    records: int
    why: Literal["kind", "imputed"]

    @property
    def where(self) -> Where:
        """The same levels as a restriction of a table."""
        return {self.column: self.levels}

    def words(self, subject: str) -> Phrase:
        """What is invariant, short enough for a sentence."""
        levels = condition(self.column, self.levels)
        return Phrase(f"swap.stay.{self.why}", subject=subject, condition=levels)

    def told(self, record_type: str) -> str:
        """How many records these are and what happens to them."""
        return Phrase(f"swap.stay.{self.why}_told", number=self.records, records=unit(record_type, "records"))


def by_kind(kinds: "Kinds | None", columns: dict[str, Column]) -> Stay | None:
    """Vacant units and group quarters, if the schema distinguishes kinds; listed even if the census has none."""
    levels = staying_levels(kinds)
    if kinds is None or not levels:
        return None
    column = columns[kinds.column]
    codes = level_codes(column, levels)
    return Stay(
        column=kinds.column,
        levels=levels,
        codes=codes,
        records=int(np.isin(column.codes, codes).sum()),
        why=BY_KIND,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Released:
    """Which records are released where the others are left out: those with a listed level, or all but some levels.

    With ``levels`` a record whose level is empty or not listed is left out. Without (the schema lists no level that
    takes part) every record is released but those of ``left_out``. Either rule covers every data set of the domain.
    """

    column: str
    levels: tuple[str, ...] | None
    left_out: tuple[str, ...]

    @property
    def among(self) -> Phrase:
        """The rule in words."""
        if self.levels is None:
            return Phrase("invariant.without", condition=condition(self.column, self.left_out))
        return Phrase("invariant.only", condition=condition(self.column, self.levels))

    def places(self, column: Column) -> NDArray[np.bool_]:
        """Which records are released."""
        if self.levels is None:
            return ~np.isin(column.codes, level_codes(column, self.left_out))
        return np.isin(column.codes, level_codes(column, self.levels))

    def without(self, columns: dict[str, Column]) -> dict[str, Column]:
        """The columns of the records that are released.

        Values that only other records have are removed too, because the whole dictionary of a column is published.
        """
        rows = np.flatnonzero(self.places(columns[self.column])).astype(np.uint32)
        return {name: held.taken(rows).compacted().measured() for name, held in columns.items()}

    def margins(
        self, record_type: str, by: tuple[str, ...], *, where: Mapping[str, tuple[str, ...]], label: str
    ) -> tuple[Margin, ...]:
        """A table of the released records as invariants.

        A restriction lists levels. Where the released levels have no list, the table of all records and the table of those
        left out determine it together: it is their difference.
        """
        if self.levels is not None:
            only = _both(where, {self.column: self.levels})
            return (Margin(record_type, by, where=only, label=_limited(label, self.among)),)
        rest = Phrase("invariant.only", condition=condition(self.column, self.left_out))
        return (
            Margin(record_type, by, where=where, label=label),
            Margin(
                record_type,
                by,
                where=_both(where, {self.column: self.left_out}),
                label=_limited(label, rest),
            ),
        )

    def fate(self, record_type: str) -> str:
        """What happens to records with no level, or with a level that the schema does not list."""
        if self.levels is None:
            levels, key = condition(self.column, self.left_out), "swap.note.some_left_out"
        else:
            levels, key = condition(self.column, self.levels), "swap.note.only_released"
        records = unit(record_type, "records")
        return Phrase(key, records=records, condition=levels, variable=self.column)


def _limited(label: str, among: Phrase) -> str:
    """The name of a table with the rule who is counted; a table without a name stays so."""
    return label and Phrase("invariant.limited", table=label, among=among)


def _both(one: Mapping[str, tuple[str, ...]], other: Mapping[str, tuple[str, ...]]) -> Where:
    """Both restrictions at once."""
    return {
        name: tuple(
            level for level in one.get(name, other.get(name, ())) if name not in other or level in other[name]
        )
        for name in (*one, *(name for name in other if name not in one))
    }


def released(record: "RecordSchema", untouched: str) -> Released | None:
    """Which records a swap with ``untouched="drop"`` releases, from the schema; None where none is left out.

    The levels that take part are those of occupied homes and housing units; without these, the declared levels of the
    variable except vacant units and group quarters.
    """
    kinds, others = record.kinds, staying_levels(record.kinds)
    if untouched != "drop" or kinds is None or not others:
        return None
    named = tuple(str(level) for level in (*kinds.occupied, *kinds.housing_units))
    for variable in record.variables:
        if variable.name == kinds.column and not named:
            named = tuple(str(level) for level in variable.all_levels or () if str(level) not in others)
    return Released(column=kinds.column, levels=named or None, left_out=others)


def refuse_staying(stays: Sequence[Stay], record_type: str) -> None:
    """Raise an error if vacant units or group quarters would be published unchanged."""
    records = sum(stay.records for stay in stays if stay.why == BY_KIND)
    if records:
        raise PrivacyError(
            f"{records:,} {record_type} records would be published untouched",
            why="they are vacant units or group quarters, which the swap never moves",
            fix='untouched="publish" lists them among the invariants, untouched="drop" leaves them out',
        )
