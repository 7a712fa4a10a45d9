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
from stirred.mechanisms.swapping.budget.shapes import NUMBERS, Shapes
from stirred.mechanisms.swapping.pipeline import batch_kernels, part_kernels
from stirred.mechanisms.swapping.pipeline.batch_kernels import (
    PART,
    SURVEYED,
    ByOrder,
    ByValues,
    Work,
    prints_of,
)
from stirred.mechanisms.swapping.pipeline.frame import Frame, require_unique
from stirred.mechanisms.swapping.pipeline.part_kernels import LOOKED, STATED, Publisher
from stirred.mechanisms.swapping.pipeline.publish import After, table
from stirred.mechanisms.swapping.pipeline.source import Microdata, StatedStrata, SwapLaw
from stirred.mechanisms.swapping.pipeline.survey import Before
from stirred.mechanisms.swapping.pipeline.verify import Fingerprint, Scatter, Verifier
from stirred.mechanisms.swapping.records.columns import of_table
from stirred.mechanisms.swapping.records.digest import Digested, merged, sealed
from stirred.mechanisms.swapping.records.members import (
    LinkedType,
    linked_types,
    require_links,
    require_owners,
)
from stirred.mechanisms.swapping.records.participation import released
from stirred.mechanisms.swapping.records.size import Size

if TYPE_CHECKING:
    from stirred.census import Census


def steps(progress: Progress, step: str) -> Steps:
    """Progress of one step, as an engine reports it."""
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

    def survey(self, reader: Key) -> Before:
        """Read all records once, batch by batch."""
        identifier, read = self.frame.roles.identifier, self.work.read
        found = self.homes.map(
            batch_kernels.SurveyHomes(reader, self.work, self.verifier), SURVEYED
        ).gathered()
        if pc.sum(found["empty"]).as_py():
            raise DataError(
                f"{identifier} is empty in some records",
                why="an identifier names one record",
                fix="fill the identifier in these records",
            )
        own = _digested(reader, self.frame.roles.record_type, read, found, self.homes.schema, read)
        homes = _added(found, self.verifier.number)
        along, people = [], []
        for flow, kind in zip(self.people, self.linked, strict=True):
            kernel = batch_kernels.SurveyMembers(reader, kind, self.verifier.scatter)
            found = flow.map(kernel, SURVEYED).gathered()
            require_links(pc.sum(found["empty"]).as_py() or 0)
            names = (kind.link, *kind.variables)
            along.append(_digested(reader, kind.record_type, names, found, flow.schema, kind.variables))
            people += _added(found, 1)
        return Before(digest=sealed(reader, own, along), homes=homes, people=people)

    def stated(self, *, cells: bool) -> StatedStrata:
        """Count the strata, part by part."""
        kernel = part_kernels.StatePart(self.work, self.verifier if cells else None)
        found = self._exchanged().map(kernel, STATED).gathered(steps(self.progress, "strata")).to_pylist()
        records = _sums(found, "stays", len(self.frame.stays))
        stays = (replace(stay, records=n) for stay, n in zip(self.frame.stays, records, strict=True))
        shapes = (
            Shapes(
                **{name: np.array(row[name], np.int64) for name in NUMBERS},
                margins=np.array(row["margins"], np.object_),
            )
            for row in found
        )
        return StatedStrata(
            frame=replace(self.frame, stays=tuple(stays)),
            shapes=Shapes.joined(shapes),
            cells=tuple(_sums(found, "cells", len(self.verifier.tables) if cells else 0)),
        )

    def _exchanged(self) -> Parts:
        """Records in parts with complete strata, exchanged once."""
        if self.strata is None:
            parts = self.size.parts(self.engine, self.size.homes)
            by = ByValues(self.work.law.meeting(self.frame), parts, self.scatter)
            flow = self.homes.map(by, self._travelling)
            self.strata = self.engine.exchange(flow, by=PART, parts=parts).kept()
            self.held.callback(self.strata.drop)
        return self.strata

    @property
    def _travelling(self) -> pa.Schema:
        """The columns of records between two exchanges."""
        return self.homes.schema.append(pa.field(PART, pa.int32()))

    @contextmanager
    def swapped(self, run: Key, before: Before, out: Path | None) -> Iterator["PartSwapped"]:
        """Draw part by part, exchange by the published order, and verify; records are written when they are asked for."""
        strata, work, law = self._exchanged(), self._knowing_levels(), self.work.law
        rows = [before.homes[0].rows, *(group.rows for group in before.people)]
        number = self.size.published(self.engine, rows) if law.microdata else 1
        swapped = strata.map(part_kernels.SwapPart(work, run, number), self._travelling)
        publisher = Publisher(work=work, run=run, released=self.frame.roles.released, linked=self.linked)
        if law.microdata:
            self.progress("swap", 0, 1)
            people = [
                flow.map(ByOrder(kind.link, number, run), flow.schema.append(pa.field(PART, pa.int32())))
                for flow, kind in zip(self.people, self.linked, strict=True)
            ]
            placed = self.engine.exchange(swapped.flow(), *people, by=PART, parts=number).kept()
            self.held.callback(placed.drop)
            strata.drop()
            self.progress("swap", 1, 1)
            looked = placed.map(part_kernels.LookPart(publisher, self.verifier), LOOKED)
        else:
            placed = swapped.kept(steps(self.progress, "swap"))
            self.held.callback(placed.drop)
            looked = placed.map(part_kernels.LookSwapped(work, self.verifier), LOOKED)
        found = looked.gathered(steps(self.progress, "verify")).to_pylist()
        seen = PartSwapped(self, placed, publisher, found, out)
        try:
            seen.require_sound()
            yield seen
        except BaseException:
            seen.discard()
            raise

    def _knowing_levels(self) -> Work:
        """The work, with the levels that the law must know of the whole census."""
        levels = []
        for name in self.work.law.whole:
            schema = pa.schema([self.homes.schema.field(name)])
            found = self.homes.map(batch_kernels.Levels((name,)), schema).gathered().column(0).unique()
            levels.append((name, found.take(pc.sort_indices(found))))
        return replace(self.work, levels=tuple(levels))


class PartSwapped:
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
            (prints_of(row["prints"]) for row in found),
            number + linked,
        )
        self.after = After(prints[:number], prints[number:])

    def require_sound(self) -> None:
        """Raise an error if identifiers repeat or linked records belong to no household."""
        require_unique(self.source.frame.roles, self.repeated)
        require_owners(self.lost)

    def table(self, by: tuple[str, ...]) -> pa.Table:
        """The cells of all parts, added up and sorted."""
        schema = pa.schema([*(self.source.homes.schema.field(name) for name in by), ("count", pa.int64())])
        cells = self.placed.map(part_kernels.CountPart(by), schema).gathered()
        return table(of_table(cells, by), by, cells["count"].to_numpy())

    def _jobs(self) -> dict[str, Parts]:
        """The published parts of each record type."""
        source, publisher = self.source, self.publisher
        firsts, kinds = _firsts(self.rows), source.homes.schema
        number = pa.field(source.frame.roles.identifier, pa.int64())
        schema = pa.schema([number, *(kinds.field(name) for name in publisher.released)])
        homes = self.placed.map(part_kernels.HomesPart(publisher, firsts), schema)
        jobs = {source.frame.roles.record_type: homes}
        for i, (kind, flow) in enumerate(zip(source.linked, source.people, strict=True)):
            fields = {name: pa.field(name, pa.int64()) for name in (kind.identifier, kind.link) if name}
            fields |= {name: kinds.field(name) for name in kind.refilled}
            fields |= {name: flow.schema.field(name) for name in kind.variables}
            kernel = part_kernels.MembersPart(publisher, firsts, i, _firsts(self.members[i]))
            jobs[kind.record_type] = self.placed.map(kernel, pa.schema(list(fields.values())))
        return jobs

    def written(self) -> Microdata:
        """Write records and linked records with their new numbers."""
        if not self.source.work.law.microdata:
            return {}
        microdata: dict[str, pa.Table | pads.Dataset] = {}
        numbers = {kind.record_type: (kind.identifier, kind.link) for kind in self.source.linked}
        roles = self.source.frame.roles
        for name, job in self._jobs().items():
            own = name == roles.record_type
            step = steps(self.source.progress, "write" if own else f"write {name}")
            if self.out is None:
                microdata[name] = job.gathered(step)
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


def _firsts(rows: Sequence[int]) -> tuple[int, ...]:
    """The first fresh number of each part."""
    return tuple((1 + np.cumsum([0, *rows[:-1]])).tolist())


def _sums(found: Sequence[dict[str, list[int]]], name: str, width: int) -> list[int]:
    return [sum(row[name][i] for row in found) for i in range(width)]


def _added(found: pa.Table, number: int) -> list[Fingerprint]:
    return Fingerprint.sums(map(prints_of, found["prints"].to_pylist()), number)


def _digested(
    reader: Key,
    record_type: str,
    names: Sequence[str],
    found: pa.Table,
    schema: pa.Schema,
    values: Sequence[str],
) -> Digested:
    """The sums of all batches as one digest."""
    sums = zip(found["sum"].to_pylist(), found["rows"].to_pylist(), strict=True)
    total = merged(reader, sums, [schema.field(name).type for name in values])
    return Digested(record_type, tuple(names), total)


def opened(
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
    only = released(record, law.untouched)
    names = tuple(name for name in roles.needed if name != roles.identifier)
    raw = engine.records(census, roles.record_type, [roles.identifier, *names])
    identity = raw.schema.field(roles.identifier).type
    work = Work(law=law, roles=roles, kinds=record.kinds if only is None else None, read=names)
    frame = work.frame(_named_schema(raw.schema, roles.identifier, names).empty_table())
    homes = raw.map(
        batch_kernels.Named(roles.identifier, frame.read, identity, only),
        _named_schema(raw.schema, roles.identifier, frame.read),
    )
    frame = replace(frame, only=only)
    linked = linked_types(census, roles) if along else ()
    scatter = Scatter.known(len(names) + 1)
    people = []
    for kind in linked:
        own = engine.records(census, kind.record_type, [kind.link, *kind.variables])
        schema = _named_schema(own.schema, kind.link, kind.variables)
        flow = own.map(batch_kernels.Named(kind.link, kind.variables, identity), schema)
        people.append(_only_of(homes, flow, frame, kind, engine, size, held, scatter) if only else flow)
    widest = max(len(names), *(len(kind.variables) for kind in linked), 1)
    return PartRecords(
        engine=engine,
        size=size,
        work=replace(work, read=frame.read),
        frame=frame,
        homes=homes,
        people=tuple(people),
        linked=linked,
        verifier=Verifier(frame.kept(), Scatter.fresh(widest + 1), bool(linked)),
        scatter=scatter,
        progress=progress,
        held=held,
    )


def _named_schema(schema: pa.Schema, identifier: str, names: Sequence[str]) -> pa.Schema:
    return pa.schema([pa.field(identifier, pa.uint64()), *(schema.field(name) for name in names)])


def _only_of(
    homes: Flow,
    people: Flow,
    frame: Frame,
    kind: LinkedType,
    engine: Engine,
    size: Size,
    held: ExitStack,
    scatter: Scatter,
) -> Flow:
    """The linked records of households that are left: one more exchange, by identifier."""
    parts = size.parts(engine, size.homes + size.people)
    where, identifier = pa.field(PART, pa.int32()), frame.roles.identifier
    ids = pa.schema([homes.schema.field(identifier), where])
    sides = (
        homes.map(ByValues((identifier,), parts, scatter, keep=(identifier,)), ids),
        people.map(ByValues((kind.link,), parts, scatter), people.schema.append(where)),
    )
    met = engine.exchange(*sides, by=PART, parts=parts)
    found = met.map(part_kernels.OnlyOf(identifier, kind.link), people.schema).kept()
    held.callback(found.drop)
    met.drop()
    return found.flow()
