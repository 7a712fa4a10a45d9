"""Run one workload in memory from census to integers: spine, constraints, measurements, estimate, level by level."""

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from stirred.chance import Key
from stirred.engine import Engine, Progress, silent
from stirred.errors import InputError
from stirred.mechanisms.base import Check
from stirred.mechanisms.topdown.estimate.informed import Informed
from stirred.mechanisms.topdown.measure import nmf
from stirred.mechanisms.topdown.measure.allotment import Allotment
from stirred.mechanisms.topdown.measure.linear import Raw, Targets
from stirred.mechanisms.topdown.measure.noise import Measurements
from stirred.mechanisms.topdown.rules.agreement import agreement
from stirred.mechanisms.topdown.rules.checks import Findings, compiled_rules
from stirred.mechanisms.topdown.rules.constraints import Constraints
from stirred.mechanisms.topdown.run import digest, output
from stirred.mechanisms.topdown.run.checkpoint import Checkpoint
from stirred.mechanisms.topdown.run.replicates import tables as replicates_tables
from stirred.mechanisms.topdown.run.task import Made, Outcome, Settings, Task
from stirred.mechanisms.topdown.solve.levels import Estimator
from stirred.mechanisms.topdown.solve.problem import Certificate
from stirred.mechanisms.topdown.tree.counts import Sparse, histograms, ordinary, upward
from stirred.mechanisms.topdown.tree.geounits import Tree
from stirred.mechanisms.topdown.tree.leaves import leaf_table
from stirred.mechanisms.topdown.tree.splits import split, with_entities
from stirred.mechanisms.topdown.workload.workload import Workload

if TYPE_CHECKING:
    from stirred.census import Census


def run(
    census: "Census",
    workload: Workload,
    settings: Settings,
    *,
    key: Key,
    engine: Engine,
    progress: Progress | None = None,
    resume: Path | None = None,
    given: Path | None = None,
) -> Outcome:
    """Run one workload; finished levels of an interrupted run in ``resume`` are used again."""
    say: Progress = progress or silent
    say(f"{workload.name}: tabulate", 0, 1)
    geography = leaf_table(census, workload)
    spine = published = Tree.of(geography, census.schema.spine, root=workload.levels[0])
    if settings.spine:
        beside = [name for name in settings.spine.entities if name not in census.schema.spine]
        geography = with_entities(census, geography, beside)
        geography, levels_measured, workload = split(settings.spine, geography, census.schema.spine, workload)
        spine = Tree.of(geography, levels_measured, root=workload.levels[0])
    truth = histograms(census, workload, spine)
    say(f"{workload.name}: tabulate", 1, 1)
    allotment = Allotment.of(spine, workload, bypass=settings.bypass)
    earlier = None
    if workload.given:
        assert given is not None, "checked before the run"
        earlier = agreement(census, workload, spine, given)
    constraints = compiled_rules(census, workload, spine, truth, earlier)
    seen = _input_digest(key, spine, truth[-1], constraints)
    own = key.bind("input", seen)
    mode = settings.mode or workload.mode
    # Emphasis is for the unbiased totals of the tree estimate; raw totals of a leaf are too noisy for it.
    emphasis = settings.emphasis if mode == "gls" else 1
    measurements = Measurements(allotment, truth, None if settings.noiseless else own, emphasis)
    informed: Informed | None = None
    targets: Targets
    if mode == "gls":
        say(f"{workload.name}: tree", 0, 1)
        informed = Informed.of(measurements, constraints, engine)
        targets = informed
        say(f"{workload.name}: tree", 1, 1)
    else:
        targets = Raw(measurements)
    weights = {pair: measurements.solve_weights(*pair) for pair in allotment.rho}
    estimator = Estimator(allotment, constraints, targets, weights, solver=settings.solver)
    identity = own.digest(b"levels", repr(settings).encode()).hex()
    checkpoint = Checkpoint(None if resume is None else resume / workload.name, identity)
    checkpoint.begin()
    levels: list[Sparse] = []
    certificates: list[Certificate] = []
    for depth in range(len(spine.levels)):
        done = checkpoint.load(depth)
        if done is None:
            done = estimator.root() if depth == 0 else estimator.level(depth, levels[-1], engine, progress)
            checkpoint.save(depth, *done)
        levels.append(done[0])
        certificates.append(done[1])
    return Outcome(
        spine=spine,
        levels=levels,
        certificates=certificates,
        constraints=constraints,
        measurements=measurements,
        informed=informed,
        checks=verify(workload, spine, constraints, levels),
        checkpoint=checkpoint,
        input_digest=seen.hex(),
        published=published,
    )


def verify(
    workload: Workload, spine: Tree, constraints: Constraints, levels: list[Sparse]
) -> tuple[Check, ...]:
    """Check every invariant, bound, structural zero and parent sum again on the integers."""
    found = Findings.of(constraints, spine, levels, range(len(levels)))
    return found.checks(workload, constraints)


def _input_digest(key: Key, spine: Tree, leaf: Sparse, constraints: Constraints) -> bytes:
    """A keyed digest of all that is read: records by leaf, the tree above them with its codes, the bounds that hold."""
    reader = digest.reader(key)
    names = [held.name for held in constraints.held]
    return digest.whole(reader, spine.levels, names, digest.climbed(reader, spine, constraints, leaf))


def in_memory(task: Task, *, keep_nmf: bool = False, replicates: int = 0) -> Made:
    """Run level by level; the microdata go to the task's folder, or stay in memory."""
    workload, out, bureau = task.workload, task.out, task.bureau
    outcome = run(
        task.census, workload, task.settings, key=task.key, engine=task.engine,
        progress=task.progress, resume=task.resume, given=task.given,
    )  # fmt: skip
    task.approve(outcome.checks, outcome.constraints.record)
    cells = workload.histogram.cells
    spine, levels = outcome.published, outcome.levels
    if spine is not outcome.spine:
        levels = upward(spine, ordinary(spine, outcome.spine, levels[-1], cells), cells)
    pieces = output.microdata(workload, spine, levels[-1], bureau=bureau)
    microdata = output.collected(pieces, None if out is None else out / f"{workload.record}.parquet")
    tables: dict[str, pa.Table] = {
        f"{workload.name}-totals": output.totals(spine, levels),
        f"{workload.name}-solves": output.certificates(outcome.certificates),
    }
    if outcome.informed is not None:
        tables[f"{workload.name}-estimates"] = output.estimates(outcome.spine, outcome.informed)
    if replicates:
        tables |= replicates_tables(
            workload, outcome, task.settings, key=task.key, count=replicates,
            engine=task.engine, bureau=bureau, progress=task.progress,
        )  # fmt: skip
    if keep_nmf:
        if out is None:
            raise InputError(
                "the noisy measurement file needs a folder",
                why="it is written to disk",
                fix="release(…, out=Path(…))",
            )
        nmf.write(out / f"nmf-{workload.name}", outcome.measurements, outcome.constraints)
    return Made(
        microdata=microdata,
        tables=tables,
        checks=outcome.checks,
        input_digest=outcome.input_digest,
        checkpoint=outcome.checkpoint,
    )
