"""Kernels over parts, with complete strata or of the published order: they call the same functions as a swap in memory."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stirred.chance import Key
from stirred.chance.words import Words, one
from stirred.engine.placing import PART
from stirred.engine.plain import plain
from stirred.mechanisms.swapping.budget.shapes import NUMBERS
from stirred.mechanisms.swapping.draw.order import order_words, shuffled
from stirred.mechanisms.swapping.pipeline.batch_kernels import WORDS, Work, flat, here, part_of
from stirred.mechanisms.swapping.pipeline.frame import repetitions
from stirred.mechanisms.swapping.pipeline.publish import After, Publication, table
from stirred.mechanisms.swapping.pipeline.verify import Fingerprint, Verifier, slices
from stirred.mechanisms.swapping.records.columns import Column, canonical, of_table
from stirred.mechanisms.swapping.records.members import LinkedType, Members, members
from stirred.mechanisms.swapping.records.packing import layout_of

INTEGERS = pa.list_(pa.int64())
STATED = pa.schema(
    [*((name, INTEGERS) for name in (*NUMBERS, "stays", "cells")), ("margins", pa.list_(pa.string()))]
)
LOOKED = pa.schema(
    [
        ("part", pa.int32()),
        ("rows", pa.int64()),
        ("repeated", pa.int64()),
        ("prints", WORDS),
        ("members", WORDS),  # of each linked type: how many, and how many without a household
    ]
)


@dataclass(frozen=True, slots=True)
class OnlyOf:
    """Keep linked records whose household is released; those with an empty link are kept, because the survey counts them."""

    identifier: str
    link: str

    def __call__(self, part: int, homes: pa.Table, people: pa.Table) -> pa.Table:
        del part
        links = people.column(self.link)
        there = pc.or_(pc.is_in(links, value_set=one(homes.column(self.identifier))), pc.is_null(links))
        return people.filter(there).drop_columns([PART])


@dataclass(frozen=True, slots=True)
class StatePart:
    """The shapes of the strata of a part, the records that stay, and the cells that do not change, in one row."""

    work: Work
    verifier: Verifier | None  # None: cells are not counted

    def __call__(self, part: int, records: pa.Table) -> pa.Table:
        del part
        if not records.num_rows:
            return STATED.empty_table()
        frame = self.work.frame(records)
        found = frame.shapes()
        row = {name: [getattr(found, name)] for name in NUMBERS}
        row["stays"] = [np.array([stay.records for stay in frame.stays], np.int64)]
        kept = None if self.verifier is None else self.verifier.reader(frame.columns)
        cells = [] if kept is None else kept.cells(frame.columns, frame.rows)
        row["cells"] = [np.array(cells, np.int64)]
        row["margins"] = [found.margins.tolist()]
        return pa.table({name: pa.array(row[name], STATED.field(name).type) for name in row}, schema=STATED)


@dataclass(frozen=True, slots=True)
class SwapPart:
    """The records of a part after the swap, each with its part of the published order."""

    work: Work
    run: Key
    parts: int

    def __call__(self, part: int, records: pa.Table) -> pa.Table:
        del part
        if not records.num_rows:
            return records
        frame = self.work.frame(records)
        columns = self.work.law.swapped(frame, self.run, here())
        moved = {
            name: columns[name].arrow()
            if columns[name] is not frame.columns[name]
            else canonical(one(records[name]))
            for name in self.work.read
        }
        place = part_of(order_words(self.run, frame.ids, here()), self.parts)
        return plain(pa.table({self.work.roles.identifier: pa.array(frame.ids), **moved, PART: place}))


@dataclass(frozen=True, slots=True)
class CountPart:
    """The cells of one contingency table in a part."""

    names: tuple[str, ...]

    def __call__(self, part: int, records: pa.Table, *others: pa.Table) -> pa.Table:
        del part, others
        return plain(table(of_table(records, self.names), self.names))


# ---- parts of the published order -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Publisher:
    """Makes the publication of one part."""

    work: Work
    run: Key
    released: tuple[str, ...]
    linked: tuple[LinkedType, ...] = ()

    def publication(
        self, records: pa.Table, people: Sequence[tuple[LinkedType, pa.Table]], names: Sequence[str]
    ) -> Publication:
        """The named columns of the records, and some of the linked records, in their published order."""
        identifier = self.work.roles.identifier
        columns = of_table(records, [identifier, *names])
        ids = columns[identifier].codes
        order = shuffled(self.run, ids, here())
        groups = tuple(_grouped(kind, own, columns[identifier]) for kind, own in people)
        return Publication(
            identifier=identifier,
            released=self.released,
            read=self.work.read,
            columns=columns,
            ids=ids[order],
            order=order,
            members=groups,
            engine=here(),
        )


def _grouped(kind: LinkedType, records: pa.Table, owner: Column) -> Members:
    layout = layout_of(records, kind.variables)
    return members(kind, lambda names: [records.select(list(names))], layout, owner)


def _looked(part: int, ids: Words, after: After, numbers: Sequence[int]) -> pa.Table:
    row = {
        "part": [part],
        "rows": [ids.size],
        "repeated": [repetitions(ids)],
        "prints": pa.array([flat([*after.homes, *after.people])], WORDS),
        "members": pa.array([list(numbers)], WORDS),
    }
    return pa.table(row, schema=LOOKED)


@dataclass(frozen=True, slots=True)
class LookPart:
    """Counts and fingerprints of what would be published of a part, in one row."""

    publisher: Publisher
    verifier: Verifier

    def __call__(self, part: int, records: pa.Table, *people: pa.Table) -> pa.Table:
        publisher = self.publisher
        linked = list(zip(publisher.linked, people, strict=True))
        publication = publisher.publication(records, linked, publisher.work.read)
        after = After([Fingerprint() for _ in range(self.verifier.number)])
        publication.look(self.verifier.reader(publication.columns), after)
        numbers = [n for group in publication.members for n in (group.words.shape[0], group.lost)]
        return _looked(part, publication.ids, after, numbers)


@dataclass(frozen=True, slots=True)
class LookSwapped:
    """The same of records of which only tables are published."""

    work: Work
    verifier: Verifier

    def __call__(self, part: int, records: pa.Table) -> pa.Table:
        columns = self.work.columns(records)
        ids = columns[self.work.roles.identifier].codes
        kept = self.verifier.reader(columns)
        found = (kept.prints(columns, rows, ids[rows]) for rows in slices(ids.size))
        return _looked(part, ids, After(Fingerprint.sums(found, self.verifier.number)), ())


@dataclass(frozen=True, slots=True)
class HomesPart:
    """The records of a part as they are published; ``firsts`` is the first number of each part."""

    publisher: Publisher
    firsts: tuple[int, ...]

    def __call__(self, part: int, records: pa.Table, *people: pa.Table) -> pa.Table:
        del people
        publication = self.publisher.publication(records, (), self.publisher.released)
        batches = publication.home_batches(first=self.firsts[part], after=After([]))
        return pa.concat_tables(map(plain, batches))


@dataclass(frozen=True, slots=True)
class MembersPart:
    """The linked records of a part as they are published."""

    publisher: Publisher
    firsts: tuple[int, ...]
    place: int  # of the linked type
    member_firsts: tuple[int, ...]

    def __call__(self, part: int, records: pa.Table, *people: pa.Table) -> pa.Table:
        kind = self.publisher.linked[self.place]
        publication = self.publisher.publication(records, [(kind, people[self.place])], kind.refilled)
        batches = publication.member_batches(
            publication.members[0],
            first_home=self.firsts[part],
            first=self.member_firsts[part],
            after=After([]),
        )
        return pa.concat_tables(map(plain, batches))
