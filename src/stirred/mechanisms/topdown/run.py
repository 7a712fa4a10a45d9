"""Run one workload in memory from census to integers: spine, constraints, measurements, estimate, level by level."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stirred.chance import Key
from stirred.engine import Engine, Progress, silent
from stirred.mechanisms.base import Check
from stirred.mechanisms.topdown import digest
from stirred.mechanisms.topdown.certificate import Certificate
from stirred.mechanisms.topdown.checkpoint import Checkpoint
from stirred.mechanisms.topdown.checks import Findings
from stirred.mechanisms.topdown.constraints import Constraints, compiled_rules
from stirred.mechanisms.topdown.estimate import Estimator
from stirred.mechanisms.topdown.given import agreement
from stirred.mechanisms.topdown.measure import Measurements
from stirred.mechanisms.topdown.spine import Allotment, Spine
from stirred.mechanisms.topdown.spine_options import SpineOptions
from stirred.mechanisms.topdown.tabulate import Sparse, histograms, leaf_table
from stirred.mechanisms.topdown.targets import Informed, Raw, Targets
from stirred.mechanisms.topdown.workload import Mode, Workload

if TYPE_CHECKING:
    from stirred.census import Census


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of the estimate; none of them changes the promise, except the noise."""

    mode: Mode | None = None
    bypass: bool = True
    noiseless: bool = False
    solver: str = "fast"
    emphasis: int = 1
    spine: SpineOptions | None = None  # the tree that is measured; None: the census's own


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """All results of a workload's run."""

    spine: Spine
    levels: list[Sparse]
    certificates: list[Certificate]
    constraints: Constraints
    measurements: Measurements
    informed: Informed | None
    checks: tuple[Check, ...]
    checkpoint: Checkpoint
    input_digest: str
    published: Spine  # the ordinary geography of the release; the same leaves in its own order


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
    spine = published = Spine.of(geography, census.schema.spine, root=workload.levels[0])
    if settings.spine:
        geography, levels_measured, workload = settings.spine.applied(census, geography, workload)
        spine = Spine.of(geography, levels_measured, root=workload.levels[0])
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
    workload: Workload, spine: Spine, constraints: Constraints, levels: list[Sparse]
) -> tuple[Check, ...]:
    """Check every invariant, bound, structural zero and parent sum again on the integers."""
    found = Findings.of(constraints, spine, levels, range(len(levels)))
    return found.checks(workload, constraints)


def _input_digest(key: Key, spine: Spine, leaf: Sparse, constraints: Constraints) -> bytes:
    """A keyed digest of all that is read: records by leaf, the tree above them with its codes, the bounds that hold."""
    reader = digest.reader(key)
    names = [held.name for held in constraints.held]
    return digest.whole(reader, spine.levels, names, digest.climbed(reader, spine, constraints, leaf))
