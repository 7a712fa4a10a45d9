"""Draw binomial counts, discrete Gaussian and Laplace noise, and the rare large values among many draws."""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import isqrt
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from stirred.chance.inversion import (
    AddressableLaw,
    BinomialLaw,
    CoarseLaw,
    EnclosedSteps,
    FallingLaw,
    Law,
    TabledLaw,
)
from stirred.chance.keys import Key, Part
from stirred.chance.streams import EXTENSION_BITS, Stream
from stirred.chance.uniform import integers, to_fraction, to_probability
from stirred.errors import InputError

# Draw exact binomial counts by table: $P(X = k) = \binom{m}{k} p^k (1 - p)^{m - k}$.
#
# There is one table per number of trials. A draw depends only on its position, not on how draws are grouped.

# a table has about 20 standard deviations of entries and a guide for 65,536 buckets
_MAX_TABLED_VARIANCE: Final = 1 << 22


def binomial(
    stream: Stream,
    trials: int | NDArray[np.int64],
    p: Fraction,
    n: int | None = None,
    *,
    word_bits: int = 32,
    extension_bits: int = EXTENSION_BITS,
) -> NDArray[np.int64]:
    """Draw the number of successes among ``trials`` coins: ``n`` times, or once for each entry of an array of trials.

    >>> from stirred.chance.keys import Key
    >>> binomial(Key.for_tests(1).stream("doc"), np.array([0, 5, 9]), Fraction(1))
    array([0, 5, 9])
    """
    p = to_probability(p)
    size = n if n is not None else 1
    counts = np.asarray(trials) if np.ndim(trials) else np.full(size, trials, dtype=np.int64)
    if counts.dtype.kind not in "iu" or (counts < 0).any() or (n is not None and len(counts) != n):
        raise InputError(
            "trials are whole numbers from 0 on, one for each draw",
            why="the array holds other values, or its length is not n",
            fix="give an array of n integers from 0 on",
        )
    start = stream.claim(len(counts), TabledLaw.width) // TabledLaw.width
    result = np.zeros(len(counts), dtype=np.int64)
    if p in (0, 1):
        return result if p == 0 else counts.astype(np.int64)
    values, groups = np.unique(counts, return_inverse=True)
    order = np.argsort(groups, kind="stable")
    bounds = np.searchsorted(groups[order], np.arange(len(values) + 1))
    for i, value in enumerate(values.tolist()):
        where = order[bounds[i] : bounds[i + 1]]
        if value:
            table = _tabled_binomial(value, p, word_bits, extension_bits)
            result[where] = table.at_positions(stream, (where + start).astype(np.uint64))
    return result


@lru_cache(maxsize=256)
def _tabled_binomial(trials: int, p: Fraction, word_bits: int, extension_bits: int) -> TabledLaw:
    if trials * p * (1 - p) > _MAX_TABLED_VARIANCE:
        raise InputError(
            f"a binomial count of {trials} trials is too wide for a table",
            why="its variance exceeds 4,194,304",
            fix="split the trials: sums of independent binomial counts are binomial",
        )
    return TabledLaw(BinomialLaw(trials, p), word_bits=word_bits, extension_bits=extension_bits)


# Draw discrete Gaussian and discrete Laplace noise, exactly for every rational scale; each draw has its own position.
#
# Up to a standard deviation of 4,096 (a Laplace scale of 1,024) a table gives a draw from 4 bytes of keystream;
# beyond, a coarse table, a uniform step and a coin give it from 16 bytes.

_MAX_TABLE_SCALE: Final = 4096
_COARSE_SCALE: Final = 2048
# |X| must fit a 64-bit integer; more than 64 standard deviations practically never occur
_MAX_SCALE: Final = 1 << 57


class SymmetricNoise(AddressableLaw):
    """A law symmetric around 0, drawn by a table or, if its scale is large, by a coarse table."""

    def __init__(
        self, law: FallingLaw, scale_squared: Fraction, *, word_bits: int, extension_bits: int
    ) -> None:
        if scale_squared > _MAX_SCALE**2:
            raise InputError(
                "noise this wide does not fit 64-bit integers",
                why="a draw could exceed the largest 64-bit integer",
                fix="a standard deviation of at most 2^57, or a Laplace scale of at most 2^55",
            )
        self._body: AddressableLaw
        if scale_squared <= _MAX_TABLE_SCALE**2:
            self._body = TabledLaw(law, word_bits=word_bits, extension_bits=extension_bits)
        else:
            stride = isqrt(int(scale_squared)) // _COARSE_SCALE
            self._body = CoarseLaw(law, stride=stride, word_bits=word_bits, extension_bits=extension_bits)
        self.width = self._body.width

    def _decide(self, words: NDArray[np.uint32], out: NDArray[np.int64]) -> int:
        return self._body._decide(words, out)

    def _settle(self, stream: Stream, position: int, words: NDArray[np.uint32]) -> int:
        return self._body._settle(stream, position, words)


class DiscreteGaussian(SymmetricNoise):
    r"""$P(X = k) \propto e^{-k^2 / 2\sigma^2}$ on all whole numbers (Canonne, Kamath, Steinke 2020).

    >>> from stirred.chance.keys import Key
    >>> noise, key = DiscreteGaussian(Fraction(9, 4)), Key.for_tests(1)
    >>> row = noise.draw_range(key.stream("county", 7), 0, 100)          # all cells of a query
    >>> one = noise.at(key, ("county", 7), np.array([42]))               # one of them, alone
    >>> bool(one[0] == row[42])
    True
    """

    def __init__(
        self, sigma_squared: Any, *, word_bits: int = 32, extension_bits: int = EXTENSION_BITS
    ) -> None:
        self.sigma_squared = to_fraction(sigma_squared, "a variance")
        if self.sigma_squared <= 0:
            raise InputError(
                "a variance is positive",
                why="a variance of 0 would add no noise",
                fix="give a variance above 0",
            )
        law = FallingLaw(1 / (2 * self.sigma_squared), Fraction(0), mirrored=True)
        super().__init__(law, self.sigma_squared, word_bits=word_bits, extension_bits=extension_bits)

    def __repr__(self) -> str:
        return f"DiscreteGaussian({str(self.sigma_squared)!r})"


class DiscreteLaplace(SymmetricNoise):
    r"""$P(X = k) \propto e^{-|k| / s}$ on all whole numbers, also called two-sided geometric.

    >>> from stirred.chance.keys import Key
    >>> DiscreteLaplace("1/2").draw(Key.for_tests(1).stream("doc"), 4).shape
    (4,)
    """

    def __init__(self, scale: Any, *, word_bits: int = 32, extension_bits: int = EXTENSION_BITS) -> None:
        self.scale = to_fraction(scale, "a scale")
        if self.scale <= 0:
            raise InputError(
                "a scale is positive", why="a scale of 0 would add no noise", fix="give a scale above 0"
            )
        law = FallingLaw(Fraction(0), 1 / self.scale, mirrored=True)
        # the Laplace tail is longer: its table has as many entries as a Gaussian's of four times the scale
        super().__init__(law, self.scale**2 * 16, word_bits=word_bits, extension_bits=extension_bits)

    def __repr__(self) -> str:
        return f"DiscreteLaplace({str(self.scale)!r})"


# tables are kept, so that many small calls with one variance build it once
_gaussian = lru_cache(maxsize=64)(DiscreteGaussian)
_laplace = lru_cache(maxsize=64)(DiscreteLaplace)


def discrete_gaussian(stream: Stream, sigma_squared: Fraction, n: int) -> NDArray[np.int64]:
    r"""Return ``n`` draws with $P(X = k) \propto e^{-k^2 / 2\sigma^2}$ and advance the stream.

    >>> from stirred.chance.keys import Key
    >>> discrete_gaussian(Key.for_tests(1).stream("doc"), Fraction(1, 1000), 3)
    array([0, 0, 0])
    """
    return _gaussian(to_fraction(sigma_squared, "a variance")).draw(stream, n)


def discrete_laplace(stream: Stream, scale: Fraction, n: int) -> NDArray[np.int64]:
    r"""Return ``n`` draws with $P(X = k) \propto e^{-|k| / s}$ and advance the stream.

    >>> from stirred.chance.keys import Key
    >>> discrete_laplace(Key.for_tests(1).stream("doc"), Fraction(1, 1000), 3)
    array([0, 0, 0])
    """
    return _laplace(to_fraction(scale, "a scale")).draw(stream, n)


# Draw only the rare large values among many draws of a law: how many exceed a bound, which ones, and by how much.
#
# Of n independent draws, the number above a is binomial with p = P(X > a), every set of that many places is equally
# likely, and the values there are independent draws of X given X > a. Drawing these three gives the same joint law as
# drawing all n and keeping those above a (proof.md, Section 9), at the cost of the kept ones.

# expected successes of one table: it then holds fewer than 65,536 thresholds
_MAX_SUCCESSES: Final = 1 << 22


@dataclass(frozen=True, slots=True)
class TailLaw:
    r"""X given X > above: $1 - F_{tail}(k) = (1 - F(k)) / (1 - F(above))$.

    >>> from stirred.chance.inversion import FallingLaw
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

    >>> from stirred.chance.inversion import FallingLaw
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
