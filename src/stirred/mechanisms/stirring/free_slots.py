r"""The law by several types: an arrangement weighs $\theta^{\text{slots whose type changed}}$, drawn by its free slots.

With $\mu = 1/\theta$ and $r = 1/(\mu-1)$ the numbers of free slots by type have
$P(f_1,\ldots,f_H) \propto F!\prod_h\binom{n_h}{f_h}r^{f_h}/f_h!$, $F = \sum_h f_h$, and the types of free slots are
arranged evenly. Since $F! = \int s^F e^{-s}\,ds$, the $f_h$ are independent given s: all expectations are sums over the
points of one integral. They are computed in double precision, with sums, products, quotients and square roots alone, which
are the same on every machine; promises and draws are made from μ, which is a fraction. Proofs: proof.md.
"""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from stirred.kernels import compile_kernel

Floats = NDArray[np.float64]

MAX_TYPES = 16  # of a stratum; a draw of more takes too many tries
MAX_NUMBERS_PER_RECORD = (
    4  # that a draw of the free slots is expected to take, tries times types; else it is too slow
)
MAX_POINTS = 512  # of the integral; about 20 to 80 are used
SMALLEST_TERM = 1e-12  # of a sum or of the integral, as a part of the largest
ROOTS_PER_OCTAVE = 512  # steps between μ − 1 and its double
FIRST_OCTAVE = -24  # of μ − 1, as a power of two
OCTAVES = 60


def make_root(index: int) -> Fraction:
    """Return one of the fractions that μ may be: neighbours of μ − 1 differ by a part of 1/1024 to 1/512.

    >>> make_root(24 * ROOTS_PER_OCTAVE), make_root(24 * ROOTS_PER_OCTAVE + 1)
    (Fraction(2, 1), Fraction(1025, 512))
    """
    octave, step = divmod(index, ROOTS_PER_OCTAVE)
    return 1 + Fraction(ROOTS_PER_OCTAVE + step, ROOTS_PER_OCTAVE) * Fraction(2) ** (octave + FIRST_OCTAVE)


@compile_kernel
def _double_root(index: int) -> float:
    """Return μ − 1 as a number, which is exact."""
    octave, step = index // ROOTS_PER_OCTAVE, index % ROOTS_PER_OCTAVE
    found = (ROOTS_PER_OCTAVE + step) / ROOTS_PER_OCTAVE
    for _ in range(FIRST_OCTAVE, FIRST_OCTAVE + octave):
        found *= 2.0
    for _ in range(-FIRST_OCTAVE):
        found /= 2.0
    return found


@compile_kernel
def raise_to(base: float, power: float) -> float:
    """Return a power with a whole exponent, by squares."""
    found = 1.0
    while power > 0.0:
        half = np.floor(power / 2.0)
        if power > 2.0 * half:
            found *= base
        base *= base
        power = half
    return found


@compile_kernel
def _exponential(x: float) -> float:
    """Return e to the x, the same on every machine."""
    halved = 0.0
    while abs(x) > 0.25:
        x /= 2.0
        halved += 1.0
    term, found = 1.0, 1.0
    for k in range(1, 16):
        term *= x / k
        found += term
    while halved > 0.0:
        found *= found
        halved -= 1.0
    return found


@compile_kernel
def solve_free(counts: Floats, r: float, free: Floats) -> float:
    r"""Write the likeliest numbers of free slots, as real numbers, and return their sum.

    They solve $f_h^2 = (n_h - f_h)\,r F$; with $y = rF$ each is $2 n_h y/(y + \sqrt{y^2 + 4 n_h y})$.
    """
    n, roots, total = 0.0, 0.0, 0.0
    for h in range(counts.size):
        n += counts[h]
        roots += np.sqrt(counts[h])
    y = r * min(n, r * roots * roots)
    for _ in range(20):  # from above, at least twice as near at each step; an envelope need not fit better
        total = 0.0
        for h in range(counts.size):
            free[h] = 2 * counts[h] * y / (y + np.sqrt(y * y + 4 * counts[h] * y))
            total += free[h]
        y = r * total
    return total


@compile_kernel
def _sum_type(n: float, around: float, x: float, moments: Floats) -> float:
    r"""Write mean and central moments of f with $P(f) \propto \binom{n}{f} x^f/f!$; return the sum over P(around)."""
    # around the mode, so that small numbers keep all their digits
    mode, scale = around, 1.0
    while (n - mode) * x > (mode + 1.0) * (mode + 1.0):
        scale *= (n - mode) * x / ((mode + 1.0) * (mode + 1.0))
        mode += 1.0
    while mode * mode > (n - mode + 1.0) * x:
        scale *= mode * mode / ((n - mode + 1.0) * x)
        mode -= 1.0
    total, one, two, three, four = 1.0, 0.0, 0.0, 0.0, 0.0
    for way in range(2):
        term, f, d = 1.0, mode, 0.0
        while True:
            if way == 0:
                term *= (n - f) * x / ((f + 1.0) * (f + 1.0))
                f += 1.0
            else:
                term *= f * f / ((n - f + 1.0) * x)
                f -= 1.0
            d = f - mode
            if term <= SMALLEST_TERM and abs(d) > 4.0:  # fourth moments are divided by small s²
                break
            total += term
            one += term * d
            two += term * d * d
            three += term * d * d * d
            four += term * d * d * d * d
    m, a, b, c = one / total, two / total, three / total, four / total
    moments[0] = mode + m
    moments[1] = a - m * m
    moments[2] = b - 3 * m * a + 2 * m * m * m
    moments[3] = c - 4 * m * b + 6 * m * m * a - 3 * m * m * m * m
    return scale * total


@compile_kernel
def integrate(
    counts: Floats, above_one: float, points: Floats, weights: Floats, moments: NDArray[np.float64]
) -> int:
    r"""Write points s of the integral, their weights, and the moments of each $f_h$ given s; return how many points.

    The points are equally spaced in ln s, where the integrand falls so fast that their sum is the integral to ten
    digits. ``above_one`` is μ − 1. The last weight that is written, after the points, is $Z/w(f)$ at the likeliest f, in
    whole numbers: the sum of all weights of the law as a multiple of this one.
    """
    r, around = 1.0 / above_one, np.empty(counts.size)
    spread = solve_free(counts, r, around)
    whole = 0.0
    for h in range(counts.size):
        around[h] = np.floor(around[h])
        whole += around[h]
    step = 0.8 / np.sqrt(spread + 4.0)
    found, largest, even = 0, 0.0, 0.0
    for way in range(2):
        s, g = whole + 1.0, 1.0
        while found < MAX_POINTS:
            if way == 1 or found:
                after = s * (1.0 + step) if way == 0 else s / (1.0 + step)
                base = (after / s) * _exponential((s - after) / (whole + 1.0))
                g *= raise_to(base, whole + 1.0)
                s = after
            value = g
            for h in range(counts.size):
                value *= _sum_type(counts[h], around[h], r * s, moments[found, h])
            points[found], weights[found] = s, value
            even += g
            largest = max(largest, value)
            found += 1
            if value < SMALLEST_TERM * largest and g < SMALLEST_TERM:
                break
    total = 0.0
    for k in range(found):
        total += weights[k]
    for k in range(found):
        weights[k] /= total
    weights[found] = total / even
    return found


@compile_kernel
def _expect_changed(counts: Floats, above_one: float) -> float:
    """Return how many slots are expected to change their type."""
    points, weights = np.empty(MAX_POINTS + 1), np.empty(MAX_POINTS + 1)
    moments = np.empty((MAX_POINTS, counts.size, 4))
    found, changed = integrate(counts, above_one, points, weights, moments), 0.0
    for k in range(found):
        total, squares = 0.0, 0.0
        for h in range(counts.size):
            total += moments[k, h, 0]
            squares += moments[k, h, 0] * moments[k, h, 0]
        changed += weights[k] / points[k] * (total * total - squares)
    return changed


def expect_changed(counts: Sequence[int], root: Fraction) -> float:
    """Return how many slots are expected to change their type.

    >>> round(expect_changed((1, 1, 1), Fraction(2)), 9)  # three two-cycles of θ² = 1/4, two three-cycles of 1/8
    1.125
    """
    return float(_expect_changed(np.array(counts, np.float64), float(root - 1)))


@compile_kernel
def _guess_root(counts: Floats, wanted: float) -> int:
    r"""Return about the largest root at which as many slots change as wanted: $F - \sum_h f_h^2/F$ at the likeliest f."""
    free = np.empty(counts.size)
    low, high = 0, OCTAVES * ROOTS_PER_OCTAVE - 1
    while high - low > 1:
        middle = (low + high) // 2
        total, squares = solve_free(counts, 1.0 / _double_root(middle), free), 0.0
        for h in range(counts.size):
            squares += free[h] * free[h]
        if total - squares / total >= wanted:
            low = middle
        else:
            high = middle
    return low


@compile_kernel
def _find_roots(
    counts: Floats, sizes: NDArray[np.int64], wanted: Floats, limits: Floats, found: NDArray[np.int64]
) -> None:
    """Find the largest root at which at least the wanted number of slots changes; −1 if that is none, or the limit."""
    for i in range(sizes.size):
        own = counts[i, : sizes[i]]
        low, high = -1, OCTAVES * ROOTS_PER_OCTAVE
        while high > 0 and _double_root(high - ROOTS_PER_OCTAVE) >= limits[i]:
            high -= ROOTS_PER_OCTAVE
        if _expect_changed(own, limits[i]) >= wanted[i]:
            found[i] = -1
            continue
        # around a guess, in steps that double until the answer is enclosed: of large strata two or three sums decide
        middle, step, below, above = min(_guess_root(own, wanted[i]), high - 1), 1, False, False
        while high - low > 1:
            if _expect_changed(own, _double_root(middle)) >= wanted[i]:
                low, below = middle, True
            else:
                high, above = middle, True
            if below and above:
                middle = (low + high) // 2
            elif below:
                middle = min(low + step, high - 1)
            else:
                middle = max(high - step, low + 1)
            step *= 2
        found[i] = low


def find_roots(counts: Sequence[Sequence[int]], wanted: Floats, limits: Floats) -> list[Fraction | None]:
    """Return for each stratum the largest μ at which at least so many slots are expected to change.

    None where even an even arrangement changes fewer, and where at the limit of μ as many change.

    >>> find_roots([(1, 1, 1)], np.array([1.125]), np.array([9.0]))
    [Fraction(2, 1)]
    """
    table = np.zeros((len(counts), MAX_TYPES))
    for row, own in zip(table, counts, strict=True):
        row[: len(own)] = own
    found = np.empty(len(counts), np.int64)
    sizes = np.array([len(own) for own in counts], np.int64)
    # the sums have relative errors below 10⁻¹⁰
    _find_roots(table, sizes, wanted * (1 - 1e-9), limits - 1, found)
    return [None if index < 0 else make_root(index) for index in found.tolist()]


# The envelope of a draw: independent numbers of free slots, accepted together (proof.md, Section 7).


@compile_kernel
def _bound_excess(f: float) -> float:
    r"""Return a bound from above of $f!\,\delta_f\,(e/f)^f$, which falls from f = 1 on.

    $\delta_0 = 1$ and $\delta_{k+1}/\delta_k = (16k+5)/(16k+13)$: about $1/\sqrt{2\pi k}$.
    """
    if f < 1.0:
        return 1.0
    found, k = 2.718281828459046 * 5.0 / 13.0, 1.0
    while k < min(f, 24.0):
        found *= 2.718281828459046 * raise_to(k / (k + 1.0), k) * (16.0 * k + 5.0) / (16.0 * k + 13.0)
        k += 1.0
    return found * (1.0 + 1e-12)


@compile_kernel
def envelop(counts: Floats, above_one: float, odds: Floats, around: Floats) -> float:
    r"""Write the odds x_h of the envelope and the whole numbers it is built around; return the chance to accept these.

    The envelope of type h is $\binom{n_h}{f}x_h^f\delta_f$. Any odds with $r\tau\sum_h 1/x_h \le 1$ will do.
    """
    r = 1.0 / above_one
    total, whole = solve_free(counts, r, odds), 0.0
    for h in range(counts.size):
        around[h] = np.floor(odds[h])
        whole += around[h]
    touched = np.floor(total + 0.5)  # where the bound of 1/δ by a power of τ is exact
    slope = (16.0 * touched + 13.0) / (16.0 * touched + 5.0)
    chance, k = 1.0, whole
    while k < touched:
        chance *= slope * (16.0 * k + 5.0) / (16.0 * k + 13.0)
        k += 1.0
    for h in range(counts.size):
        share = odds[h] / total
        odds[h] = r * slope / share * (1.0 + 1e-12)
        if around[h] > 0.0:
            chance *= raise_to(whole * slope * r / odds[h] / around[h], around[h]) / _bound_excess(around[h])
    return chance * (1.0 - 1e-9)


@compile_kernel
def step_free(n: float, odds: float, f: float) -> float:
    """Return the envelope at f + 1 as a multiple of that at f."""
    return (n - f) * odds * (16.0 * f + 5.0) / ((f + 1.0) * (16.0 * f + 13.0))


@compile_kernel
def _expect_tries(counts: Floats, above_one: float) -> float:
    points, weights = np.empty(MAX_POINTS + 1), np.empty(MAX_POINTS + 1)
    moments = np.empty((MAX_POINTS, counts.size, 4))
    found = integrate(counts, above_one, points, weights, moments)
    odds, around = np.empty(counts.size), np.empty(counts.size)
    tries = 1.0 / envelop(counts, above_one, odds, around)
    tries /= weights[found]
    for h in range(counts.size):
        total = 1.0
        for way in range(2):
            term, f, largest = 1.0, around[h], 1.0
            while True:
                if way == 0:
                    term *= step_free(counts[h], odds[h], f)
                    f += 1.0
                elif f < 1.0:
                    break
                else:
                    f -= 1.0
                    term /= step_free(counts[h], odds[h], f)
                if term <= SMALLEST_TERM * largest:
                    break
                largest = max(largest, term)
                total += term
        tries *= total
    return float(tries)


def is_practical(counts: Sequence[int], root: Fraction) -> bool:
    """Return whether a draw is expected to take few enough tries, from the counts alone.

    >>> is_practical([7] * 5, Fraction(50)), is_practical([2] * 12, Fraction(5))
    (True, False)
    """
    return bool(expect_tries(counts, root) * len(counts) <= MAX_NUMBERS_PER_RECORD * sum(counts))


def expect_tries(counts: Sequence[int], root: Fraction) -> float:
    """Return how many tries one draw of the free slots is expected to take.

    >>> 20 < expect_tries([1000] * 10, Fraction(400)) < 30  # about 2 to the power of (10 − 1)/2
    True
    """
    return float(_expect_tries(np.array(counts, np.float64), float(root - 1)))
