r"""Draw from any law on the integers by inversion: look up the least k with $U < F(k)$, with more bits where needed.

A W-bit word w leaves U in $[w, w + 1) / 2^W$. The table keeps, for each threshold F(k), the words that are surely
below it and those that are surely not. A guide over the leading bits of w finds the right threshold in one step; where
a bucket of the guide holds several, a search finds it. Words that touch a threshold are decided with more bits of U
against narrower intervals of F. The support is not cut off (proof.md, Section 6).
"""

from bisect import bisect_left
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stirred.chance.samplers.cells import UNDECIDED, AddressableLaw
from stirred.chance.samplers.laws import EnclosedSteps, Law
from stirred.chance.stream import EXTENSION_BITS, Stream, Uniform
from stirred.compiled import compile_kernel

# bits of F in the table from which the words' thresholds are made; a second attempt with this many bits decides
# all but 2^-90 of the draws that the first word left open
TABLE_BITS: Final = 96


class BucketGuide(NamedTuple):
    """What the kernel reads: per bucket one packed entry (see :func:`_fill`), and the thresholds as words."""

    entries: NDArray[np.uint64]
    yes: NDArray[np.int64]
    no: NDArray[np.int64]
    drop: np.uint64
    shift: np.uint64
    unit: np.uint64


class TabledLaw(AddressableLaw):
    """A law with a table: 4 bytes of keystream per draw.

    >>> from fractions import Fraction
    >>> from stirred.chance.key import Key
    >>> from stirred.chance.samplers.laws import BinomialLaw
    >>> coin = TabledLaw(BinomialLaw(1, Fraction(1, 2)))
    >>> set(coin.draw(Key.for_tests(1).stream("coin"), 100).tolist()) == {0, 1}
    True
    """

    width = 4

    def __init__(
        self,
        law: Law,
        *,
        word_bits: int = 32,
        extension_bits: int = EXTENSION_BITS,
        precision: int = TABLE_BITS,
    ) -> None:
        self.law = law
        self.word_bits, self.extension_bits, self.precision = word_bits, extension_bits, precision
        self._steps: dict[int, EnclosedSteps] = {}
        steps = self._enclose_level(0)
        shift = precision - word_bits
        yes = [t >> shift for t in steps.low]  # words below this are surely below the threshold
        no = [-(-t >> shift) for t in steps.high]  # words from this on surely are not
        # thresholds that only the first or the last word can touch are decided by ``settle``
        start = max(bisect_left(no, 2) - 1, 0)
        stop = bisect_left(yes, (1 << word_bits) - 1) + 1
        self.first = steps.first + start
        self.thresholds = np.array(yes[start:stop], dtype=np.int64), np.array(no[start:stop], dtype=np.int64)

    @cached_property
    def guide(self) -> BucketGuide:
        """Return the guide over the leading bits, made for a law that many draws are asked of."""
        return _make_guide(*self.thresholds, self.word_bits)

    def _decide(self, words: NDArray[np.uint32], out: NDArray[np.int64]) -> int:
        if self._use_numpy(len(words)):
            return search_numpy(words >> np.uint32(32 - self.word_bits), *self.thresholds, self.first, out)
        doubtful = np.empty(len(words), dtype=np.int32)
        return invert_words(words, *self.guide, self.first, doubtful, out)

    def _settle(self, stream: Stream, position: int, words: NDArray[np.uint32]) -> int:
        value = int(words[0]) >> (32 - self.word_bits)
        return self.settle(stream.uniform(position, value, self.word_bits, chunk=self.extension_bits))

    def settle(self, uniform: Uniform) -> int:
        """Return the least k with U < F(k), reading U and computing F as far as needed."""
        level = 0
        while True:
            bits = self.precision + EXTENSION_BITS * level
            steps = self._enclose_level(level)
            extra = bits - uniform.bits
            if extra >= 0:
                below, above = uniform.value << extra, (uniform.value + 1) << extra
            else:
                below, above = uniform.value >> -extra, -(-(uniform.value + 1) >> -extra)
            i = bisect_left(steps.low, above)  # the least i with U surely below F
            if 1 <= i < len(steps.low) and below >= steps.high[i - 1]:
                return steps.first + i
            if extra < 32:
                level += 1
            uniform.extend()

    def _enclose_level(self, level: int) -> EnclosedSteps:
        if level not in self._steps:
            self._steps[level] = self.law.steps(self.precision + EXTENSION_BITS * level)
        return self._steps[level]


def _make_guide(yes: NDArray[np.int64], no: NDArray[np.int64], word_bits: int) -> BucketGuide:
    """Return a guide with so many buckets that most hold one threshold, in a table that fits the cache."""
    # an entry that does not fit would give a wrong law, so this is checked
    if len(yes) > 1 << 16:
        raise AssertionError("a guide entry counts up to 65,535 thresholds")
    bits = min(max((2 * len(yes)).bit_length(), 8), 16, word_bits)
    shift = word_bits - bits
    unit = max(0, shift - 16)
    entries = np.empty(1 << bits, dtype=np.uint64)
    _fill_guide(yes, no, shift, unit, entries)
    return BucketGuide(entries, yes, no, np.uint64(32 - word_bits), np.uint64(shift), np.uint64(unit))


@compile_kernel
def _fill_guide(
    yes: NDArray[np.int64], no: NDArray[np.int64], shift: int, unit: int, entries: NDArray[np.uint64]
) -> None:
    """Fill each bucket: first doubtful word (32 bits), doubtful units after it (16), result before it (16).

    After the doubtful words of a bucket with one threshold the result is larger by one; a bucket with more thresholds
    leaves all its words from the first one on in doubt.
    """
    low, high = 0, -1
    n = len(yes)
    for b in range(len(entries)):
        start, end = np.int64(b) << shift, np.int64(b + 1) << shift
        while low < n and no[low] <= start:
            low += 1  # thresholds before `low` lie wholly below the bucket
        while high + 1 < n and yes[high + 1] < end:
            high += 1  # thresholds after `high` lie wholly above it
        first, last = np.int64(0xFFFFFFFF), np.int64(0xFFFFFFFF)  # no word of this bucket is in doubt
        if high >= low:
            first, last = max(yes[low], start), min(no[high], end)
            if high > low:
                last = end
        # below the first threshold and above the last one nothing is decided
        if low == 0 or low == n:
            first, last = start, end
        if high + 1 >= n:
            first, last = min(first, start) if high < low else first, end
        span = max(last - 1 - first, np.int64(0)) >> unit
        entries[b] = (
            np.uint64(first) << np.uint64(32) | np.uint64(span) << np.uint64(16) | np.uint64(min(low, n - 1))
        )


def search_numpy(
    words: NDArray[np.uint32],
    yes: NDArray[np.int64],
    no: NDArray[np.int64],
    first: int,
    out: NDArray[np.int64],
) -> int:
    """Fill ``out`` by NumPy search without a kernel; return how many draws stay undecided."""
    values = words.astype(np.int64)
    place = np.searchsorted(yes, values, side="right")
    undecided = (place == 0) | (place == len(yes)) | (values < no[place - 1])
    out[:] = np.where(undecided, UNDECIDED, first + place)
    return int(np.count_nonzero(undecided))


@compile_kernel
def search_word(word: np.uint64, yes: NDArray[np.int64], no: NDArray[np.int64]) -> int:
    """Return the number of the least threshold above the word, or −1 when it touches a threshold."""
    w = np.int64(word)
    low, high = 0, len(yes)
    while low < high:
        middle = (low + high) >> 1
        if w < yes[middle]:
            high = middle
        else:
            low = middle + 1
    if low == 0 or low == len(yes) or w < no[low - 1]:
        return -1
    return low


@compile_kernel
def invert_words(
    words: NDArray[np.uint32],
    entries: NDArray[np.uint64],
    yes: NDArray[np.int64],
    no: NDArray[np.int64],
    drop: np.uint64,
    shift: np.uint64,
    unit: np.uint64,
    first: int,
    doubtful: NDArray[np.int32],
    out: NDArray[np.int64],
) -> int:
    """Invert the distribution by bucket, then by binary search; return how many draws stay undecided."""
    count = 0
    small = np.uint64(0xFFFF)
    for j in range(len(words)):
        word = np.uint64(words[j]) >> drop
        entry = entries[word >> shift]
        edge = entry >> np.uint64(32)
        out[j] = first + np.int64(entry & small) + np.int64(word >= edge)
        if (word - edge) >> unit <= (entry >> np.uint64(16)) & small:  # unsigned: never true for word < edge
            doubtful[count] = j
            count += 1
    undecided = 0
    for d in range(count):
        j = doubtful[d]
        i = search_word(np.uint64(words[j]) >> drop, yes, no)
        if i < 0:
            out[j] = UNDECIDED
            undecided += 1
        else:
            out[j] = first + i
    return undecided
