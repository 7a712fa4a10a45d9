"""Finish a swap by parts: check the output against the source, and write it only then."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as pads

from stirred.engine import Parts, Progress, Steps
from stirred.errors import DataError
from stirred.mechanisms.base import Check
from stirred.mechanisms.swapping.pipeline import verify
from stirred.mechanisms.swapping.pipeline.frame import Frame, require_unique
from stirred.mechanisms.swapping.pipeline.part_checks import added
from stirred.mechanisms.swapping.pipeline.part_publish import LOOKED, Homes, Look, People, Publisher
from stirred.mechanisms.swapping.pipeline.part_reading import Sources, Surveyed
from stirred.mechanisms.swapping.pipeline.publish import told_of
from stirred.mechanisms.swapping.pipeline.verify import Fingerprint


def steps(progress: Progress, step: str) -> Steps:
    """Progress of one step, as an engine reports it."""
    return lambda done, total: progress(step, done, total)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What will be published: the number of records in each part, and the fingerprints of all."""

    rows: tuple[int, ...]  # of each part
    members: tuple[tuple[int, ...], ...]  # of each linked type and part
    prints: list[Fingerprint]

    @staticmethod
    def of(found: pa.Table, sources: Sources, parts: int) -> "Seen":
        """Join the results of all parts; raises an error if identifiers repeat or records belong to no household."""
        rows = np.zeros(parts, np.int64)
        members = np.zeros((len(sources.linked), parts), np.int64)
        repeated = lost = 0
        for row in found.to_pylist():
            rows[row["part"]] = row["rows"]
            members[:, row["part"]] = row["members"][::2]
            repeated += row["repeated"]
            lost += sum(row["members"][1::2])
        require_unique(sources.job.roles, repeated)
        if lost:
            raise DataError(
                f"{lost:,} records belong to no household",
                why="their link names no household in the census",
                fix="correct the link, or add the households",
            )
        number = len(sources.looker.margins) + (1 + len(sources.linked) if sources.linked else 0)
        return Seen(
            rows=tuple(rows.tolist()),
            members=tuple(tuple(each.tolist()) for each in members),
            prints=added(found["prints"].to_pylist(), number),
        )

    def checks(
        self, frame: Frame, sources: Sources, survey: Surveyed, cells: Sequence[int]
    ) -> tuple[Check, ...]:
        """Compare the invariants with the source; one that is not kept is an error."""
        margins = sources.looker.margins
        found = [
            Check(invariant=margin.name, kept=was == now, numbers=number)
            for margin, was, now, number in zip(margins, survey.homes, self.prints, cells, strict=False)
        ]
        at = len(margins)
        for i, group in enumerate(sources.linked):
            # identifiers are unique, so both together show that every member is still in its household
            kept = survey.homes[at] == self.prints[at] and survey.people[i] == self.prints[at + 1 + i]
            told = told_of(group.record_type, frame)
            found.append(Check(invariant=told, kept=kept, numbers=sum(self.members[i])))
        return verify.all_kept(found)


def look(placed: Parts, publisher: Publisher, sources: Sources, progress: Progress) -> Seen:
    """Check every part of what will be published."""
    kernel = Look(publisher, sources.looker, sources.job.read)
    found = placed.map(kernel, LOOKED).gathered(steps(progress, "verify"))
    return Seen.of(found, sources, placed.number)


def _firsts(rows: Sequence[int]) -> tuple[int, ...]:
    """The first fresh number of each part."""
    return tuple((1 + np.cumsum([0, *rows[:-1]])).tolist())


def write(
    placed: Parts, publisher: Publisher, seen: Seen, sources: Sources, out: Path | None, progress: Progress
) -> dict[str, pa.Table | pads.Dataset]:
    """Write records and linked records with their new numbers; all of them or none."""
    firsts = _firsts(seen.rows)
    kinds = sources.homes.schema
    number = pa.field(publisher.identifier, pa.int64())
    schema = pa.schema([number, *(kinds.field(name) for name in publisher.released)])
    record_type = sources.job.roles.record_type
    jobs = {record_type: placed.map(Homes(publisher, firsts), schema)}
    for i, (group, flow) in enumerate(zip(sources.linked, sources.people, strict=True)):
        fields = {name: pa.field(name, pa.int64()) for name in (group.identifier, group.link) if name}
        fields |= {name: kinds.field(name) for name in group.refilled}
        fields |= {name: flow.schema.field(name) for name in group.variables}
        kernel = People(publisher, firsts, i, _firsts(seen.members[i]))
        jobs[group.record_type] = placed.map(kernel, pa.schema(list(fields.values())))
    microdata: dict[str, pa.Table | pads.Dataset] = {}
    try:
        for name, job in jobs.items():
            step = steps(progress, "write" if name == record_type else f"write {name}")
            microdata[name] = (
                job.gathered(step) if out is None else job.write(out, name.replace(" ", "_"), step)
            )
    except BaseException:
        if out is not None:
            for name in jobs:
                _remove(out / f"{name.replace(' ', '_')}.parquet")
        raise
    return microdata


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    path.unlink(missing_ok=True)
