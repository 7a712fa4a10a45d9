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
from math import sqrt

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray
from scipy.special import stdtrit

from stirred.chance import Key
from stirred.engine import Engine, Progress
from stirred.mechanisms.topdown import output, unbiased
from stirred.mechanisms.topdown.constraints import Constraints
from stirred.mechanisms.topdown.estimate import Estimator
from stirred.mechanisms.topdown.measure import Measurements
from stirred.mechanisms.topdown.run import Outcome, Settings
from stirred.mechanisms.topdown.spine import Allotment, Spine
from stirred.mechanisms.topdown.spine_options import ordinary
from stirred.mechanisms.topdown.tabulate import Sparse
from stirred.mechanisms.topdown.targets import Informed, Raw, Targets
from stirred.mechanisms.topdown.workload import Workload

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
PRIOR = 4.0  # degrees of freedom of the variance that is shared by cells of similar size
FEW = 5  # cells that a size class needs before its variance is shared
WHOLE = "_whole"  # represents the variables of a table that has none
CLASSES = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 100_000, 1_000_000)


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


def records(workload: Workload, spine: Spine, made: Sequence[Sparse], *, bureau: bool = False) -> pa.Table:
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


def moments(count: Ints, again: Ints) -> tuple[Floats, Floats, Floats]:
    r"""Bias, standard error and degrees of freedom of every cell from its replicates (R × cells).

    Cells of similar size share variance, so that a cell that did not change by chance is not called exact:
    $s^2 = ((R-1)s_i^2 + 4 s_0^2)/(R+3)$ with $s_0^2$ the mean over the cells of its size class.

    >>> bias, error, _ = moments(np.array([10, 10]), np.array([[12, 10], [10, 10], [11, 10]]))
    >>> bias.tolist(), error.round(4).tolist()
    ([1.0, 0.0], [0.8165, 0.5774])
    """
    runs = len(again)
    bias = again.mean(axis=0) - count
    variance = again.var(axis=0, ddof=1) if runs > 1 else np.full(len(count), np.inf)
    place = np.digitize(count, CLASSES)
    members = np.maximum(np.bincount(place, minlength=1), 1)
    common = (np.bincount(place, variance) / members)[place]
    smooth = ((runs - 1) * variance + PRIOR * common) / (runs - 1 + PRIOR)
    return bias, np.sqrt(smooth), np.full(len(count), runs - 1 + PRIOR)


def intervals(count: Ints, again: Ints, *, level: float = 0.95) -> dict[str, Floats]:
    r"""Bias-corrected estimate $x - \hat b$, its standard error and interval; no count is below zero.

    The interval is $x - \hat b \pm t\,s\sqrt{1 + 1/R}$: the last factor is the error of the bias itself. A number
    published as 0 may come from a true 4, whose noise the replicates of a 0 do not show: the typical bias and spread of
    the size class in which the upper limit lies decide whether it reaches further.

    >>> found = intervals(np.array([100, 100]), np.array([[101, 98], [99, 102], [102, 99], [98, 101]]))
    >>> found["estimate"].tolist(), found["standard_error"].round(3).tolist()
    ([100.0, 100.0], [2.041, 2.041])
    """
    bias, spread, freedom = moments(count, again)
    wider = sqrt(1.0 + 1.0 / len(again))
    t = stdtrit(freedom, 0.5 + level / 2.0)
    high = count - bias + t * spread * wider
    place, upper = np.digitize(count, CLASSES), np.digitize(np.rint(high), CLASSES)
    members = np.bincount(place, minlength=len(CLASSES) + 1)
    typical_bias = np.bincount(place, bias, len(members)) / np.maximum(members, 1)
    typical_spread = np.sqrt(np.bincount(place, spread**2, len(members)) / np.maximum(members, 1))
    further = count - typical_bias[upper] + t * typical_spread[upper] * wider
    high = np.where(members[upper] >= FEW, np.maximum(high, further), high)
    return {
        "estimate": np.maximum(count - bias, 0.0),
        "standard_error": spread * wider,
        "low": np.maximum(count - bias - t * spread * wider, 0.0),
        "high": np.maximum(high, 0.0),
        "bias": bias,
    }


def tabulated(records: pl.LazyFrame, again: pl.LazyFrame, by: Sequence[str]) -> pl.DataFrame:
    """For each cell that the release or a replicate has: count, estimate, standard_error, low, high and bias."""
    keys = list(by) or [WHOLE]
    published = plain(records, keys).group_by(keys).agg(pl.len().cast(pl.Int64).alias("count")).collect()
    runs = plain(again, keys, "replicate", "count").collect()
    sums = runs.group_by([*keys, "replicate"]).agg(pl.col("count").cast(pl.Int64).sum())
    counts = pl.concat([published, sums.select(*keys, pl.lit(0, pl.Int64).alias("count"))])
    cells = counts.group_by(keys).agg(pl.col("count").sum()).sort(keys, nulls_last=False)
    number = cells.select(keys).with_row_index("cell")
    place = sums.join(number, on=keys, nulls_equal=True)
    matrix = np.zeros((runs["replicate"].n_unique(), cells.height), np.int64)
    matrix[place["replicate"].to_numpy(), place["cell"].to_numpy()] = place["count"].to_numpy()
    found = intervals(cells["count"].to_numpy(), matrix)
    return cells.select(*by, "count").with_columns(
        **{name: pl.Series(value) for name, value in found.items()}
    )


def plain(frame: pl.LazyFrame, keys: Sequence[str], *more: str) -> pl.LazyFrame:
    """The wanted columns, codes of areas as text: categories of two files cannot be compared."""
    frame = frame.with_columns(pl.lit(0).alias(WHOLE))
    types = frame.collect_schema()
    coded = [name for name in keys if isinstance(types[name], pl.Categorical | pl.Enum)]
    return frame.select(*keys, *more).with_columns(pl.col(coded).cast(pl.String))
