r"""Generalised least squares over the whole tree in closed form: best linear unbiased estimates with exact variances.

Upward, a node's own measurements and the sum of its children's estimates are combined; downward, what the node learnt
from above is shared among its children by their covariances (Cumings-Menon 2024, in the algebra of ``algebra``).
Everything is post-processing of the noisy measurements and exact invariants.

The result of a node is the same, to the last bit, whichever other nodes are computed with it: sums over children run
in the order of the spine, sums over cells in a fixed order (``sum_in_order``, ``compute_spreads``), and products, inverses and
eigenvalues of stacked matrices are one small LAPACK or BLAS call each (at most 64 × 64, below every size at which
OpenBLAS starts a second thread). So a subtree can be computed separately and joined at its root.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from stirred.compiled import compile_kernel
from stirred.engine.base import Runner
from stirred.mechanisms.topdown.estimate.algebra import Algebra

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
    m = int(recode.max()) + 1
    R = np.zeros((m, algebra.K))
    R[recode[recode >= 0], np.flatnonzero(recode >= 0)] = 1.0
    result = np.zeros((len(C), m))
    for f in range(algebra.parts):
        factor = 1.0
        for bit, i in enumerate(algebra.symmetric):
            n = algebra.histogram.shape[i]
            if T >> bit & 1:
                factor *= 1.0 - 1.0 / n if f >> bit & 1 else 1.0 / n
            else:
                factor *= 0.0 if f >> bit & 1 else n
        if factor:
            result += factor * compute_spreads(R, np.ascontiguousarray(C[:, f]))
    return result


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
