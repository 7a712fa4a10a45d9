"""The linear terms of every geounit for the top-down solve, from the best estimate over the whole tree (mode gls)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from stirred.compiled import compiled
from stirred.engine import Local
from stirred.engine.base import Runner
from stirred.mechanisms.topdown.estimate import gls
from stirred.mechanisms.topdown.estimate.algebra import Algebra
from stirred.mechanisms.topdown.measure.noise import Measurements
from stirred.mechanisms.topdown.rules.constraints import Constraints

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
CHUNK = 1024  # leaves measured at a time


@dataclass(slots=True)
class Informed:
    """GLS: every query answered from the best linear unbiased estimate over the whole tree, with the original weights."""

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
    ) -> "Informed":
        """Measure everything, run both passes, and keep the linear terms."""
        result = cls.risen(measurements, constraints, engine)
        gls.fall(result.algebra, result.levels, result.leaves, engine=engine)
        result.prepare(engine)
        return result

    @classmethod
    def risen(
        cls, measurements: Measurements, constraints: Constraints, engine: Runner | None = None
    ) -> "Informed":
        """Measure everything and run the pass upward, after which the root is known."""
        algebra = algebra_of(measurements, constraints)
        levels, leaves = tree(algebra, measurements, constraints, engine or Local(workers=1))
        gls.rise(algebra, levels, leaves, engine=engine)
        for root in levels[:1] or leaves.patterns:
            root.e = root.b
        return cls(algebra, measurements, levels, leaves)

    def prepare(self, engine: Runner | None = None) -> None:
        """The linear terms of every node whose estimate is known."""
        for depth in range(len(self.levels)):
            self.prepare_level(depth, engine)
        self.prepare_leaves(engine)

    def prepare_level(self, depth: int, engine: Runner | None = None) -> None:
        """The linear terms of a level above the leaves, after those above it."""
        allotment, level = self.measurements.allotment, self.levels[depth]
        holder, node = allotment.holder(depth, np.arange(len(level.parent)))
        out = np.empty_like(level.e)
        starts = np.full(len(holder), -1, np.int64)
        tasks: list[Callable[[], None]] = []
        for h in np.unique(holder):
            starts[holder == h] = allotment.start[h][node[holder == h]]
        for h, a in np.unique(np.stack([holder, starts], axis=1), axis=0).tolist():
            rows = np.flatnonzero((holder == h) & (starts == a))
            P = self.algebra.information(self.measurements.solve_weights(a, h))[None]
            tasks += self._applied(P, level.e, None if len(rows) == len(out) else rows, out, engine)
        gls.all_done(tasks, engine)
        self.upper.append(out)

    def prepare_leaves(self, engine: Runner | None = None) -> None:
        """The linear terms of the leaves."""
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
            tasks += self._applied(P, pattern.e, None, out, engine)
            self.pattern[pattern.members] = number
            self.rows[number, act] = np.arange(len(act))
            self.offset[pattern.members] = at + np.arange(len(pattern.members)) * len(act) * S
            at += out.size
        gls.all_done(tasks, engine)

    def _applied(
        self, P: Floats, e: Floats, rows: Ints | None, out: Floats, engine: Runner | None
    ) -> list[Callable[[], None]]:
        """Linear terms of some nodes of one class (None: of all), into ``out``, as tasks."""

        def work(piece: slice) -> None:
            if rows is None:
                self.algebra.apply(P, e[piece], out=out[piece])
            else:
                out[rows[piece]] = self.algebra.apply(P, e[rows[piece]])

        return [partial(work, piece) for piece in gls.pieces(len(e) if rows is None else len(rows), engine)]

    def linear(self, depth: int, nodes: Ints, cells: Ints, only: frozenset[str] | None = None) -> Floats:  # noqa: ARG002
        """Nodes × cells; zero where a leaf cannot have the cell."""
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
    """Whether the tree of a run can be estimated as a whole."""
    return _algebra(measurements, constraints).fits and measurements.every_leaf


def algebra_of(measurements: Measurements, constraints: Constraints) -> Algebra:
    """The closed form of a run; raises an error if there is none."""
    algebra = _algebra(measurements, constraints)
    algebra.require()
    measurements.require_every_leaf()
    return algebra


def _algebra(measurements: Measurements, constraints: Constraints) -> Algebra:
    workload = measurements.allotment.workload
    return Algebra.of(workload.histogram, workload.queries, constraints.asymmetric())


def tree(
    algebra: Algebra, measurements: Measurements, constraints: Constraints, engine: Runner, top: int = 0
) -> tuple[list[gls.Level], gls.Leaves]:
    """The noisy tree in the form of the two passes, from level ``top`` down (empty levels above)."""
    spine = measurements.allotment.spine
    last = len(spine.levels) - 1
    levels, tasks = _levels(algebra, measurements, constraints, range(top, last), engine)
    totals = _totals(constraints, last, spine.size(last))
    leaves = gls.Leaves(spine.parent[last], [])

    def every() -> Iterator[Callable[[], None]]:
        # all levels together: no thread waits for the last of a level
        yield from tasks
        leaves.patterns, more = _patterns(algebra, measurements, constraints, totals)
        yield from more

    gls.all_done(every(), engine)
    return levels, leaves


def noisy_levels(
    algebra: Algebra, measurements: Measurements, constraints: Constraints, depths: range
) -> list[gls.Level]:
    """The measurements of levels above the leaves; those above the first asked for are empty."""
    levels, tasks = _levels(algebra, measurements, constraints, depths, None)
    gls.all_done(tasks, None)
    return levels


def _levels(
    algebra: Algebra, measurements: Measurements, constraints: Constraints, depths: range, engine: Runner | None
) -> tuple[list[gls.Level], list[Callable[[], None]]]:  # fmt: skip
    """The same, and the tasks that measure them."""
    tasks: list[Callable[[], None]] = []
    allotment = measurements.allotment
    none = np.empty(0, np.int64)
    empty = np.zeros((0, algebra.K, algebra.S))
    levels = [gls.Level(none, none, np.empty(0), empty, e=empty) for _ in range(depths.start)]
    for d in depths:
        totals = _totals(constraints, d, allotment.spine.size(d))
        start = allotment.start[d]
        classes = [int(a) for a in np.unique(start[start >= 0])]
        kind = np.full(len(start), -1, np.int64)
        t = np.zeros((len(start), algebra.K, algebra.S))
        P = [np.zeros((algebra.parts, algebra.K, algebra.K))]
        for number, a in enumerate(classes):
            rows = np.flatnonzero(start == a)
            kind[rows] = number
            measured = partial(_measured, algebra, measurements, d, a, rows, t)
            tasks += [partial(measured, piece) for piece in gls.pieces(len(rows), engine)]
            P.append(algebra.information(measurements.weights(a, d)))
        levels.append(gls.Level(allotment.spine.parent[d], kind, np.stack(P[1:] or P), t, totals))
    return levels, tasks


def _patterns(
    algebra: Algebra, measurements: Measurements, constraints: Constraints, totals: Floats | None
) -> tuple[list[gls.Pattern], list[Callable[[], None]]]:
    """Leaves by what they may hold, and the tasks that measure them."""
    allotment = measurements.allotment
    last = len(allotment.spine.levels) - 1
    nodes = np.arange(allotment.spine.size(last))
    column = algebra.layout[:, 0]
    active = constraints.allowed(last, nodes, column) & constraints.possible(column)
    label = _labels(active, allotment.start[last])
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
        nodes = pattern.members[at : at + CHUNK]
        start = int(allotment.start[last][nodes[0]])
        right_side(algebra, measurements, last, start, nodes, pattern.act, pattern.t[at : at + CHUNK])

    return patterns, [
        partial(measure, one, at) for one in patterns for at in range(0, len(one.members), CHUNK)
    ]


def _measured(
    algebra: Algebra, measurements: Measurements, depth: int, start: int, rows: Ints, t: Floats, piece: slice
) -> None:
    """Measure some nodes of a level above the leaves, into ``t``."""
    nodes, every = rows[piece], np.arange(algebra.K)
    if len(rows) == len(t):  # the piece lies together
        right_side(algebra, measurements, depth, start, nodes, every, t[piece])
    else:
        t[nodes] = right_side(algebra, measurements, depth, start, nodes, every)


def _labels(active: NDArray[np.bool_], start: Ints) -> Ints:
    """A number for each leaf, in the order of its active k and then of its class (at most 64 k)."""
    place = np.arange(active.shape[1], dtype=np.uint64)[::-1]
    code = (active.astype(np.uint64) << place).sum(axis=1, dtype=np.uint64)
    codes, classes = (np.unique(x, return_inverse=True)[1].ravel() for x in (code, start))
    label: Ints = codes * (classes.max(initial=0) + 1) + classes
    return label


def right_side(
    algebra: Algebra, measurements: Measurements, depth: int, start: int, nodes: Ints, act: Ints, out: Floats | None = None
) -> Floats:  # fmt: skip
    """$A'Wy$ of measured geounits on the rows ``act`` of the matrix axis; only answers that touch them are drawn."""
    weights = measurements.weights(start, depth)
    result = np.empty((len(nodes), len(act), algebra.S)) if out is None else out
    result[:] = 0.0
    for query, (numbers, place) in zip(algebra.queries, algebra.touched(act), strict=True):
        if query.name in weights:
            y = measurements.answers(depth, start, query, nodes, numbers)
            _weigh(y, weights[query.name], place, result)
    return result


@compiled
def _weigh(y: Ints, weight: float, place: Ints, out: Floats) -> None:
    """Add the weighed answer that each cell counts in."""
    for node in range(out.shape[0]):
        for i in range(out.shape[1]):
            if place[i, 0] >= 0:
                for s in range(out.shape[2]):
                    out[node, i, s] += weight * np.float64(y[node, place[i, s]])


def _totals(constraints: Constraints, depth: int, size: int) -> Floats | None:
    for held, exact in zip(constraints.held, exactly(constraints), strict=True):
        # Above the level where totals are fixed they follow by summing.
        if held.whole and depth == len(held.low) - 1 and exact and size:
            return held.low[depth][:, 0].astype(float)
    return None


def exactly(constraints: Constraints) -> tuple[bool, ...]:
    """Which constraints are equalities everywhere at their own level: a fact about the whole tree."""
    if constraints.exact is not None:
        return constraints.exact
    return tuple(bool((held.low[-1] == held.high[-1]).all()) for held in constraints.held)
