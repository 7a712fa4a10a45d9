"""Weighted sampling without replacement by keys, with the same bits on every machine."""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from stirred.chance import Key, Stream, integers, permutation

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
LN2 = 0.6931471805599453
SERIES_TERMS = 12  # of the series of the logarithm: its rest is below 2⁻⁵³
ZERO_RISK_FACTOR = 1e200  # the factor of records with risk 0: they come after all others, in a random order


def draw_exponential(words: NDArray[np.uint64]) -> Floats:
    """Return −ln U of uniform words by operations that every machine rounds alike.

    >>> float(draw_exponential(np.array([2**63], np.uint64))[0])
    0.6931471805599453
    """
    uniform = ((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    part, power = np.frexp(uniform)
    low = part < 0.7071067811865476
    part, power = np.where(low, 2 * part, part), np.where(low, power - 1, power)
    s = (part - 1) / (part + 1)
    square, total = s * s, np.zeros_like(s)
    for k in range(SERIES_TERMS, -1, -1):
        total = total * square + 1 / (2 * k + 1)
    return np.asarray(-(power * LN2 + 2 * s * total))


def order_by_risk(run: Key, label: tuple[str, int], ids: NDArray[np.uint64], risk: Floats) -> Ints:
    """Order all rows by a draw without replacement, each time in proportion to the risk.

    The keys are Exp(1) / risk (Efraimidis and Spirakis 2006); equal keys are ordered by identifier.
    """
    drawn = draw_exponential(run.blocks(label, ids)[:, 0])
    with np.errstate(divide="ignore"):
        keys = np.where(risk > 0, drawn / np.where(risk > 0, risk, 1.0), drawn * ZERO_RISK_FACTOR)
    order = np.argsort(keys)
    if (keys[order][1:] == keys[order][:-1]).any():
        order = np.lexsort((ids, keys))
    return order


def round_at_random(stream: Stream, number: Fraction) -> int:
    """Round the number down or up at random, so that its mean is exact.

    >>> round_at_random(Key.for_tests(1).stream("swaps"), Fraction(3))
    3
    """
    whole, rest = divmod(number.numerator, number.denominator)
    return whole + int(rest > 0 and int(integers(stream, number.denominator, 1)[0]) < rest)


def share_total(stream: Stream, total: int, sizes: Ints) -> Ints:
    """Divide a total in proportion to sizes, each part rounded down or up at random, with this sum.

    Systematic sampling over the areas in a random order: each part has its exact mean.

    >>> share_total(Key.for_tests(1).stream("areas"), 4, np.array([10, 30])).tolist()
    [1, 3]
    """
    everything = int(sizes.sum())
    if not everything:
        return np.zeros(sizes.size, np.int64)
    order = permutation(stream, sizes.size)
    start = int(integers(stream, everything, 1)[0])
    ends = [(total * int(part) + start) // everything for part in np.cumsum(sizes[order])]
    found = np.empty(sizes.size, np.int64)
    found[order] = np.diff([start // everything, *ends])
    return found
