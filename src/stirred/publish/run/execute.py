"""Turn a plan, or a release made in Python, into a packet: resumable, whole or not at all."""

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl
import pyarrow as pa

from stirred.census import Census
from stirred.chance import Key
from stirred.engine import Engine, Local, Progress, silent
from stirred.engine.choice import name_work
from stirred.errors import (
    ClusterError,
    ForgedStateError,
    PlanError,
    PrivacyError,
    StirredError,
    require_kind,
    require_path,
)
from stirred.mechanisms.base import Mechanism, require_key
from stirred.mechanisms.release import MEASURE_COLUMNS, Release, require_schema, scan_records
from stirred.publish.check import (
    ReadyPlan,
    find_weighted,
    prepare,
    require_effects,
    require_finite,
    require_kept,
    require_room,
)
from stirred.publish.composition import DATA_FOLDER, join_promises, write_earlier_packet
from stirred.publish.packet.checksums import PUBLIC
from stirred.publish.packet.folder import Packet
from stirred.publish.plan.description import CENSUS, Plan, load, plan_of_release
from stirred.publish.run.inputs import require_unchanged
from stirred.publish.run.part import PartFolder, hold_lock, write_whole
from stirred.publish.run.state import UnfinishedRun
from stirred.publish.run.writer import PacketContent, data_folder, locate_release, store, write_packet
from stirred.publish.weights import read_totals, recalibrate
from stirred.spec import Specification

# Products of released records: another mechanism's tables of them are post-processing, and have their promise.


def released_census(release: Release, census: Census) -> Census:
    """Return a census with the released records in place of its own: same schema, same areas."""
    missing = [name for name in census.schema.record_types if name not in release.microdata]
    if missing:
        raise PlanError(
            f"{release.mechanism} releases no {missing[0]} records to tabulate",
            why="a [[mechanism]] with from reads released records in the place of the census",
            fix="name a [[mechanism]] that releases all records, such as a swap",
        )
    files: dict[str, pl.LazyFrame] = {name: scan_records(data) for name, data in release.microdata.items()}
    return Census(schema=census.schema, files=files, folder=census.folder)


def tabulate_release(
    mechanism: Mechanism,
    earlier: Release,
    census: Census,
    specification: Specification,
    *,
    key: Key,
    engine: Engine,
    out: Path,
    progress: Progress,
) -> Release:
    """Return the mechanism's tables of the released records, which are public.

    An interval around a count of released records would be about these records and not about the census, so that counts
    alone are kept; so would a check of an invariant.
    """
    made = mechanism.tabulate_public(
        engine.census(released_census(earlier, census)), key=key, engine=engine, out=out, progress=progress
    )
    return replace(
        made,
        specification=specification,
        tables={name: _counts(table) for name, table in made.tables.items() if "count" in table.column_names},
        checks=(),
        ledger=None,
        notes=(),
        guards=(),
        input_digest=earlier.input_digest,
        private=earlier.private,
    )


def _counts(table: pa.Table) -> pa.Table:
    return table.select(
        [name for name in table.column_names if name == "count" or name not in MEASURE_COLUMNS]
    )


# From plan to packet: resumable, whole or not at all, and for the same key and census the same bytes.
#
# Everything is built in ``OUT.part``, which is renamed to ``OUT`` at the end.


def run(
    plan: Plan | str | Path,
    out: str | Path,
    *,
    key: Key,
    engine: Engine | None = None,
    progress: Progress | None = None,
    internal: bool = True,
    prepared: ReadyPlan | None = None,
) -> Packet:
    """Run a plan, or the file of one, and leave a sealed packet at ``out``; ``prepared`` is what ``prepare`` returned."""
    require_path("out", out, fix='st.run(plan, "packet", key=key)')
    require_key(key)
    if not isinstance(plan, Plan):
        plan = load(plan)
    out = Path(out)
    with hold_lock(out):
        return _run(plan, out, key, engine, progress or silent, internal=internal, prepared=prepared)


def _run(
    plan: Plan,
    out: Path,
    key: Key,
    engine: Engine | None,
    progress: Progress,
    *,
    internal: bool,
    prepared: ReadyPlan | None,
) -> Packet:
    """Run a plan whose output is locked: check it, release each step, write, check the input again, rename ``OUT.part``.

    A refusal deletes ``OUT.part``; what an interruption leaves is kept, and the next run takes it up.
    """
    progress("promise", 0, 1)
    ready = prepared or prepare(plan, out, engine, progress=progress)
    progress("promise", 1, 1)
    unfinished = UnfinishedRun(PartFolder(out), ready.engine)
    # before a folder is made, or one of an interrupted run is opened
    require_unchanged(ready.stamps, ready.census)
    unfinished.begin(plan, key, ready.census)
    try:
        # ``begin`` has read the files for their digest: they are still those whose promise was stated
        require_unchanged(ready.stamps, ready.census)
        unfinished.clear_except(data_folder(plan, number) for number in range(len(plan.steps)))
        releases: list[Release] = []
        for number in range(len(plan.steps)):
            releases.append(_release(plan, number, ready, key, unfinished, progress, releases))
        content = PacketContent(
            plan=plan,
            schema=ready.census.schema,
            specification=ready.specification,
            releases=tuple(releases),
            engine=ready.engine,
            promise=ready.promise,
        )
        name_work(ready.engine, "packet", progress)
        truth = ready.census if internal and plan.utility else None
        write_packet(content, unfinished.part, progress=progress, truth=truth, internal=internal)
        unfinished.require_same_input(plan, key, ready.census)
    except (ForgedStateError, ClusterError):
        raise
    except StirredError:  # a refusal, however late; an interrupted run is kept, to be taken up
        unfinished.remove()
        raise
    finally:
        name_work(ready.engine, "", silent)
    unfinished.complete()
    return Packet(out)


def _release(
    plan: Plan,
    number: int,
    ready: ReadyPlan,
    key: Key,
    unfinished: UnfinishedRun,
    progress: Progress,
    before: Sequence[Release],
) -> Release:
    """Run one mechanism, or take up what it finished before."""
    folder = unfinished.part / PUBLIC / data_folder(plan, number)
    mechanism = _mechanism(plan, number, ready, unfinished)
    specification = ready.promise.parts[number]
    release = unfinished.load_finished(folder, mechanism, ready.census, specification, key)
    if release is None:
        work = unfinished.work(folder)
        mechanism_state = unfinished.state / f"{folder.name}.levels"  # what it finished, and takes up again
        source = plan.steps[number].source
        name_work(ready.engine, mechanism.name, progress)
        if source is None:
            release = mechanism.release(
                ready.census,
                key=key,
                engine=ready.engine,
                out=work,
                state=mechanism_state,
                progress=progress,
            )
        else:
            release = tabulate_release(
                mechanism,
                before[source],
                ready.census,
                specification,
                key=key,
                engine=ready.engine,
                out=work,
                progress=progress,
            )
        if release.specification != specification:
            raise PrivacyError(
                f"{mechanism.name} promises something else after its run",
                why="the specification of its release is not the one that was stated before",
                fix="nothing was released; report this",
            )
        if plan.weights is not None and find_weighted(plan, ready.census) == number:
            totals = read_totals(plan.weights, plan.folder)
            release = replace(release, schema=ready.census.schema, folder=ready.census.folder)
            release = recalibrate(release, totals, plan.weights, work, ready.engine)
        release = unfinished.finish(release, folder, work, key)
    return replace(release, schema=ready.census.schema, folder=ready.census.folder)


def _mechanism(plan: Plan, number: int, ready: ReadyPlan, unfinished: UnfinishedRun) -> Mechanism:
    """Return a mechanism of the plan; one that needs an earlier release finds it in the state of the run."""
    step = plan.steps[number]
    if step.earlier is None:
        return step.mechanism
    folder = unfinished.state / f"continued-{number + 1}"
    shutil.rmtree(folder, ignore_errors=True)
    write_earlier_packet(folder, ready.promise.parts[step.earlier])
    earlier = unfinished.part / PUBLIC / data_folder(plan, step.earlier)
    (folder / DATA_FOLDER).symlink_to(earlier.resolve(), target_is_directory=True)
    return step.after(folder, plan.folder)


# A release that was made in Python, as the packet that its plan would give.


def save(
    release: Release,
    out: str | Path,
    *,
    title: str = "",
    census: str = CENSUS,
    engine: Engine | None = None,
    internal: bool = True,
    accept_small_effect: str = "",
) -> Packet:
    """Write a packet at ``out``, whole or not at all; the key is never part of it.

    The packet has the plan that the release's settings describe; ``census`` is the file name that the plan gives to the
    census. ``accept_small_effect`` is the reason for publishing a release that is expected to be nearly the truth; without
    one it is refused. With ``internal`` what the mechanism tells the office alone lies in the internal part, where it
    tells anything.
    """
    require_kind(
        "what is saved",
        release,
        Release,
        wanted="a Release",
        fix="st.save(mechanism.release(census, key=key), out)",
    )
    require_path("out", out, fix='st.save(release, "packet")')
    out = Path(out)
    require_room(out)
    require_kept([release])
    require_finite(release.specification, str(release.settings.get("without_guarantee", "")))
    schema = require_schema(release)
    plan = plan_of_release(
        release, release.folder or Path(), census=census, title=title, accept_small_effect=accept_small_effect
    )
    promise = replace(join_promises(plan, [release.specification]), effects=(release.effect,))
    promise = require_effects(plan, promise, rehearsal=not release.private)
    with hold_lock(out), write_whole(out, "save", closed=False) as part:
        folder = part / PUBLIC / data_folder(plan, 0)
        folder.parent.mkdir()
        store(release, folder)
        content = PacketContent(
            plan=plan,
            schema=schema,
            specification=promise.whole,
            releases=(locate_release(release, folder),),
            engine=engine or Local(),
            promise=promise,
        )
        write_packet(content, part, progress=silent, internal=internal)
    return Packet(out)
