"""Hold the records of one part in memory, swap them, and publish them in a new order with new identifiers."""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from stirred._support import pads, path_in
from stirred.chance import Key
from stirred.chance.words import identifier_words
from stirred.engine import Engine, PartRows, Progress, silent
from stirred.engine.choice import find_bound, name_bound
from stirred.engine.tables import ROWS_PER_GROUP, ReleasedFile
from stirred.errors import DataError, InputError
from stirred.kernels import compile_kernel
from stirred.languages import Phrase, unit
from stirred.mechanisms.swap.config import Roles
from stirred.mechanisms.swap.fingerprints import (
    ROWS_PER_DIGEST,
    Fingerprint,
    HomeSurvey,
    InputFingerprints,
    KeptReader,
    KeptTable,
    MemberReader,
    MemberSurvey,
    RecordDigest,
    Scatter,
    SurveyPart,
    Verifier,
    add_parts,
    seal_digest,
    slice_rows,
)
from stirred.mechanisms.swap.moves import Moves, assign_canonical_ids, shuffle_rows
from stirred.mechanisms.swap.records import (
    Column,
    Members,
    ReleaseRule,
    Stay,
    encode_table,
    find_linked_types,
    find_release_rule,
    find_stay,
    gather_columns,
    group_members,
    lay_out_census,
    pack_columns,
    require_owners,
)
from stirred.mechanisms.swap.strata import Shapes, StratumCodes, count_shapes, form_strata

if TYPE_CHECKING:
    from stirred.census import Census
    from stirred.census.schema import Kinds


# Estimate the memory of a swap from counts and types, before records are read.

OVERHEAD_BYTES = (
    32  # bytes a record in memory beside its own columns: identifiers, strata, order, swapped columns
)
TEXT_BYTES = 16  # bytes of a text when it is exchanged
TEXT_ID_BYTES = 64  # bytes more in memory where identifiers are texts, all of them different
MAX_RECORDS_PER_PART = 1 << 25  # records of a part: Arrow counts the bytes of a column of text in 32 bits
CODE_BYTES = 4  # bytes of a text in memory, where it is a position in a list of values
# What was measured beside the records: strata and order while they are made, and row groups on their way to a file.
WORKING_PART = 3  # a third of the bytes of the records
ROWS_ON_THEIR_WAY, BYTES_ON_THEIR_WAY = 1 << 21, 250  # at most so many rows, of so many bytes each


@dataclass(frozen=True, slots=True)
class Size:
    """The bytes of all records in memory, and of records and linked records in an exchange, with working space."""

    memory: int
    homes: int
    people: int
    rows: int  # of the record type that has most
    widths: tuple[
        int, ...
    ]  # bytes of one record when it is exchanged, of the swapped type and of each linked one

    def count_parts(self, engine: Engine, size: int) -> int:
        """Return the number of parts for that many bytes, enough that text columns do not overflow."""
        return max(engine.parts_for(size), -(-self.rows // MAX_RECORDS_PER_PART))

    def count_published_parts(self, engine: Engine, released: Sequence[int]) -> int:
        """Return the number of parts of released records, from their numbers, which are invariants."""
        size = sum(width * rows for width, rows in zip(self.widths, released, strict=True))
        return max(engine.parts_for(size), -(-max(released) // MAX_RECORDS_PER_PART))


def estimate_size(census: "Census", roles: Roles) -> Size:
    """Estimate the size from the number of records and the width of their columns."""
    rows = census.count(roles.record_type)
    kind = census.scan(roles.record_type).collect_schema().get(roles.identifier)
    named = TEXT_ID_BYTES if kind == pl.String else 0
    homes = rows * (
        _row_bytes(census, roles.record_type, roles.columns_read, CODE_BYTES) + OVERHEAD_BYTES + named
    )
    widths = [_row_bytes(census, roles.record_type, roles.columns_read, TEXT_BYTES) + OVERHEAD_BYTES]
    along, people, most = 0, 0, rows
    for record_type, variables in roles.members:
        names = [census.schema.record(record_type).household, *variables]
        members = census.count(record_type)
        most = max(most, members)
        # members lie in memory in whole words
        along += members * (
            8 * (-(-_row_bytes(census, record_type, variables, CODE_BYTES) // 8)) + CODE_BYTES
        )
        widths.append(_row_bytes(census, record_type, names, TEXT_BYTES) + OVERHEAD_BYTES)
        people += members * widths[-1]
    working = (homes + along) // WORKING_PART + min(most, ROWS_ON_THEIR_WAY) * BYTES_ON_THEIR_WAY
    return Size(
        memory=homes + along + working,
        homes=rows * widths[0],
        people=people,
        rows=most,
        widths=tuple(widths),
    )


def _row_bytes(census: "Census", record_type: str, names: Sequence[str], text: int) -> int:
    kinds = census.scan(record_type).collect_schema()
    return sum(_value_bytes(kinds.get(name), text) for name in names)


def _value_bytes(kind: pl.DataType | None, text: int) -> int:
    if kind is None:
        return 8  # a column of another record type, not looked up for this
    if kind.is_integer():
        return {8: 1, 16: 2, 32: 4}.get(int("".join(filter(str.isdigit, str(kind)))), 8)
    return text if kind in (pl.String, pl.Categorical, pl.Enum) else 8


# What a stratum takes while it is swapped: it is never divided, and of its records only the codes are held.

TEXT_CODE_BYTES, CODED_BYTES = 8, 4  # of a text, or of anything else that is coded, while its codes are made
LEFT_OVER = (5, 4)  # what the allocator keeps of memory that was used and is free


def weigh_records(rows: PartRows) -> int:
    """Return about how many bytes the codes of some records take, with strata, order and swapped columns.

    >>> schema = pa.schema([("id", pa.uint64()), ("state", pa.string()), ("size", pa.int8())])
    >>> weigh_records(PartRows(schema, 1000, lambda: iter(())))
    61250
    """
    each = OVERHEAD_BYTES
    for kind in rows.schema.types:
        if pa.types.is_integer(kind):
            each += kind.bit_width // 8
        else:
            each += TEXT_CODE_BYTES if pa.types.is_string(kind) else CODED_BYTES
    return rows.number * each * LEFT_OVER[0] // LEFT_OVER[1]


def require_room_for_strata(engine: Engine, roles: Roles, largest: int) -> None:
    """Raise an error where the largest part of whole strata takes more bytes than the bound; no key exists yet."""
    bound = find_bound(engine)
    if bound is None or largest <= bound:
        return
    records, match = unit(roles.record_type, "records"), ", ".join(roles.match) or "nothing"
    raise InputError(
        f"the largest stratum takes {largest / 1e9:.2f} GB of memory; the bound leaves {bound / 1e9:.2f} GB",
        why=f"{records} that agree on {match} are swapped together: a stratum is never divided",
        fix=f'name more match variables, or a larger bound: memory = "{name_bound(largest)}"',
    )


# The records of one part of a swap in memory: columns, identifiers, strata and the linked members.


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

    def shapes(self, *, most_types: int = 0) -> Shapes:
        """Count the shapes of the strata; with linked members, records are assumed to differ (their persons usually do)."""
        hold = None if self.roles.members else self.of(self.roles.hold)
        return count_shapes(self.strata, hold, self.of(self.roles.moving_variables), most_types=most_types)


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


# Publish swapped records with a new order and new identifiers, so that nothing of the input's order remains.
#
# Each function takes one part: all records in memory, or a part of the published order. Parts one after the other are
# the published order, so only the numbers of the first records differ.

ColumnsAndLog = tuple[
    dict[str, Column], Mapping[str, pa.Table]
]  # columns after a draw, and what only the office may know


def apply_moves(frame: Frame, moves: Moves, engine: Engine) -> dict[str, Column]:
    """Return the columns after the swap: the moving ones permuted together, all others unchanged."""
    moving = list(frame.roles.moving_variables)
    done = engine.map(lambda name: moves.apply(frame.columns[name].codes), moving)
    moved = {
        name: replace(frame.columns[name], codes=codes) for name, codes in zip(moving, done, strict=True)
    }
    return {**frame.columns, **moved}


@dataclass(slots=True)
class OutputFingerprints:
    """The fingerprints of what is published, in the order of those of the input."""

    homes: list[Fingerprint]
    people: list[Fingerprint] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """The swapped records of one part in their published order."""

    roles: Roles
    released: tuple[str, ...]
    read: tuple[str, ...]  # the released variables, and those that decide who takes part
    columns: dict[str, Column]
    ids: NDArray[np.uint64]  # in the published order, where linked records move along; else empty
    order: NDArray[np.uint32]
    members: tuple[Members, ...]
    engine: Engine

    @staticmethod
    def of(frame: Frame, columns: dict[str, Column], run: Key, engine: Engine) -> "Publication":
        """Put the records of a frame in their published order."""
        order = shuffle_rows(run, frame.ids, engine)
        return Publication(
            roles=frame.roles,
            released=frame.roles.released_variables,
            read=frame.read,
            columns=columns,
            ids=frame.ids[order] if frame.members else frame.ids[:0],
            order=order,
            members=frame.members,
            engine=engine,
        )

    def _batch_homes(
        self, names: Sequence[str], progress: Progress
    ) -> Iterator[tuple[int, dict[str, Column]]]:
        """Iterate over row groups in the published order, each with the position of its first row."""
        for start in range(0, max(self.order.size, 1), ROWS_PER_GROUP):
            rows = self.order[start : start + ROWS_PER_GROUP]
            progress("reorder", start, self.order.size)
            columns = self.engine.map(lambda name: self.columns[name].take_rows(rows), list(names))  # noqa: B023
            yield start, dict(zip(names, columns, strict=True))

    def _add_prints(
        self, start: int, taken: dict[str, Column], kept: KeptReader, after: OutputFingerprints
    ) -> None:
        ids = self.ids[start : start + ROWS_PER_GROUP]
        for part in slice_rows(min(ROWS_PER_GROUP, self.order.size - start)):
            found = kept.prints(taken, part, ids[part])
            after.homes = [a + b for a, b in zip(after.homes, found, strict=True)]

    def take_fingerprints(self, kept: KeptReader, after: OutputFingerprints) -> None:
        """Take the fingerprints of all that would be written."""
        for start, taken in self._batch_homes(self.read, silent):
            self._add_prints(start, taken, kept, after)
        for group in self.members:
            reader, seen = MemberReader.of(kept.verifier.scatter, group), Fingerprint()
            for owner, packed in group.batches(self.order):
                seen += reader.prints(group.codes(packed), self.ids[owner])
            after.people.append(seen)

    def home_batches(
        self,
        *,
        first: int = 1,
        kept: KeptReader | None = None,
        after: OutputFingerprints,
        progress: Progress = silent,
    ) -> Iterator[pa.RecordBatch]:
        """Iterate over records by row group, numbered from ``first``; with ``kept``, take their fingerprints."""
        for start, taken in self._batch_homes(self.released if kept is None else self.read, progress):
            if kept is not None:
                progress("verify", start, self.order.size)
                self._add_prints(start, taken, kept, after)
            progress("write", start, self.order.size)
            arrays = {name: taken[name].arrow() for name in self.released}
            rows = min(ROWS_PER_GROUP, self.order.size - start)
            if self.roles.identifier:
                fresh = pa.array(np.arange(first + start, first + start + rows, dtype=np.int64))
                arrays = {self.roles.identifier: fresh, **arrays}
            yield self._batch_columns(self.roles.record_type, arrays)
            progress("write", start + rows, self.order.size)

    def member_batches(
        self,
        group: Members,
        *,
        first_home: int = 1,
        first: int = 1,
        scatter: Scatter | None = None,
        after: OutputFingerprints,
    ) -> Iterator[pa.RecordBatch]:
        """Iterate over members in the published order of households, linked by the new identifier."""
        reader = None if scatter is None else MemberReader.of(scatter, group)
        seen = Fingerprint()
        kind = group.kind
        for owner, packed in group.batches(self.order):
            codes = group.codes(packed)
            if reader is not None:
                seen += reader.prints(codes, self.ids[owner])
            arrays: dict[str, pa.Array] = {}
            if kind.identifier:
                arrays[kind.identifier] = pa.array(np.arange(first, first + owner.size, dtype=np.int64))
            arrays[kind.link] = pa.array(owner + first_home)
            for name in kind.refilled:
                arrays[name] = self.columns[name].take_rows(self.order[owner]).arrow()
            arrays |= group.arrays(codes)
            first += owner.size
            yield self._batch_columns(kind.record_type, arrays)
        after.people.append(seen)

    def _batch_columns(self, record_type: str, arrays: Mapping[str, pa.Array]) -> pa.RecordBatch:
        names = self.roles.sort_columns(record_type, arrays)
        return pa.RecordBatch.from_arrays([arrays[name] for name in names], names)


def count_table(
    columns: dict[str, Column], names: Sequence[str], counts: NDArray[np.int64] | None = None
) -> pa.Table:
    """Return the contingency table of some variables, sorted, without zeros; ``counts`` weights the rows."""
    chosen = [columns[name] for name in names]
    packed = pack_columns(chosen)
    if not packed:
        return pa.table({"count": pa.array([], pa.int64())})
    numbers = np.stack([digits.numbers() for digits in packed], axis=1)
    by = numbers[:, 0] if numbers.shape[1] == 1 else numbers
    axis = None if by.ndim == 1 else 0
    if counts is None:
        _, first, totals = np.unique(by, axis=axis, return_index=True, return_counts=True)
    else:
        _, first, places = np.unique(by, axis=axis, return_index=True, return_inverse=True)
        totals = np.zeros(first.size, np.int64)
        np.add.at(totals, places.ravel(), counts)
    rows = first.astype(np.uint32)
    return pa.table(
        {**{column.name: column.take_rows(rows).arrow() for column in chosen}, "count": pa.array(totals)}
    )


# What a release asks of the records, wherever they lie, and of the law of moves, whatever it is.

Microdata = Mapping[str, "pa.Table | pads.Dataset"]


class MoveLaw(Protocol):
    """How records change places: all that the pipeline asks of a mechanism, and nothing that it promises.

    A law travels to the workers of an engine, so it can be pickled, and its draw depends on the run's key alone.
    """

    def adjust_roles(self, roles: Roles, census: "Census") -> Roles:
        """Return the roles with the variables that the draw reads and the release does not show."""
        ...

    def named_levels(self) -> Mapping[str, Sequence[str]]:
        """Return the levels that the settings name, by variable; one that does not exist is refused."""
        ...

    @property
    def variables_needing_all_levels(self) -> tuple[str, ...]:
        """Return the variables for which the draw needs all levels that occur in the census."""
        ...

    @property
    def most_types_counted(self) -> int:
        """Return up to how many types of a stratum its promise counts one by one; 0 where it needs no more than two."""
        ...

    def prepare_frame(self, frame: Frame) -> Frame:
        """Return the frame as this law uses it, such as with other strata; refuse variables that it cannot use."""
        ...

    def partition_variables(self, frame: Frame) -> tuple[str, ...]:
        """Return the columns to partition by; a draw is independent across their values."""
        ...

    def draw_swap(self, frame: Frame, run: Key, engine: Engine) -> dict[str, Column]:
        """Draw once and return the columns after the swap."""
        ...

    def draw_and_log(self, frame: Frame, run: Key, engine: Engine) -> ColumnsAndLog:
        """Draw once and return the columns after the swap and the confidential log of the draw."""
        ...

    def finish_table(self, cells: pa.Table, run: Key) -> pa.Table:
        """Return the contingency table to publish, from the non-empty cells of the swapped records."""
        ...

    def highest_rate(self) -> float:
        """Return the largest share of records that is expected to move, which the guard against reversal assumes."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class StrataSummary:
    """All strata of the census, counted once; the promise follows from them."""

    frame: Frame  # roles and records that stay; without records where these lie in parts
    shapes: Shapes
    cells: tuple[int, ...]  # of each kept table; none where nothing is verified


class SwappedRecords(Protocol):
    """The records after the draw."""

    @property
    def after(self) -> OutputFingerprints:
        """Return the fingerprints of what is published."""
        ...

    def table(self, by: tuple[str, ...]) -> pa.Table:
        """Return the contingency table of some variables, sorted."""
        ...

    def write_records(self) -> Microdata:
        """Write the records if that is not done yet, and return them by record type."""
        ...

    @property
    def internal(self) -> Mapping[str, pa.Table]:
        """Return the confidential log of the draw, written to packet/internal only."""
        ...


class RecordSource(Protocol):
    """The records of one release: one part in memory, or parts on an engine."""

    def survey(self, reader: Key) -> InputFingerprints:
        """Read all records once and return their digest and fingerprints."""
        ...

    def count_strata(self, *, cells: bool) -> StrataSummary:
        """Count the strata, and the ``cells`` of the kept tables where they will be verified."""
        ...

    def draw_swap(
        self, run: Key, before: InputFingerprints, out: Path | None
    ) -> AbstractContextManager[SwappedRecords]:
        """Draw, and publish in ``out`` (None: in memory); what was written is deleted if an error occurs in the block."""
        ...


# A census that fits in memory: one part, held as a frame, without an exchange and without files of its own.


def load_frame(census: "Census", roles: Roles, *, untouched: str, along: bool = True) -> Frame:
    """Read once what a swap needs; without ``along``, linked records are skipped, because no promise depends on them."""
    columns = gather_columns(census, roles.record_type, roles.columns_read)
    rows = next(iter(columns.values())).codes.size
    if rows >= 2**32 - 1:
        raise DataError("too many records for one swap", why="row numbers have 32 bits", fix="swap by state")
    record = census.schema.record(roles.record_type)
    frame = make_frame(columns, roles, record.kinds, only=find_release_rule(record, untouched))
    del columns
    if roles.identifier:
        require_unique(roles, count_repetitions(frame.ids))
    groups = []
    for kind in find_linked_types(census, roles) if along else ():
        group = group_members(
            kind,
            lambda names: census.batches(kind.record_type, list(names)),  # noqa: B023
            lay_out_census(census, kind.record_type, kind.read),
            frame.columns[roles.identifier],
            some_dropped=frame.only is not None,
        )
        if frame.only is None:
            require_owners(group.lost)
        groups.append(group)
    return replace(frame, members=tuple(groups))


def outline_frame(census: "Census", roles: Roles) -> Frame:
    """Return the frame of a census without its records, which is enough to refuse a choice of variables."""
    head = census.scan(roles.record_type, list(roles.columns_read)).limit(0).collect()
    table = pl.DataFrame(head).to_arrow(compat_level=pl.CompatLevel.oldest())
    return make_frame(
        encode_table(table, roles.columns_read), roles, census.schema.record(roles.record_type).kinds
    )


@dataclass(frozen=True, slots=True)
class MemoryRecords:
    """The records of a census in memory."""

    law: MoveLaw
    frame: Frame
    kept: KeptReader
    engine: Engine
    progress: Progress
    microdata: bool  # whether records are released

    @staticmethod
    def of(
        law: MoveLaw, frame: Frame, engine: Engine, progress: Progress, *, microdata: bool
    ) -> "MemoryRecords":
        """Prepare the records of a frame to be verified."""
        widest = max(len(frame.read), *(len(group.digits) for group in frame.members), 1)
        verifier = Verifier(frame.list_kept_tables(), Scatter.fresh(widest + 1), bool(frame.members))
        return MemoryRecords(law, frame, verifier.reader(frame.columns), engine, progress, microdata)

    def survey(self, reader: Key) -> InputFingerprints:
        """Digest all records and take their fingerprints, in slices."""
        frame = self.frame
        homes = HomeSurvey.of(reader, frame.columns, frame.ids, frame.read, self.kept)
        parts = self.engine.map(homes.digest_slice, slice_rows(frame.rows, ROWS_PER_DIGEST))
        total, prints = add_parts(reader, parts, self.kept.verifier.number)
        own = RecordDigest(frame.roles.record_type, frame.read, total)
        along, people = [], []
        for group in frame.members:
            total, found = add_parts(reader, self._survey_members(reader, group), 1)
            names = (group.kind.link, *group.kind.read)
            along.append(RecordDigest(group.kind.record_type, names, total))
            people += found
        return InputFingerprints(digest=seal_digest(reader, own, along), homes=prints, people=people)

    def _survey_members(self, reader: Key, group: Members) -> Iterator[SurveyPart]:
        survey = MemberSurvey.of_members(reader, group, self.kept.verifier.scatter)

        def some(homes: slice) -> SurveyPart:
            starts = group.starts[homes.start : homes.stop + 1]
            owners = np.repeat(self.frame.ids[homes], np.diff(starts))
            return survey.digest_slice(group.codes(group.words[starts[0] : starts[-1]]), owners)

        return self.engine.map(some, slice_rows(self.frame.rows, ROWS_PER_DIGEST))

    def count_strata(self, *, cells: bool) -> StrataSummary:
        """Count the strata of the one part."""
        self.progress("strata", 0, 1)
        numbers = self.kept.cells(self.frame.columns, self.frame.rows) if cells else ()
        shapes = self.frame.shapes(most_types=self.law.most_types_counted)
        found = StrataSummary(frame=self.frame, shapes=shapes, cells=tuple(numbers))
        self.progress("strata", 1, 1)
        return found

    @contextmanager
    def draw_swap(
        self, run: Key, before: InputFingerprints, out: Path | None
    ) -> Iterator["MemorySwappedRecords"]:
        """Draw, then write and verify in one pass over the published order."""
        del before
        self.progress("swap", 0, 1)
        columns, internal = self.law.draw_and_log(self.frame, run, self.engine)
        # the number of moved records is not part of the output: it is not counted, logged or published
        self.progress("swap", 1, 1)
        destinations: list[Destination] = []
        after = OutputFingerprints([Fingerprint() for _ in range(self.kept.verifier.number)])
        try:
            if self.microdata:
                microdata = self._publish(columns, run, out, after, destinations)
            else:
                microdata = {}
                for rows in slice_rows(self.frame.rows):
                    found = self.kept.prints(columns, rows, self.frame.ids[rows])
                    after.homes = [a + b for a, b in zip(after.homes, found, strict=True)]
            yield MemorySwappedRecords(columns, after, microdata, internal)
        except BaseException:
            for destination in destinations:
                destination.discard()
            raise

    def _publish(
        self,
        columns: dict[str, Column],
        run: Key,
        out: Path | None,
        after: OutputFingerprints,
        destinations: list["Destination"],
    ) -> dict[str, "pa.Table | pads.Dataset"]:
        """Write the records in their published order, and make the fingerprints of what is written."""
        roles = self.frame.roles
        self.progress("order", 0, 1)
        publication = Publication.of(self.frame, columns, run, self.engine)
        self.progress("order", 1, 1)
        destinations.append(Destination(out, roles.record_type, [roles.identifier]))
        for batch in publication.home_batches(kept=self.kept, after=after, progress=self.progress):
            destinations[-1].add(batch)
        microdata = {roles.record_type: destinations[-1].close()}
        for group in self.frame.members:
            kind, done = group.kind, 0
            destinations.append(Destination(out, kind.record_type, [kind.identifier, kind.link]))
            for batch in publication.member_batches(group, scatter=self.kept.verifier.scatter, after=after):
                destinations[-1].add(batch)
                done += batch.num_rows
                self.progress(f"write {kind.record_type}", done, group.words.shape[0])
            microdata[kind.record_type] = destinations[-1].close()
        return microdata


@dataclass(frozen=True, slots=True)
class MemorySwappedRecords:
    """Swapped records in memory, already written."""

    columns: dict[str, Column]
    after: OutputFingerprints
    microdata: Microdata
    internal: Mapping[str, pa.Table]

    def table(self, by: tuple[str, ...]) -> pa.Table:
        """Return the contingency table of some variables, sorted."""
        return count_table(self.columns, by)

    def write_records(self) -> Microdata:
        """Return the records, which are already written."""
        return self.microdata


class Destination:
    """Collect the batches of one record type in memory, or write them to a Parquet file in a thread."""

    def __init__(self, out: Path | None, name: str, ascending: Sequence[str] = ()) -> None:
        self.ascending = ascending
        self.path = None if out is None else path_in(out, name, ".parquet")
        self.batches: list[pa.RecordBatch] = []
        self.file: ReleasedFile | None = None
        self.hand = ThreadPoolExecutor(1)  # one thread: batches are written in the order in which they arrive
        self.writing: Future[None] | None = None

    def add(self, batch: pa.RecordBatch) -> None:
        """Add one batch; its schema has no metadata of the input."""
        if self.path is None:
            self.batches.append(batch)
            return
        if self.file is None:
            self.file = ReleasedFile(self.path, batch.schema, self.ascending)
        self._finish()  # never more than one batch waits in memory
        self.writing = self.hand.submit(self.file.add, pa.Table.from_batches([batch]))

    def _finish(self) -> None:
        if self.writing is not None:
            self.writing.result()
            self.writing = None

    def close(self) -> "pa.Table | pads.Dataset":
        """Finish writing and return all that was written."""
        if self.path is None:
            return pa.Table.from_batches(self.batches)
        self._finish()
        self.hand.shutdown()
        if self.file is not None:
            self.file.close()
        return pads.dataset(self.path)

    def discard(self) -> None:
        """Delete everything that was written."""
        self.hand.shutdown()
        if self.file is not None:
            self.file.writer.close()
        if self.path is not None:
            self.path.unlink(missing_ok=True)
