"""Solve and round the few parents whose held sums cross: PIQP for least squares, HiGHS for whole numbers.

Sums that are nested are held by multipliers and rounded by a network, which is fast and exact (``parent``, ``rounding``).
Sums that cross may have no solution near a given parent, and then nothing but a general solver can tell.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from stirred._support import OptionalModule
from stirred.errors import InfeasibleError
from stirred.mechanisms.topdown.solve.parent import (
    HeldSums,
    ParentProblem,
    Solution,
    list_sums,
    measure_violation,
    merge_equal_queries,
)
from stirred.mechanisms.topdown.solve.rounding import FREE

Floats = NDArray[np.float64]
_WHY = "a parent whose constraints cross needs a general solver"
piqp: Any = OptionalModule("piqp", "solver", why=_WHY)
highspy: Any = OptionalModule("highspy", "solver", why=_WHY)


def build_structure(problem: ParentProblem) -> dict[str, Any]:
    """Return the sparse matrices of the lifted problem, which parents of one shape share.

    Variables are the allowed cells and, for every query that groups cells, one sum per child and group; the
    objective is then diagonal. Equalities: each sum, the parent's cells, and held sums with equal bounds; bounds that
    nothing non-negative below this parent can break are left out.
    """
    C, n = problem.linear.shape
    gid, w, diag = merge_equal_queries(problem.groups, problem.weights)
    child, cell = np.nonzero(problem.allowed)
    N = len(child)
    number = np.full((C, n), -1)
    number[child, cell] = np.arange(N)
    rows, cols, values, quadratic = [], [], [], [diag[problem.classes[child]]]
    at, lifted = 0, N
    for q in range(len(gid)):
        if not w[:, q].any():
            continue
        m = int(gid[q].max()) + 1
        inside = gid[q][cell] >= 0
        rows += [at + child[inside] * m + gid[q][cell][inside], at + np.arange(C * m)]
        cols += [np.flatnonzero(inside), lifted + np.arange(C * m)]
        values += [np.ones(int(inside.sum())), -np.ones(C * m)]
        quadratic.append(np.repeat(w[problem.classes, q], m))
        at += C * m
        lifted += C * m
    live = np.flatnonzero(problem.allowed.any(axis=0))
    position = np.full(n, -1)
    position[live] = np.arange(len(live))
    rows.append(at + position[cell])
    cols.append(np.arange(N))
    values.append(np.ones(N))
    parent_at = at
    at += len(live)
    equal = [
        sparse.csc_matrix(
            (np.concatenate(values), (np.concatenate(rows), np.concatenate(cols))), shape=(at, lifted)
        )
    ]
    bounded, rows_of = [], []
    for held in list_sums(problem):
        matrix = _build_held_rows(held, child, cell, lifted)
        inside = held.groups >= 0
        most = np.bincount(held.groups[inside], problem.parent[inside], minlength=held.low.shape[1])
        # Fixed sums are equations: an interval without interior stops an interior-point method.
        fixed = held.low == held.high
        binding = ~fixed & ((held.low > 0) | (held.high < most))
        rows_of.append((np.flatnonzero(fixed), np.flatnonzero(binding)))
        equal.append(matrix[rows_of[-1][0]])
        bounded.append(matrix[rows_of[-1][1]])
    G = sparse.csc_matrix(sparse.vstack(bounded)) if any(m.shape[0] for m in bounded) else None
    A, P = sparse.csc_matrix(sparse.vstack(equal)), sparse.diags(np.concatenate(quadratic), format="csc")
    return {"A": A, "P": P, "G": G, "held": rows_of, "child": child, "cell": cell, "live": live, "parent": parent_at,
            "gid": gid, "w": w, "diag": diag}  # fmt: skip


def set_up_piqp(problem: ParentProblem, parts: dict[str, Any], *, eps: float) -> tuple[Any, Floats]:
    """Return PIQP with the problem set up, and the reference point that its unknowns are relative to."""
    A, P, child, cell, live = (parts[k] for k in ("A", "P", "child", "cell", "live"))
    N, size = len(child), A.shape[1]
    # Reference: the parent spread evenly over the children that may have the cell; its gradient is the linear term.
    reference = np.where(problem.allowed, problem.parent / np.maximum(problem.allowed.sum(axis=0), 1), 0.0)
    gradient = multiply_hessian(reference, problem, parts) - problem.linear
    linear = np.zeros(size)
    linear[:N] = gradient[child, cell]
    lower = np.full(size, -np.inf)
    lower[:N] = -reference[child, cell]
    equal_to = [np.zeros(parts["parent"]), problem.parent[live] - reference.sum(axis=0)[live]]
    lows, highs = [np.zeros(0)], [np.zeros(0)]
    for held, (same, apart) in zip(list_sums(problem), parts["held"], strict=True):
        shift = sum_held(reference, held).ravel()
        low, high = held.low.ravel(), held.high.ravel()
        equal_to.append((low - shift)[same])
        lows.append(np.where(low < -FREE / 2, -np.inf, low - shift)[apart])
        highs.append(np.where(high > FREE / 2, np.inf, high - shift)[apart])
    h_l, h_u = (np.concatenate(lows), np.concatenate(highs)) if parts["G"] is not None else (None, None)
    solver = piqp.SparseSolver()
    solver.settings.max_iter = 400
    solver.settings.eps_abs = solver.settings.eps_rel = eps
    solver.settings.eps_duality_gap_abs = solver.settings.eps_duality_gap_rel = eps
    free = np.full(size, np.inf)
    solver.setup(P, linear, A, np.concatenate(equal_to), parts["G"], h_l, h_u, lower, free)
    return solver, reference


def solve_piqp(problem: ParentProblem, parts: dict[str, Any] | None = None, *, eps: float = 1e-9) -> Solution:
    """Solve by PIQP relative to a reference point, so that large linear terms lose no digits."""
    parts = build_structure(problem) if parts is None else parts
    for accuracy in (eps, eps * 1e2, eps * 1e4):
        solver, reference = set_up_piqp(problem, parts, eps=accuracy)
        status = solver.solve()
        if status != piqp.PIQP_MAX_ITER_REACHED:
            break
    return _read_solution(problem, parts, solver, status, reference)


def _read_solution(
    problem: ParentProblem, parts: dict[str, Any], solver: Any, status: Any, reference: Floats
) -> Solution:
    """Return what the solver found, or raise an error that says why it did not."""
    if status != piqp.PIQP_SOLVED:
        raise InfeasibleError(
            "the least-squares step of one parent has no solution",
            why=f"the generic solver stopped with {str(status).rsplit('.', 1)[-1].lower()}",
            fix="constraints on crossing marginals may have no solution below a given parent; relax one of them",
        )
    X = np.zeros(problem.linear.shape)
    where = (parts["child"], parts["cell"])
    X[where] = np.maximum(np.asarray(solver.result.x)[: len(where[0])] + reference[where], 0.0)
    violation = measure_violation(X, problem.held, problem.low, problem.high)
    return Solution(X, 0.0, violation, int(solver.result.info.iter), "piqp")


def round_with_rows(
    x: Floats, parent: NDArray[np.int64], allowed: NDArray[np.bool_], held: tuple[HeldSums, ...]
) -> NDArray[np.int64]:
    """Round by a small integer programme, where held sums cross and no network exists.

    Cells may move up to two from their fractional value, because floors and ceilings alone need not be enough here.
    """
    C, n = x.shape
    child, cell = np.nonzero(allowed)
    base = np.maximum(np.floor(x[child, cell] + 1e-9).astype(np.int64) - 2, 0)
    N = len(child)
    rows, cols = [cell], [np.arange(N)]
    low = [parent - np.bincount(cell, base, minlength=n)]
    high = [low[0]]
    at = n
    for one in held:
        m = one.low.shape[1]
        inside = np.flatnonzero(one.groups[cell] >= 0)
        index = child[inside] * m + one.groups[cell[inside]]
        sums = np.bincount(index, base[inside], minlength=C * m)
        fractional = (one.high - one.low).ravel() < 1e-9
        integral = np.abs(one.low.ravel() - np.rint(one.low.ravel())) < 1e-9
        # A pinned answer of an earlier pass need not be an integer: it may be rounded either way.
        below = np.where(fractional & ~integral, np.floor(one.low.ravel()), np.ceil(one.low.ravel() - 1e-9))
        above = np.where(fractional & ~integral, np.ceil(one.high.ravel()), np.floor(one.high.ravel() + 1e-9))
        rows.append(at + index)
        cols.append(inside)
        low.append(below - sums)
        high.append(above - sums)
        at += C * m
    highs = highspy.Highs()
    highs.silent()
    model = highspy.HighsLp()
    # Each cell is its base plus unit steps whose costs rise: |base + k − x| is convex.
    steps = 5
    cost = np.concatenate(
        [np.abs(base + k + 1 - x[child, cell]) - np.abs(base + k - x[child, cell]) for k in range(steps)]
    )
    model.num_col_, model.num_row_ = N * steps, at
    model.col_cost_ = cost
    model.col_lower_, model.col_upper_ = np.zeros(N * steps), np.ones(N * steps)
    model.row_lower_ = np.maximum(np.concatenate(low).astype(float), -1e20)
    model.row_upper_ = np.minimum(np.concatenate(high).astype(float), 1e20)
    one_step = sparse.csc_matrix(
        (np.ones(sum(map(len, rows))), (np.concatenate(rows), np.concatenate(cols))), shape=(at, N)
    )
    matrix = sparse.csc_matrix(sparse.hstack([one_step] * steps))
    model.a_matrix_.start_, model.a_matrix_.index_, model.a_matrix_.value_ = (
        matrix.indptr,
        matrix.indices,
        matrix.data,
    )
    model.integrality_ = [highspy.HighsVarType.kInteger] * (N * steps)
    highs.passModel(model)
    highs.run()
    if highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        raise InfeasibleError(
            "no rounding of one parent's children keeps every sum",
            why="constraints on crossing marginals leave no integer solution near the fractional one",
            fix="relax one of the constraints",
        )
    flow = np.rint(np.asarray(highs.getSolution().col_value)).astype(np.int64).reshape(steps, N)
    result = np.zeros((C, n), np.int64)
    result[child, cell] = base + flow.sum(axis=0)
    return result


def multiply_hessian(X: Floats, problem: ParentProblem, parts: dict[str, Any]) -> Floats:
    """Return H x of every child."""
    gid, w, diag = parts["gid"], parts["w"], parts["diag"]
    out: Floats = X * diag[problem.classes][:, None]
    for q in range(len(gid)):
        inside = gid[q] >= 0
        if not inside.any():
            continue
        sums = np.zeros((len(X), int(gid[q].max()) + 1))
        np.add.at(sums.T, gid[q][inside], X[:, inside].T)
        out[:, inside] += w[problem.classes, q][:, None] * sums[:, gid[q][inside]]
    return out


def sum_held(X: Floats, held: HeldSums) -> Floats:
    """Return the held sums of each child."""
    sums = np.zeros(held.low.shape)
    for j in np.flatnonzero(held.groups >= 0):
        sums[:, held.groups[j]] += X[:, j]
    return sums


def _build_held_rows(held: HeldSums, child: NDArray[np.int64], cell: NDArray[np.int64], size: int) -> Any:
    C, m = held.low.shape
    inside = held.groups[cell] >= 0
    rows = child[inside] * m + held.groups[cell][inside]
    return sparse.csc_matrix((np.ones(len(rows)), (rows, np.flatnonzero(inside))), shape=(C * m, size))
