"""Swap a census that does not fit in memory: kernels over batches and parts, run by an engine."""

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stirred._support import pads, path_in
from stirred.chance import Key
from stirred.chance.words import Hasher, Words, cast_links, combine_chunks, find_missing
from stirred.engine import Engine, Flow, Local, PartRows, Parts, Progress, Steps
from stirred.engine.choice import find_bound
from stirred.engine.tables import PART_COLUMN as PART_COLUMN
from stirred.engine.tables import PlaceRows, to_plain
from stirred.errors import DataError, InputError
from stirred.mechanisms.swap.config import Roles
from stirred.mechanisms.swap.fingerprints import (
    ROWS_PER_DIGEST,
    Fingerprint,
    HomeSurvey,
    InputFingerprints,
    MemberSurvey,
    RecordDigest,
    Scatter,
    SurveyPart,
    Verifier,
    add_parts,
    merge_digests,
    seal_digest,
    slice_rows,
)
from stirred.mechanisms.swap.frame import (
    Frame,
    Microdata,
    MoveLaw,
    OutputFingerprints,
    Publication,
    Size,
    StrataSummary,
    count_repetitions,
    count_table,
    make_frame,
    require_room_for_strata,
    require_unique,
    weigh_records,
)
from stirred.mechanisms.swap.moves import draw_order_words, shuffle_rows
from stirred.mechanisms.swap.records import (
    Codes,
    Column,
    LinkedType,
    Members,
    ReleaseRule,
    encode_rows,
    encode_table,
    find_linked_types,
    find_release_rule,
    group_members,
    lay_out_table,
    require_links,
    require_owners,
)
from stirred.mechanisms.swap.strata import NUMBER_COLUMNS, Shapes

if TYPE_CHECKING:
    from stirred.census import Census
    from stirred.census.schema import Kinds


# Kernels over batches of the source: they encode the rows and call the same functions as a swap in memory.
#
# Faults of records are counted, and the caller raises the error; links of another type than the identifiers are
# refused at once. Kernels are pure and can be pickled: a task may run again, elsewhere, on rows in another order.

WORD_LIST = pa.list_(pa.uint64())
SURVEY_SCHEMA = pa.schema(
    [("rows", pa.int64()), ("empty", pa.int64()), ("sum", pa.binary()), ("prints", WORD_LIST)]
)


def flatten_prints(found: Iterable[Fingerprint]) -> list[int]:
    """Flatten fingerprints into numbers that are sent in one field."""
    return [number for each in found for number in (each.rows, each.first, each.second)]


def read_prints(numbers: Sequence[int]) -> list[Fingerprint]:
    """Read the fingerprints that ``flatten_prints`` wrote."""
    return [Fingerprint(*numbers[i : i + 3]) for i in range(0, len(numbers), 3)]


def assign_parts(words: Words, parts: int) -> pa.Array:
    """Return the part of each word; parts are equally likely, and larger words go to later parts.

    >>> assign_parts(np.array([0, 2**63, 2**64 - 1], np.uint64), 4).to_pylist()
    [0, 2, 3]
    """
    return pa.array((((words >> np.uint64(32)) * np.uint64(parts)) >> np.uint64(32)).astype(np.int32))


def join_pieces(schema: pa.Schema, pieces: Iterable[pa.Table]) -> pa.Table:
    """Return all rows of some pieces, of which there may be none."""
    return pa.concat_tables([schema.empty_table(), *pieces])


def local_engine() -> Local:
    """Return the engine inside a kernel, which is one task of many."""
    return Local(workers=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What every kernel of one release needs: the law, the roles and the columns to read."""

    law: MoveLaw
    roles: Roles
    microdata: bool  # whether records are released
    kinds: "Kinds | None"  # None too where the records that may not move were left out before
    read: tuple[str, ...]
    levels: tuple[tuple[str, pa.Array], ...] = ()  # of the whole census

    def columns(self, records: pa.Table) -> dict[str, Column]:
        """Encode some records, whose identifiers are already words."""
        return encode_table(records, [self.roles.identifier, *self.read])

    def frame(self, records: PartRows) -> Frame:
        """Make a frame of the records of a part, prepared by the law."""
        columns = encode_rows(records, [self.roles.identifier, *self.read])
        known: list[tuple[str, Codes]] = []
        for name, values in self.levels:
            columns[name], codes = _recode_column(columns[name], values)
            known.append((name, codes))
        frame = self.law.prepare_frame(make_frame(columns, self.roles, self.kinds))
        return replace(frame, levels=tuple(known))


def _recode_column(column: Column, levels: pa.Array) -> tuple[Column, Codes]:
    """Recode a column with all levels that occur anywhere; return it and these codes, an empty level last."""
    if column.values is None and not levels.null_count:
        return column, levels.to_numpy(zero_copy_only=False)
    values = levels.cast(column.type) if levels.type != column.type else levels
    array = column.arrow()
    array = array.cast(array.type.value_type) if pa.types.is_dictionary(array.type) else array
    codes = pc.index_in(array, value_set=values).to_numpy(zero_copy_only=False).astype(np.int32)
    return replace(column, codes=codes, values=values, reach=None).store_reach(), np.arange(len(values))


@dataclass(frozen=True, slots=True)
class IdentifierWords:
    """Convert identifiers or links to words under their own name; empty ones stay empty, other columns are unchanged."""

    identifier: str
    names: tuple[str, ...]
    kind: pa.DataType  # of the identifiers, where these are links
    only: ReleaseRule | None = None  # where records that take no part are left out

    def __call__(self, table: pa.Table) -> pa.Table:
        if self.only is not None:
            column = encode_table(table, [self.only.column])[self.only.column]
            table = table.filter(pa.array(self.only.find_released(column)))
        array = cast_links(combine_chunks(table.column(self.identifier)), self.kind, name=self.identifier)
        words = pa.array(Hasher().words(array), mask=find_missing(array) if array.null_count else None)
        rest = [table.column(name) for name in self.names]
        return pa.table([words, *rest], names=[self.identifier, *self.names])


@dataclass(frozen=True, slots=True)
class SurveyHomes:
    """Digest a batch of records and take its fingerprints, in one row."""

    reader: Key
    work: Work
    verifier: Verifier

    def __call__(self, table: pa.Table) -> pa.Table:
        empty = table.column(self.work.roles.identifier).null_count
        if empty:
            return _write_survey(self.reader, table.num_rows, empty, [], self.verifier.number)
        columns = self.work.columns(table)
        ids = columns[self.work.roles.identifier].codes
        kept = self.verifier.reader(columns)
        survey = HomeSurvey.of(self.reader, columns, ids, self.work.read, kept)
        found = map(survey.digest_slice, slice_rows(table.num_rows, ROWS_PER_DIGEST))
        return _write_survey(self.reader, table.num_rows, 0, found, self.verifier.number)


@dataclass(frozen=True, slots=True)
class SurveyMembers:
    """Digest a batch of linked records and take its fingerprint, in one row."""

    reader: Key
    kind: LinkedType
    scatter: Scatter

    def __call__(self, table: pa.Table) -> pa.Table:
        link, names = self.kind.link, self.kind.variables
        empty = table.column(link).null_count
        if empty:
            return _write_survey(self.reader, table.num_rows, empty, [], 1)
        columns = encode_table(table, [link, *names])
        survey = MemberSurvey.of_columns(self.reader, columns, names, self.scatter)
        found = (
            survey.digest_slice(
                {name: columns[name].codes[rows] for name in names}, columns[link].codes[rows]
            )
            for rows in slice_rows(table.num_rows, ROWS_PER_DIGEST)
        )
        return _write_survey(self.reader, table.num_rows, 0, found, 1)


def _write_survey(reader: Key, rows: int, empty: int, found: Iterable[SurveyPart], number: int) -> pa.Table:
    total, prints = add_parts(reader, found, number)
    row = {
        "rows": [rows],
        "empty": [empty],
        "sum": [total.part()],
        "prints": pa.array([flatten_prints(prints)], WORD_LIST),
    }
    return pa.table(row, schema=SURVEY_SCHEMA)


@dataclass(frozen=True, slots=True)
class DistinctLevels:
    """Find the distinct values of some columns in a batch."""

    names: tuple[str, ...]

    def __call__(self, table: pa.Table) -> pa.Table:
        return table.select(list(self.names)).group_by(list(self.names)).aggregate([])


@dataclass(frozen=True, slots=True)
class PartByValues:
    """Choose the part of each row by some of its values, and keep some columns."""

    names: tuple[str, ...]
    parts: int
    scatter: Scatter
    keep: tuple[str, ...] | None = None  # None: all

    def __call__(self, table: pa.Table) -> pa.Table:
        columns = encode_table(table, self.names)
        words = self.scatter.words(columns, self.names)
        variables = ((words[name], columns[name].codes) for name in self.names)
        part = assign_parts(self.scatter.rows(variables, table.num_rows), self.parts)
        return (table if self.keep is None else table.select(list(self.keep))).append_column(
            PART_COLUMN, part
        )


@dataclass(frozen=True, slots=True)
class PartByOrder:
    """Choose the part of each row by the position of its household in the published order."""

    identifier: str
    parts: int
    run: Key

    def __call__(self, table: pa.Table) -> pa.Table:
        ids = encode_table(table, [self.identifier])[self.identifier].codes
        return table.append_column(
            PART_COLUMN, assign_parts(draw_order_words(self.run, ids, local_engine()), self.parts)
        )


MIN_STRATA_PARTS = 64  # parts within a bound: two large strata rarely meet in one of so many

# Kernels over parts, with complete strata or of the published order: they call the same functions as a swap in memory.

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


WEIGHT_SCHEMA = pa.schema([("bytes", pa.int64())])


@dataclass(frozen=True, slots=True)
class WeighPart:
    """Say how many bytes the records of a part take while they are swapped; none of them is read."""

    def __call__(self, part: int, *tables: pa.Table) -> pa.Table:
        return pa.concat_tables(self.run_pieces(part, *map(PartRows.of, tables)))

    def run_pieces(self, part: int, *flows: PartRows) -> Iterator[pa.Table]:
        """Yield the one number."""
        del part
        yield pa.table({"bytes": [weigh_records(flows[0])]}, schema=WEIGHT_SCHEMA)

    def weigh(self, *flows: PartRows) -> int:
        """Return 0: nothing is held."""
        del flows
        return 0


@dataclass(frozen=True, slots=True)
class StrataPart:
    """Count the shapes of a part, the records that stay, and the cells that do not change, in one row."""

    work: Work
    verifier: Verifier | None  # None: cells are not counted

    def __call__(self, part: int, *tables: pa.Table) -> pa.Table:
        return join_pieces(STRATA_SCHEMA, self.run_pieces(part, *map(PartRows.of, tables)))

    def run_pieces(self, part: int, *flows: PartRows) -> Iterator[pa.Table]:
        """Yield the one row, where the part has records."""
        del part
        (records,) = flows
        if not records.number:
            return
        frame = self.work.frame(records)
        found = frame.shapes(most_types=self.work.law.most_types_counted)
        row = {name: [getattr(found, name)] for name in NUMBER_COLUMNS}
        row["stays"] = [np.array([stay.records for stay in frame.stays], np.int64)]
        kept = None if self.verifier is None else self.verifier.reader(frame.columns)
        cells = [] if kept is None else kept.cells(frame.columns, frame.rows)
        row["cells"] = [np.array(cells, np.int64)]
        row["margins"] = [found.margins.tolist()]
        yield pa.table(
            {name: pa.array(row[name], STRATA_SCHEMA.field(name).type) for name in row}, schema=STRATA_SCHEMA
        )

    def weigh(self, *flows: PartRows) -> int:
        """Return the bytes of the codes of the records."""
        return weigh_records(flows[0])


@dataclass(frozen=True, slots=True)
class SwapPart:
    """Swap the records of a part and add the part of the published order to each."""

    work: Work
    run: Key
    parts: int

    def __call__(self, part: int, *tables: pa.Table) -> pa.Table:
        (records,) = tables
        if not records.num_rows:
            return records
        return pa.concat_tables(self.run_pieces(part, PartRows.of(records)))

    def run_pieces(self, part: int, *flows: PartRows) -> Iterator[pa.Table]:
        """Yield the swapped records: all that is held of a stratum, which cannot be divided, are narrow codes."""
        del part
        (records,) = flows
        if not records.number:
            return
        frame = self.work.frame(records)
        ids = frame.ids
        columns = self.work.law.draw_swap(frame, self.run, local_engine())
        del frame  # and with it the columns as they were
        place = assign_parts(draw_order_words(self.run, ids, local_engine()), self.parts)
        for rows in slice_rows(ids.size):
            swapped = {name: columns[name].arrow(rows) for name in self.work.read}
            own = pa.array(ids[rows])
            yield to_plain(
                pa.table(
                    {self.work.roles.identifier: own, **swapped, PART_COLUMN: place[rows.start : rows.stop]}
                )
            )

    def weigh(self, *flows: PartRows) -> int:
        """Return the bytes of the codes of the records."""
        return weigh_records(flows[0])


@dataclass(frozen=True, slots=True)
class CountPart:
    """Count the cells of one contingency table in a part."""

    names: tuple[str, ...]

    def __call__(self, part: int, *tables: pa.Table) -> pa.Table:
        return pa.concat_tables(self.run_pieces(part, *map(PartRows.of, tables)))

    def run_pieces(self, part: int, *flows: PartRows) -> Iterator[pa.Table]:
        """Yield the cells."""
        del part
        yield to_plain(count_table(encode_rows(flows[0], self.names), self.names))

    def weigh(self, *flows: PartRows) -> int:
        """Return the bytes of the codes of the records."""
        return weigh_records(flows[0])


@dataclass(frozen=True, slots=True)
class SumPart:
    """Add up the cells of one contingency table that other parts have counted."""

    names: tuple[str, ...]

    def __call__(self, _: int, cells: pa.Table) -> pa.Table:
        counts = combine_chunks(cells["count"]).to_numpy()
        return to_plain(count_table(encode_table(cells, self.names), self.names, counts))


# ---- parts of the published order -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Publisher:
    """Make the publication of one part."""

    work: Work
    run: Key
    released: tuple[str, ...]
    linked: tuple[LinkedType, ...] = ()

    def publication(
        self, records: PartRows, people: Sequence[tuple[LinkedType, pa.Table]], names: Sequence[str]
    ) -> Publication:
        """Put the named columns of the records, and some linked records, in their published order."""
        identifier = self.work.roles.identifier
        columns = encode_rows(records, [identifier, *names])
        ids = columns[identifier].codes
        order = shuffle_rows(self.run, ids, local_engine())
        groups = tuple(_group_part(kind, own, columns[identifier]) for kind, own in people)
        return Publication(
            roles=self.work.roles,
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
        publication = publisher.publication(PartRows.of(records), linked, publisher.work.read)
        after = OutputFingerprints([Fingerprint() for _ in range(self.verifier.number)])
        publication.take_fingerprints(self.verifier.reader(publication.columns), after)
        numbers = [n for group in publication.members for n in (group.words.shape[0], group.lost)]
        return _write_prints(part, publication.ids, after, numbers)


@dataclass(frozen=True, slots=True)
class FingerprintSwapped:
    """Take the fingerprints of records of which only tables are published, in one row."""

    work: Work
    verifier: Verifier

    def __call__(self, part: int, *tables: pa.Table) -> pa.Table:
        return pa.concat_tables(self.run_pieces(part, *map(PartRows.of, tables)))

    def run_pieces(self, part: int, *flows: PartRows) -> Iterator[pa.Table]:
        """Yield the one row."""
        (records,) = flows
        columns = encode_rows(records, [self.work.roles.identifier, *self.work.read])
        ids = columns[self.work.roles.identifier].codes
        kept = self.verifier.reader(columns)
        found = (kept.prints(columns, rows, ids[rows]) for rows in slice_rows(ids.size))
        yield _write_prints(part, ids, OutputFingerprints(Fingerprint.sums(found, self.verifier.number)), ())

    def weigh(self, *flows: PartRows) -> int:
        """Return the bytes of the codes of the records."""
        return weigh_records(flows[0])


@dataclass(frozen=True, slots=True)
class HomesPart:
    """Return the records of a part as they are published; ``firsts`` is the first number of each part."""

    publisher: Publisher
    firsts: tuple[int, ...]

    def __call__(self, part: int, *tables: pa.Table) -> pa.Table:
        return pa.concat_tables(self.run_pieces(part, *map(PartRows.of, tables)))

    def run_pieces(self, part: int, *flows: PartRows) -> Iterator[pa.Table]:
        """Yield the records by row group; linked records are not read."""
        publication = self.publisher.publication(flows[0], (), self.publisher.released)
        batches = publication.home_batches(first=self.firsts[part], after=OutputFingerprints([]))
        yield from map(to_plain, batches)

    def weigh(self, *flows: PartRows) -> int:
        """Return the bytes of the records as codes, and as rows on their way to the file."""
        return 2 * weigh_records(flows[0])


@dataclass(frozen=True, slots=True)
class MembersPart:
    """Return the linked records of a part as they are published."""

    publisher: Publisher
    firsts: tuple[int, ...]
    place: int  # of the linked type
    member_firsts: tuple[int, ...]

    def __call__(self, part: int, records: pa.Table, *people: pa.Table) -> pa.Table:
        kind = self.publisher.linked[self.place]
        publication = self.publisher.publication(
            PartRows.of(records), [(kind, people[self.place])], kind.refilled
        )
        batches = publication.member_batches(
            publication.members[0],
            first_home=self.firsts[part],
            first=self.member_firsts[part],
            after=OutputFingerprints([]),
        )
        return pa.concat_tables(map(to_plain, batches))


# A census that does not fit in memory or is stored on a cluster: its records in flows and parts of an engine.
#
# The records are read once for the digest and the fingerprints, exchanged by their match variables so that every stratum
# is complete in one part, swapped part by part, and exchanged again by the words that order the publication. Every
# random word is named by the identifier of a record, so parts change nothing: the bytes are those of the swap in memory.


def report_steps(progress: Progress, step: str) -> Steps:
    """Return a function that reports the progress of one step, as an engine calls it."""
    return lambda done, total: progress(step, done, total)


@dataclass(slots=True, kw_only=True)
class PartRecords:
    """The records of a census in flows; nothing is read before it is needed."""

    engine: Engine
    size: Size
    work: Work
    frame: Frame  # without records: the roles and words of the mechanism
    homes: Flow
    people: tuple[Flow, ...]
    linked: tuple[LinkedType, ...]
    verifier: Verifier
    scatter: Scatter  # divides records into parts
    progress: Progress
    held: ExitStack  # parts on disk, dropped at the end
    strata: Parts | None = None  # records with complete strata, once they are exchanged

    def survey(self, reader: Key) -> InputFingerprints:
        """Read all records once, batch by batch."""
        identifier, read = self.frame.roles.identifier, self.work.read
        found = self.homes.map(SurveyHomes(reader, self.work, self.verifier), SURVEY_SCHEMA).gather()
        if pc.sum(found["empty"]).as_py():
            raise DataError(
                f"{identifier} is empty in some records",
                why="an identifier names one record",
                fix="fill the identifier in these records",
            )
        own = _add_digests(reader, self.frame.roles.record_type, read, found, self.homes.schema, read)
        homes = _add_prints(found, self.verifier.number)
        along, people = [], []
        for flow, kind in zip(self.people, self.linked, strict=True):
            kernel = SurveyMembers(reader, kind, self.verifier.scatter)
            found = flow.map(kernel, SURVEY_SCHEMA).gather()
            require_links(pc.sum(found["empty"]).as_py() or 0)
            names = (kind.link, *kind.variables)
            along.append(_add_digests(reader, kind.record_type, names, found, flow.schema, kind.variables))
            people += _add_prints(found, 1)
        return InputFingerprints(digest=seal_digest(reader, own, along), homes=homes, people=people)

    def count_strata(self, *, cells: bool) -> StrataSummary:
        """Count the strata, part by part."""
        kernel = StrataPart(self.work, self.verifier if cells else None)
        found = (
            self._exchange_strata()
            .map(kernel, STRATA_SCHEMA)
            .gather(report_steps(self.progress, "strata"))
            .to_pylist()
        )
        records = _sum_lists(found, "stays", len(self.frame.stays))
        stays = (replace(stay, records=n) for stay, n in zip(self.frame.stays, records, strict=True))
        shapes = (
            Shapes(
                **{name: np.array(row[name], np.int64) for name in NUMBER_COLUMNS},
                margins=np.array(row["margins"], np.object_),
            )
            for row in found
        )
        return StrataSummary(
            frame=replace(self.frame, stays=tuple(stays)),
            shapes=Shapes.join_parts(shapes, keep_margins=bool(self.work.law.most_types_counted)),
            cells=tuple(_sum_lists(found, "cells", len(self.verifier.tables) if cells else 0)),
        )

    def _exchange_strata(self) -> Parts:
        """Exchange the records once into parts with complete strata."""
        if self.strata is None:
            parts = self.size.count_parts(self.engine, self.size.homes)
            if find_bound(self.engine) is not None:
                parts = max(parts, MIN_STRATA_PARTS)
            by = PartByValues(self.work.law.partition_variables(self.frame), parts, self.scatter)
            flow = self.homes.map(by, self._exchange_schema)
            self.strata = self.engine.exchange(flow, by=PART_COLUMN, parts=parts).keep()
            self.held.callback(self.strata.drop)
            if find_bound(self.engine) is not None:
                found = self.strata.map(WeighPart(), WEIGHT_SCHEMA).gather()
                largest = pc.max(found["bytes"]).as_py() or 0
                require_room_for_strata(self.engine, self.frame.roles, largest)
        return self.strata

    @property
    def _exchange_schema(self) -> pa.Schema:
        """Return the columns of records between two exchanges."""
        return self.homes.schema.append(pa.field(PART_COLUMN, pa.int32()))

    @contextmanager
    def draw_swap(
        self, run: Key, before: InputFingerprints, out: Path | None
    ) -> Iterator["PartSwappedRecords"]:
        """Draw part by part, exchange by the published order, and verify; records are written when they are asked for."""
        strata, work = self._exchange_strata(), self._add_levels()
        rows = [before.homes[0].rows, *(group.rows for group in before.people)]
        number = self.size.count_published_parts(self.engine, rows) if work.microdata else 1
        swapped = strata.map(SwapPart(work, run, number), self._exchange_schema)
        publisher = Publisher(
            work=work, run=run, released=self.frame.roles.released_variables, linked=self.linked
        )
        if work.microdata:
            self.progress("swap", 0, 1)
            people = [
                flow.map(
                    PartByOrder(kind.link, number, run), flow.schema.append(pa.field(PART_COLUMN, pa.int32()))
                )
                for flow, kind in zip(self.people, self.linked, strict=True)
            ]
            placed = self.engine.exchange(swapped.flow(), *people, by=PART_COLUMN, parts=number).keep()
            self.held.callback(placed.drop)
            strata.drop()
            self.progress("swap", 1, 1)
            looked = placed.map(FingerprintPart(publisher, self.verifier), PRINTS_SCHEMA)
        else:
            placed = swapped.keep(report_steps(self.progress, "swap"))
            self.held.callback(placed.drop)
            looked = placed.map(FingerprintSwapped(work, self.verifier), PRINTS_SCHEMA)
        found = looked.gather(report_steps(self.progress, "verify")).to_pylist()
        seen = PartSwappedRecords(self, placed, publisher, found, out)
        try:
            seen.require_sound()
            yield seen
        except BaseException:
            seen.discard()
            raise

    def _add_levels(self) -> Work:
        """Return the work with the levels that the law must know of the whole census."""
        levels = []
        for name in self.work.law.variables_needing_all_levels:
            schema = pa.schema([self.homes.schema.field(name)])
            found = self.homes.map(DistinctLevels((name,)), schema).gather().column(0).unique()
            levels.append((name, found.take(pc.sort_indices(found))))
        return replace(self.work, levels=tuple(levels))


class PartSwappedRecords:
    """Swapped records in parts of the published order; no log is carried back from the workers."""

    internal: Mapping[str, pa.Table] = MappingProxyType({})

    def __init__(
        self,
        source: PartRecords,
        placed: Parts,
        publisher: Publisher,
        found: Sequence[dict[str, Any]],
        out: Path | None,
    ) -> None:
        self.source, self.placed, self.publisher, self.found, self.out = source, placed, publisher, found, out
        linked = len(source.linked)
        self.rows = [0] * placed.number  # of each part
        self.members = [[0] * placed.number for _ in range(linked)]  # of each linked type and part
        self.repeated = self.lost = 0
        for row in found:
            part, numbers = row["part"], row["members"]
            self.rows[part] = row["rows"]
            for i in range(linked):
                self.members[i][part] = numbers[2 * i]
                self.lost += numbers[2 * i + 1]
            self.repeated += row["repeated"]
        number = source.verifier.number
        prints = Fingerprint.sums(
            (read_prints(row["prints"]) for row in found),
            number + linked,
        )
        self.after = OutputFingerprints(prints[:number], prints[number:])

    def require_sound(self) -> None:
        """Raise an error if identifiers repeat or linked records belong to no household."""
        require_unique(self.source.frame.roles, self.repeated)
        require_owners(self.lost)

    def table(self, by: tuple[str, ...]) -> pa.Table:
        """Add up the cells of all parts and return them sorted."""
        schema = pa.schema([*(self.source.homes.schema.field(name) for name in by), ("count", pa.int64())])
        cells = self.placed.map(CountPart(by), schema)
        if by and self.placed.number > 1:  # a cell may have a row in every part: they are added up before
            placed = PlaceRows(by, self.placed.number)
            flow = cells.flow().map(placed, placed.schema(schema))
            met = self.source.engine.exchange(flow, by=PART_COLUMN, parts=self.placed.number)
            cells = met.map(SumPart(by), schema)
        found = cells.gather()
        return count_table(encode_table(found, by), by, found["count"].to_numpy())

    def _plan_parts(self) -> dict[str, Parts]:
        """Return the published parts of each record type."""
        source, publisher = self.source, self.publisher
        firsts, kinds = _first_numbers(self.rows), source.homes.schema
        roles = source.frame.roles
        fields = {roles.identifier: pa.field(roles.identifier, pa.int64())}
        fields |= {name: kinds.field(name) for name in publisher.released}
        schema = pa.schema([fields[name] for name in roles.sort_columns(roles.record_type, fields)])
        jobs = {roles.record_type: self.placed.map(HomesPart(publisher, firsts), schema)}
        for i, (kind, flow) in enumerate(zip(source.linked, source.people, strict=True)):
            fields = {name: pa.field(name, pa.int64()) for name in (kind.identifier, kind.link) if name}
            fields |= {name: kinds.field(name) for name in kind.refilled}
            fields |= {name: flow.schema.field(name) for name in kind.variables}
            kernel = MembersPart(publisher, firsts, i, _first_numbers(self.members[i]))
            schema = pa.schema([fields[name] for name in roles.sort_columns(kind.record_type, fields)])
            jobs[kind.record_type] = self.placed.map(kernel, schema)
        return jobs

    def write_records(self) -> Microdata:
        """Write records and linked records with their new numbers."""
        if not self.source.work.microdata:
            return {}
        microdata: dict[str, pa.Table | pads.Dataset] = {}
        numbers = {kind.record_type: (kind.identifier, kind.link) for kind in self.source.linked}
        roles = self.source.frame.roles
        for name, job in self._plan_parts().items():
            own = name == roles.record_type
            step = report_steps(self.source.progress, "write" if own else f"write {name}")
            if self.out is None:
                microdata[name] = job.gather(step)
                continue
            ascending = (roles.identifier,) if own else numbers[name]
            microdata[name] = job.write(self.out, name, step, ascending=ascending)
        return microdata

    def discard(self) -> None:
        """Delete everything that was written."""
        if self.out is not None:
            for name in (self.source.frame.roles.record_type, *(k.record_type for k in self.source.linked)):
                path = path_in(self.out, name, ".parquet")
                if path.is_dir():
                    shutil.rmtree(path, ignore_errors=True)
                path.unlink(missing_ok=True)


def _first_numbers(rows: Sequence[int]) -> tuple[int, ...]:
    """Return the first new number of each part."""
    return tuple((1 + np.cumsum([0, *rows[:-1]])).tolist())


def _sum_lists(found: Sequence[dict[str, list[int]]], name: str, width: int) -> list[int]:
    return [sum(row[name][i] for row in found) for i in range(width)]


def _add_prints(found: pa.Table, number: int) -> list[Fingerprint]:
    return Fingerprint.sums(map(read_prints, found["prints"].to_pylist()), number)


def _add_digests(
    reader: Key,
    record_type: str,
    names: Sequence[str],
    found: pa.Table,
    schema: pa.Schema,
    values: Sequence[str],
) -> RecordDigest:
    """Add the sums of all batches into one digest."""
    sums = zip(found["sum"].to_pylist(), found["rows"].to_pylist(), strict=True)
    total = merge_digests(reader, sums, [schema.field(name).type for name in values])
    return RecordDigest(record_type, tuple(names), total)


def open_parts(
    law: MoveLaw,
    roles: Roles,
    census: "Census",
    engine: Engine,
    size: Size,
    progress: Progress,
    held: ExitStack,
    *,
    untouched: str,
    microdata: bool,
    along: bool,
) -> PartRecords:
    """Open the source; nothing is read yet.

    ``held`` drops the parts on disk at the end; ``untouched`` and ``microdata`` are settings of the swap; without ``along``
    linked records are skipped.
    """
    if not roles.identifier:
        raise InputError(
            f"{roles.record_type} records have no identifier",
            why="if a census does not fit in memory, only the identifier distinguishes records",
            fix=f'name a column of unique numbers or texts in census.toml: [record.{roles.record_type}] id = "…"',
        )
    record = census.schema.record(roles.record_type)
    only = find_release_rule(record, untouched)
    names = tuple(name for name in roles.columns_read if name != roles.identifier)
    raw = engine.records(census, roles.record_type, [roles.identifier, *names])
    identity = raw.schema.field(roles.identifier).type
    kinds = record.kinds if only is None else None
    work = Work(law=law, roles=roles, microdata=microdata, kinds=kinds, read=names)
    frame = work.frame(PartRows.of(_named_schema(raw.schema, roles.identifier, names).empty_table()))
    homes = raw.map(
        IdentifierWords(roles.identifier, frame.read, identity, only),
        _named_schema(raw.schema, roles.identifier, frame.read),
    )
    frame = replace(frame, only=only)
    linked = find_linked_types(census, roles) if along else ()
    scatter = Scatter.with_fixed_salts(len(names) + 1)
    people = []
    for kind in linked:
        own = engine.records(census, kind.record_type, [kind.link, *kind.variables])
        schema = _named_schema(own.schema, kind.link, kind.variables)
        flow = own.map(IdentifierWords(kind.link, kind.variables, identity), schema)
        people.append(
            _keep_members_of_released(homes, flow, frame, kind, engine, size, held, scatter) if only else flow
        )
    widest = max(len(names), *(len(kind.variables) for kind in linked), 1)
    return PartRecords(
        engine=engine,
        size=size,
        work=replace(work, read=frame.read),
        frame=frame,
        homes=homes,
        people=tuple(people),
        linked=linked,
        verifier=Verifier(frame.list_kept_tables(), Scatter.fresh(widest + 1), bool(linked)),
        scatter=scatter,
        progress=progress,
        held=held,
    )


def _named_schema(schema: pa.Schema, identifier: str, names: Sequence[str]) -> pa.Schema:
    return pa.schema([pa.field(identifier, pa.uint64()), *(schema.field(name) for name in names)])


def _keep_members_of_released(
    homes: Flow,
    people: Flow,
    frame: Frame,
    kind: LinkedType,
    engine: Engine,
    size: Size,
    held: ExitStack,
    scatter: Scatter,
) -> Flow:
    """Keep the linked records of released households, by one more exchange by identifier."""
    parts = size.count_parts(engine, size.homes + size.people)
    where, identifier = pa.field(PART_COLUMN, pa.int32()), frame.roles.identifier
    ids = pa.schema([homes.schema.field(identifier), where])
    sides = (
        homes.map(PartByValues((identifier,), parts, scatter, keep=(identifier,)), ids),
        people.map(PartByValues((kind.link,), parts, scatter), people.schema.append(where)),
    )
    met = engine.exchange(*sides, by=PART_COLUMN, parts=parts)
    found = met.map(MembersOfReleased(identifier, kind.link), people.schema).keep()
    held.callback(found.drop)
    met.drop()
    return found.flow()
