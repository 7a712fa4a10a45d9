"""The records of one swap in memory: columns, identifiers, strata and the members that travel along."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from stirred.chance import Key
from stirred.engine import Engine
from stirred.errors import DataError
from stirred.mechanisms.swapping import kernel
from stirred.mechanisms.swapping.kernel_strata import Strata, strata
from stirred.mechanisms.swapping.release_columns import Column, gather, words
from stirred.mechanisms.swapping.release_members import Members, members
from stirred.mechanisms.swapping.release_order import canonical_ids
from stirred.mechanisms.swapping.release_roles import Roles
from stirred.mechanisms.swapping.release_stays import Stay, Where, by_kind, refuse, without
from stirred.mechanisms.swapping.verify import Fingerprint, Margin

if TYPE_CHECKING:
    from stirred.census import Census

ROWS = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """What a swap works on; ``columns`` hold the released variables and the identifier."""

    roles: Roles
    columns: dict[str, Column]
    ids: NDArray[np.uint64]
    strata: Strata
    members: tuple[Members, ...] = ()
    stays: tuple[Stay, ...] = ()  # records that never take part
    only: Where | None = None  # which records are released at all; None: all

    @property
    def rows(self) -> int:
        """How many records there are."""
        return int(self.ids.size)

    @property
    def read(self) -> tuple[str, ...]:
        """All variables that decide something: the released ones, and those that tell who takes part."""
        return tuple(dict.fromkeys([*self.roles.released, *(stay.column for stay in self.stays)]))

    def of(self, names: tuple[str, ...]) -> list[Column]:
        """Some columns by name."""
        return [self.columns[name] for name in names]

    def margins(self) -> tuple[Margin, ...]:
        """What a swap keeps: match × swap, all that is held, and the records that take no part."""
        roles = self.roles
        moved = " × ".join((*roles.match, *roles.moving))
        return (
            Margin.of(f"{roles.record_type} records by {moved}", self.of((*roles.match, *roles.moving))),
            Margin.of(f"{roles.record_type} records by all held variables", self.of(roles.held)),
            *(
                Margin.of(
                    stay.words(f"{roles.record_type} records"),
                    self.of(roles.released),
                    only=(self.columns[stay.column], stay.codes),
                )
                for stay in self.stays
            ),
        )

    def digest(
        self, key: Key, engine: Engine, margins: tuple[Margin, ...]
    ) -> tuple[bytes, list[Fingerprint]]:
        """Order-free keyed digest of all that is read, and the fingerprint of each margin, in one pass."""
        released = words(self.of(self.read))

        def part(rows: slice) -> tuple[object, list[Fingerprint]]:
            rows = slice(rows.start, min(rows.stop, self.rows))
            total = key.multiset()
            total.update([self.ids[rows], *(digits.numbers(rows) for digits in released)])
            return total, [Fingerprint.of(margin.scattered(self.columns, rows)) for margin in margins]

        whole = key.multiset()
        prints = [Fingerprint() for _ in margins]
        for total, found in engine.map(part, [slice(i, i + ROWS) for i in range(0, self.rows, ROWS)]):
            whole.merge(total)  # type: ignore[arg-type]
            prints = [a + b for a, b in zip(prints, found, strict=True)]
        labels = [
            f"{digits.lows}{digits.spans}{[c.name for c in digits.columns]}".encode() for digits in released
        ]
        labels += [
            repr(column.values.to_pylist()).encode()
            for column in self.columns.values()
            if column.values is not None
        ]
        along = [group.digest(key, self.ids) for group in self.members]
        return key.digest(whole.value(), *labels, *along), prints


def _identifiers(roles: Roles, columns: dict[str, Column], rows: int) -> NDArray[np.uint64]:
    if roles.identifier not in columns:
        # all that is read: two records that differ only in whether they take part are not alike
        return canonical_ids([columns[name].codes for name in sorted(columns)], rows)
    column = columns[roles.identifier]
    if column.values is not None and column.values.null_count:
        raise DataError(f"{roles.identifier} is empty in some records", why="an identifier names one record")
    ids = (
        column.codes.astype(np.uint64, copy=False)
        if column.codes.dtype != np.int64
        else column.codes.view(np.uint64)
    )
    if not kernel.strictly_ascending(ids):
        ordered = np.sort(ids)
        repeated = int((ordered[1:] == ordered[:-1]).sum())
        if repeated:
            raise DataError(
                f"{roles.identifier} is not unique in {roles.record_type} records",
                why=f"{repeated:,} repetitions",
            )
    return ids


def load(census: "Census", roles: Roles, *, untouched: str) -> Frame:
    """Read what a swap needs, once."""
    names = list(dict.fromkeys([*roles.released, *([roles.identifier] if roles.identifier else [])]))
    if roles.kind and roles.kind not in names:
        names.append(roles.kind)
    columns = gather(census, roles.record_type, names)
    rows = next(iter(columns.values())).codes.size
    if rows >= 2**32 - 1:
        raise DataError("too many records for one swap", why="row numbers have 32 bits", fix="swap by state")
    stay, only = by_kind(census, roles, columns), None
    if stay is not None and untouched == "refuse":
        refuse(stay, roles.record_type)
    if stay is not None and untouched == "drop":
        columns, only = without(census, roles, columns, stay)
        rows, stay = next(iter(columns.values())).codes.size, None
    part = None if stay is None or not stay.records else ~np.isin(columns[stay.column].codes, stay.codes)
    groups = tuple(
        members(
            census,
            record_type,
            variables,
            columns[roles.identifier],
            roles.moving + roles.match,
            some_dropped=only is not None,
        )
        for record_type, variables in roles.members
    )
    return Frame(
        roles=roles,
        columns=columns,
        ids=_identifiers(roles, columns, rows),
        strata=strata([columns[name] for name in roles.match], rows=rows, taking_part=part),
        members=groups,
        stays=() if stay is None else (stay,),
        only=only,
    )
