"""Swap by flows and parts, for a census that does not fit in memory or is stored on a cluster.

The records are read once for the digest and the fingerprints of the invariants, exchanged by their match
variables so that every stratum is complete in one part, swapped part by part, and exchanged again by the words
that order the publication. Every random word is named by the identifier of a record, so parts change nothing: the
bytes are those of the swap in memory for the same key.
"""

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa

from stirred.chance import Key
from stirred.engine import Engine, Parts, Progress, silent
from stirred.mechanisms.base import Release
from stirred.mechanisms.swapping import statement
from stirred.mechanisms.swapping.pipeline.frame import Frame
from stirred.mechanisms.swapping.pipeline.part_batches import PART, ByOrder, ByValues
from stirred.mechanisms.swapping.pipeline.part_publish import LOOKED, LookAtSwapped, Publisher
from stirred.mechanisms.swapping.pipeline.part_reading import Sources, opened
from stirred.mechanisms.swapping.pipeline.part_strata import SHAPE, SHAPED, Cells, Drawn, Shaped
from stirred.mechanisms.swapping.pipeline.part_writing import Seen, look, steps, write
from stirred.mechanisms.swapping.pipeline.publish import table
from stirred.mechanisms.swapping.records.columns import of_table
from stirred.mechanisms.swapping.records.participation import by_kinds, refuse
from stirred.mechanisms.swapping.records.size import Size
from stirred.spec import Ledger, Specification

if TYPE_CHECKING:
    from stirred.census import Census
    from stirred.mechanisms.swapping.mechanism import PermutationSwapping


def release(
    mechanism: "PermutationSwapping",
    census: "Census",
    *,
    key: Key,
    engine: Engine,
    size: Size,
    out: Path | None,
    progress: Progress,
) -> Release:
    """Swap, order, verify and write, without ever holding the records in one place."""
    with ExitStack() as held:
        progress("read", 0, 1)
        sources = opened(mechanism, census, engine, size, held)
        progress("read", 1, 1)
        progress("digest", 0, 1)
        survey = sources.surveyed(mechanism.reader(key))
        sources = sources.knowing_levels()
        run = mechanism.bound(key, survey.digest)
        progress("digest", 1, 1)
        strata = _strata(mechanism, sources, engine, size, held)
        frame, cells = _shaped(mechanism, sources, strata, progress)
        promised = mechanism.promised(frame, census)
        released = [survey.homes[0].rows, *(seen.rows for seen in survey.people)]
        number = size.published(engine, released) if mechanism.microdata else 1
        swapped = strata.map(Drawn(sources.job, run, number), sources.travelling)
        if mechanism.microdata:
            publisher = Publisher(
                run=run, identifier=sources.identifier, released=frame.roles.released, linked=sources.linked
            )
            progress("swap", 0, 1)
            people = [
                flow.map(ByOrder(group.link, number, run), flow.schema.append(pa.field(PART, pa.int32())))
                for flow, group in zip(sources.people, sources.linked, strict=True)
            ]
            placed = engine.exchange(swapped.flow(), *people, by=PART, parts=number).kept()
            held.callback(placed.drop)
            strata.drop()
            progress("swap", 1, 1)
            seen = look(placed, publisher, sources, progress)
        else:
            placed = swapped.kept(steps(progress, "swap"))
            held.callback(placed.drop)
            kernel = LookAtSwapped(sources.identifier, sources.looker)
            found = placed.map(kernel, LOOKED).gathered(steps(progress, "verify"))
            seen = Seen.of(found, sources, placed.number)
        checks = seen.checks(frame, sources, survey, cells)
        return Release(
            mechanism=mechanism.name,
            parameters=mechanism.parameters(),
            specification=promised,
            tables={
                " × ".join(by): mechanism.made_table(_table(placed, sources, by), run)
                for by in mechanism.tables
            },
            microdata=write(placed, publisher, seen, sources, out, progress) if mechanism.microdata else {},
            checks=checks,
            ledger=Ledger().spend(by=mechanism.name, on=mechanism.resolution, budget=promised.budget),
            notes=statement.notes(frame, mechanism.rate),
            input_digest=run.digest(b"input", survey.digest).hex(),
            private=key.private,
            schema=census.schema,
            folder=census.folder,
        )


def promise(
    mechanism: "PermutationSwapping", census: "Census", *, engine: Engine, size: Size
) -> Specification:
    """What is promised, from the shapes of strata alone."""
    with ExitStack() as held:
        sources = opened(mechanism, census, engine, size, held, along=False)
        strata = _strata(mechanism, sources, engine, size, held)
        return mechanism.promised(_shaped(mechanism, sources, strata, silent)[0], census)


def _strata(
    mechanism: "PermutationSwapping", sources: Sources, engine: Engine, size: Size, held: ExitStack
) -> Parts:
    """Records in parts, with every stratum complete in one part."""
    parts = size.parts(engine, size.homes)
    by = ByValues(mechanism.meeting(sources.frame), parts, sources.scatter)
    found = engine.exchange(sources.homes.map(by, sources.travelling), by=PART, parts=parts).kept()
    held.callback(found.drop)
    return found


def _shaped(
    mechanism: "PermutationSwapping", sources: Sources, strata: Parts, progress: Progress
) -> tuple[Frame, list[int]]:
    """The shapes of all strata, from which the promise is stated, and the numbers of cells that do not change."""
    found = strata.map(Shaped(sources.job, sources.looker), SHAPED).gathered(steps(progress, "strata"))
    kinds = {**dict.fromkeys(SHAPE, pl.Int64), "margins": pl.String}
    rows = pl.DataFrame({name: _joined(found, name) for name in kinds}, schema=kinds)
    frame = sources.frame
    records = _added(found, "stays", len(frame.stays))
    stays = tuple(replace(stay, records=n) for stay, n in zip(frame.stays, records, strict=True))
    if mechanism.untouched == "refuse" and by_kinds(sources.job.kinds):
        refuse(stays[0], frame.roles.record_type)
    known = replace(frame, stays=stays, known=statement.Shapes.merged(rows))
    return known, _added(found, "cells", len(sources.looker.margins))


def _joined(found: pa.Table, name: str) -> list[int | str]:
    return [entry for row in found[name].to_pylist() for entry in row]


def _added(found: pa.Table, name: str, width: int) -> list[int]:
    return [sum(row[i] for row in found[name].to_pylist()) for i in range(width)]


def _table(placed: Parts, sources: Sources, by: tuple[str, ...]) -> pa.Table:
    """The cells of all parts, added up and sorted as in memory."""
    schema = pa.schema([*(sources.homes.schema.field(name) for name in by), ("count", pa.int64())])
    cells = placed.map(Cells(by), schema).gathered()
    return table(of_table(cells, by), by, cells["count"].to_numpy())
