"""A census that does not fit in memory or is stored on a cluster: its records in flows and parts of an engine.

The records are read once for the digest and the fingerprints, exchanged by their match variables so that every stratum
is complete in one part, swapped part by part, and exchanged again by the words that order the publication. Every random
word is named by the identifier of a record, so parts change nothing: the bytes are those of the swap in memory.
"""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stirred.arrow import pads
from stirred.chance import Key
from stirred.engine import Engine, Flow, Parts, Progress, Steps
from stirred.errors import DataError, InputError
from stirred.file_names import path_in
from stirred.mechanisms.swapping.budget.shapes import NUMBER_COLUMNS, Shapes
from stirred.mechanisms.swapping.pipeline import batch_kernels, part_kernels
from stirred.mechanisms.swapping.pipeline.batch_kernels import (
    PART_COLUMN,
    SURVEY_SCHEMA,
    PartByOrder,
    PartByValues,
    Work,
    read_prints,
)
from stirred.mechanisms.swapping.pipeline.frame import Frame, require_unique
from stirred.mechanisms.swapping.pipeline.part_kernels import PRINTS_SCHEMA, STRATA_SCHEMA, Publisher
from stirred.mechanisms.swapping.pipeline.publish import OutputFingerprints, count_table
from stirred.mechanisms.swapping.pipeline.source import Microdata, StrataSummary, SwapLaw
from stirred.mechanisms.swapping.pipeline.survey import InputFingerprints
from stirred.mechanisms.swapping.pipeline.verify import Fingerprint, Scatter, Verifier
from stirred.mechanisms.swapping.records.columns import encode_table
from stirred.mechanisms.swapping.records.digest import RecordDigest, merge_digests, seal_digest
from stirred.mechanisms.swapping.records.members import (
    LinkedType,
    find_linked_types,
    require_links,
    require_owners,
)
from stirred.mechanisms.swapping.records.participation import find_release_rule
from stirred.mechanisms.swapping.records.size import Size

if TYPE_CHECKING:
    from stirred.census import Census


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
        found = self.homes.map(
            batch_kernels.SurveyHomes(reader, self.work, self.verifier), SURVEY_SCHEMA
        ).gather()
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
            kernel = batch_kernels.SurveyMembers(reader, kind, self.verifier.scatter)
            found = flow.map(kernel, SURVEY_SCHEMA).gather()
            require_links(pc.sum(found["empty"]).as_py() or 0)
            names = (kind.link, *kind.variables)
            along.append(_add_digests(reader, kind.record_type, names, found, flow.schema, kind.variables))
            people += _add_prints(found, 1)
        return InputFingerprints(digest=seal_digest(reader, own, along), homes=homes, people=people)

    def count_strata(self, *, cells: bool) -> StrataSummary:
        """Count the strata, part by part."""
        kernel = part_kernels.StrataPart(self.work, self.verifier if cells else None)
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
            shapes=Shapes.join_parts(shapes),
            cells=tuple(_sum_lists(found, "cells", len(self.verifier.tables) if cells else 0)),
        )

    def _exchange_strata(self) -> Parts:
        """Exchange the records once into parts with complete strata."""
        if self.strata is None:
            parts = self.size.count_parts(self.engine, self.size.homes)
            by = PartByValues(self.work.law.partition_variables(self.frame), parts, self.scatter)
            flow = self.homes.map(by, self._exchange_schema)
            self.strata = self.engine.exchange(flow, by=PART_COLUMN, parts=parts).keep()
            self.held.callback(self.strata.drop)
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
        strata, work, law = self._exchange_strata(), self._add_levels(), self.work.law
        rows = [before.homes[0].rows, *(group.rows for group in before.people)]
        number = self.size.count_published_parts(self.engine, rows) if law.microdata else 1
        swapped = strata.map(part_kernels.SwapPart(work, run, number), self._exchange_schema)
        publisher = Publisher(
            work=work, run=run, released=self.frame.roles.released_variables, linked=self.linked
        )
        if law.microdata:
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
            looked = placed.map(part_kernels.FingerprintPart(publisher, self.verifier), PRINTS_SCHEMA)
        else:
            placed = swapped.keep(report_steps(self.progress, "swap"))
            self.held.callback(placed.drop)
            looked = placed.map(part_kernels.FingerprintSwapped(work, self.verifier), PRINTS_SCHEMA)
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
            found = self.homes.map(batch_kernels.DistinctLevels((name,)), schema).gather().column(0).unique()
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
        cells = self.placed.map(part_kernels.CountPart(by), schema).gather()
        return count_table(encode_table(cells, by), by, cells["count"].to_numpy())

    def _plan_parts(self) -> dict[str, Parts]:
        """Return the published parts of each record type."""
        source, publisher = self.source, self.publisher
        firsts, kinds = _first_numbers(self.rows), source.homes.schema
        number = pa.field(source.frame.roles.identifier, pa.int64())
        schema = pa.schema([number, *(kinds.field(name) for name in publisher.released)])
        homes = self.placed.map(part_kernels.HomesPart(publisher, firsts), schema)
        jobs = {source.frame.roles.record_type: homes}
        for i, (kind, flow) in enumerate(zip(source.linked, source.people, strict=True)):
            fields = {name: pa.field(name, pa.int64()) for name in (kind.identifier, kind.link) if name}
            fields |= {name: kinds.field(name) for name in kind.refilled}
            fields |= {name: flow.schema.field(name) for name in kind.variables}
            kernel = part_kernels.MembersPart(publisher, firsts, i, _first_numbers(self.members[i]))
            jobs[kind.record_type] = self.placed.map(kernel, pa.schema(list(fields.values())))
        return jobs

    def write_records(self) -> Microdata:
        """Write records and linked records with their new numbers."""
        if not self.source.work.law.microdata:
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
    law: SwapLaw,
    census: "Census",
    engine: Engine,
    size: Size,
    progress: Progress,
    held: ExitStack,
    *,
    along: bool,
) -> PartRecords:
    """Open the source; nothing is read yet. Not ``along``: without linked records."""
    roles = law.roles(census)
    if not roles.identifier:
        raise InputError(
            f"{roles.record_type} records have no identifier",
            why="if a census does not fit in memory, only the identifier distinguishes records",
            fix=f'name a column of unique numbers or texts in census.toml: [record.{roles.record_type}] id = "…"',
        )
    record = census.schema.record(roles.record_type)
    only = find_release_rule(record, law.untouched)
    names = tuple(name for name in roles.columns_read if name != roles.identifier)
    raw = engine.records(census, roles.record_type, [roles.identifier, *names])
    identity = raw.schema.field(roles.identifier).type
    work = Work(law=law, roles=roles, kinds=record.kinds if only is None else None, read=names)
    frame = work.frame(_named_schema(raw.schema, roles.identifier, names).empty_table())
    homes = raw.map(
        batch_kernels.IdentifierWords(roles.identifier, frame.read, identity, only),
        _named_schema(raw.schema, roles.identifier, frame.read),
    )
    frame = replace(frame, only=only)
    linked = find_linked_types(census, roles) if along else ()
    scatter = Scatter.with_fixed_salts(len(names) + 1)
    people = []
    for kind in linked:
        own = engine.records(census, kind.record_type, [kind.link, *kind.variables])
        schema = _named_schema(own.schema, kind.link, kind.variables)
        flow = own.map(batch_kernels.IdentifierWords(kind.link, kind.variables, identity), schema)
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
    found = met.map(part_kernels.MembersOfReleased(identifier, kind.link), people.schema).keep()
    held.callback(found.drop)
    met.drop()
    return found.flow()
