"""The closed form over the tree against brute-force generalised least squares on all leaf cells."""

import numpy as np
import pytest

from stirred.mechanisms.topdown.estimate import whole_tree
from stirred.mechanisms.topdown.estimate.algebra import Algebra
from stirred.mechanisms.topdown.histogram import Histogram, HistogramAxis

H = Histogram(
    axes=(
        HistogramAxis(name="hhgq", size=3, recodes={"inst": (0, 1, 1)}),
        HistogramAxis(name="votingage", size=2),
        HistogramAxis(name="hispanic", size=2),
        HistogramAxis(name="cenrace", size=4),
    )
)
QUERIES = [
    H.query("total", ()),
    H.query("cenrace", ("cenrace",)),
    H.query("inst", ("inst",)),
    H.query("hispanic * cenrace", ("hispanic", "cenrace")),
    H.query("votingage * cenrace", ("votingage", "cenrace")),
    H.query("detailed", ("hhgq", "votingage", "hispanic", "cenrace")),
]


def matrix(query):
    index = query.of(np.arange(H.cells))
    A = np.zeros((query.size, H.cells))
    A[index[index >= 0], np.flatnonzero(index >= 0)] = 1
    return A


def build(rng, *, totals):
    """A random three-level tree with measurements; returns the passes' input and the brute-force answer."""
    algebra = Algebra.of(H, QUERIES, ("hhgq", "votingage"))
    parents = [np.zeros(1, int) - 1, np.zeros(2, int), np.array([0, 0, 1, 1, 1])]
    leaves = len(parents[2])
    active = rng.random((leaves, algebra.K)) < 0.7
    active[:, 0] = True
    unknown = [
        (leaf, cell)
        for leaf in range(leaves)
        for cell in range(H.cells)
        if active[leaf, algebra.position[cell] // algebra.S]
    ]
    column = {u: i for i, u in enumerate(unknown)}
    to_leaf = np.zeros((leaves, H.cells, len(unknown)))
    for (leaf, cell), i in column.items():
        to_leaf[leaf, cell, i] = 1
    to_node = [
        to_leaf.sum(axis=0)[None],
        np.stack([to_leaf[parents[2] == i].sum(axis=0) for i in range(2)]),
        to_leaf,
    ]
    rows, answers, scale = [], [], []
    levels, patterns = [], []
    for depth in range(3):
        N = len(parents[depth])
        weights = {
            q.name: float(rng.uniform(0.1, 2)) for q in QUERIES if q.name == "detailed" or rng.random() < 0.8
        }
        t = np.zeros((N, H.cells))
        for node in range(N):
            for q in QUERIES:
                if q.name in weights:
                    A = matrix(q)
                    y = rng.normal(20, 10, q.size)
                    rows.append(A @ to_node[depth][node])
                    answers.append(y)
                    scale.append(np.full(q.size, weights[q.name]))
                    t[node] += weights[q.name] * A.T @ y
        t = t[:, algebra.layout]
        P = algebra.information(weights)
        if depth < 2:
            levels.append(whole_tree.Level(parents[depth], np.zeros(N, int), P[None], t))
        else:
            for leaf in range(leaves):
                act = np.flatnonzero(active[leaf])
                patterns.append(
                    whole_tree.Pattern(np.array([leaf]), act, P, np.ascontiguousarray(t[[leaf]][:, act]))
                )
    fixed = []
    if totals == "root":
        levels[0].total = np.array([777.0])
        fixed.append((to_node[0][0].sum(axis=0), 777.0))
    if totals == "children":
        levels[1].total = np.array([300.0, 400.0])
        fixed += [(to_node[1][i].sum(axis=0), v) for i, v in enumerate((300.0, 400.0))]
    if totals == "leaves":
        for leaf, pattern in enumerate(patterns):
            pattern.total = np.array([50.0 + leaf])
            fixed.append((to_leaf[leaf].sum(axis=0), 50.0 + leaf))
    M, y, w = np.concatenate(rows), np.concatenate(answers), np.concatenate(scale)
    information = M.T @ (w[:, None] * M)
    if fixed:
        E, v = np.stack([row for row, _ in fixed]), np.array([value for _, value in fixed])
        k = len(E)
        kkt = np.block([[information, E.T], [E, np.zeros((k, k))]])
        inverse = np.linalg.inv(kkt)
        x = (inverse @ np.r_[M.T @ (w * y), v])[: len(unknown)]
        cov = inverse[: len(unknown), : len(unknown)]
    else:
        cov = np.linalg.inv(information)
        x = cov @ (M.T @ (w * y))
    return algebra, levels, whole_tree.Leaves(parents[2], patterns), to_node, x, cov


@pytest.mark.parametrize("totals", ["none", "root", "children", "leaves"])
@pytest.mark.parametrize("seed", range(3))
def test_tree_estimate_equals_brute_force(seed, totals):
    algebra, levels, leaves, to_node, x, cov = build(np.random.default_rng(seed), totals=totals)
    whole_tree.estimate_tree(algebra, levels, leaves)
    for depth, level in enumerate(levels):
        truth = (to_node[depth] @ x)[:, algebra.layout]
        assert np.abs(level.e - truth).max() < 1e-9
    for pattern in leaves.patterns:
        truth = (to_node[2][pattern.members[0]] @ x)[algebra.layout][pattern.act]
        assert np.abs(pattern.e[0] - truth).max() < 1e-9
    C = whole_tree.covariances(algebra, levels, leaves)
    for depth in range(3):
        for q in QUERIES:
            got = whole_tree.variances(algebra, C[depth], algebra.recode(q), algebra.find_kept_axes(q))
            A = matrix(q)
            for node in range(len(to_node[depth])):
                B = A @ to_node[depth][node]
                want = np.diag(B @ cov @ B.T)
                table = algebra.answers[[p.name for p in QUERIES].index(q.name)]
                for group in range(len(table)):
                    assert np.abs(want[table[group]] - got[node, group]).max() < 1e-9


def test_a_wrong_component_weight_is_noticed():
    """The mutant that forgets the multiplicity of a summed axis is far from brute force."""
    algebra, levels, leaves, to_node, x, _ = build(np.random.default_rng(0), totals="none")
    levels[0].information = levels[0].information / np.array([8.0, 4.0, 2.0, 1.0])[None, :, None, None]
    whole_tree.estimate_tree(algebra, levels, leaves)
    assert np.abs(levels[0].e - (to_node[0] @ x)[:, algebra.layout]).max() > 1e-3
