"""Generalised linear models of one variable, fitted to counts by iteratively reweighted least squares with a small ridge.

Records are counted by their predictors first, so that neither their order nor their number of equal copies changes a bit.
The ridge keeps coefficients finite where some level never occurs together with another.
"""

from dataclasses import dataclass
from math import lgamma

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
RIDGE_PENALTY = 0.1
MAX_NEWTON_STEPS = 60  # of Newton's method, at most
CONVERGED_CHANGE = 1e-10  # the largest change of a coefficient at which it has converged
CHANCE_GRID = (
    1 << 24
)  # chances are rounded to this grid, so that machines that round sums differently draw alike


@dataclass(frozen=True, slots=True, kw_only=True)
class Predictor:
    """One variable as columns of a model: an indicator of each level but the first, or its value and square."""

    levels: int
    values: Floats | None = None  # of each level, where the variable is a number: centred and scaled

    @property
    def width(self) -> int:
        """Return the number of its columns."""
        return 2 if self.values is not None else self.levels - 1

    def columns(self, codes: Ints) -> Floats:
        """Return its columns for some records, from their codes."""
        if self.values is not None:
            x = self.values[codes]
            return np.stack([x, x * x], axis=1)
        return np.asarray(codes[:, None] == np.arange(1, self.levels)[None, :], np.float64)


def design_matrix(predictors: list[Predictor], codes: Ints) -> Floats:
    """Return the matrix of a model: a constant, and the columns of each predictor."""
    parts = [p.columns(codes[:, i]) for i, p in enumerate(predictors)]
    return np.concatenate([np.ones((codes.shape[0], 1)), *parts], axis=1)


def fit_multinomial(x: Floats, counts: Floats, ridge: float = RIDGE_PENALTY) -> Floats:
    r"""Coefficients B of $\ln (p_k / p_0) = x^\top b_k$, by Newton's method; ``counts`` are by row of x and level.

    >>> b = fit_multinomial(np.ones((1, 1)), np.array([[3.0, 1.0]]), ridge=0.0)
    >>> [round(float(p), 6) for p in multinomial_shares(np.ones((1, 1)), b)[0]]
    [0.75, 0.25]
    """
    width, levels = x.shape[1], counts.shape[1]
    b = np.zeros((width, levels - 1))
    total = counts.sum(axis=1, keepdims=True)
    for _ in range(MAX_NEWTON_STEPS if levels > 1 else 0):
        p = multinomial_shares(x, b)[:, 1:]
        slope = x.T @ (counts[:, 1:] - total * p) - ridge * b
        curve = max(ridge, 1e-9) * np.eye(b.size)
        for k in range(levels - 1):
            for j in range(levels - 1):
                weight = total[:, 0] * p[:, k] * ((j == k) - p[:, j])
                curve[k * width : (k + 1) * width, j * width : (j + 1) * width] += (x * weight[:, None]).T @ x
        newton = np.linalg.solve(curve, slope.T.ravel()).reshape(levels - 1, width).T
        step, b = _damp_step(np.asarray(newton, np.float64), b)
        if np.abs(step).max(initial=0.0) < CONVERGED_CHANGE:
            break
    return b


def multinomial_shares(x: Floats, b: Floats) -> Floats:
    """Return the chances of all levels at each row of x."""
    scores = np.concatenate([np.zeros((x.shape[0], 1)), x @ b], axis=1)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def fit_poisson(x: Floats, sums: Floats, numbers: Floats, ridge: float = RIDGE_PENALTY) -> Floats:
    r"""Coefficients b of $\ln \mu = x^\top b$; ``sums`` are totals of the variable by row of x, ``numbers`` of records.

    >>> b = fit_poisson(np.ones((1, 1)), np.array([12.0]), np.array([4.0]), ridge=0.0)
    >>> round(float(np.exp(b[0])), 6)
    3.0
    """
    b = np.zeros(x.shape[1])
    b[0] = np.log(max(float(sums.sum()), 0.5) / max(float(numbers.sum()), 1.0))
    start = b.copy()
    for _ in range(MAX_NEWTON_STEPS):
        mean = numbers * np.exp(np.minimum(x @ b, 50.0))
        slope = x.T @ (sums - mean) - ridge * (b - start)
        curve = (x * mean[:, None]).T @ x + max(ridge, 1e-9) * np.eye(b.size)
        step, b = _damp_step(np.asarray(np.linalg.solve(curve, slope), np.float64), b)
        if np.abs(step).max(initial=0.0) < CONVERGED_CHANGE:
            break
    return b


def _damp_step(step: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Limit a step to 2 in any coefficient, because Newton's full step may overshoot; return it and the new b."""
    step = step * min(1.0, 2.0 / max(float(np.abs(step).max(initial=0.0)), 1e-300))
    return step, b + step


def poisson_shares(means: Floats, low: int, high: int) -> Floats:
    """Return the chances of low … high for each mean, of a Poisson variable that lies there."""
    k = np.arange(low, high + 1)
    logs = k[None, :] * np.log(np.maximum(means, 1e-300))[:, None] - np.array([lgamma(i + 1.0) for i in k])
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def round_thresholds(chances: Floats) -> Ints:
    """Return where each level ends on the grid; the last end is the whole grid."""
    ends = np.rint(np.cumsum(chances, axis=1) * CHANCE_GRID).astype(np.int64)
    ends[:, -1] = CHANCE_GRID
    return np.maximum.accumulate(ends, axis=1)


def draw_levels(ends: Ints, rows: Ints, words: Ints) -> Ints:
    """Return the level into which each word, below the grid, falls; ``rows`` are the chances of each record.

    >>> draw_levels(round_thresholds(np.array([[0.5, 0.5]])), np.array([0, 0]), np.array([0, CHANCE_GRID - 1]))
    array([0, 1])
    """
    found = np.empty(rows.size, np.int64)
    for start in range(0, rows.size, 1 << 16):
        some = slice(start, start + (1 << 16))
        found[some] = (words[some, None] >= ends[rows[some], :-1]).sum(axis=1)
    return found
