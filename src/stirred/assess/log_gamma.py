"""The logarithm of the gamma function in plain NumPy: reports are written without loading SciPy."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

SERIES_START = 10  # below this the argument is moved up, where Stirling's series is exact to the last digits
SERIES_TERMS = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360)


def log_gamma(x: ArrayLike) -> NDArray[np.float64]:
    r"""$\ln \Gamma(x)$ for $x > 0$, by Stirling's series after $\Gamma(x) = \Gamma(x + 10) / \prod_{i<10} (x + i)$.

    >>> from math import lgamma
    >>> points = [0.001, 0.5, 1.0, 2.0, 9.9, 10.0, 123.4, 1e9]
    >>> bool(max(abs(log_gamma(point) - lgamma(point)) / max(abs(lgamma(point)), 1) for point in points) < 1e-13)
    True
    """
    values = np.asarray(x, np.float64)
    low = values < SERIES_START
    moved = np.where(low, values + SERIES_START, values)
    series, square = np.zeros_like(moved), 1 / moved**2
    for term in reversed(SERIES_TERMS):
        series = series * square + term
    found = (moved - 0.5) * np.log(moved) - moved + 0.5 * np.log(2 * np.pi) + series / moved
    if low.any():
        with np.errstate(divide="ignore", invalid="ignore"):
            product = np.where(low, values, 1.0)
            for step in range(1, SERIES_START):
                product = product * np.where(low, values + step, 1.0)
            found = np.where(low, found - np.log(product), found)
    result: NDArray[np.float64] = np.where((values == 1) | (values == 2), 0.0, found)  # exactly
    return result
