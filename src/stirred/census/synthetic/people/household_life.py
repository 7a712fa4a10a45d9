"""The distribution of households: sizes, ways of living together, and the householder's age in each."""

import numpy as np
from numpy.typing import NDArray

from stirred.census.synthetic.people.codes import parse_weights

# Shares of household sizes 1, 2, … over all neighbourhoods, near those of 2020 (mean 2.48).
SIZE_SHARES: NDArray[np.float64] = np.array(
    [0.285, 0.335, 0.156, 0.129, 0.058, 0.022, 0.0085, 0.0035, 0.0015, 0.0008, 0.0004, 0.0002, 0.0001]
)
MAX_HOUSEHOLD_PERSONS = SIZE_SHARES.size
# Neighbourhoods tilt the distribution by exp(θ · REACH[size]), θ normal with these standard deviations.
SIZE_TILT_REACH: NDArray[np.float64] = np.array([0.0, 1.0, 1.6, 2.0, 2.2, *(2.3,) * 8])
SIZE_TRACT, SIZE_GROUP, SIZE_BLOCK = 0.50, 0.28, 0.40
# How far the householder's group tilts it too, and which of the tilts is the group's.
GROUP_TILTS: NDArray[np.float64] = np.array([-0.05, 0.03, 0.12, 0.28])
TILT_OF_GROUP: NDArray[np.int64] = np.array([3, 0, 1, 2, 2, 3, 2, 1])


def untilt_shares(shares: NDArray[np.float64], spread: float) -> NDArray[np.float64]:
    r"""The distribution whose tilts average to the shares: $\mathrm E_\theta[p_k e^{\theta r_k} / Z_\theta] = s_k$.

    >>> base = untilt_shares(SIZE_SHARES, 0.7)
    >>> bool(base[2] > SIZE_SHARES[2])  # tilting moves households from the middle to both ends
    True
    """
    grid = np.linspace(-4.0, 4.0, 81)
    weights = np.exp(-0.5 * grid**2)
    weights /= weights.sum()
    factors = np.exp(spread * grid[:, None] * SIZE_TILT_REACH)
    base = shares.copy()
    for _ in range(200):
        tilted = factors * base
        mixed = weights @ (tilted / tilted.sum(axis=1, keepdims=True))
        base *= shares / mixed
    return np.asarray(base / base.sum(), dtype=np.float64)


UNTILTED_SIZE_SHARES: NDArray[np.float64] = untilt_shares(
    SIZE_SHARES, float(np.sqrt(SIZE_TRACT**2 + SIZE_GROUP**2 + SIZE_BLOCK**2))
)

# Ways of living together.
ALONE, MARRIED, COHABITING, PARENT, WITH_PARENT, RELATIVES, ROOMMATES = 0, 1, 2, 3, 4, 5, 6
MARRIED_CHILDREN, COHABITING_CHILDREN, THREE_GENERATIONS, MARRIED_AND_PARENT = 7, 8, 9, 10

# Shares of the ways among households of 1, 2, 3, 4, 5 and 6 or more persons (keys as numbered above).
_WAY_WEIGHTS = (
    "0:1",
    "1:53 2:12 3:17 4:4 5:6 6:8",
    "7:50 8:9 3:21 4:3 5:4 6:5 9:6 10:2",
    "7:64 8:8 3:12 4:2 5:2 6:3 9:6 10:3",
    "7:62 8:7 3:11 4:2 5:2 6:2 9:9 10:5",
    "7:52 8:6 3:10 4:3 5:4 6:1 9:15 10:9",
)
WAY_LIMITS: NDArray[np.float64] = np.zeros((6, 11))
for _row, _text in enumerate(_WAY_WEIGHTS):
    for _key, _weight in parse_weights(_text):
        WAY_LIMITS[_row, int(_key)] = _weight
WAY_LIMITS = np.cumsum(WAY_LIMITS, axis=1) / WAY_LIMITS.sum(axis=1, keepdims=True)

# The householder's age by way: mixtures of normal curves (weight, mean, standard deviation), then the range.
_AGE_LAWS: tuple[tuple[tuple[tuple[float, float, float], ...], int, int], ...] = (
    (((0.28, 29, 6), (0.30, 50, 9), (0.42, 72, 11)), 18, 104),
    (((0.20, 31, 6), (0.80, 64, 11)), 18, 100),
    (((0.70, 30, 6), (0.30, 52, 11)), 18, 92),
    (((0.75, 39, 9), (0.25, 60, 12)), 18, 95),
    (((1.0, 48, 13),), 18, 80),
    (((0.40, 28, 8), (0.60, 56, 14)), 15, 96),
    (((0.75, 27, 6), (0.25, 50, 14)), 15, 92),
    (((0.85, 41, 8), (0.15, 56, 8)), 18, 84),
    (((1.0, 35, 8),), 18, 70),
    (((1.0, 58, 8),), 40, 90),
    (((1.0, 45, 9),), 22, 75),
)
AGE_QUANTILE_STEPS = 4096
AGE_QUANTILES: NDArray[np.int8] = np.zeros((len(_AGE_LAWS), AGE_QUANTILE_STEPS), dtype=np.int8)
for _way, (_mixture, _low, _high) in enumerate(_AGE_LAWS):
    _years = np.arange(_low, _high + 1)
    _density = sum(w / s * np.exp(-0.5 * ((_years - m) / s) ** 2) for w, m, s in _mixture)
    _limits = np.cumsum(_density) / np.sum(_density)
    AGE_QUANTILES[_way] = _years[
        np.searchsorted(_limits, (np.arange(AGE_QUANTILE_STEPS) + 0.5) / AGE_QUANTILE_STEPS)
    ]

# Share of male householders by way.
MALE_SHARE_BY_WAY: NDArray[np.float64] = np.array(
    [0.46, 0.56, 0.52, 0.2, 0.45, 0.48, 0.55, 0.58, 0.5, 0.4, 0.58]
)
# How the odds of owning move with the way of living, and with the householder's age (by ten years from 15).
OWN_BY_WAY: NDArray[np.float64] = np.array([-0.35, 0.75, -0.5, -0.55, 0.2, -0.1, -1.2, 0.65, -0.7, 0.35, 0.7])
OWN_BY_AGE: NDArray[np.float64] = np.array([-2.0, -0.95, -0.05, 0.3, 0.6, 0.85, 0.75, 0.4, 0.2, 0.0])
# By group: Hispanic, white, black, AIAN, Asian, NHPI, other, two or more.
OWN_BY_GROUP: NDArray[np.float64] = np.array([-0.35, 0.3, -0.65, -0.35, 0.05, -0.45, -0.35, -0.2])
# Chance that a spouse or partner is of the same group.
SAME_GROUP_SHARES: NDArray[np.float64] = np.array([0.8, 0.92, 0.86, 0.5, 0.8, 0.5, 0.4, 0.25])
