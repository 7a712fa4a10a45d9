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
RIDGE = 0.1
STEPS = 60  # of Newton's method, at most
CLOSE = 1e-10  # the largest change of a coefficient at which it has converged
GRID = 1 << 24  # chances are rounded to this grid, so that machines that round sums differently draw alike


@dataclass(frozen=True, slots=True, kw_only=True)
class Predictor:
    """One variable as columns of a model: an indicator for each level but the first, or its value and square."""

    levels: int
    values: Floats | None = None  # of each level, where the variable is a number: centred and scaled

    @property
    def width(self) -> int:
        """How many columns it has."""
        return 2 if self.values is not None else self.levels - 1

    def columns(self, codes: Ints) -> Floats:
        """Its columns for some records, from their codes."""
        if self.values is not None:
            x = self.values[codes]
            return np.stack([x, x * x], axis=1)
        return np.asarray(codes[:, None] == np.arange(1, self.levels)[None, :], np.float64)


def design(predictors: list[Predictor], codes: Ints) -> Floats:
    """The matrix of a model: a constant, and the columns of each predictor."""
    parts = [p.columns(codes[:, i]) for i, p in enumerate(predictors)]
    return np.concatenate([np.ones((codes.shape[0], 1)), *parts], axis=1)


def multinomial(x: Floats, counts: Floats, ridge: float = RIDGE) -> Floats:
    r"""Coefficients B of $\ln (p_k / p_0) = x^\top b_k$, by Newton's method; ``counts`` are by row of x and level.

    >>> b = multinomial(np.ones((1, 1)), np.array([[3.0, 1.0]]), ridge=0.0)
    >>> [round(float(p), 6) for p in shares(np.ones((1, 1)), b)[0]]
    [0.75, 0.25]
    """
    width, levels = x.shape[1], counts.shape[1]
    b = np.zeros((width, levels - 1))
    total = counts.sum(axis=1, keepdims=True)
    for _ in range(STEPS if levels > 1 else 0):
        p = shares(x, b)[:, 1:]
        slope = x.T @ (counts[:, 1:] - total * p) - ridge * b
        curve = max(ridge, 1e-9) * np.eye(b.size)
        for k in range(levels - 1):
            for j in range(levels - 1):
                weight = total[:, 0] * p[:, k] * ((j == k) - p[:, j])
                curve[k * width : (k + 1) * width, j * width : (j + 1) * width] += (x * weight[:, None]).T @ x
        newton = np.linalg.solve(curve, slope.T.ravel()).reshape(levels - 1, width).T
        step, b = _damped(np.asarray(newton, np.float64), b)
        if np.abs(step).max(initial=0.0) < CLOSE:
            break
    return b


def shares(x: Floats, b: Floats) -> Floats:
    """The chances of all levels at each row of x."""
    scores = np.concatenate([np.zeros((x.shape[0], 1)), x @ b], axis=1)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def poisson(x: Floats, sums: Floats, numbers: Floats, ridge: float = RIDGE) -> Floats:
    r"""Coefficients b of $\ln \mu = x^\top b$; ``sums`` are totals of the variable by row of x, ``numbers`` of records.

    >>> b = poisson(np.ones((1, 1)), np.array([12.0]), np.array([4.0]), ridge=0.0)
    >>> round(float(np.exp(b[0])), 6)
    3.0
    """
    b = np.zeros(x.shape[1])
    b[0] = np.log(max(float(sums.sum()), 0.5) / max(float(numbers.sum()), 1.0))
    start = b.copy()
    for _ in range(STEPS):
        mean = numbers * np.exp(np.minimum(x @ b, 50.0))
        slope = x.T @ (sums - mean) - ridge * (b - start)
        curve = (x * mean[:, None]).T @ x + max(ridge, 1e-9) * np.eye(b.size)
        step, b = _damped(np.asarray(np.linalg.solve(curve, slope), np.float64), b)
        if np.abs(step).max(initial=0.0) < CLOSE:
            break
    return b


def _damped(step: Floats, b: Floats) -> tuple[Floats, Floats]:
    """A step of at most 2 in any coefficient: far from the solution Newton's full step may overshoot."""
    step = step * min(1.0, 2.0 / max(float(np.abs(step).max(initial=0.0)), 1e-300))
    return step, b + step


def poisson_shares(means: Floats, low: int, high: int) -> Floats:
    """The chances of low … high for each mean, of a Poisson variable that lies there."""
    k = np.arange(low, high + 1)
    logs = k[None, :] * np.log(np.maximum(means, 1e-300))[:, None] - np.array([lgamma(i + 1.0) for i in k])
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def thresholds(chances: Floats) -> Ints:
    """Where each level ends on the grid; the last end is the whole grid."""
    ends = np.rint(np.cumsum(chances, axis=1) * GRID).astype(np.int64)
    ends[:, -1] = GRID
    return np.maximum.accumulate(ends, axis=1)


def drawn(ends: Ints, rows: Ints, words: Ints) -> Ints:
    """The level that each word, below GRID, falls into; ``rows`` says which chances a record has.

    >>> drawn(thresholds(np.array([[0.5, 0.5]])), np.array([0, 0]), np.array([0, GRID - 1]))
    array([0, 1])
    """
    found = np.empty(rows.size, np.int64)
    for start in range(0, rows.size, 1 << 16):
        some = slice(start, start + (1 << 16))
        found[some] = (words[some, None] >= ends[rows[some], :-1]).sum(axis=1)
    return found
