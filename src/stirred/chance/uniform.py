"""Draw coins, integers, permutations and derangements, each with exactly its stated probability."""

from dataclasses import dataclass
from fractions import Fraction
from operator import index
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stirred.chance.streams import EXTENSION_BITS, Stream, Uniform
from stirred.errors import InputError
from stirred.kernels import compile_kernel, kernels_are_loaded

# Draw coins with a rational probability: $U < p$, almost always decided by the first word.
#
# With $t = \lfloor 2^b p \rfloor$ a word $w < t$ means $U < p$ and $w > t$ means $U > p$; only $w = t$ is a tie, and
# then more bits of the same $U$ are read until they differ from the bits of $p$ (proof.md, Section 2).


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

    >>> from stirred.chance.keys import Key
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


# Draw integers below a bound, all exactly equally likely: $\lfloor U m \rfloor$ with U read as far as needed.
#
# A 64-bit word w leaves $U m$ in $[w m, (w + 1) m) / 2^{64}$; unless a whole number lies strictly
# inside this interval, the result is known. The chance of a tie is below $m / 2^{64}$ (proof.md, Section 3).

MAX_DRAWS_WITHOUT_KERNEL = 256  # draws that take less time one by one than numba takes to load


@compile_kernel
def multiply_words(word: np.uint64, bound: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Return the halves of a 128-bit product; the high one is ⌊U·bound⌋ unless the low one is too large.

    >>> multiply_words(np.uint64(1 << 63), np.uint64(10))
    (5, 0)
    """
    mask, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    a1, a0 = word >> half, word & mask
    b1, b0 = bound >> half, bound & mask
    low = a0 * b0
    middle = a1 * b0 + (low >> half)
    other = a0 * b1 + (middle & mask)
    return a1 * b1 + (middle >> half) + (other >> half), (other << half) | (low & mask)


@compile_kernel
def _scale_words(
    words: NDArray[np.uint64], bounds: NDArray[np.uint64], shift: int, out: NDArray[np.int64]
) -> int:
    """Fill ⌊w·m / 2^b⌋ for b = 64 − shift; mark undecided draws −1 and return how many there are."""
    ties = 0
    one = np.uint64(1)
    for i in range(len(words)):
        bound = bounds[i if len(bounds) > 1 else 0]
        word = (words[i] >> np.uint64(shift)) << np.uint64(shift)
        high, _ = multiply_words(word, bound)
        last_high, last_low = multiply_words(word | ((one << np.uint64(shift)) - one), bound)
        # the largest U the word allows lies just below (w + 1): one more `bound` than the last product
        carry = last_low + bound - one
        if carry < last_low:
            last_high += one
        if last_high == high:
            out[i] = np.int64(high)
        else:
            out[i] = -1
            ties += 1
    return ties


def draw_floors(
    stream: Stream,
    start: int,
    bounds: NDArray[np.uint64],
    n: int,
    *,
    word_bits: int = 64,
    extension_bits: int = EXTENSION_BITS,
) -> NDArray[np.int64]:
    """Return ⌊U_i · bound_i⌋ for n draws of 8 bytes from ``start`` on (one bound, or one per draw)."""
    out = np.empty(n, dtype=np.int64)
    words = stream.at(start).words64(n)
    if n <= MAX_DRAWS_WITHOUT_KERNEL and not kernels_are_loaded():
        out[:] = -1
    elif not _scale_words(words, bounds, 64 - word_bits, out):
        return out
    for i in np.flatnonzero(out < 0):
        value = int(words[i]) >> (64 - word_bits)
        uniform = stream.uniform(start + 8 * int(i), value, word_bits, chunk=extension_bits)
        out[i] = settle_floor(uniform, int(bounds[i if len(bounds) > 1 else 0]))
    return out


def settle_floor(uniform: Uniform, bound: int) -> int:
    """Compute ⌊U·bound⌋, reading as many more bits as needed."""
    while True:
        low = uniform.value * bound >> uniform.bits
        if low == ((uniform.value + 1) * bound - 1) >> uniform.bits:
            return low
        uniform.extend()


def integers(
    stream: Stream, bound: int, n: int, *, word_bits: int = 64, extension_bits: int = EXTENSION_BITS
) -> NDArray[np.int64]:
    """Return ``n`` numbers from 0 … bound − 1, each with probability exactly 1 / bound; bound up to 2^63.

    >>> from stirred.chance.keys import Key
    >>> integers(Key.for_tests(1).stream("ones"), 1, 3)
    array([0, 0, 0])
    """
    size = index(bound)
    if not 1 <= size <= 1 << 63:
        raise InputError(
            "a bound lies between 1 and 2^63",
            why="draws are numbers below the bound, held in 64 bits",
            fix="give a bound from 1 to 2^63",
        )
    start = stream.claim(n, 8)
    bounds = np.array([size], dtype=np.uint64)
    return draw_floors(stream, start, bounds, n, word_bits=word_bits, extension_bits=extension_bits)


# Uniform permutations and uniform derangements.
#
# Fisher–Yates with exact whole numbers gives each of the n! orders probability 1/n!. A derangement is drawn the same
# way; an attempt ends at the first fixed point, and a new one begins with the next words: conditioning the uniform law
# on "no fixed point" is the uniform law on derangements. An attempt succeeds with probability about 1/e and a failed
# one ends after about a third of its steps on average (proof.md, Section 4).


def permutation(
    stream: Stream, n: int, *, word_bits: int = 64, extension_bits: int = EXTENSION_BITS
) -> NDArray[np.int64]:
    """Return an order of 0 … n − 1, each of the n! with the same probability.

    >>> from stirred.chance.keys import Key
    >>> sorted(int(i) for i in permutation(Key.for_tests(1).stream("order"), 5))
    [0, 1, 2, 3, 4]
    """
    size = _check_size(n)
    order = np.arange(size, dtype=np.int64)
    steps = max(size - 1, 0)
    start = stream.claim(steps, 8)
    bounds = np.arange(size, 1, -1, dtype=np.uint64)
    if steps:
        jumps = draw_floors(stream, start, bounds, steps, word_bits=word_bits, extension_bits=extension_bits)
        _shuffle(order, jumps)
    return order


def derangement(
    stream: Stream, n: int, *, word_bits: int = 64, extension_bits: int = EXTENSION_BITS
) -> NDArray[np.int64]:
    """Return an order of 0 … n − 1 that leaves nothing in its place, each of them with the same probability.

    >>> from stirred.chance.keys import Key
    >>> derangement(Key.for_tests(1).stream("two"), 2)
    array([1, 0])
    """
    size = _check_size(n)
    if size == 1:
        raise InputError(
            "one record cannot change places with itself",
            why="there is no derangement of 1",
            fix="leave a single record where it is, or give two or more",
        )
    order = np.arange(size, dtype=np.int64)
    if size == 0:
        return order
    state = np.zeros(2, dtype=np.int64)  # the step reached in this attempt, the words used of this buffer
    buffer = min(2 * size + 8, 1 << 16)
    while True:
        start = stream.claim(0, 8)
        words = stream.at(start).words64(buffer)
        state[1] = 0
        forced = -1
        while True:
            outcome = _fill_derangement(order, words, 64 - word_bits, state, forced)
            if outcome != _TIE:
                break
            used = int(state[1])
            value = int(words[used]) >> (64 - word_bits)
            uniform = stream.uniform(start + 8 * used, value, word_bits, chunk=extension_bits)
            forced = settle_floor(uniform, size - int(state[0]))
        stream.claim(int(state[1]), 8)
        if outcome == _DONE:
            return order


_DONE, _MORE, _TIE = 0, 1, 2


@compile_kernel
def _fill_derangement(
    order: NDArray[np.int64], words: NDArray[np.uint64], shift: int, state: NDArray[np.int64], forced: int
) -> int:
    """Continue from state: one word per step, place i filled from i … n − 1, with a new attempt at the first fixed point."""
    n = len(order)
    i, used = state[0], state[1]
    one = np.uint64(1)
    outcome = 1  # needs more words
    while used < len(words):
        if forced >= 0:
            jump = np.int64(forced)
            forced = -1
        else:
            bound = np.uint64(n - i)
            word = (words[used] >> np.uint64(shift)) << np.uint64(shift)
            high, _ = multiply_words(word, bound)
            last_high, last_low = multiply_words(word | ((one << np.uint64(shift)) - one), bound)
            if last_low + bound - one < last_low:
                last_high += one
            if last_high != high:
                outcome = 2  # a tie: the word alone does not decide
                break
            jump = np.int64(high)
        used += 1
        j = i + jump
        chosen = order[j]
        order[j] = order[i]
        order[i] = chosen
        i += 1
        if chosen == i - 1:
            i = 0  # no need to sort first: a shuffle of any order is uniform
        elif i == n:
            outcome = 0
            break
    state[0], state[1] = i, used
    return outcome


@compile_kernel
def _shuffle(order: NDArray[np.int64], jumps: NDArray[np.int64]) -> None:
    """Place i is filled from the places i … n − 1, the jumps' bounds being n, n − 1, …, 2."""
    for i in range(len(jumps)):
        j = i + jumps[i]
        kept = order[i]
        order[i] = order[j]
        order[j] = kept


def _check_size(n: int) -> int:
    size = index(n)
    if size < 0:
        raise InputError(
            "the number of records cannot be negative",
            why="a permutation needs 0 records or more",
            fix="give n of 0 or more",
        )
    return size
