"""The linear terms of every geounit for the top-down solve, from the best estimate over the whole tree (mode gls)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from stirred.compiled import compile_kernel
from stirred.engine import Local
from stirred.engine.base import Runner
from stirred.mechanisms.topdown.estimate import gls
from stirred.mechanisms.topdown.estimate.algebra import Algebra
from stirred.mechanisms.topdown.measure.noise import Measurements
from stirred.mechanisms.topdown.rules.constraints import Constraints

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
LEAVES_PER_CHUNK = 1024  # leaves measured at a time


@dataclass(slots=True)
class TreeEstimate:
    """Best linear unbiased estimates over the whole tree, and the linear terms made from them (mode gls)."""

    algebra: Algebra
    measurements: Measurements
    levels: list[gls.Level]
    leaves: gls.Leaves
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
        gls.run_downward(result.algebra, result.levels, result.leaves, engine=engine)
        result.prepare(engine)
        return result

    @classmethod
    def estimate_upward(
        cls, measurements: Measurements, constraints: Constraints, engine: Runner | None = None
    ) -> "TreeEstimate":
        """Measure everything and run the pass upward, after which the root is known."""
        algebra = require_algebra(measurements, constraints)
        levels, leaves = build_noisy_tree(algebra, measurements, constraints, engine or Local(workers=1))
        gls.run_upward(algebra, levels, leaves, engine=engine)
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
        gls.run_tasks(tasks, engine)
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
        gls.run_tasks(tasks, engine)

    def _apply_precision(
        self, P: Floats, e: Floats, rows: Ints | None, out: Floats, engine: Runner | None
    ) -> list[Callable[[], None]]:
        """Return tasks that write linear terms of nodes of one class (None: all) into ``out``."""

        def work(piece: slice) -> None:
            if rows is None:
                self.algebra.apply(P, e[piece], out=out[piece])
            else:
                out[rows[piece]] = self.algebra.apply(P, e[rows[piece]])

        return [
            partial(work, piece) for piece in gls.split_pieces(len(e) if rows is None else len(rows), engine)
        ]

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
) -> tuple[list[gls.Level], gls.Leaves]:
    """Build the noisy tree for the two passes, from level ``top`` down; levels above are empty."""
    spine = measurements.allotment.spine
    last = len(spine.levels) - 1
    levels, tasks = _build_levels(algebra, measurements, constraints, range(top, last), engine)
    totals = _read_totals(constraints, last, spine.size(last))
    leaves = gls.Leaves(spine.parent[last], [])

    def every() -> Iterator[Callable[[], None]]:
        # all levels together: no thread waits for the last of a level
        yield from tasks
        leaves.patterns, more = _build_patterns(algebra, measurements, constraints, totals)
        yield from more

    gls.run_tasks(every(), engine)
    return levels, leaves


def measure_levels(
    algebra: Algebra, measurements: Measurements, constraints: Constraints, depths: range
) -> list[gls.Level]:
    """Measure levels above the leaves; those above the first one asked for are empty."""
    levels, tasks = _build_levels(algebra, measurements, constraints, depths, None)
    gls.run_tasks(tasks, None)
    return levels


def _build_levels(
    algebra: Algebra, measurements: Measurements, constraints: Constraints, depths: range, engine: Runner | None
) -> tuple[list[gls.Level], list[Callable[[], None]]]:  # fmt: skip
    """Return the levels, and the tasks that measure them."""
    tasks: list[Callable[[], None]] = []
    allotment = measurements.allotment
    none = np.empty(0, np.int64)
    empty = np.zeros((0, algebra.K, algebra.S))
    levels = [gls.Level(none, none, np.empty(0), empty, e=empty) for _ in range(depths.start)]
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
            tasks += [partial(measured, piece) for piece in gls.split_pieces(len(rows), engine)]
            P.append(algebra.information(measurements.weights(a, d)))
        levels.append(gls.Level(allotment.spine.parent[d], kind, np.stack(P[1:] or P), t, totals))
    return levels, tasks


def _build_patterns(
    algebra: Algebra, measurements: Measurements, constraints: Constraints, totals: Floats | None
) -> tuple[list[gls.Pattern], list[Callable[[], None]]]:
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
            patterns.append(gls.Pattern(members, act, P, t, None if totals is None else totals[members]))

    def measure(pattern: gls.Pattern, at: int) -> None:
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
