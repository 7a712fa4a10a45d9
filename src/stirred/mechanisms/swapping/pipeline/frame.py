"""The records of one swap in memory: columns, identifiers, strata and the linked members."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from stirred.chance import Key
from stirred.compiled import compiled
from stirred.engine import Engine
from stirred.errors import DataError
from stirred.mechanisms.swapping.draw.strata import StratumCodes, strata
from stirred.mechanisms.swapping.pipeline.order import canonical_ids
from stirred.mechanisms.swapping.pipeline.verify import Fingerprint, Margin
from stirred.mechanisms.swapping.records.columns import Column, gather
from stirred.mechanisms.swapping.records.digest import Digested, Looked, hashers, looked_up, sealed
from stirred.mechanisms.swapping.records.members import Members, members
from stirred.mechanisms.swapping.records.participation import Released, Stay, by_kind, refuse, released
from stirred.mechanisms.swapping.roles import Roles
from stirred.mechanisms.swapping.values import identities

if TYPE_CHECKING:
    from stirred.census import Census
    from stirred.census.schema import Kinds
    from stirred.mechanisms.swapping.statement import Shapes

ROWS = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """What a swap works on; ``columns`` hold the released variables and the identifier."""

    roles: Roles
    columns: dict[str, Column]
    ids: NDArray[np.uint64]
    strata: StratumCodes
    members: tuple[Members, ...] = ()
    stays: tuple[Stay, ...] = ()  # records that never take part
    only: Released | None = None  # which records are released at all; None: all
    known: "Shapes | None" = None  # of the strata of the whole census, if they were counted elsewhere
    levels: tuple[tuple[str, NDArray[Any]], ...] = ()  # codes of variables of which all levels must be known

    @property
    def rows(self) -> int:
        """How many records there are."""
        return int(self.ids.size)

    @property
    def read(self) -> tuple[str, ...]:
        """All variables that are used: the released ones, and those that decide which records take part."""
        return tuple(dict.fromkeys([*self.roles.released, *(stay.column for stay in self.stays)]))

    def of(self, names: tuple[str, ...]) -> list[Column]:
        """Some columns by name."""
        return [self.columns[name] for name in names]

    def kept(self) -> tuple[tuple[str, tuple[str, ...], Stay | None], ...]:
        """What a swap keeps, as words and columns: match × swap, all held variables, and records that take no part."""
        roles = self.roles
        moved = (*roles.match, *roles.moving)
        return (
            (f"{roles.record_type} records by {' × '.join(moved)}", moved, None),
            (f"{roles.record_type} records by all held variables", roles.held, None),
            *((stay.words(f"{roles.record_type} records"), roles.released, stay) for stay in self.stays),
        )

    def margins(self) -> tuple[Margin, ...]:
        """The tables whose cells must not change."""
        return tuple(
            Margin.of(
                name,
                self.of(columns),
                only=None if stay is None else (self.columns[stay.column], stay.codes),
            )
            for name, columns, stay in self.kept()
        )

    def digest(
        self, key: Key, engine: Engine, margins: tuple[Margin, ...]
    ) -> tuple[bytes, list[Fingerprint]]:
        """Compute in one pass the order-free keyed digest of all that is read and the fingerprint of each margin."""
        both = hashers(key)
        looked = [Looked.of(column, both) for column in self.of(self.read)]

        def part(rows: slice) -> tuple[object, list[Fingerprint]]:
            rows = slice(rows.start, min(rows.stop, self.rows))
            total = key.multiset()
            total.update([self.ids[rows], *looked_up(looked, rows)])
            return total, [Fingerprint.of(margin.scattered(self.columns, rows)) for margin in margins]

        whole = key.multiset()
        prints = [Fingerprint() for _ in margins]
        for total, found in engine.map(part, [slice(i, i + ROWS) for i in range(0, self.rows, ROWS)]):
            whole.merge(total)  # type: ignore[arg-type]
            prints = [a + b for a, b in zip(prints, found, strict=True)]
        homes = Digested(self.roles.record_type, self.read, whole)
        along = [group.digested(key, self.ids, engine) for group in self.members]
        return sealed(key, homes, along), prints


def _identifiers(roles: Roles, columns: dict[str, Column], rows: int) -> NDArray[np.uint64]:
    if roles.identifier not in columns:
        # all that is read: records that differ only in whether they take part must differ in the digest
        return canonical_ids([columns[name].codes for name in sorted(columns)], rows)
    column = columns[roles.identifier]
    if column.values is not None and column.values.null_count:
        raise DataError(
            f"{roles.identifier} is empty in some records",
            why="an identifier names one record",
            fix="fill the identifier in these records",
        )
    if column.values is not None:
        ids = identities(column.values, name=roles.identifier)[column.codes]
    elif column.codes.dtype == np.int64:
        ids = column.codes.view(np.uint64)
    else:
        ids = column.codes.astype(np.uint64, copy=False)
    return ids


@compiled
def _strictly_ascending(ids: NDArray[np.uint64]) -> bool:
    for i in range(1, ids.size):  # noqa: SIM110 — compiled: a loop is what the compiler wants
        if ids[i - 1] >= ids[i]:
            return False
    return True


def repetitions(ids: NDArray[np.uint64]) -> int:
    """How many identifiers follow an equal one when all are sorted."""
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


def needed(roles: Roles) -> list[str]:
    """The columns that a swap reads."""
    own = [name for name in (roles.identifier, roles.kind) if name]
    return list(dict.fromkeys([*roles.released, *own]))


def framed(
    columns: dict[str, Column],
    roles: Roles,
    kinds: "Kinds | None",
    *,
    untouched: str,
    only: Released | None = None,
) -> Frame:
    """Build the frame from records in memory, without linked records and without a check that identifiers are unique."""
    if only is not None:
        columns, kinds = only.without(columns), None
    rows = next(iter(columns.values())).codes.size
    stay = by_kind(kinds, columns)
    if stay is not None and untouched == "refuse":
        refuse(stay, roles.record_type)
    part = None if stay is None or not stay.records else ~np.isin(columns[stay.column].codes, stay.codes)
    return Frame(
        roles=roles,
        columns=columns,
        ids=_identifiers(roles, columns, rows),
        strata=strata([columns[name] for name in roles.match], rows=rows, taking_part=part),
        stays=() if stay is None else (stay,),
        only=only,
    )


def load(census: "Census", roles: Roles, *, untouched: str, along: bool = True) -> Frame:
    """Read once what a swap needs; without ``along``, linked records are skipped, because no promise depends on them."""
    columns = gather(census, roles.record_type, needed(roles))
    rows = next(iter(columns.values())).codes.size
    if rows >= 2**32 - 1:
        raise DataError("too many records for one swap", why="row numbers have 32 bits", fix="swap by state")
    record = census.schema.record(roles.record_type)
    only = released(record, untouched)
    frame = framed(columns, roles, record.kinds, untouched=untouched, only=only)
    del columns
    if roles.identifier:
        require_unique(roles, repetitions(frame.ids))
    groups = tuple(
        members(
            census,
            record_type,
            variables,
            frame.columns[roles.identifier],
            roles.moving + roles.match,
            some_dropped=frame.only is not None,
        )
        for record_type, variables in (roles.members if along else ())
    )
    return replace(frame, members=groups)
