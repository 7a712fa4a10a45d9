r"""Draw discrete Gaussian and discrete Laplace noise, exactly for every rational scale; each draw has its own position.

Up to a standard deviation of 4,096 (a Laplace scale of 1,024) a table gives a draw from 4 bytes of keystream; beyond, a
coarse table, a uniform step and a coin give it from 16 bytes.
"""

from fractions import Fraction
from functools import lru_cache
from math import isqrt
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from stirred.chance.samplers.bernoulli import to_fraction
from stirred.chance.samplers.cells import AddressableLaw
from stirred.chance.samplers.coarse import CoarseLaw
from stirred.chance.samplers.laws import FallingLaw
from stirred.chance.samplers.table import TabledLaw
from stirred.chance.stream import EXTENSION_BITS, Stream
from stirred.errors import InputError

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

    >>> from stirred.chance.key import Key
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

    >>> from stirred.chance.key import Key
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

    >>> from stirred.chance.key import Key
    >>> discrete_gaussian(Key.for_tests(1).stream("doc"), Fraction(1, 1000), 3)
    array([0, 0, 0])
    """
    return _gaussian(to_fraction(sigma_squared, "a variance")).draw(stream, n)


def discrete_laplace(stream: Stream, scale: Fraction, n: int) -> NDArray[np.int64]:
    r"""Return ``n`` draws with $P(X = k) \propto e^{-|k| / s}$ and advance the stream.

    >>> from stirred.chance.key import Key
    >>> discrete_laplace(Key.for_tests(1).stream("doc"), Fraction(1, 1000), 3)
    array([0, 0, 0])
    """
    return _laplace(to_fraction(scale, "a scale")).draw(stream, n)
