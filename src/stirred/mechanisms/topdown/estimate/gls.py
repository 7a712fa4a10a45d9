r"""Generalised least squares over the whole tree in closed form: best linear unbiased estimates with exact variances.

Upward, a node's own measurements and the sum of its children's estimates are combined; downward, what the node learnt
from above is shared among its children by their covariances (Cumings-Menon 2024, in the algebra of ``algebra``).
Everything is post-processing of the noisy measurements and exact invariants.

The result of a node is the same, to the last bit, whichever other nodes are computed with it: sums over children run
in the order of the spine, sums over cells in a fixed order (``sums``, ``spreads``), and products, inverses and
eigenvalues of stacked matrices are one small LAPACK or BLAS call each (at most 64 × 64, below every size at which
OpenBLAS starts a second thread). So a subtree can be computed separately and joined at its root.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from stirred.compiled import compiled
from stirred.mechanisms.topdown.estimate.algebra import Algebra

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(slots=True)
class Pattern:
    """Leaves with the same active k, the same weights and the same kind of total: they share one covariance."""

    members: Ints
    act: Ints
    information: Floats  # (F, K, K)
    t: Floats  # (members, act, S)
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


def fixed(algebra: Algebra, C: Floats) -> tuple[Floats, Floats]:
    """The gain and the covariance once the total is known: only the all-means component changes."""
    flat = np.ascontiguousarray(C[..., 0, :, :])
    K = C.shape[-1]
    v = sums(flat.reshape(-1, K)).reshape(*C.shape[:-3], K)
    s = sums(v.reshape(-1, K)).reshape(*C.shape[:-3], 1)
    safe = np.where(s > 0, s, 1.0)
    C = C.copy()
    C[..., 0, :, :] -= v[..., :, None] * v[..., None, :] / safe[..., None]
    return v / safe / algebra.S, C


def leaf(algebra: Algebra, pattern: Pattern) -> None:
    """Leaves have only their own measurements: $C_f = P_f^{-1}$ on the active k."""
    act = pattern.act
    pattern.C = np.linalg.inv(np.ascontiguousarray(pattern.information[:, act][:, :, act]))
    pattern.b = algebra.apply(pattern.C[None], pattern.t)
    if pattern.total is not None:
        gain, pattern.C = fixed(algebra, pattern.C)
        pattern.b += gain[:, None] * (pattern.total - sums(pattern.b))[:, None, None]


def gathered(algebra: Algebra, nodes: int, below: "Level | Leaves") -> tuple[Floats, Floats]:
    """The sums over children of estimates and covariances."""
    S = np.zeros((nodes, algebra.K, algebra.S))
    V = np.zeros((nodes, algebra.parts, algebra.K, algebra.K))
    if isinstance(below, Level):
        np.add.at(S, below.parent, below.b)
        np.add.at(V, below.parent, below.C)
        return S, V
    for pattern in below.patterns:
        parents = below.parent[pattern.members]
        for i, k in enumerate(pattern.act):
            np.add.at(S[:, k], parents, pattern.b[:, i])
        count = np.bincount(parents, minlength=nodes)
        hit = np.flatnonzero(count)
        C = np.zeros(V.shape[1:])
        C[np.ix_(np.arange(algebra.parts), pattern.act, pattern.act)] = pattern.C
        V[hit] += count[hit, None, None, None] * C
    return S, V


def upward(algebra: Algebra, level: Level, below: "Level | Leaves") -> None:
    """$C = (I + VP)^{-1}V$, $b = S + C(t - PS)$ with V and S the children's sums; no inverse of V is needed."""
    level.sums, level.V = gathered(algebra, len(level.parent), below)
    measured = level.kind >= 0
    level.C = level.V.copy()
    level.b = level.sums.copy()
    if measured.any():
        P, V = level.information[level.kind[measured]], level.V[measured]
        half = np.linalg.solve(np.eye(algebra.K) + V @ P, V)
        C = (0.5 * (half + np.swapaxes(half, -1, -2))).astype(np.float64)
        level.C[measured] = C
        rest = level.t[measured] - algebra.apply(P, level.sums[measured])
        level.b[measured] += algebra.apply(C, rest)
    if level.total is not None:
        at = np.flatnonzero(~np.isnan(level.total))
        gain, changed = fixed(algebra, level.C[at])
        level.b[at] += (gain * (level.total[at] - sums(level.b[at]))[:, None])[:, :, None]
        level.C[at] = changed


def downward(algebra: Algebra, level: Level, below: "Level | Leaves") -> None:
    """$e_c = b_c + C_c V^+ (e_p - S)$: the children's estimates add up to their parent's."""
    inverse: Floats = np.linalg.pinv(level.V, rcond=1e-11, hermitian=True).astype(np.float64)
    surprise = algebra.apply(inverse, level.e - level.sums)
    if isinstance(below, Level):
        below.e = below.b + algebra.apply(below.C, surprise[below.parent])
        return
    for pattern in below.patterns:
        pattern.e = pattern.b.copy()
        if len(pattern.act):
            news = np.ascontiguousarray(surprise[below.parent[pattern.members]][:, pattern.act])
            pattern.e += algebra.apply(pattern.C[None], news)


def rise(algebra: Algebra, levels: Sequence[Level], below: Leaves | Level, top: int = 0) -> None:
    """From the leaves up to level ``top``: every node knows what is measured in it and below it.

    ``below`` are the leaves, or a level whose nodes know this already.
    """
    if isinstance(below, Leaves):
        for pattern in below.patterns:
            leaf(algebra, pattern)
    for level in reversed(levels[top:]):
        upward(algebra, level, below)
        below = level


def fall(algebra: Algebra, levels: Sequence[Level], below: Leaves | Level, top: int = 0) -> None:
    """From level ``top``, whose ``e`` is known, down to the leaves or to a level above them."""
    for i in range(top, len(levels)):
        downward(algebra, levels[i], levels[i + 1] if i + 1 < len(levels) else below)


def estimate(algebra: Algebra, levels: Sequence[Level], below: Leaves | Level) -> None:
    """Both passes over a tree given from the root down; fills ``e`` of every node."""
    rise(algebra, levels, below)
    root = levels[0] if levels else below
    if isinstance(root, Leaves):
        for pattern in root.patterns:
            pattern.e = pattern.b
        return
    root.e = root.b
    fall(algebra, levels, below)


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
    """Variances of a marginal's answers (N, groups) from covariances by component; the same for all its kept cells."""
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
            result += factor * spreads(R, np.ascontiguousarray(C[:, f]))
    return result


@compiled
def _sums(x: Floats, out: Floats) -> None:
    for i in range(x.shape[0]):
        total = 0.0
        for j in range(x.shape[1]):
            total += x[i, j]
        out[i] = total


def sums(x: Floats) -> Floats:
    """Sums over all but the first axis, one after the other: the same bits however many rows there are.

    >>> sums(np.ones((2, 3, 4))).tolist()
    [12.0, 12.0]
    """
    out = np.empty(len(x))
    _sums(np.ascontiguousarray(x).reshape(len(x), -1) if x.size else np.zeros((len(x), 0)), out)
    return out


@compiled
def _spreads(R: Floats, C: Floats, out: Floats) -> None:
    for n in range(C.shape[0]):
        for a in range(R.shape[0]):
            total = 0.0
            for k in range(C.shape[1]):
                if R[a, k] != 0.0:
                    for m in range(C.shape[2]):
                        total += R[a, k] * C[n, k, m] * R[a, m]
            out[n, a] = total


def spreads(R: Floats, C: Floats) -> Floats:
    """$r_a' C_n r_a$ for every node n and row a."""
    out = np.empty((len(C), len(R)))
    _spreads(R, C, out)
    return out
