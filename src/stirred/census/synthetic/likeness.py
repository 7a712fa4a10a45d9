"""Segregation indices that compare a synthetic census with a real one."""

import numpy as np
from numpy.typing import ArrayLike, NDArray


def dissimilarity(counts: ArrayLike) -> NDArray[np.float64]:
    r"""Return the share of each group that would have to move to live as evenly as all others do.

    $D_g = \tfrac12 \sum_i |n_{ig}/n_{\cdot g} - (n_i - n_{ig})/(n - n_{\cdot g})|$ over areas $i$ (Duncan and Duncan 1955).

    >>> dissimilarity([[10, 0], [0, 10]]).tolist(), dissimilarity([[5, 5], [5, 5]]).tolist()
    ([1.0, 1.0], [0.0, 0.0])
    """
    table = np.asarray(counts, dtype=np.float64)
    rest = table.sum(axis=1, keepdims=True) - table
    with np.errstate(invalid="ignore", divide="ignore"):
        result = 0.5 * np.abs(table / table.sum(axis=0) - rest / rest.sum(axis=0)).sum(axis=0)
    return np.asarray(result, dtype=np.float64)


def entropy_index(counts: ArrayLike) -> float:
    r"""How much less diverse areas are than the whole: $H = \sum_i n_i (E - E_i) / (n E)$ (Theil 1972).

    >>> entropy_index([[10, 0], [0, 10]]), entropy_index([[5, 5], [5, 5]])
    (1.0, 0.0)
    """
    table = np.asarray(counts, dtype=np.float64)
    sizes = table.sum(axis=1)
    whole = _entropy(table.sum(axis=0, keepdims=True))[0]
    return float(1.0 - (sizes * _entropy(table)).sum() / (sizes.sum() * whole))


def _entropy(table: NDArray[np.float64]) -> NDArray[np.float64]:
    sizes = np.maximum(table.sum(axis=1, keepdims=True), 1.0)
    share = table / sizes
    return np.asarray(-(share * np.log(np.where(share > 0, share, 1.0))).sum(axis=1), dtype=np.float64)


def code_eight_groups(race: NDArray[np.int8], hispanic: NDArray[np.int8]) -> NDArray[np.int64]:
    """Return the group of each record: Hispanic 0, single races 1 to 6, two or more races 7.

    >>> code_eight_groups(np.array([1, 6, 7, 1], dtype=np.int8), np.array([1, 1, 1, 2], dtype=np.int8)).tolist()
    [1, 6, 7, 0]
    """
    return np.where(hispanic == 2, 0, np.minimum(race, 7)).astype(np.int64)


def count_by_area(
    areas: NDArray[np.int64], groups: NDArray[np.int64], number: int, kinds: int = 8
) -> NDArray[np.int64]:
    """Return counts of groups by area, from one area and one group per record.

    >>> count_by_area(np.array([0, 0, 2]), np.array([1, 1, 0]), 3, 2).tolist()
    [[0, 2], [0, 0], [1, 0]]
    """
    return np.bincount(areas * kinds + groups, minlength=number * kinds).reshape(number, kinds)
