r"""Design the noise of the cell key method: the law of largest entropy with a given bound and variance.

For a count i the noise v has the law p that maximises $-\sum_v p_v \log p_v$ subject to $\sum_v p_v = 1$, $\sum_v v p_v = 0$
and $\sum_v v^2 p_v \le V$, where v runs over the values with $|v| \le D$ and $i + v$ either 0 or above ``js``. Optionally
$p_0$ is given (``pstay``) and $p_v$ does not fall from the smallest v up to 0 (``mono``). Where no inequality binds,
$p_v \propto e^{a v - b v^2}$; in the symmetric rows a = 0, the discrete Gaussian cut at ±D.

Why the algorithm is right. With multipliers $\theta_v = a v - b v^2 - c$ the dual function is
$G(a,b,c) = \sum_v p_v(\theta) + c + bV$ (without the part that pstay fixes), where p(θ) maximises
$\sum_v p_v(\theta_v + 1 - \log p_v)$ over the laws that do not fall up to 0. That maximiser is the exponential of the
isotonic regression of θ over v ≤ 0 (Barlow and Brunk 1972, Theorem 3.1), cut at $\log p_0$ where $p_0$ is given. G is convex
and has a continuous gradient, so Newton's method with a line search finds its minimum; the moments hold there.
"""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from stirred.errors import InputError

Floats = NDArray[np.float64]
PTABLE_STEPS = 20
PTABLE_MIN_CHANCE = 1e-8  # the smallest chance that ptable allows


def design_law(values: Floats, variance: float, *, stay: float | None = None, mono: bool = True) -> Floats:
    """Return the probabilities of largest entropy on some values, with mean 0 and at most a variance.

    >>> [round(float(p), 4) for p in design_law(np.arange(-2.0, 3.0), 1.0)]
    [0.0638, 0.2447, 0.383, 0.2447, 0.0638]
    """
    fixed = stay is not None and bool((values == 0).any())
    free = values[values != 0] if fixed else values
    mass = 1.0 - float(stay or 0) if fixed else 1.0
    bound = np.log(float(stay or 1)) if fixed and mono else np.inf
    least = _least_variance(free, mass)
    if not least < variance:
        raise _infeasible_error(variance, least)
    spread = max(1.0, float(np.abs(free).max()))
    scaled = free / spread
    features = np.stack([scaled, -(scaled**2), -np.ones_like(scaled)], axis=1)
    targets = np.array([0.0, -variance / spread**2, -mass])
    below = int((free <= 0).sum()) if mono else 0
    # without the bound on the variance first: where the law has less than V already, that one is it
    plain = features[:, [0, 2]]
    chances = _compute_chances(plain @ _find_multipliers(plain, targets[[0, 2]], below, bound), below, bound)[
        0
    ]
    if chances @ free**2 > variance:
        chances = _compute_chances(
            features @ _find_multipliers(features, targets, below, bound), below, bound
        )[0]
    if not fixed:
        return chances
    found = np.empty_like(values)
    found[values != 0], found[values == 0] = chances, float(stay or 0)
    return found


def design_lowered_law(values: Floats, variance: float, *, start: float, mono: bool = True) -> Floats:
    """Return the law that the package ptable designs: the chance of no noise is at least ``start``, lowered step by step.

    Each step is the law of largest entropy with $p_0$ at or above a bound. While its variance, rounded to three decimals, is
    not V, the bound falls by 0.05, at most 19 times. A count that cannot stay (1 to ``js``) has one step.

    >>> [round(float(p), 4) for p in design_lowered_law(np.arange(-2.0, 3.0), 1.0, start=0.9)]
    [0.1, 0.1, 0.6, 0.1, 0.1]
    """
    plain = design_law(values, variance, mono=mono)
    zero = values == 0
    if not zero.any():
        return plain
    bound, found = start, plain
    for _ in range(PTABLE_STEPS):
        bound = max(bound, PTABLE_MIN_CHANCE)
        if plain[zero][0] >= bound:  # the bound does not bind, nor does any lower one
            return plain
        found = design_law(values, variance, stay=bound, mono=mono)
        if round(float(found @ values**2), 3) == variance:
            break
        bound -= 0.05
    return found


def _find_multipliers(features: Floats, targets: Floats, below: int, bound: float) -> Floats:
    """Return the multipliers at which the moments hold, by Newton's method on the convex dual."""
    weights = np.zeros(len(targets))
    weights[-1] = np.log(len(features) / -targets[-1])
    value = _dual_value(features, targets, weights, below, bound)
    for _ in range(200):
        chances, blocks = _compute_chances(features @ weights, below, bound)
        gradient = features.T @ chances - targets
        if np.abs(gradient).max() < 1e-13:
            return weights
        pooled = np.stack([np.bincount(blocks, column) for column in features.T], axis=1)
        sizes = np.bincount(blocks)
        height = np.bincount(blocks, chances) / sizes
        moving = np.bincount(blocks, features @ weights) / sizes < bound
        pooled, scale = pooled[moving], (height / sizes)[moving]
        hessian = pooled.T @ (pooled * scale[:, None]) + 1e-14 * np.eye(len(targets))
        step = np.linalg.solve(hessian, gradient)
        length = 1.0
        while length > 1e-12:
            tried = weights - length * step
            found = _dual_value(features, targets, tried, below, bound)
            if found <= value - 1e-4 * length * float(gradient @ step):
                break
            length /= 2
        else:
            break
        weights, value = tried, found
    chances, _ = _compute_chances(features @ weights, below, bound)
    if np.abs(features.T @ chances - targets).max() > 1e-9:
        raise InputError(
            "no law of noise meets these wishes",
            why="the largest noise, the variance, the chance to stay and mono contradict each other for a small count",
            fix="a smaller pstay, another V, a larger D, or mono = false",
        )
    return weights


def _dual_value(features: Floats, targets: Floats, weights: Floats, below: int, bound: float) -> float:
    with np.errstate(over="ignore"):
        theta = features @ weights
        chances, _ = _compute_chances(theta, below, bound)
        cut = 0.0
        if np.isfinite(bound) and below:  # at the bound the maximiser keeps the slope of θ
            at = np.zeros(len(theta), bool)
            at[:below] = chances[:below] >= np.exp(bound) * (1 - 1e-15)
            cut = float((chances * (theta - bound))[at].sum())
        found = float(chances.sum() + cut - weights @ targets)
    return found if np.isfinite(found) else np.inf


def _compute_chances(theta: Floats, below: int, bound: float) -> tuple[Floats, NDArray[np.int64]]:
    """$e^{\\hat\\theta}$ with the first ``below`` values pooled where they fall, and the block of each value."""
    blocks: list[list[float]] = []  # mean, number
    for value in theta[:below]:
        blocks.append([float(value), 1.0])
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            mean, number = blocks.pop()
            other = blocks[-1]
            other[0] = (other[0] * other[1] + mean * number) / (other[1] + number)
            other[1] += number
    numbers = np.array([int(number) for _, number in blocks] + [1] * (len(theta) - below))
    means = np.concatenate([np.minimum([mean for mean, _ in blocks], bound), theta[below:]])
    with np.errstate(over="ignore"):
        heights = np.exp(means)
    return np.repeat(heights, numbers), np.repeat(np.arange(len(numbers)), numbers)


def _least_variance(values: Floats, mass: float) -> float:
    """Return the variance that every law on some values with mean 0 and a mass exceeds."""
    lower, upper = values[values < 0], values[values > 0]
    if not len(lower) or not len(upper):
        return np.inf
    return 0.0 if (values == 0).any() else mass * float(lower.max() * -upper.min())


def _infeasible_error(variance: float, least: float) -> InputError:
    return InputError(
        f"a variance of {variance:g} cannot be had for a small count",
        why=f"with this D, js and pstay it is above {least:.4g}",
        fix="change V, or take a larger D",
    )


def to_number(value: Fraction | str | int) -> float:
    """Return a setting that is written exactly as the number that noise is computed with.

    >>> to_number("1/4")
    0.25
    """
    return float(Fraction(str(value)))
