r"""Generalised least squares over the whole tree in closed form: best linear unbiased estimates with exact variances.

Upward, a node's own measurements and the sum of its children's estimates are combined; downward, what the node learnt
from above is shared among its children by their covariances (Cumings-Menon 2024, in the algebra of ``algebra``).
Everything is post-processing of the noisy measurements and exact invariants.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from stirred.mechanisms.topdown.algebra import Algebra

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
    v = C[..., 0, :, :].sum(axis=-1)
    s = v.sum(axis=-1, keepdims=True)
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
        pattern.b += gain[:, None] * (pattern.total - pattern.b.sum(axis=(1, 2)))[:, None, None]


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
        level.b[at] += (gain * (level.total[at] - level.b[at].sum(axis=(1, 2)))[:, None])[:, :, None]
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


def estimate(algebra: Algebra, levels: Sequence[Level], leaves: Leaves) -> None:
    """Both passes over a tree given from the root down; fills ``e`` of every node."""
    for pattern in leaves.patterns:
        leaf(algebra, pattern)
    below: Level | Leaves = leaves
    for level in reversed(levels):
        upward(algebra, level, below)
        below = level
    if not levels:
        for pattern in leaves.patterns:
            pattern.e = pattern.b
        return
    levels[0].e = levels[0].b
    for i, level in enumerate(levels):
        downward(algebra, level, levels[i + 1] if i + 1 < len(levels) else leaves)


def covariances(
    algebra: Algebra, levels: Sequence[Level], leaves: Leaves, *, leaves_too: bool = True
) -> list[Floats]:
    """Exact covariances after both passes by component (N, F, K, K): $C_c + A (C^e_p - V) A'$ with $A = C_c V^+$."""
    result = [levels[0].C] if levels else []
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
            result += factor * np.einsum("ak,nkl,al->na", R, C[:, f], R)
    return result
