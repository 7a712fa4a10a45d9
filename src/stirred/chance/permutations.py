r"""Uniform permutations and uniform derangements.

Fisher–Yates with exact whole numbers gives each of the n! orders probability 1/n!. A derangement is drawn the same
way; an attempt ends at the first fixed point, and a new one begins with the next words: conditioning the uniform law on
"no fixed point" is the uniform law on derangements. An attempt succeeds with probability about 1/e and a failed one
ends after about a third of its steps on average (proof.md, Section 4).
"""

from operator import index

import numpy as np
from numpy.typing import NDArray

from stirred.chance.samplers.integers import draw_floors, multiply_words, settle_floor
from stirred.chance.stream import EXTENSION_BITS, Stream
from stirred.compiled import compile_kernel
from stirred.errors import InputError


def permutation(
    stream: Stream, n: int, *, word_bits: int = 64, extension_bits: int = EXTENSION_BITS
) -> NDArray[np.int64]:
    """Return an order of 0 … n − 1, each of the n! with the same probability.

    >>> from stirred.chance.key import Key
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

    >>> from stirred.chance.key import Key
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
