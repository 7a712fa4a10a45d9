"""A swap from census to release: survey, state, draw, publish, verify. The steps are the same wherever the records lie."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast

from stirred.chance import Key
from stirred.engine import Engine, Progress, silent
from stirred.languages import Phrase, unit
from stirred.mechanisms.base import Check, Mechanism, Release
from stirred.mechanisms.base import Restating as Restating
from stirred.mechanisms.swapping.guards.checks import identified, measured
from stirred.mechanisms.swapping.guards.standing import Standing
from stirred.mechanisms.swapping.pipeline import parts
from stirred.mechanisms.swapping.pipeline.memory import MemoryRecords
from stirred.mechanisms.swapping.pipeline.publish import After
from stirred.mechanisms.swapping.pipeline.source import RecordSource, StatedStrata, SwapLaw
from stirred.mechanisms.swapping.pipeline.survey import Before
from stirred.mechanisms.swapping.pipeline.verify import all_kept
from stirred.mechanisms.swapping.records.participation import refuse_staying
from stirred.mechanisms.swapping.records.size import size_of
from stirred.spec import Ledger, Specification

if TYPE_CHECKING:
    from stirred.census import Census


@contextmanager
def opened(
    law: SwapLaw, census: "Census", engine: Engine, *, progress: Progress = silent, along: bool = True
) -> Iterator[RecordSource]:
    """The records of a census: in memory where they fit, in parts elsewhere. Not ``along``: without linked records."""
    roles = law.roles(census)
    size = size_of(engine.census(census), roles)
    with ExitStack() as held:
        progress("read", 0, 1)
        source: RecordSource
        if engine.fits(size.memory):
            source = MemoryRecords.of(law, census, engine, progress, along=along)
        else:
            source = parts.opened(law, census, engine, size, progress, held, along=along)
        progress("read", 1, 1)
        yield source


def stated(law: SwapLaw, census: "Census", engine: Engine) -> StatedStrata:
    """The strata of a census, from which the promise is stated; linked records are not read."""
    with opened(law, census, engine, along=False) as source:
        return _stated(law, source, cells=False)


def restated(law: SwapLaw, census: "Census", engine: Engine) -> Restating:
    """The promise at other swap rates from strata that are read once; another kind of swap states its own."""
    strata = stated(law, census, engine)

    def state(other: Mechanism) -> Specification:
        if other.name != law.name:
            return other.specification(census, engine=engine)
        return cast(SwapLaw, other).promised(strata.frame, strata.shapes, census)

    return state


def _stated(law: SwapLaw, source: RecordSource, *, cells: bool) -> StatedStrata:
    found = source.stated(cells=cells)
    if law.untouched == "refuse":
        refuse_staying(found.frame.stays, found.frame.roles.record_type)
    return found


def release(
    law: SwapLaw, census: "Census", *, key: Key, engine: Engine, out: Path | None, progress: Progress
) -> Release:
    """Swap, order, verify and write; with ``out`` the records go to Parquet files in that folder."""
    progress("guards", 0, 2)
    named = identified(law, census, law.roles(census), engine)
    progress("guards", 1, 2)
    with opened(law, census, engine, progress=progress) as source:
        progress("digest", 0, 1)
        before = source.survey(law.reader(key))
        run = law.bound(key, before.digest)
        progress("digest", 1, 1)
        strata = _stated(law, source, cells=True)
        standing = Standing.of(strata.shapes, strata.frame.stays).guard(law.resolution)
        promise = law.promised(strata.frame, strata.shapes, census)
        with source.swapped(run, before, out) as swapped:
            checks = compared(strata, before, swapped.after)
            tables = {" × ".join(by): law.made_table(swapped.table(by), run) for by in law.tables}
            microdata = swapped.written()
            # a refusal here deletes what was written: the caller sees the refusal or the file, never both
            undone = measured(law, strata.frame.roles, census.schema, microdata, tables)
            progress("guards", 2, 2)
            return Release(
                mechanism=law.name,
                parameters=law.parameters(),
                specification=promise,
                tables=tables,
                microdata=microdata,
                checks=checks,
                ledger=Ledger().spend(by=law.name, on=law.resolution, budget=promise.budget),
                notes=law.remarks(strata.shapes),
                guards=(named, standing, undone),
                input_digest=run.digest(b"input", before.digest).hex(),
                private=key.private,
                internal=swapped.internal,
                effect=law.effect_on(strata.shapes, strata.frame.stays),
                schema=census.schema,
                folder=census.folder,
            )


def compared(strata: StatedStrata, before: Before, after: After) -> tuple[Check, ...]:
    """Compare the invariants before and after; one that is not kept is an error."""
    frame = strata.frame
    kept = frame.kept()
    found = [
        Check(invariant=table.name, kept=was == now, numbers=cells)
        for table, was, now, cells in zip(kept, before.homes, after.homes, strata.cells, strict=False)
    ]
    key = "swap.check.members_placed" if frame.stays else "swap.check.members"
    for (record_type, _), was, now in zip(frame.roles.members, before.people, after.people, strict=True):
        # identifiers are unique, so both together show that every member is still in its household
        same = was == now and before.homes[len(kept)] == after.homes[len(kept)]
        home = unit(frame.roles.record_type, "of_their")
        told = Phrase(key, records=unit(record_type, "records"), of_their=home)
        found.append(Check(invariant=told, kept=same, numbers=now.rows))
    return all_kept(found)
