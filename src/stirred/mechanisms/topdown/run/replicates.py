r"""Estimate the uncertainty of a TopDown release from public numbers alone, by running the mechanism on its own output.

The released leaf histogram takes the place of the census, the invariants are kept, fresh noise is drawn, and the
same estimate is made: what a replicate does to the release shows what the release did to the census (a parametric
bootstrap). Everything here is post-processing of the release and of numbers that are exact anyway, so it costs nothing.

The noise of replicates comes from a child of the run's key bound to ("uncertainty", the released histogram, the number
of the replicate). The replicates are published, and with the release they reveal their own noise; that is safe,
because a child key reveals nothing about its parent or siblings and is never used to measure the census. Bound to the
release, not to the census, two censuses with one release get the same replicates.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stirred.chance import Key
from stirred.engine import Engine, Progress
from stirred.mechanisms.topdown.estimate import unbiased
from stirred.mechanisms.topdown.estimate.informed import Informed
from stirred.mechanisms.topdown.measure.allotment import Allotment
from stirred.mechanisms.topdown.measure.linear import Raw, Targets
from stirred.mechanisms.topdown.measure.noise import Measurements
from stirred.mechanisms.topdown.rules.constraints import Constraints
from stirred.mechanisms.topdown.run import output
from stirred.mechanisms.topdown.run.task import Outcome, Settings
from stirred.mechanisms.topdown.solve.levels import Estimator
from stirred.mechanisms.topdown.tree.counts import Sparse, ordinary
from stirred.mechanisms.topdown.tree.geounits import Tree
from stirred.mechanisms.topdown.workload.workload import Workload

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def replicate(
    allotment: Allotment,
    leaves: Sparse,
    constraints: Constraints,
    settings: Settings,
    *,
    key: Key | None,
    engine: Engine,
) -> Sparse:
    """The leaf histogram of one more run with ``leaves`` as the census; ``key`` None draws no noise."""
    spine, workload = allotment.spine, allotment.workload
    size = workload.histogram.cells
    truth = [leaves]
    for d in range(len(spine.levels) - 1, 0, -1):
        truth.append(truth[-1].up(spine.parent[d], spine.size(d - 1), size))
    mode = settings.mode or workload.mode
    emphasis = settings.emphasis if mode == "gls" else 1
    measurements = Measurements(allotment, truth[::-1], key, emphasis)
    targets: Targets = Raw(measurements)
    if mode == "gls":
        targets = Informed.of(measurements, constraints, engine)
    weights = {pair: measurements.solve_weights(*pair) for pair in allotment.rho}
    estimator = Estimator(allotment, constraints, targets, weights, solver=settings.solver)
    above, _ = estimator.root()
    for depth in range(1, len(spine.levels)):
        above, _ = estimator.level(depth, above, engine)
    return above


def replicates(
    allotment: Allotment,
    leaves: Sparse,
    constraints: Constraints,
    settings: Settings,
    *,
    key: Key,
    count: int,
    engine: Engine,
    progress: Progress | None = None,
) -> list[Sparse]:
    """``count`` leaf histograms of runs on the release; ``key`` is the run's own, see above."""
    own = key.bind(
        "uncertainty", key.digest(*(a.tobytes() for a in (leaves.first, leaves.cells, leaves.counts)))
    )
    made = []
    step = f"{allotment.workload.name}: replicates"
    for number in range(count):
        if progress is not None:
            progress(step, number, count)
        noise = None if settings.noiseless else own.bind("replicate", number)
        made.append(replicate(allotment, leaves, constraints, settings, key=noise, engine=engine))
    if progress is not None:
        progress(step, count, count)
    return made


def records(workload: Workload, spine: Tree, made: Sequence[Sparse], *, bureau: bool = False) -> pa.Table:
    """Replicates as one table: the columns of the microdata, ``replicate`` and ``count``."""
    parts = []
    for number, leaves in enumerate(made):
        once = Sparse(leaves.first, leaves.cells, np.ones_like(leaves.counts))
        table = pa.concat_tables(list(output.microdata(workload, spine, once, bureau=bureau)))
        table = table.append_column("replicate", pa.array(np.full(table.num_rows, number), pa.int16()))
        parts.append(table.append_column("count", pa.array(leaves.counts, pa.int32())))
    return pa.concat_tables(parts)


def tables(
    workload: Workload,
    outcome: Outcome,
    settings: Settings,
    *,
    key: Key,
    count: int,
    engine: Engine,
    bureau: bool = False,
    progress: Progress | None = None,
) -> dict[str, pa.Table]:
    """The data of a release for the uncertainty of any table: replicates, and unbiased marginals if there are any."""
    made = replicates(
        outcome.measurements.allotment, outcome.levels[-1], outcome.constraints, settings,
        key=key, count=count, engine=engine, progress=progress,
    )  # fmt: skip
    size = workload.histogram.cells
    made = [ordinary(outcome.published, outcome.spine, leaves, size) for leaves in made]
    result = {f"{workload.name}-replicates": records(workload, outcome.published, made, bureau=bureau)}
    if outcome.informed is not None:
        result[f"{workload.name}-unbiased"] = unbiased.estimates(
            workload, outcome.spine, outcome.informed, bureau=bureau
        )
    return result
