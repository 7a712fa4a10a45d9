r"""Compute unbiased estimates with exact variances for marginals of every geounit, from the estimate over the whole tree.

The generalised least-squares estimate is linear in the noisy measurements, so it has no bias and its variance is known
exactly from the budget alone. It may be negative or fractional, and it is not the published, consistent number.
"""

from collections.abc import Iterator
from itertools import combinations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stirred.mechanisms.topdown.estimate import gls
from stirred.mechanisms.topdown.estimate.informed import TreeEstimate
from stirred.mechanisms.topdown.tree.geounits import Tree
from stirred.mechanisms.topdown.workload.histogram import Query, name_column
from stirred.mechanisms.topdown.workload.workload import Workload

Floats = NDArray[np.float64]
MAX_ANSWERS_KEPT = 128  # answers of a marginal beyond which its estimates are not kept
MIN_VARIANCE = 1e-8  # variances below this are rounding: the number follows from an invariant


def list_marginals(workload: Workload, *, largest: int = MAX_ANSWERS_KEPT) -> tuple[Query, ...]:
    """Return every table over whole axes with at most ``largest`` answers, the total first.

    >>> [q.name for q in list_marginals(Workload.preset("small"))]
    ['total', 'race', 'votingage', 'race × votingage']
    """
    axes = [axis.name for axis in workload.histogram.axes]
    found = []
    for size in range(len(axes) + 1):
        for parts in combinations(axes, size):
            query = workload.histogram.query(" × ".join(parts) or "total", parts)
            if query.size <= largest:
                found.append(query)
    return tuple(found)


def tabulate_level(
    workload: Workload,
    spine: Tree,
    informed: TreeEstimate,
    depth: int,
    covariance: Floats,
    *,
    bureau: bool = False,
) -> Iterator[pa.Table]:
    """Yield, for each of the ``marginals``, one row per geounit of a level and cell.

    The columns are level, code, the axes (null where summed), estimate and standard deviation.
    """
    exact = informed.measurements.key is None
    for query in list_marginals(workload):
        value, variance = _estimate_answers(informed, informed.levels[depth].e, covariance, query)
        yield _build_rows(workload, spine, depth, query, value, 0.0 * variance if exact else variance, bureau)


def tabulate_leaves(
    workload: Workload, spine: Tree, informed: TreeEstimate, above: Floats | None, *, bureau: bool = False
) -> pa.Table:
    """Tabulate the totals of the leaves only; ``above`` holds their parents' covariances."""
    value, variance = estimate_leaf_totals(informed, above)
    if informed.measurements.key is None:
        variance = 0.0 * variance
    total = workload.histogram.query("total", ())
    last = len(spine.levels) - 1
    return _build_rows(workload, spine, last, total, value[:, None], variance[:, None], bureau)


def build_schema(workload: Workload, *, bureau: bool = False) -> pa.Schema:
    """Return the columns of the tables of unbiased estimates."""
    names = dict(workload.columns) if bureau else {}
    axes = [(name_column(axis, names)[0], pa.int16()) for axis in workload.histogram.axes]
    return pa.schema([
        ("level", pa.string()), ("code", pa.string()), *axes,
        ("estimate", pa.float64()), ("standard_deviation", pa.float64()),
    ])  # fmt: skip


def estimate_leaf_totals(informed: TreeEstimate, above: Floats | None) -> tuple[Floats, Floats]:
    r"""Totals of the leaves and their variances: $S\,1'(C + C M C)1$ with $M = V^+(C^e_p - V)V^+$ of the parent."""
    algebra, leaves = informed.algebra, informed.leaves
    value = np.zeros(len(leaves.parent))
    variance = np.zeros(len(leaves.parent))
    middle: Floats | None = None
    if above is not None:
        level = informed.levels[-1]
        inverse = np.linalg.pinv(level.V[:, 0], rcond=1e-11, hermitian=True)
        middle = inverse @ (above[:, 0] - level.V[:, 0]) @ inverse
    for pattern in leaves.patterns:
        own = pattern.C[0].sum(axis=1)
        value[pattern.members] = gls.sum_in_order(pattern.e)
        found = np.full(len(pattern.members), own.sum())
        if middle is not None:
            seen = middle[leaves.parent[pattern.members]][:, pattern.act][:, :, pattern.act]
            found += gls.compute_spreads(own[None], np.ascontiguousarray(seen))[:, 0]
        variance[pattern.members] = algebra.S * found
    return value, variance


def _estimate_answers(
    informed: TreeEstimate, e: Floats, covariance: Floats, query: Query
) -> tuple[Floats, Floats]:
    """Return a marginal of estimates e (N, K, S) and its variances (both N × answers)."""
    algebra = informed.algebra
    index = query.of(algebra.layout.ravel()).reshape(algebra.K, algebra.S)
    value = np.zeros((query.size, len(e)))
    np.add.at(value, index.ravel(), e.reshape(len(e), index.size).T)
    recode = algebra.recode(query)
    by_group = gls.variances(algebra, covariance, recode, algebra.find_kept_axes(query))
    group = np.zeros(query.size, np.int64)
    group[index] = recode[:, None]
    return np.ascontiguousarray(value.T), by_group[:, group]


def _build_rows(
    workload: Workload, spine: Tree, depth: int, query: Query, value: Floats, variance: Floats, bureau: bool
) -> pa.Table:
    nodes = len(value)
    names = dict(workload.columns) if bureau else {}
    code = np.repeat(np.arange(nodes, dtype=np.int32), query.size)
    codes = pa.array([str(c) for c in spine.codes[depth]], pa.string())
    columns: dict[str, pa.Array] = {
        "level": pa.DictionaryArray.from_arrays(
            pa.array(np.zeros(len(code), np.int32)), [spine.levels[depth]]
        ).cast(pa.string()),
        "code": codes.take(pa.array(code)),
    }
    levels = np.unravel_index(np.arange(query.size), query.shape)
    for axis, kept, own in zip(workload.histogram.axes, query.kept, levels, strict=True):
        name, offset = name_column(axis, names)
        columns[name] = (
            pa.array(np.tile(own + offset, nodes), pa.int16())
            if kept
            else pa.nulls(nodes * query.size, pa.int16())
        )
    exact = variance < MIN_VARIANCE
    columns["estimate"] = pa.array(np.where(exact, np.rint(value), value).ravel())
    columns["standard_deviation"] = pa.array(np.where(exact, 0.0, np.sqrt(np.maximum(variance, 0.0))).ravel())
    return pa.table(columns)
