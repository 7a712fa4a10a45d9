"""Segregation indices of groups over areas, as social scientists measure them."""

import numpy as np

from stirred.assess.utility.metrics import Array


def dissimilarity(first: Array, second: Array) -> float:
    r"""The index of dissimilarity $D = \tfrac12 \sum_i |a_i/A - b_i/B|$.

    >>> dissimilarity(np.array([10.0, 0.0]), np.array([0.0, 5.0]))
    1.0
    """
    a, b = first.sum(), second.sum()
    if a == 0 or b == 0:
        return float("nan")
    return float(np.abs(first / a - second / b).sum() / 2)


def entropy_index(counts: Array) -> float:
    r"""Theil's $H = \sum_i t_i (E - E_i) / (T E)$ for areas (rows) by groups (columns).

    >>> entropy_index(np.array([[10.0, 0.0], [0.0, 10.0]]))
    1.0
    >>> entropy_index(np.array([[5.0, 5.0], [5.0, 5.0]]))
    0.0
    """
    totals = counts.sum(axis=1)
    whole = totals.sum()
    overall = _entropy(counts.sum(axis=0, keepdims=True))[0]
    if whole == 0 or overall == 0:
        return float("nan")
    return float((totals * (overall - _entropy(counts))).sum() / (whole * overall))


def isolation(group: Array, total: Array) -> float:
    r"""The isolation index $xPx = \sum_i (x_i/X)(x_i/t_i)$: the group's share around a random member of it.

    >>> isolation(np.array([5.0, 5.0]), np.array([10.0, 5.0]))
    0.75
    """
    x = group.sum()
    if x == 0:
        return float("nan")
    share = np.divide(group, total, out=np.zeros_like(group), where=total > 0)
    return float((group / x * share).sum())


def _entropy(counts: Array) -> Array:
    totals = counts.sum(axis=1, keepdims=True)
    shares = np.divide(counts, totals, out=np.zeros_like(counts), where=totals > 0)
    logs = np.log(shares, out=np.zeros_like(shares), where=shares > 0)
    result: Array = -(shares * logs).sum(axis=1)
    return result
