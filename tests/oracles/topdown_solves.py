"""Objectives and optima of TopDown's two solves, computed another way: by the definition, and by HiGHS."""

import highspy
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from oracles.topdown_numpy import Network
from stirred.mechanisms.topdown.solve.crossing import multiply_hessian
from stirred.mechanisms.topdown.solve.parent import ParentProblem, merge_equal_queries

Floats = NDArray[np.float64]


def least_squares(problem: ParentProblem, X: Floats) -> float:
    """The objective without its constant: ½ x'Hx − b'x over all children."""
    parts = dict(zip(("gid", "w", "diag"), merge_equal_queries(problem.groups, problem.weights), strict=True))
    return float(0.5 * (X * multiply_hessian(X, problem, parts)).sum() - (problem.linear * X).sum())


def objective(net: Network, flow: NDArray[np.int64]) -> float:
    """The cost of a flow."""
    return float((net.cost * flow).sum())


def rounding_optimum(net: Network, *, integer: bool = False) -> tuple[float, NDArray[np.int64]]:
    """The least cost of the rounding network by HiGHS, and the flow that has it."""
    highs = highspy.Highs()
    highs.silent()
    m = len(net.tail)
    nodes = len(net.supply)
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = m, nodes
    model.col_cost_ = net.cost
    model.col_lower_, model.col_upper_ = np.zeros(m), net.capacity.astype(float)
    model.row_lower_ = model.row_upper_ = net.supply.astype(float)
    incidence = sparse.csc_matrix(
        (np.r_[np.ones(m), -np.ones(m)], (np.r_[net.tail, net.head], np.r_[np.arange(m), np.arange(m)])),
        (nodes, m),
    )
    model.a_matrix_.start_, model.a_matrix_.index_ = incidence.indptr, incidence.indices
    model.a_matrix_.value_ = incidence.data
    if integer:
        model.integrality_ = [highspy.HighsVarType.kInteger] * m
    highs.passModel(model)
    highs.run()
    if highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        raise AssertionError("the linear programme has no solution")
    flow = np.asarray(highs.getSolution().col_value)
    return float(highs.getObjectiveValue()), np.rint(flow).astype(np.int64)
