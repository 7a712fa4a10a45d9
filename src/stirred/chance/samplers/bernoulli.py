r"""Draw coins with a rational probability: $U < p$, almost always decided by the first word.

With $t = \lfloor 2^b p \rfloor$ a word $w < t$ means $U < p$ and $w > t$ means $U > p$; only $w = t$ is a tie, and
then more bits of the same $U$ are read until they differ from the bits of $p$ (proof.md, Section 2).
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stirred.chance.stream import EXTENSION_BITS, Stream, Uniform
from stirred.errors import InputError


@dataclass(frozen=True, slots=True)
class Threshold:
    r"""The threshold of a coin for ``bits``-bit words: word < first means yes, word > first means no, equal means a tie.

    ``first`` is $\lfloor 2^b p \rfloor$, up to $2^b$ itself when p = 1, so it is a Python int: kernels take it as
    ``certain`` (always yes) and ``word`` (the largest that fits). ``tie`` is False when p is a multiple of $2^{-b}$:
    then a word equal to ``first`` means no.

    >>> threshold(Fraction(1, 4), bits=8)
    Threshold(p=Fraction(1, 4), bits=8, first=64, tie=False)
    """

    p: Fraction
    bits: int
    first: int
    tie: bool

    @property
    def certain(self) -> bool:
        """Return whether p = 1, so that every word means yes."""
        return self.first == 1 << self.bits

    @property
    def word(self) -> np.uint64:
        """Return ``first`` as an unsigned word (all ones when p = 1; ask ``certain`` first)."""
        return np.uint64(min(self.first, (1 << self.bits) - 1))


def threshold(p: Fraction, *, bits: int = 64) -> Threshold:
    """Return the threshold of a coin for words of ``bits`` bits; ties are settled by :func:`settle`."""
    p = to_probability(p)
    first, rest = divmod(p.numerator << bits, p.denominator)
    return Threshold(p, bits, first, rest != 0)


def settle(p: Fraction, uniform: Uniform) -> bool:
    """Decide whether U < p after a tie, reading as many more bits as needed from the tie's own source.

    >>> settle(Fraction(1, 3), Uniform(lambda level: 0, value=0x55, bits=8))  # 1/3 = 0x0.5555…, then zeros
    True
    """
    while True:
        scaled = p.numerator << uniform.bits
        if (uniform.value + 1) * p.denominator <= scaled:
            return True
        if uniform.value * p.denominator >= scaled:
            return False
        uniform.extend()


def bernoulli(
    stream: Stream, p: Fraction, n: int, *, word_bits: int = 32, extension_bits: int = EXTENSION_BITS
) -> NDArray[np.bool_]:
    """Toss ``n`` coins that each show True with probability exactly p.

    >>> from stirred.chance.key import Key
    >>> bernoulli(Key.for_tests(1).stream("coins"), Fraction(1), 3)
    array([ True,  True,  True])
    """
    coin = threshold(p, bits=word_bits)
    start = stream.claim(n, 4)
    words = stream.at(start).words32(n) >> np.uint32(32 - word_bits)
    if coin.certain:
        return np.ones(n, dtype=np.bool_)
    result = words < coin.word
    if coin.tie:
        for i in np.flatnonzero(words == coin.word):
            uniform = stream.uniform(start + 4 * int(i), int(words[i]), word_bits, chunk=extension_bits)
            result[i] = settle(coin.p, uniform)
    return np.asarray(result)


def to_probability(p: Any) -> Fraction:
    """Read an exact number in [0, 1]; floats are refused.

    >>> to_probability("1/20")
    Fraction(1, 20)
    """
    value = to_fraction(p, "a probability")
    if not 0 <= value <= 1:
        raise InputError(
            "a probability lies between 0 and 1",
            why=f"{value} was given",
            fix='give a number from 0 to 1, such as "1/20"',
        )
    return value


def to_fraction(value: Any, what: str) -> Fraction:
    """Make a Fraction from int, str, Decimal or Fraction; a float is refused because it is rarely the number meant."""
    if isinstance(value, float | np.floating):
        raise InputError(
            f"{what} must be exact", why="a float was given", fix='a Fraction or a string, e.g. "1/20"'
        )
    try:
        return Fraction(value)
    except (TypeError, ValueError, ZeroDivisionError):
        raise InputError(
            f"{what} must be a number",
            why="the value cannot be read as a fraction",
            fix='a Fraction or a string, e.g. "1/20"',
        ) from None
