"""A swap from census to release: survey, state, draw, publish, verify. The steps are the same wherever the records lie."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast

from stirred.chance import Key
from stirred.engine import Engine, Progress, silent
from stirred.languages import Phrase, unit
from stirred.mechanisms.base import Mechanism
from stirred.mechanisms.base import Restating as Restating
from stirred.mechanisms.release import Check, Release
from stirred.mechanisms.swap import parts
from stirred.mechanisms.swap.fingerprints import InputFingerprints, require_kept
from stirred.mechanisms.swap.frame import (
    MemoryRecords,
    OutputFingerprints,
    RecordSource,
    StrataSummary,
    SwapLaw,
    estimate_size,
)
from stirred.mechanisms.swap.guards import StandingRecords, guard_identifiers, guard_reversal
from stirred.mechanisms.swap.records import refuse_staying
from stirred.spec import Ledger, Specification

if TYPE_CHECKING:
    from stirred.census import Census


@contextmanager
def open_records(
    law: SwapLaw, census: "Census", engine: Engine, *, progress: Progress = silent, along: bool = True
) -> Iterator[RecordSource]:
    """Open the records of a census, in memory where they fit, else in parts; ``along`` adds linked records."""
    roles = law.roles(census)
    size = estimate_size(engine.census(census), roles)
    with ExitStack() as held:
        progress("read", 0, 1)
        source: RecordSource
        if engine.fits(size.memory):
            source = MemoryRecords.of(law, census, engine, progress, along=along)
        else:
            source = parts.open_parts(law, census, engine, size, progress, held, along=along)
        progress("read", 1, 1)
        yield source


def count_strata(law: SwapLaw, census: "Census", engine: Engine) -> StrataSummary:
    """Count the strata of a census, from which the promise is stated, without linked records."""
    with open_records(law, census, engine, along=False) as source:
        return _count_and_refuse(law, source, cells=False)


def restate_specification(law: SwapLaw, census: "Census", engine: Engine) -> Restating:
    """Return a function that states the promise at other swap rates from strata that are read once."""
    strata = count_strata(law, census, engine)

    def state(other: Mechanism) -> Specification:
        if other.name != law.name:
            return other.specification(census, engine=engine)
        return cast(SwapLaw, other).build_specification(strata.frame, strata.shapes, census)

    return state


def _count_and_refuse(law: SwapLaw, source: RecordSource, *, cells: bool) -> StrataSummary:
    found = source.count_strata(cells=cells)
    if law.untouched == "refuse":
        refuse_staying(found.frame.stays, found.frame.roles.record_type)
    return found


def release(
    law: SwapLaw, census: "Census", *, key: Key, engine: Engine, out: Path | None, progress: Progress
) -> Release:
    """Swap, order, verify and write; with ``out`` the records go to Parquet files in that folder."""
    progress("guards", 0, 2)
    named = guard_identifiers(law, census, law.roles(census), engine)
    progress("guards", 1, 2)
    with open_records(law, census, engine, progress=progress) as source:
        progress("digest", 0, 1)
        before = source.survey(law.digest_key(key))
        run = law.run_key(key, before.digest)
        progress("digest", 1, 1)
        strata = _count_and_refuse(law, source, cells=True)
        standing = StandingRecords.of(strata.shapes, strata.frame.stays).guard(law.resolution)
        promise = law.build_specification(strata.frame, strata.shapes, census)
        with source.draw_swap(run, before, out) as swapped:
            checks = check_invariants(strata, before, swapped.after)
            tables = {" × ".join(by): law.finish_table(swapped.table(by), run) for by in law.tables}
            microdata = swapped.write_records()
            # a refusal here deletes what was written: the caller sees the refusal or the file, never both
            undone = guard_reversal(law, strata.frame.roles, census.schema, microdata, tables)
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


def check_invariants(
    strata: StrataSummary, before: InputFingerprints, after: OutputFingerprints
) -> tuple[Check, ...]:
    """Compare the invariants before and after; one that is not kept is an error."""
    frame = strata.frame
    kept = frame.list_kept_tables()
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
    return require_kept(found)
