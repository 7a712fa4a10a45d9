"""The records of one part of a swap in memory: columns, identifiers, strata and the linked members."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stirred.chance.words import identifier_words
from stirred.compiled import compile_kernel
from stirred.errors import DataError
from stirred.languages import Phrase, unit
from stirred.mechanisms.swapping.budget.shapes import Shapes, count_shapes
from stirred.mechanisms.swapping.draw.order import assign_canonical_ids
from stirred.mechanisms.swapping.draw.strata import StratumCodes, form_strata
from stirred.mechanisms.swapping.pipeline.verify import KeptTable
from stirred.mechanisms.swapping.records.columns import Column
from stirred.mechanisms.swapping.records.members import Members
from stirred.mechanisms.swapping.records.participation import ReleaseRule, Stay, find_stay
from stirred.mechanisms.swapping.roles import Roles

if TYPE_CHECKING:
    from stirred.census.codebook.schema import Kinds


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """The records of one part; ``columns`` hold the released variables and the identifier."""

    roles: Roles
    columns: dict[str, Column]
    ids: NDArray[np.uint64]
    strata: StratumCodes
    members: tuple[Members, ...] = ()
    stays: tuple[Stay, ...] = ()  # records that never take part
    only: ReleaseRule | None = None  # which records are released at all; None: all
    levels: tuple[tuple[str, NDArray[Any]], ...] = ()  # codes of variables of which all levels must be known

    @property
    def rows(self) -> int:
        """Return the number of records."""
        return int(self.ids.size)

    @property
    def read(self) -> tuple[str, ...]:
        """Return all variables that are used: the released ones, and those that decide who takes part or moves."""
        deciding = (*self.roles.unseen, *(stay.column for stay in self.stays))
        return tuple(dict.fromkeys([*self.roles.released_variables, *deciding]))

    def of(self, names: tuple[str, ...]) -> list[Column]:
        """Return some columns by name."""
        return [self.columns[name] for name in names]

    def list_kept_tables(self) -> tuple[KeptTable, ...]:
        """List the tables that a swap keeps: match × swap, all held variables, and the records that take no part."""
        roles = self.roles
        moved = (*roles.match, *roles.moving_variables)
        subject = unit(roles.record_type, "records")
        return (
            KeptTable(Phrase("swap.check.table", records=subject, variables=" × ".join(moved)), moved),
            KeptTable(Phrase("swap.check.held", records=subject), roles.held_variables),
            *(
                KeptTable(stay.words(subject), roles.released_variables, (stay.column, stay.levels))
                for stay in self.stays
            ),
        )

    def shapes(self) -> Shapes:
        """Count the shapes of the strata; with linked members, records are assumed to differ (their persons usually do)."""
        hold = None if self.roles.members else self.of(self.roles.hold)
        return count_shapes(self.strata, hold, self.of(self.roles.moving_variables))


def _code_identifiers(roles: Roles, columns: dict[str, Column], rows: int) -> NDArray[np.uint64]:
    if roles.identifier not in columns:
        # all that is read: records that differ only in whether they take part must differ in the digest
        return assign_canonical_ids([columns[name].codes for name in sorted(columns)], rows)
    column = columns[roles.identifier]
    if column.values is not None:
        return identifier_words(column.values, name=roles.identifier)[column.codes]
    if column.codes.dtype == np.int64:
        return column.codes.view(np.uint64)
    return column.codes.astype(np.uint64, copy=False)


@compile_kernel
def _strictly_ascending(ids: NDArray[np.uint64]) -> bool:
    for i in range(1, ids.size):  # noqa: SIM110 — compiled: a loop is what the compiler wants
        if ids[i - 1] >= ids[i]:
            return False
    return True


def count_repetitions(ids: NDArray[np.uint64]) -> int:
    """Count the identifiers that equal an earlier one."""
    if _strictly_ascending(ids):
        return 0
    ordered = np.sort(ids)
    return int((ordered[1:] == ordered[:-1]).sum())


def require_unique(roles: Roles, repeated: int) -> None:
    """Raise an error if two records have one identifier (or two texts one hash: probability 0.0005 for a nation)."""
    if repeated:
        raise DataError(
            f"{roles.identifier} is not unique in {roles.record_type} records",
            why=f"{repeated:,} records repeat the identifier of another record",
            fix="give every record its own identifier",
        )


def make_frame(
    columns: dict[str, Column], roles: Roles, kinds: "Kinds | None", *, only: ReleaseRule | None = None
) -> Frame:
    """Build the frame from encoded records, without linked records and without a check that identifiers are unique."""
    if only is not None:
        columns, kinds = only.keep_released(columns), None
    rows = next(iter(columns.values())).codes.size
    stay = find_stay(kinds, columns)
    part = None if stay is None or not stay.records else ~np.isin(columns[stay.column].codes, stay.codes)
    return Frame(
        roles=roles,
        columns=columns,
        ids=_code_identifiers(roles, columns, rows),
        strata=form_strata([columns[name] for name in roles.match], rows=rows, taking_part=part),
        stays=() if stay is None else (stay,),
        only=only,
    )
