r"""Draw only the rare large values among many draws of a law: how many exceed a bound, which ones, and by how much.

Of n independent draws, the number above a is binomial with p = P(X > a), every set of that many places is equally
likely, and the values there are independent draws of X given X > a. Drawing these three gives the same joint law as
drawing all n and keeping those above a (proof.md, Section 9), at the cost of the kept ones.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from stirred.chance.key import Key
from stirred.chance.names import Part
from stirred.chance.samplers.integers import integers
from stirred.chance.samplers.laws import BinomialLaw, EnclosedSteps, Law
from stirred.chance.samplers.table import TabledLaw
from stirred.chance.stream import Stream
from stirred.errors import InputError

# expected successes of one table: it then holds fewer than 65,536 thresholds
_MAX_SUCCESSES: Final = 1 << 22


@dataclass(frozen=True, slots=True)
class TailLaw:
    r"""X given X > above: $1 - F_{tail}(k) = (1 - F(k)) / (1 - F(above))$.

    >>> from stirred.chance.samplers.laws import FallingLaw
    >>> geometric = FallingLaw(Fraction(0), Fraction(1), mirrored=False)
    >>> TailLaw(geometric, 3).steps(20).low[1] == TailLaw(geometric, 7).steps(20).low[1]  # it has no memory
    True
    """

    law: Law
    above: int

    def steps(self, bits: int) -> EnclosedSteps:
        steps, inner, rest_low, rest_high = enclose_tail(self.law, self.above, bits)
        one, place = 1 << inner, self.above - steps.first
        low = [
            (1 << bits) - min(1 << bits, -((-(one - t) << bits) // rest_low)) for t in steps.low[place + 1 :]
        ]
        high = [(1 << bits) - max(0, ((one - t) << bits) // rest_high) for t in steps.high[place + 1 :]]
        return EnclosedSteps(self.above, [0, *low], [0, *high])


@dataclass(frozen=True, slots=True)
class ExceedanceLaw:
    """How many of ``trials`` draws of a law lie above a bound; binomial, with an enclosed probability."""

    trials: int
    law: Law
    above: int

    def steps(self, bits: int) -> EnclosedSteps:
        # p is known so well that the distribution function moves by less than the rounding of one step
        wanted = bits + self.trials.bit_length() + 8
        _, inner, rest_low, rest_high = enclose_tail(self.law, self.above, wanted)
        spare = max(rest_low.bit_length() - wanted - 8, 0)  # bits of p beyond the wanted ones cost time only
        scale = 1 << inner - spare
        # the distribution function of a binomial falls as p rises
        lower = BinomialLaw(self.trials, Fraction(-(-rest_high >> spare), scale)).steps(bits)
        upper = BinomialLaw(self.trials, Fraction(rest_low >> spare, scale)).steps(bits)
        first = max(lower.first, upper.first)
        last = min(lower.first + len(lower.low), upper.first + len(upper.high))
        return EnclosedSteps(
            first,
            lower.low[first - lower.first : last - lower.first],
            upper.high[first - upper.first : last - upper.first],
        )


def enclose_tail(law: Law, above: int, bits: int) -> tuple[EnclosedSteps, int, int, int]:
    r"""Enclose $P(X > above)$ with a relative precision of ``bits`` bits: the steps, their bits, and both ends."""
    inner = bits + 16
    while True:
        steps = law.steps(inner)
        place = above - steps.first
        if 0 <= place < len(steps.low) - 1:
            low, high = (1 << inner) - steps.high[place], (1 << inner) - steps.low[place]
            if low > 0 and (high - low) << bits <= low:
                return steps, inner, low, high
        inner *= 2


def draw_exceeding(
    key: Key, name: tuple[Part, ...], n: int, law: Law, above: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the places, rising, and the values of those of ``n`` draws that lie above a bound.

    >>> from stirred.chance.samplers.laws import FallingLaw
    >>> noise = FallingLaw(Fraction(1, 50), Fraction(0), mirrored=True)  # a standard deviation of 5
    >>> places, values = draw_exceeding(Key.for_tests(1), ("doc",), 100_000, noise, 15)
    >>> len(places) == len(values), bool((values > 15).all())
    (True, True)
    """
    _, inner, _, rest_high = enclose_tail(law, above, 8)
    most = max((_MAX_SUCCESSES << inner) // rest_high, 1)  # sums of independent binomial counts are binomial
    count = key.stream(*name, "count")
    kept = sum(
        int(_tabled_exceedance(trials, law, above).draw(count, 1)[0])
        for trials in [most] * (n // most) + [n % most] * (n % most > 0)
    )
    values = _tabled_tail(law, above).draw(key.stream(*name, "values"), kept)
    return draw_subset(key.stream(*name, "places"), n, kept), values


def draw_subset(stream: Stream, n: int, m: int) -> NDArray[np.int64]:
    """Return m of the numbers 0 … n − 1, rising; every set of m is equally likely.

    >>> draw_subset(Key.for_tests(1).stream("doc"), 4, 4)
    array([0, 1, 2, 3])
    """
    if not 0 <= m <= n:
        raise InputError(
            f"cannot choose {m} of {n} numbers", why="m lies between 0 and n", fix="give a smaller m"
        )
    if 2 * m > n:
        chosen = np.ones(n, dtype=bool)
        chosen[draw_subset(stream, n, n - m)] = False
        return np.flatnonzero(chosen)
    found = np.empty(0, dtype=np.int64)
    while len(found) < m:
        found = np.union1d(found, integers(stream, n, m - len(found)))
    return found


@lru_cache(maxsize=64)
def _tabled_tail(law: Law, above: int) -> TabledLaw:
    return TabledLaw(TailLaw(law, above))


@lru_cache(maxsize=64)
def _tabled_exceedance(trials: int, law: Law, above: int) -> TabledLaw:
    return TabledLaw(ExceedanceLaw(trials, law, above))
