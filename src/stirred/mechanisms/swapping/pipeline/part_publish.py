"""Kernels over parts of the published order: they number records and linked records, and check them first.

A part holds a range of the words that order the records, so parts one after the other are the published order.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stirred.chance import Key
from stirred.chance.words import Words
from stirred.engine.plain import plain
from stirred.mechanisms.swapping.pipeline.frame import repetitions
from stirred.mechanisms.swapping.pipeline.part_batches import NUMBERS, first_words, words_of
from stirred.mechanisms.swapping.pipeline.part_checks import Looker, flat
from stirred.mechanisms.swapping.pipeline.publish import HELD
from stirred.mechanisms.swapping.pipeline.verify import Fingerprint
from stirred.mechanisms.swapping.records.members import NOWHERE, Members, Owners, grouped
from stirred.mechanisms.swapping.records.packing import layout_of, packed_words
from stirred.mechanisms.swapping.values import Words

LOOKED = pa.schema(
    [
        ("part", pa.int32()),
        ("rows", pa.int64()),
        ("repeated", pa.int64()),
        ("prints", NUMBERS),
        ("members", NUMBERS),  # of each linked type: how many, and how many without a household
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Linked:
    """A linked record type: its columns and the variables its records take from their household."""

    record_type: str
    link: str
    identifier: str
    variables: tuple[str, ...]
    refilled: tuple[str, ...]


def published_order(run: Key, ids: Words) -> NDArray[np.intp]:
    """Rows by their word, equal words by their second word and the identifier: as all records are ordered in memory."""
    first = first_words(run, ids)
    order = np.argsort(first)
    ordered = first[order]
    if bool((ordered[1:] == ordered[:-1]).any()):
        order = np.lexsort((ids, run.blocks("order", ids)[:, 1], first))
    return order


@dataclass(frozen=True, slots=True, kw_only=True)
class Publisher:
    """Make the published records of one part."""

    run: Key
    identifier: str
    released: tuple[str, ...]
    linked: tuple[Linked, ...] = ()

    def homes(self, records: pa.Table, first: int) -> tuple[pa.Table, Words]:
        """Records in the published order with numbers from ``first`` on, and their original identifiers."""
        ids = words_of(records, self.identifier)
        order = published_order(self.run, ids)
        fresh = pa.array(np.arange(first, first + ids.size, dtype=np.int64))
        taken = records.select(list(self.released)).take(pa.array(order))
        return taken.add_column(0, self.identifier, fresh), ids[order]

    def people(
        self, group: Linked, homes: pa.Table, ids: Words, records: pa.Table, first: int
    ) -> tuple[pa.Table, int]:
        """Linked records in the order of their households with numbers from ``first`` on, and how many have no household."""
        owners = Owners(ids).found(words_of(records, group.link))
        lost = int((owners == NOWHERE).sum())
        if lost:
            there = owners != NOWHERE
            records, owners = records.filter(pa.array(there)), owners[there]
        digits, empty = layout_of(records, group.variables)
        width = 1 + max((digit.word for digit in digits), default=0)
        starts, words = grouped(owners, packed_words(digits, records, width), ids.size)
        members = Members(
            record_type=group.record_type,
            link=group.link,
            identifier=group.identifier,
            refilled=group.refilled,
            digits=tuple(digits),
            empty=empty,
            starts=starts,
            words=words,
        )
        owner = pa.array(np.repeat(np.arange(ids.size), np.diff(starts)))
        arrays: dict[str, pa.Array | pa.ChunkedArray] = {}
        if group.identifier:
            arrays[group.identifier] = pa.array(np.arange(first, first + len(owner), dtype=np.int64))
        arrays[group.link] = homes.column(self.identifier).take(owner)
        for name in group.refilled:
            arrays[name] = homes.column(name).take(owner)
        arrays |= members.arrays(words)
        return plain(pa.table(arrays)), lost


@dataclass(frozen=True, slots=True)
class Look:
    """Counts and fingerprints of what would be published of a part, in one row."""

    publisher: Publisher
    looker: Looker
    read: tuple[str, ...]

    def __call__(self, part: int, records: pa.Table, *people: pa.Table) -> pa.Table:
        publisher = self.publisher
        homes, ids = publisher.homes(records, 1)
        found = self._homes(records, homes, ids, linked=bool(people))
        members: list[int] = []
        for group, own in zip(publisher.linked, people, strict=True):
            made, lost = publisher.people(group, homes, ids, own, 1)
            links = ids[made.column(group.link).to_numpy() - 1]
            found.append(self.looker.linked(made, group.variables, links))
            members += [made.num_rows, lost]
        return looked(part, records.num_rows, repetitions(ids), found, members)

    def _homes(self, records: pa.Table, homes: pa.Table, ids: Words, *, linked: bool) -> list[Fingerprint]:
        """Fingerprints of released columns; a column that only decides who takes part is added to them."""
        beside = [name for name in self.read if name not in homes.column_names]
        if beside:
            order = published_order(self.publisher.run, words_of(records, self.publisher.identifier))
            for name in beside:
                homes = homes.append_column(name, records.column(name).take(pa.array(order)))
        owners = self.looker.owners(homes, ids, HELD) if linked else Fingerprint()
        return [*self.looker.prints(homes), owners]


def looked(
    part: int, rows: int, repeated: int, found: Sequence[Fingerprint], members: Sequence[int]
) -> pa.Table:
    """The counts and fingerprints in one row."""
    row = {
        "part": [part],
        "rows": [rows],
        "repeated": [repeated],
        "prints": pa.array([flat(found)], NUMBERS),
        "members": pa.array([list(members)], NUMBERS),
    }
    return pa.table(row, schema=LOOKED)


@dataclass(frozen=True, slots=True)
class LookAtSwapped:
    """The same of records of which only tables are published."""

    identifier: str
    looker: Looker

    def __call__(self, part: int, records: pa.Table) -> pa.Table:
        ids = words_of(records, self.identifier)
        return looked(part, records.num_rows, repetitions(ids), self.looker.prints(records), ())


@dataclass(frozen=True, slots=True)
class Homes:
    """The records of a part as they are published; ``firsts`` is the first number of each part."""

    publisher: Publisher
    firsts: tuple[int, ...]

    def __call__(self, part: int, records: pa.Table, *people: pa.Table) -> pa.Table:
        del people
        return self.publisher.homes(records, self.firsts[part])[0]


@dataclass(frozen=True, slots=True)
class People:
    """The linked records of a part as they are published."""

    publisher: Publisher
    firsts: tuple[int, ...]
    place: int  # of the linked type
    member_firsts: tuple[int, ...]

    def __call__(self, part: int, records: pa.Table, *people: pa.Table) -> pa.Table:
        homes, ids = self.publisher.homes(records, self.firsts[part])
        group = self.publisher.linked[self.place]
        return self.publisher.people(group, homes, ids, people[self.place], self.member_firsts[part])[0]
