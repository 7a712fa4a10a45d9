"""Kernels over parts, with complete strata or of the published order: they call the same functions as a swap in memory."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stirred.chance import Key
from stirred.chance.words import Words, combine_chunks
from stirred.engine.placing import PART_COLUMN
from stirred.engine.plain import to_plain
from stirred.mechanisms.swapping.budget.shapes import NUMBER_COLUMNS
from stirred.mechanisms.swapping.draw.order import draw_order_words, shuffle_rows
from stirred.mechanisms.swapping.pipeline.batch_kernels import (
    WORD_LIST,
    Work,
    assign_parts,
    flatten_prints,
    local_engine,
)
from stirred.mechanisms.swapping.pipeline.frame import count_repetitions
from stirred.mechanisms.swapping.pipeline.publish import OutputFingerprints, Publication, count_table
from stirred.mechanisms.swapping.pipeline.verify import Fingerprint, Verifier, slice_rows
from stirred.mechanisms.swapping.records.columns import Column, canonical_values, encode_table
from stirred.mechanisms.swapping.records.members import LinkedType, Members, group_members
from stirred.mechanisms.swapping.records.packing import lay_out_table

INTEGER_LIST = pa.list_(pa.int64())
STRATA_SCHEMA = pa.schema(
    [
        *((name, INTEGER_LIST) for name in (*NUMBER_COLUMNS, "stays", "cells")),
        ("margins", pa.list_(pa.string())),
    ]
)
PRINTS_SCHEMA = pa.schema(
    [
        ("part", pa.int32()),
        ("rows", pa.int64()),
        ("repeated", pa.int64()),
        ("prints", WORD_LIST),
        ("members", WORD_LIST),  # of each linked type: how many, and how many without a household
    ]
)


@dataclass(frozen=True, slots=True)
class MembersOfReleased:
    """Keep linked records whose household is released; those with an empty link are kept, because the survey counts them."""

    identifier: str
    link: str

    def __call__(self, part: int, homes: pa.Table, people: pa.Table) -> pa.Table:
        del part
        links = people.column(self.link)
        there = pc.or_(
            pc.is_in(links, value_set=combine_chunks(homes.column(self.identifier))), pc.is_null(links)
        )
        return people.filter(there).drop_columns([PART_COLUMN])


@dataclass(frozen=True, slots=True)
class StrataPart:
    """Count the shapes of a part, the records that stay, and the cells that do not change, in one row."""

    work: Work
    verifier: Verifier | None  # None: cells are not counted

    def __call__(self, part: int, records: pa.Table) -> pa.Table:
        del part
        if not records.num_rows:
            return STRATA_SCHEMA.empty_table()
        frame = self.work.frame(records)
        found = frame.shapes()
        row = {name: [getattr(found, name)] for name in NUMBER_COLUMNS}
        row["stays"] = [np.array([stay.records for stay in frame.stays], np.int64)]
        kept = None if self.verifier is None else self.verifier.reader(frame.columns)
        cells = [] if kept is None else kept.cells(frame.columns, frame.rows)
        row["cells"] = [np.array(cells, np.int64)]
        row["margins"] = [found.margins.tolist()]
        return pa.table(
            {name: pa.array(row[name], STRATA_SCHEMA.field(name).type) for name in row}, schema=STRATA_SCHEMA
        )


@dataclass(frozen=True, slots=True)
class SwapPart:
    """Swap the records of a part and add the part of the published order to each."""

    work: Work
    run: Key
    parts: int

    def __call__(self, part: int, records: pa.Table) -> pa.Table:
        del part
        if not records.num_rows:
            return records
        frame = self.work.frame(records)
        columns = self.work.law.draw_swap(frame, self.run, local_engine())
        moved = {
            name: columns[name].arrow()
            if columns[name] is not frame.columns[name]
            else canonical_values(combine_chunks(records[name]))
            for name in self.work.read
        }
        place = assign_parts(draw_order_words(self.run, frame.ids, local_engine()), self.parts)
        return to_plain(
            pa.table({self.work.roles.identifier: pa.array(frame.ids), **moved, PART_COLUMN: place})
        )


@dataclass(frozen=True, slots=True)
class CountPart:
    """Count the cells of one contingency table in a part."""

    names: tuple[str, ...]

    def __call__(self, part: int, records: pa.Table, *others: pa.Table) -> pa.Table:
        del part, others
        return to_plain(count_table(encode_table(records, self.names), self.names))


# ---- parts of the published order -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Publisher:
    """Make the publication of one part."""

    work: Work
    run: Key
    released: tuple[str, ...]
    linked: tuple[LinkedType, ...] = ()

    def publication(
        self, records: pa.Table, people: Sequence[tuple[LinkedType, pa.Table]], names: Sequence[str]
    ) -> Publication:
        """Put the named columns of the records, and some linked records, in their published order."""
        identifier = self.work.roles.identifier
        columns = encode_table(records, [identifier, *names])
        ids = columns[identifier].codes
        order = shuffle_rows(self.run, ids, local_engine())
        groups = tuple(_group_part(kind, own, columns[identifier]) for kind, own in people)
        return Publication(
            identifier=identifier,
            released=self.released,
            read=self.work.read,
            columns=columns,
            ids=ids[order],
            order=order,
            members=groups,
            engine=local_engine(),
        )


def _group_part(kind: LinkedType, records: pa.Table, owner: Column) -> Members:
    layout = lay_out_table(records, kind.variables)
    return group_members(kind, lambda names: [records.select(list(names))], layout, owner)


def _write_prints(part: int, ids: Words, after: OutputFingerprints, numbers: Sequence[int]) -> pa.Table:
    row = {
        "part": [part],
        "rows": [ids.size],
        "repeated": [count_repetitions(ids)],
        "prints": pa.array([flatten_prints([*after.homes, *after.people])], WORD_LIST),
        "members": pa.array([list(numbers)], WORD_LIST),
    }
    return pa.table(row, schema=PRINTS_SCHEMA)


@dataclass(frozen=True, slots=True)
class FingerprintPart:
    """Count what would be published of a part and take its fingerprints, in one row."""

    publisher: Publisher
    verifier: Verifier

    def __call__(self, part: int, records: pa.Table, *people: pa.Table) -> pa.Table:
        publisher = self.publisher
        linked = list(zip(publisher.linked, people, strict=True))
        publication = publisher.publication(records, linked, publisher.work.read)
        after = OutputFingerprints([Fingerprint() for _ in range(self.verifier.number)])
        publication.take_fingerprints(self.verifier.reader(publication.columns), after)
        numbers = [n for group in publication.members for n in (group.words.shape[0], group.lost)]
        return _write_prints(part, publication.ids, after, numbers)


@dataclass(frozen=True, slots=True)
class FingerprintSwapped:
    """Take the fingerprints of records of which only tables are published, in one row."""

    work: Work
    verifier: Verifier

    def __call__(self, part: int, records: pa.Table) -> pa.Table:
        columns = self.work.columns(records)
        ids = columns[self.work.roles.identifier].codes
        kept = self.verifier.reader(columns)
        found = (kept.prints(columns, rows, ids[rows]) for rows in slice_rows(ids.size))
        return _write_prints(part, ids, OutputFingerprints(Fingerprint.sums(found, self.verifier.number)), ())


@dataclass(frozen=True, slots=True)
class HomesPart:
    """Return the records of a part as they are published; ``firsts`` is the first number of each part."""

    publisher: Publisher
    firsts: tuple[int, ...]

    def __call__(self, part: int, records: pa.Table, *people: pa.Table) -> pa.Table:
        del people
        publication = self.publisher.publication(records, (), self.publisher.released)
        batches = publication.home_batches(first=self.firsts[part], after=OutputFingerprints([]))
        return pa.concat_tables(map(to_plain, batches))


@dataclass(frozen=True, slots=True)
class MembersPart:
    """Return the linked records of a part as they are published."""

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
            after=OutputFingerprints([]),
        )
        return pa.concat_tables(map(to_plain, batches))
