r"""Discrete Gaussian and discrete Laplace noise, exact, by table."""

from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stirred.chance.bernoulli import exact
from stirred.chance.cells import Cells
from stirred.chance.laws import Falling
from stirred.chance.stream import EXTENSION_BITS, Stream
from stirred.chance.table import Table
from stirred.errors import InputError


class DiscreteGaussian(Cells):
    """placeholder"""

    def __init__(
        self, sigma_squared: Any, *, word_bits: int = 32, extension_bits: int = EXTENSION_BITS
    ) -> None:
        self.sigma_squared = exact(sigma_squared, "a variance")
        if self.sigma_squared <= 0:
            raise InputError("a variance is positive")
        self._body = Table(
            Falling(1 / (2 * self.sigma_squared), Fraction(0), mirrored=True),
            word_bits=word_bits,
            extension_bits=extension_bits,
        )
        self.width = self._body.width

    def _decide(self, words: NDArray[np.uint32], out: NDArray[np.int64]) -> int:
        return self._body._decide(words, out)

    def _settle(self, stream: Stream, position: int, words: NDArray[np.uint32]) -> int:
        return self._body._settle(stream, position, words)


@lru_cache(maxsize=64)
def _gaussian(sigma_squared: Fraction) -> DiscreteGaussian:
    return DiscreteGaussian(sigma_squared)


def discrete_gaussian(stream: Stream, sigma_squared: Fraction, n: int) -> NDArray[np.int64]:
    return _gaussian(exact(sigma_squared, "a variance")).draw(stream, n)


def discrete_laplace(stream: Stream, scale: Fraction, n: int) -> NDArray[np.int64]:
    return _laplace(exact(scale, "a scale")).draw(stream, n)


@lru_cache(maxsize=64)
def _laplace(scale: Fraction) -> Table:
    return Table(Falling(Fraction(0), 1 / scale, mirrored=True))
