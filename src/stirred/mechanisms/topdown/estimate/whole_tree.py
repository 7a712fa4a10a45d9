"""Estimate the whole tree by generalised least squares in closed form, with exact variances."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import combinations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stirred.engine import Local
from stirred.engine.base import Runner
from stirred.engine.threads import Crew
from stirred.kernels import compile_kernel
from stirred.mechanisms.topdown.estimate.algebra import Algebra
from stirred.mechanisms.topdown.histogram import Query, name_column
from stirred.mechanisms.topdown.measure import Measurements
from stirred.mechanisms.topdown.rules import Constraints
from stirred.mechanisms.topdown.tree import Tree
from stirred.mechanisms.topdown.workload import Workload

# Generalised least squares over the whole tree in closed form: best linear unbiased estimates with exact variances.
#
# Upward, a node's own measurements and the sum of its children's estimates are combined; downward, what the node
# learnt from above is shared among its children by their covariances (Cumings-Menon 2024, in the algebra of
# ``algebra``). Everything is post-processing of the noisy measurements and exact invariants.
#
# The result of a node is the same, to the last bit, whichever other nodes are computed with it: sums over children run
# in the order of the spine, sums over cells in a fixed order (``sum_in_order``, ``compute_spreads``), and products,
# inverses and eigenvalues of stacked matrices are one small LAPACK or BLAS call each (at most 64 × 64, below every
# size at which OpenBLAS starts a second thread). So a subtree can be computed separately and joined at its root.

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
NODES_PER_PIECE = 256  # nodes that a thread takes at a time, at most
MIN_PIECES = 8  # of a level at least, unless it has few nodes, so that threads share upper levels too


def split_pieces(nodes: int, engine: Runner | None) -> list[slice]:
    """Split the nodes of a level into slices that threads work on side by side."""
    rows = NODES_PER_PIECE if engine is None else min(NODES_PER_PIECE, max(16, -(-nodes // MIN_PIECES)))
    return [slice(at, min(at + rows, nodes)) for at in range(0, nodes, rows)]


def run_in_pieces(work: Callable[[slice], None], nodes: int, engine: Runner | None) -> None:
    """Run the work on slices of nodes side by side; the result of a node does not depend on others."""
    run_tasks([partial(work, piece) for piece in split_pieces(nodes, engine)], engine)


def run_tasks(tasks: Iterable[Callable[[], None]], engine: Runner | None) -> None:
    """Run independent tasks side by side; the first start while later ones are still being made."""
    for _ in map(_run_task, tasks) if engine is None else engine.map(_run_task, tasks):
        pass


def _run_task(task: Callable[[], None]) -> None:
    task()


@dataclass(slots=True)
class Pattern:
    """Leaves with the same active k, the same weights and the same kind of total: they share one covariance."""

    members: Ints
    act: Ints
    information: Floats  # (F, K, K)
    t: Floats  # (members, act, S); after the pass upward b is in its place
    total: Floats | None = None
    b: Floats = field(default_factory=lambda: np.empty(0))
    C: Floats = field(default_factory=lambda: np.empty(0))  # (F, act, act)
    e: Floats = field(default_factory=lambda: np.empty(0))


@dataclass(slots=True)
class Leaves:
    """The lowest level: only active cells are kept, because most blocks have few."""

    parent: Ints
    patterns: list[Pattern]


@dataclass(slots=True)
class Level:
    """The nodes of a level above the leaves during the two passes.

    ``information`` is (classes, F, K, K), ``kind`` the class of each node (-1: not measured), ``t`` is $A'Wy$ (N, K, S).
    """

    parent: Ints
    kind: Ints
    information: Floats
    t: Floats
    total: Floats | None = None  # exact totals, NaN where not fixed
    b: Floats = field(default_factory=lambda: np.empty(0))
    C: Floats = field(default_factory=lambda: np.empty(0))
    sums: Floats = field(default_factory=lambda: np.empty(0))
    V: Floats = field(default_factory=lambda: np.empty(0))
    e: Floats = field(default_factory=lambda: np.empty(0))


def fix_total(algebra: Algebra, C: Floats) -> tuple[Floats, Floats]:
    """Return gain and covariance given the total: only the all-means component changes."""
    flat = np.ascontiguousarray(C[..., 0, :, :])
    K = C.shape[-1]
    v = sum_in_order(flat.reshape(-1, K)).reshape(*C.shape[:-3], K)
    s = sum_in_order(v.reshape(-1, K)).reshape(*C.shape[:-3], 1)
    safe = np.where(s > 0, s, 1.0)
    C = C.copy()
    C[..., 0, :, :] -= v[..., :, None] * v[..., None, :] / safe[..., None]
    return v / safe / algebra.S, C


def estimate_leaves(
    algebra: Algebra, pattern: Pattern, engine: Runner | None = None
) -> list[Callable[[], None]]:
    """Leaves have only their own measurements: $C_f = P_f^{-1}$ on the active k. What is left to do are tasks."""
    act = pattern.act
    C = np.linalg.inv(np.ascontiguousarray(pattern.information[:, act][:, :, act]))
    pattern.b = pattern.t  # in its place, because nobody reads it again
    pattern.C, gain = C, None
    if pattern.total is not None:
        gain, pattern.C = fix_total(algebra, C)

    def work(rows: slice) -> None:
        b = algebra.apply(C[None], pattern.t[rows])
        if gain is not None and pattern.total is not None:
            b += gain[:, None] * (pattern.total[rows] - sum_in_order(b))[:, None, None]
        pattern.b[rows] = b

    return [partial(work, piece) for piece in split_pieces(len(pattern.t), engine)]


def sum_children(algebra: Algebra, below: "Level | Leaves", rows: slice, S: Floats, V: Floats) -> None:
    """Sum estimates and covariances of children, for the parents ``rows`` alone; children are in order."""
    S[rows], V[rows] = 0.0, 0.0
    if isinstance(below, Level):
        part = slice(*np.searchsorted(below.parent, [rows.start, rows.stop]))
        _add_children(S, below.parent[part], np.arange(algebra.K), below.b[part])
        flat = algebra.parts * algebra.K
        C = below.C[part].reshape(-1, flat, algebra.K)
        _add_children(V.reshape(len(V), flat, algebra.K), below.parent[part], np.arange(flat), C)
        return
    for pattern in below.patterns:
        parents = below.parent[pattern.members]
        part = slice(*np.searchsorted(parents, [rows.start, rows.stop]))
        _add_children(S, parents[part], pattern.act, pattern.b[part])
        count = np.bincount(parents[part] - rows.start, minlength=rows.stop - rows.start)
        hit = np.flatnonzero(count)
        C = np.zeros(V.shape[1:])
        C[np.ix_(np.arange(algebra.parts), pattern.act, pattern.act)] = pattern.C
        V[hit + rows.start] += count[hit, None, None, None] * C


def upward(algebra: Algebra, level: Level, below: "Level | Leaves", engine: Runner | None = None) -> None:
    """$C = (I + VP)^{-1}V$, $b = S + C(t - PS)$ with V and S the children's sums; no inverse of V is needed."""
    nodes = len(level.parent)
    level.sums, level.b = np.empty((nodes, algebra.K, algebra.S)), np.empty((nodes, algebra.K, algebra.S))
    level.V = np.empty((nodes, algebra.parts, algebra.K, algebra.K))
    level.C = np.empty(level.V.shape)

    def work(rows: slice) -> None:
        sum_children(algebra, below, rows, level.sums, level.V)
        level.C[rows], level.b[rows] = level.V[rows], level.sums[rows]
        at = np.flatnonzero(level.kind[rows] >= 0) + rows.start
        if len(at):
            P, V = level.information[level.kind[at]], level.V[at]
            half = np.linalg.solve(np.eye(algebra.K) + V @ P, V)
            C = (0.5 * (half + np.swapaxes(half, -1, -2))).astype(np.float64)
            level.C[at] = C
            rest = level.t[at] - algebra.apply(P, level.sums[at])
            level.b[at] += algebra.apply(C, rest)
        if level.total is not None:
            at = np.flatnonzero(~np.isnan(level.total[rows])) + rows.start
            gain, changed = fix_total(algebra, level.C[at])
            level.b[at] += (gain * (level.total[at] - sum_in_order(level.b[at]))[:, None])[:, :, None]
            level.C[at] = changed

    run_in_pieces(work, nodes, engine)


def downward(algebra: Algebra, level: Level, below: "Level | Leaves", engine: Runner | None = None) -> None:
    """$e_c = b_c + C_c V^+ (e_p - S)$: the children's estimates add up to their parent's."""
    surprise = np.empty(level.sums.shape)

    def learns(rows: slice) -> None:
        inverse: Floats = np.linalg.pinv(level.V[rows], rcond=1e-11, hermitian=True).astype(np.float64)
        surprise[rows] = algebra.apply(inverse, level.e[rows] - level.sums[rows])

    run_in_pieces(learns, len(surprise), engine)
    if isinstance(below, Level):
        lower = below
        lower.e = np.empty(lower.b.shape)

        def shares(rows: slice) -> None:
            learnt = algebra.apply(lower.C[rows], surprise[lower.parent[rows]], out=lower.e[rows])
            learnt += lower.b[rows]

        run_in_pieces(shares, len(lower.b), engine)
        return
    run_tasks(
        [
            task
            for one in below.patterns
            for task in _estimate_pattern(algebra, one, below.parent, surprise, engine)
        ],
        engine,
    )


def _estimate_pattern(
    algebra: Algebra, pattern: Pattern, parent: Ints, surprise: Floats, engine: Runner | None
) -> list[Callable[[], None]]:
    """Return tasks that compute the estimates of a pattern's leaves."""
    pattern.e = np.empty(pattern.b.shape)

    def work(rows: slice) -> None:
        news = surprise[parent[pattern.members[rows]][:, None], pattern.act]
        learnt = algebra.apply(pattern.C[None], np.ascontiguousarray(news), out=pattern.e[rows])
        learnt += pattern.b[rows]

    return [partial(work, piece) for piece in split_pieces(len(pattern.members), engine)]


def run_upward(
    algebra: Algebra, levels: Sequence[Level], below: Leaves | Level, top: int = 0, engine: Runner | None = None
) -> None:  # fmt: skip
    """Run the upward pass from the leaves to level ``top``.

    ``below`` are the leaves, or a level whose nodes know this already.
    """
    if isinstance(below, Leaves):
        # all patterns together: most have few leaves
        run_tasks(
            [task for pattern in below.patterns for task in estimate_leaves(algebra, pattern, engine)], engine
        )
    for level in reversed(levels[top:]):
        upward(algebra, level, below, engine)
        below = level


def run_downward(
    algebra: Algebra, levels: Sequence[Level], below: Leaves | Level, top: int = 0, engine: Runner | None = None
) -> None:  # fmt: skip
    """Run the downward pass from level ``top``, whose ``e`` is known, to the leaves or a level above them."""
    for i in range(top, len(levels)):
        downward(algebra, levels[i], levels[i + 1] if i + 1 < len(levels) else below, engine)


def estimate_tree(
    algebra: Algebra, levels: Sequence[Level], below: Leaves | Level, engine: Runner | None = None
) -> None:
    """Run both passes over a tree given from the root down, and fill ``e`` of every node."""
    run_upward(algebra, levels, below, engine=engine)
    root = levels[0] if levels else below
    if isinstance(root, Leaves):
        for pattern in root.patterns:
            pattern.e = pattern.b
        return
    root.e = root.b
    run_downward(algebra, levels, below, engine=engine)


def covariances(
    algebra: Algebra, levels: Sequence[Level], leaves: Leaves, *, leaves_too: bool = True, top: Floats | None = None
) -> list[Floats]:  # fmt: skip
    """Exact covariances after both passes by component (N, F, K, K): $C_c + A (C^e_p - V) A'$ with $A = C_c V^+$.

    ``top`` is that of the first level where it is not the root of the whole tree.
    """
    result = [levels[0].C if top is None else top] if levels else []
    for i, level in enumerate(levels if leaves_too else levels[:-1]):
        inverse = np.linalg.pinv(level.V, rcond=1e-11, hermitian=True)
        middle = inverse @ (result[i] - level.V) @ inverse
        if i + 1 < len(levels):
            C = levels[i + 1].C
            parent = levels[i + 1].parent
        else:
            parent = leaves.parent
            C = np.zeros((len(parent), algebra.parts, algebra.K, algebra.K))
            for pattern in leaves.patterns:
                C[np.ix_(pattern.members, np.arange(algebra.parts), pattern.act, pattern.act)] = pattern.C
        result.append(C + C @ middle[parent] @ C)
    return result


def variances(algebra: Algebra, C: Floats, recode: Ints, T: int) -> Floats:
    """Return variances of a marginal's answers (N, groups) from covariances by component."""
    R = _sum_groups(recode)
    result = np.zeros((len(C), len(R)))
    for f, factor in _weigh_components(algebra, T):
        result += factor * compute_spreads(R, np.ascontiguousarray(C[:, f]))
    return result


def _sum_groups(recode: Ints) -> Floats:
    """Return the matrix (groups × K) that sums the levels of the matrix axis in each group."""
    R = np.zeros((int(recode.max()) + 1, len(recode)))
    R[recode[recode >= 0], np.flatnonzero(recode >= 0)] = 1.0
    return R


def _weigh_components(algebra: Algebra, T: int) -> Iterator[tuple[int, float]]:
    """Yield each component and how much of it is in the variance of an answer that keeps the axes T."""
    for f in range(algebra.parts):
        factor = 1.0
        for bit, i in enumerate(algebra.symmetric):
            n = algebra.histogram.shape[i]
            if T >> bit & 1:
                factor *= 1.0 - 1.0 / n if f >> bit & 1 else 1.0 / n
            else:
                factor *= 0.0 if f >> bit & 1 else n
        if factor:
            yield f, factor


@compile_kernel
def _add_children(total: Floats, parent: Ints, act: Ints, x: Floats) -> None:
    """Add the rows of children to the rows ``act`` of their parents, child by child."""
    for node in range(x.shape[0]):
        for i in range(x.shape[1]):
            for s in range(x.shape[2]):
                total[parent[node], act[i], s] += x[node, i, s]


@compile_kernel
def _sum_rows(x: Floats, out: Floats) -> None:
    for i in range(x.shape[0]):
        total = 0.0
        for j in range(x.shape[1]):
            total += x[i, j]
        out[i] = total


def sum_in_order(x: Floats) -> Floats:
    """Return sums over all but the first axis in a fixed order: the bits do not depend on the rows.

    >>> sum_in_order(np.ones((2, 3, 4))).tolist()
    [12.0, 12.0]
    """
    out = np.empty(len(x))
    _sum_rows(np.ascontiguousarray(x).reshape(len(x), -1) if x.size else np.zeros((len(x), 0)), out)
    return out


@compile_kernel
def _add_cells(x: Floats, answer: Ints, out: Floats) -> None:
    for node in range(x.shape[0]):
        for cell in range(x.shape[1]):
            out[node, answer[cell]] += x[node, cell]


def _sum_answers(e: Floats, index: Ints, answers: int) -> Floats:
    """Return the sums of cells (N, K, S) by the answer that ``index`` (K, S) gives each, in a fixed order."""
    out = np.zeros((len(e), answers))
    _add_cells(np.ascontiguousarray(e).reshape(len(e), index.size), np.ascontiguousarray(index).ravel(), out)
    return out


@compile_kernel
def _spreads(R: Floats, C: Floats, out: Floats) -> None:
    for n in range(C.shape[0]):
        for a in range(R.shape[0]):
            total = 0.0
            for k in range(C.shape[1]):
                if R[a, k] != 0.0:
                    for m in range(C.shape[2]):
                        total += R[a, k] * C[n, k, m] * R[a, m]
            out[n, a] = total


def compute_spreads(R: Floats, C: Floats) -> Floats:
    """$r_a' C_n r_a$ for every node n and row a."""
    out = np.empty((len(C), len(R)))
    _spreads(R, C, out)
    return out


# The linear terms of every geounit for the top-down solve, from the best estimate over the whole tree (mode gls).

LEAVES_PER_CHUNK = 1024  # leaves measured at a time


@dataclass(slots=True)
class TreeEstimate:
    """Best linear unbiased estimates over the whole tree, and the linear terms made from them (mode gls)."""

    algebra: Algebra
    measurements: Measurements
    levels: list[Level]
    leaves: Leaves
    upper: list[Floats] = field(
        default_factory=list
    )  # linear terms (N, K, S) of every level above the leaves
    flat: Floats = field(default_factory=lambda: np.empty(0))  # of the leaves, active cells only
    offset: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    rows: Ints = field(default_factory=lambda: np.empty(0, np.int64))  # leaf pattern × k → row, -1 inactive
    pattern: Ints = field(default_factory=lambda: np.empty(0, np.int64))

    @classmethod
    def of(
        cls, measurements: Measurements, constraints: Constraints, engine: Runner | None = None
    ) -> "TreeEstimate":
        """Measure everything, run both passes, and keep the linear terms."""
        result = cls.estimate_upward(measurements, constraints, engine)
        run_downward(result.algebra, result.levels, result.leaves, engine=engine)
        result.prepare(engine)
        return result

    @classmethod
    def estimate_upward(
        cls, measurements: Measurements, constraints: Constraints, engine: Runner | None = None
    ) -> "TreeEstimate":
        """Measure everything and run the pass upward, after which the root is known."""
        algebra = require_algebra(measurements, constraints)
        levels, leaves = build_noisy_tree(algebra, measurements, constraints, engine or Local(workers=1))
        run_upward(algebra, levels, leaves, engine=engine)
        for root in levels[:1] or leaves.patterns:
            root.e = root.b
        return cls(algebra, measurements, levels, leaves)

    def prepare(self, engine: Runner | None = None) -> None:
        """Compute the linear terms of every node whose estimate is known."""
        for depth in range(len(self.levels)):
            self.prepare_level(depth, engine)
        self.prepare_leaves(engine)

    def prepare_level(self, depth: int, engine: Runner | None = None) -> None:
        """Compute the linear terms of a level above the leaves, after those above it."""
        allotment, level = self.measurements.allotment, self.levels[depth]
        holder, node = allotment.find_holders(depth, np.arange(len(level.parent)))
        out = np.empty_like(level.e)
        starts = np.full(len(holder), -1, np.int64)
        tasks: list[Callable[[], None]] = []
        for h in np.unique(holder):
            starts[holder == h] = allotment.start[h][node[holder == h]]
        for h, a in np.unique(np.stack([holder, starts], axis=1), axis=0).tolist():
            rows = np.flatnonzero((holder == h) & (starts == a))
            P = self.algebra.information(self.measurements.solve_weights(a, h))[None]
            tasks += self._apply_precision(P, level.e, None if len(rows) == len(out) else rows, out, engine)
        run_tasks(tasks, engine)
        self.upper.append(out)

    def prepare_leaves(self, engine: Runner | None = None) -> None:
        """Compute the linear terms of the leaves."""
        leaves = len(self.leaves.parent)
        K, S = self.algebra.K, self.algebra.S
        self.pattern = np.full(leaves, -1, np.int64)
        self.offset = np.zeros(leaves, np.int64)
        self.rows = np.full((len(self.leaves.patterns) + 1, K), -1, np.int64)
        at, tasks = 0, list[Callable[[], None]]()
        self.flat = np.empty(sum(pattern.e.size for pattern in self.leaves.patterns))
        for number, pattern in enumerate(self.leaves.patterns):
            act = pattern.act
            last = len(self.measurements.allotment.spine.levels) - 1
            start = int(self.measurements.allotment.start[last][pattern.members[0]])
            whole = self.algebra.information(self.measurements.solve_weights(start, last))
            P = np.ascontiguousarray(whole[:, act][:, :, act])[None]
            out = self.flat[at : at + pattern.e.size].reshape(pattern.e.shape)
            tasks += self._apply_precision(P, pattern.e, None, out, engine)
            self.pattern[pattern.members] = number
            self.rows[number, act] = np.arange(len(act))
            self.offset[pattern.members] = at + np.arange(len(pattern.members)) * len(act) * S
            at += out.size
        run_tasks(tasks, engine)

    def _apply_precision(
        self, P: Floats, e: Floats, rows: Ints | None, out: Floats, engine: Runner | None
    ) -> list[Callable[[], None]]:
        """Return tasks that write linear terms of nodes of one class (None: all) into ``out``."""

        def work(piece: slice) -> None:
            if rows is None:
                self.algebra.apply(P, e[piece], out=out[piece])
            else:
                out[rows[piece]] = self.algebra.apply(P, e[rows[piece]])

        return [partial(work, piece) for piece in split_pieces(len(e) if rows is None else len(rows), engine)]

    def linear(self, depth: int, nodes: Ints, cells: Ints, only: frozenset[str] | None = None) -> Floats:  # noqa: ARG002
        """Return linear terms (nodes × cells), zero where a leaf cannot have the cell."""
        place = self.algebra.position[cells]
        if depth < len(self.upper):
            table = self.upper[depth].reshape(len(self.upper[depth]), -1)
            return np.ascontiguousarray(table[nodes[:, None], place[None, :]])
        k, s = place // self.algebra.S, place % self.algebra.S
        row = self.rows[self.pattern[nodes]][:, k]
        index = self.offset[nodes][:, None] + row * self.algebra.S + s[None, :]
        return (
            np.where(row >= 0, self.flat[np.where(row >= 0, index, 0)], 0.0)
            if len(self.flat)
            else np.zeros(row.shape)
        )


def has_closed_form(measurements: Measurements, constraints: Constraints) -> bool:
    """Return whether the tree of a run can be estimated as a whole."""
    return _algebra(measurements, constraints).fits and measurements.every_leaf


def require_algebra(measurements: Measurements, constraints: Constraints) -> Algebra:
    """Return the algebra of a run, or raise an error if there is no closed form."""
    algebra = _algebra(measurements, constraints)
    algebra.require_fit()
    measurements.require_every_leaf()
    return algebra


def _algebra(measurements: Measurements, constraints: Constraints) -> Algebra:
    workload = measurements.allotment.workload
    return Algebra.of(workload.histogram, workload.queries, constraints.list_asymmetric_axes())


def build_noisy_tree(
    algebra: Algebra, measurements: Measurements, constraints: Constraints, engine: Runner, top: int = 0
) -> tuple[list[Level], Leaves]:
    """Build the noisy tree for the two passes, from level ``top`` down; levels above are empty."""
    spine = measurements.allotment.spine
    last = len(spine.levels) - 1
    levels, tasks = _build_levels(algebra, measurements, constraints, range(top, last), engine)
    totals = _read_totals(constraints, last, spine.size(last))
    leaves = Leaves(spine.parent[last], [])

    def every() -> Iterator[Callable[[], None]]:
        # all levels together: no thread waits for the last of a level
        yield from tasks
        leaves.patterns, more = _build_patterns(algebra, measurements, constraints, totals)
        yield from more

    run_tasks(every(), engine)
    return levels, leaves


def measure_levels(
    algebra: Algebra, measurements: Measurements, constraints: Constraints, depths: range
) -> list[Level]:
    """Measure levels above the leaves; those above the first one asked for are empty."""
    levels, tasks = _build_levels(algebra, measurements, constraints, depths, None)
    run_tasks(tasks, None)
    return levels


def _build_levels(
    algebra: Algebra, measurements: Measurements, constraints: Constraints, depths: range, engine: Runner | None
) -> tuple[list[Level], list[Callable[[], None]]]:  # fmt: skip
    """Return the levels, and the tasks that measure them."""
    tasks: list[Callable[[], None]] = []
    allotment = measurements.allotment
    none = np.empty(0, np.int64)
    empty = np.zeros((0, algebra.K, algebra.S))
    levels = [Level(none, none, np.empty(0), empty, e=empty) for _ in range(depths.start)]
    for d in depths:
        totals = _read_totals(constraints, d, allotment.spine.size(d))
        start = allotment.start[d]
        classes = [int(a) for a in np.unique(start[start >= 0])]
        kind = np.full(len(start), -1, np.int64)
        t = np.zeros((len(start), algebra.K, algebra.S))
        P = [np.zeros((algebra.parts, algebra.K, algebra.K))]
        for number, a in enumerate(classes):
            rows = np.flatnonzero(start == a)
            kind[rows] = number
            measured = partial(_measure_nodes, algebra, measurements, d, a, rows, t)
            tasks += [partial(measured, piece) for piece in split_pieces(len(rows), engine)]
            P.append(algebra.information(measurements.weights(a, d)))
        levels.append(Level(allotment.spine.parent[d], kind, np.stack(P[1:] or P), t, totals))
    return levels, tasks


def _build_patterns(
    algebra: Algebra, measurements: Measurements, constraints: Constraints, totals: Floats | None
) -> tuple[list[Pattern], list[Callable[[], None]]]:
    """Return the leaves by what they may hold, and the tasks that measure them."""
    allotment = measurements.allotment
    last = len(allotment.spine.levels) - 1
    nodes = np.arange(allotment.spine.size(last))
    column = algebra.layout[:, 0]
    active = constraints.find_allowed(last, nodes, column) & constraints.possible(column)
    label = _label_leaves(active, allotment.start[last])
    first, inverse = np.unique(label, return_index=True, return_inverse=True)[1:]
    order = np.argsort(inverse, kind="stable")
    ends = np.cumsum(np.bincount(inverse, minlength=len(first)))
    patterns = []
    for one, members in zip(first, np.split(order, ends[:-1]) if len(first) else [], strict=True):
        act, start = np.flatnonzero(active[one]), int(allotment.start[last][one])
        if len(act):
            P = algebra.information(measurements.weights(start, last))
            t = np.empty((len(members), len(act), algebra.S))
            patterns.append(Pattern(members, act, P, t, None if totals is None else totals[members]))

    def measure(pattern: Pattern, at: int) -> None:
        nodes = pattern.members[at : at + LEAVES_PER_CHUNK]
        start = int(allotment.start[last][nodes[0]])
        compute_right_side(
            algebra, measurements, last, start, nodes, pattern.act, pattern.t[at : at + LEAVES_PER_CHUNK]
        )

    return patterns, [
        partial(measure, one, at) for one in patterns for at in range(0, len(one.members), LEAVES_PER_CHUNK)
    ]


def _measure_nodes(
    algebra: Algebra, measurements: Measurements, depth: int, start: int, rows: Ints, t: Floats, piece: slice
) -> None:
    """Measure some nodes of a level above the leaves, into ``t``."""
    nodes, every = rows[piece], np.arange(algebra.K)
    if len(rows) == len(t):  # the piece lies together
        compute_right_side(algebra, measurements, depth, start, nodes, every, t[piece])
    else:
        t[nodes] = compute_right_side(algebra, measurements, depth, start, nodes, every)


def _label_leaves(active: NDArray[np.bool_], start: Ints) -> Ints:
    """Return a number for each leaf, ordered by its active k and then its class (at most 64 k)."""
    place = np.arange(active.shape[1], dtype=np.uint64)[::-1]
    code = (active.astype(np.uint64) << place).sum(axis=1, dtype=np.uint64)
    codes, classes = (np.unique(x, return_inverse=True)[1].ravel() for x in (code, start))
    label: Ints = codes * (classes.max(initial=0) + 1) + classes
    return label


def compute_right_side(
    algebra: Algebra, measurements: Measurements, depth: int, start: int, nodes: Ints, act: Ints, out: Floats | None = None
) -> Floats:  # fmt: skip
    """$A'Wy$ of measured geounits on the rows ``act`` of the matrix axis; only answers that touch them are drawn."""
    weights = measurements.weights(start, depth)
    result = np.empty((len(nodes), len(act), algebra.S)) if out is None else out
    result[:] = 0.0
    for query, (numbers, place) in zip(algebra.queries, algebra.find_touched(act), strict=True):
        if query.name in weights:
            y = measurements.answers(depth, start, query, nodes, numbers)
            _weigh(y, weights[query.name], place, result)
    return result


@compile_kernel
def _weigh(y: Ints, weight: float, place: Ints, out: Floats) -> None:
    """Add the weighed answer that each cell counts in."""
    for node in range(out.shape[0]):
        for i in range(out.shape[1]):
            if place[i, 0] >= 0:
                for s in range(out.shape[2]):
                    out[node, i, s] += weight * np.float64(y[node, place[i, s]])


def _read_totals(constraints: Constraints, depth: int, size: int) -> Floats | None:
    for held, exact in zip(constraints.held, list_equalities(constraints), strict=True):
        # Above the level where totals are fixed they follow by summing.
        if held.whole and depth == len(held.low) - 1 and exact and size:
            return held.low[depth][:, 0].astype(float)
    return None


def list_equalities(constraints: Constraints) -> tuple[bool, ...]:
    """Return which constraints are equalities everywhere at their own level, over the whole tree."""
    if constraints.exact is not None:
        return constraints.exact
    return tuple(bool((held.low[-1] == held.high[-1]).all()) for held in constraints.held)


# Run the downward half of the tree estimate beside the solve: a level's parents need its estimates, not those below.


class DownwardPass:
    """The downward pass of the tree estimate, level by level, run by the threads that solve."""

    def __init__(self, informed: TreeEstimate) -> None:
        self.informed = informed
        self.ready = Crew(self._run_level).wait_for  # waits for the linear terms of a level, or makes them

    def _run_level(self, crew: Crew, depth: int) -> None:
        one = self.informed
        lowest = depth == len(one.levels)
        if depth:
            below = one.leaves if lowest else one.levels[depth]
            downward(one.algebra, one.levels[depth - 1], below, crew)
        if lowest:
            one.prepare_leaves(crew)
        else:
            one.prepare_level(depth, crew)


# Compute unbiased estimates with exact variances for marginals of every geounit, from the estimate over the whole tree.
#
# The generalised least-squares estimate is linear in the noisy measurements, so it has no bias and its variance is
# known exactly from the budget alone. It may be negative or fractional, and it is not the published, consistent number.

MAX_ANSWERS_KEPT = 128  # answers of a marginal beyond which its estimates are not kept
MAX_LEAF_NUMBERS = 4 * 10**9  # records × answers beyond which leaves have no marginals but smaller ones
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


def list_leaf_marginals(workload: Workload, records: int) -> tuple[Query, ...]:
    """Return the tables that are kept of leaves, the total first: the small ones where a census has very many records.

    >>> [len(list_leaf_marginals(Workload.preset("pl94-persons"), n)) for n in (1_000_000, 330_000_000)]
    [11, 4]
    """
    found = list_marginals(workload)
    answers, most = 0, 1
    for query in sorted(found, key=lambda query: query.size):
        answers += query.size
        most = query.size if answers * records <= MAX_LEAF_NUMBERS else most
    return tuple(query for query in found if query.size <= most)


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
    workload: Workload,
    spine: Tree,
    informed: TreeEstimate,
    above: Floats | None,
    marginals: Sequence[Query],
    *,
    bureau: bool = False,
) -> Iterator[pa.Table]:
    """Yield each of the ``marginals`` of the leaves; ``above`` holds their parents' covariances.

    Totals are of every leaf, the others of what a leaf can have.
    """
    last = len(spine.levels) - 1
    for query in marginals:
        value, variance = estimate_leaves_answers(informed, above, query)
        if informed.measurements.key is None:
            variance = 0.0 * variance
        rows = _build_rows(workload, spine, last, query, value, variance, bureau)
        yield rows if query.size == 1 else rows.filter(pa.array(((value != 0) | (variance != 0)).ravel()))


def build_schema(workload: Workload, *, bureau: bool = False) -> pa.Schema:
    """Return the columns of the tables of unbiased estimates."""
    names = dict(workload.columns) if bureau else {}
    axes = [(name_column(axis, names)[0], pa.int16()) for axis in workload.histogram.axes]
    return pa.schema([
        ("level", pa.string()), ("code", pa.string()), *axes,
        ("estimate", pa.float64()), ("standard_deviation", pa.float64()),
    ])  # fmt: skip


def estimate_leaves_answers(
    informed: TreeEstimate, above: Floats | None, query: Query
) -> tuple[Floats, Floats]:
    r"""Return a marginal of the leaves and its variances: $r'(C + C M C)r$ with $M = V^+(C^e_p - V)V^+$ of the parent.

    ``above`` holds the parents' covariances. What a leaf cannot have is 0, with variance 0.
    """
    algebra, leaves = informed.algebra, informed.leaves
    value, variance = (np.zeros((len(leaves.parent), query.size)) for _ in range(2))
    index = query.of(algebra.layout.ravel()).reshape(algebra.K, algebra.S)
    R, T = _sum_groups(algebra.recode(query)), algebra.find_kept_axes(query)
    number = np.zeros((query.size, 1), np.int64)  # the group of each answer
    number[index, 0] = algebra.recode(query)[:, None]
    middle: Floats | None = None
    if above is not None:
        level = informed.levels[-1]
        inverse = np.linalg.pinv(level.V, rcond=1e-11, hermitian=True)
        middle = inverse @ (above - level.V) @ inverse
    for pattern in leaves.patterns:
        act = pattern.act
        value[pattern.members] = _sum_answers(pattern.e, index[act], query.size)
        parents, child = np.unique(leaves.parent[pattern.members], return_inverse=True)
        found = np.zeros((len(parents), len(R)))
        for f, factor in _weigh_components(algebra, T):
            seen = R[:, act] @ pattern.C[f]
            found += factor * (seen * R[:, act]).sum(axis=1)
            if middle is not None:
                between = np.ascontiguousarray(middle[parents, f][:, act][:, :, act])
                found += factor * compute_spreads(seen, between)
        variance[pattern.members] = found[child][:, number[:, 0]]
    return value, variance


def _estimate_answers(
    informed: TreeEstimate, e: Floats, covariance: Floats, query: Query
) -> tuple[Floats, Floats]:
    """Return a marginal of estimates e (N, K, S) and its variances (both N × answers)."""
    algebra = informed.algebra
    index = query.of(algebra.layout.ravel()).reshape(algebra.K, algebra.S)
    value = _sum_answers(e, index, query.size)
    recode = algebra.recode(query)
    by_group = variances(algebra, covariance, recode, algebra.find_kept_axes(query))
    group = np.zeros(query.size, np.int64)
    group[index] = recode[:, None]
    return value, by_group[:, group]


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
