"""From plan to packet: resumable, whole or not at all, and for the same key and census the same bytes.

Everything is built in ``OUT.part``, which is renamed to ``OUT`` at the end.
"""

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from stirred.chance import Key
from stirred.engine import Engine, Progress, silent
from stirred.errors import ClusterError, ForgedStateError, PrivacyError, StirredError, require_path
from stirred.mechanisms.arguments import require_key
from stirred.mechanisms.base import Mechanism, Release
from stirred.publish.before.promise import DATA_FOLDER, write_earlier_packet
from stirred.publish.before.refusals import ReadyPlan, find_weighted, prepare
from stirred.publish.packet.checksums import PUBLIC
from stirred.publish.packet.folder import Packet
from stirred.publish.plan.description import Plan
from stirred.publish.plan.reading import load
from stirred.publish.plan.totals import read_totals
from stirred.publish.run.inputs import require_unchanged
from stirred.publish.run.lock import hold_lock
from stirred.publish.run.part import PartFolder
from stirred.publish.run.state import UnfinishedRun
from stirred.publish.run.tabulate import tabulate_release
from stirred.publish.run.weights import recalibrate
from stirred.publish.run.writer import PacketContent, data_folder, write_packet


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
    report: Progress,
    *,
    internal: bool,
    prepared: ReadyPlan | None,
) -> Packet:
    report("promise", 0, 1)
    ready = prepared or prepare(plan, out, engine, progress=report)
    report("promise", 1, 1)
    unfinished = UnfinishedRun(PartFolder(out))
    require_unchanged(ready.stamps, ready.census)
    unfinished.begin(plan, key, ready.census)
    try:
        require_unchanged(ready.stamps, ready.census)
        unfinished.clear(data_folder(plan, number) for number in range(len(plan.steps)))
        releases: list[Release] = []
        for number in range(len(plan.steps)):
            releases.append(_release(plan, number, ready, key, unfinished, report, releases))
        content = PacketContent(
            plan=plan,
            schema=ready.census.schema,
            specification=ready.specification,
            releases=tuple(releases),
            engine=ready.engine,
            promise=ready.promise,
        )
        truth = ready.census if internal and plan.utility else None
        write_packet(content, unfinished.part, progress=report, truth=truth, internal=internal)
        unfinished.require_same_input(plan, key, ready.census)
    except (ForgedStateError, ClusterError):
        raise
    except StirredError:  # a refusal, however late; an interrupted run is kept, to be taken up
        unfinished.remove()
        raise
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
    place = unfinished.part / PUBLIC / data_folder(plan, number)
    mechanism = _mechanism(plan, number, ready, unfinished)
    specification = ready.promise.parts[number]
    release = unfinished.load_finished(place, mechanism, ready.census, specification, key)
    if release is None:
        work = unfinished.work(place)
        levels = unfinished.state / f"{place.name}.levels"  # what the mechanism finished, and takes up again
        source = plan.steps[number].source
        if source is None:
            release = mechanism.release(
                ready.census, key=key, engine=ready.engine, out=work, state=levels, progress=progress
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
        release = unfinished.finish(release, place, work, key)
    return replace(release, schema=ready.census.schema, folder=ready.census.folder)


def _mechanism(plan: Plan, number: int, ready: ReadyPlan, unfinished: UnfinishedRun) -> Mechanism:
    """Return a mechanism of the plan; one that needs an earlier release finds it in the state of the run."""
    step = plan.steps[number]
    if step.earlier is None:
        return step.mechanism
    place = unfinished.state / f"continued-{number + 1}"
    shutil.rmtree(place, ignore_errors=True)
    write_earlier_packet(place, ready.promise.parts[step.earlier])
    earlier = unfinished.part / PUBLIC / data_folder(plan, step.earlier)
    (place / DATA_FOLDER).symlink_to(earlier.resolve(), target_is_directory=True)
    return step.after(place, plan.folder)
