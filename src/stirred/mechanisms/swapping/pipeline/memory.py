"""A census that fits in memory: one part, held as a frame, without an exchange and without files of its own."""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pyarrow as pa

from stirred.arrow import pads
from stirred.chance import Key
from stirred.engine import Engine, Progress
from stirred.engine.local.released import ReleasedFile
from stirred.errors import DataError
from stirred.file_names import path_in
from stirred.mechanisms.swapping.pipeline.frame import Frame, count_repetitions, make_frame, require_unique
from stirred.mechanisms.swapping.pipeline.publish import OutputFingerprints, Publication, count_table
from stirred.mechanisms.swapping.pipeline.source import Microdata, StrataSummary, SwapLaw
from stirred.mechanisms.swapping.pipeline.survey import (
    ROWS_PER_DIGEST,
    HomeSurvey,
    InputFingerprints,
    MemberSurvey,
    SurveyPart,
    add_parts,
)
from stirred.mechanisms.swapping.pipeline.verify import Fingerprint, KeptReader, Scatter, Verifier, slice_rows
from stirred.mechanisms.swapping.records.columns import Column, encode_table, gather_columns
from stirred.mechanisms.swapping.records.digest import RecordDigest, seal_digest
from stirred.mechanisms.swapping.records.members import (
    Members,
    find_linked_types,
    group_members,
    require_owners,
)
from stirred.mechanisms.swapping.records.packing import lay_out_census
from stirred.mechanisms.swapping.records.participation import find_release_rule
from stirred.mechanisms.swapping.roles import Roles

if TYPE_CHECKING:
    from stirred.census import Census


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

    law: SwapLaw
    frame: Frame
    kept: KeptReader
    engine: Engine
    progress: Progress

    @staticmethod
    def of(
        law: SwapLaw, census: "Census", engine: Engine, progress: Progress, *, along: bool
    ) -> "MemoryRecords":
        """Read the census."""
        frame = law.prepare_frame(load_frame(census, law.roles(census), untouched=law.untouched, along=along))
        widest = max(len(frame.read), *(len(group.digits) for group in frame.members), 1)
        verifier = Verifier(frame.list_kept_tables(), Scatter.fresh(widest + 1), bool(frame.members))
        return MemoryRecords(law, frame, verifier.reader(frame.columns), engine, progress)

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
        found = StrataSummary(frame=self.frame, shapes=self.frame.shapes(), cells=tuple(numbers))
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
            if self.law.microdata:
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
