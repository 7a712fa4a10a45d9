r"""Draw integers below a bound, all exactly equally likely: $\lfloor U m \rfloor$ with U read as far as needed.

A 64-bit word w leaves $U m$ in $[w m, (w + 1) m) / 2^{64}$; unless a whole number lies strictly
inside this interval, the result is known. The chance of a tie is below $m / 2^{64}$ (proof.md, Section 3).
"""

from operator import index

import numpy as np
from numpy.typing import NDArray

from stirred.chance.stream import EXTENSION_BITS, Stream, Uniform
from stirred.compiled import compile_kernel, kernels_are_loaded
from stirred.errors import InputError

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

    >>> from stirred.chance.key import Key
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
