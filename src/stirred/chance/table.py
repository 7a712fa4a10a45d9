r"""Any law on whole numbers by inversion: the least k with $U < F(k)$, looked up, exact by lazy extension.

A W-bit word w leaves U in $[w, w + 1) / 2^W$. The table keeps, for each threshold F(k), the words that are surely
below it and those that are surely not; a guide over the leading bits of w finds the right one in one look, a search
among the few thresholds of one bucket in the rare other case. The words that touch a threshold are settled with more
bits of U against narrower intervals of F. The support is not cut off (proof.md, Section 6).
"""

from bisect import bisect_left
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from stirred.chance.cells import UNDECIDED, Cells
from stirred.chance.laws import Law, Steps
from stirred.chance.stream import EXTENSION_BITS, Stream, Uniform
from stirred.compiled import compiled

PRECISION: Final = 96


class Table(Cells):
    """A law with a table: 4 bytes of keystream per draw.

    >>> from fractions import Fraction
    >>> from stirred.chance.key import Key
    >>> from stirred.chance.laws import Binomial
    >>> coin = Table(Binomial(1, Fraction(1, 2)))
    >>> set(coin.draw(Key.for_tests(1).stream("coin"), 100).tolist()) == {0, 1}
    True
    """

    width: ClassVar[int] = 4

    def __init__(
        self,
        law: Law,
        *,
        word_bits: int = 32,
        extension_bits: int = EXTENSION_BITS,
        precision: int = PRECISION,
    ) -> None:
        self.law = law
        self.word_bits, self.extension_bits, self.precision = word_bits, extension_bits, precision
        self._steps: dict[int, Steps] = {}
        steps = self._enclosed(0)
        shift = precision - word_bits
        yes = [t >> shift for t in steps.low]  # words below are surely below the threshold
        no = [-(-t >> shift) for t in steps.high]  # words from here on surely are not
        # thresholds that only the first or the last word can touch are left to the settling
        start = max(bisect_left(no, 2) - 1, 0)
        stop = bisect_left(yes, (1 << word_bits) - 1) + 1
        self.first = steps.first + start
        self.yes = np.array(yes[start:stop], dtype=np.int64)
        self.no = np.array(no[start:stop], dtype=np.int64)
        self.guide_bits = min(max((4 * len(self.yes)).bit_length(), 8), 16, word_bits)
        self.guide = np.empty((1 << self.guide_bits, 4), dtype=np.int64)
        _fill_guide(self.yes, self.no, word_bits - self.guide_bits, self.guide)

    def _decide(self, words: NDArray[np.uint32], out: NDArray[np.int64]) -> int:
        return _look_up(
            words,
            32 - self.word_bits,
            self.word_bits - self.guide_bits,
            self.guide,
            self.yes,
            self.no,
            self.first,
            out,
        )

    def _settle(self, stream: Stream, position: int, words: NDArray[np.uint32]) -> int:
        value = int(words[0]) >> (32 - self.word_bits)
        return self.settle(Uniform(stream, position, value, self.word_bits, chunk=self.extension_bits))

    def settle(self, uniform: Uniform) -> int:
        """The least k with U < F(k), reading U and computing F as far as needed."""
        level = 0
        while True:
            steps = self._enclosed(level)
            bits = self.precision + 128 * level
            if bits >= uniform.bits:
                below, above = (
                    uniform.value << bits - uniform.bits,
                    (uniform.value + 1) << bits - uniform.bits,
                )
            else:
                extra = uniform.bits - bits
                below, above = uniform.value >> extra, -(-(uniform.value + 1) >> extra)
            i = bisect_left(steps.low, above)  # the least i with U surely below F
            if 1 <= i < len(steps.low) and below >= steps.high[i - 1]:
                return steps.first + i
            uniform.extend()
            if uniform.bits > bits + 32:
                level += 1

    def _enclosed(self, level: int) -> Steps:
        if level not in self._steps:
            self._steps[level] = self.law.steps(self.precision + 128 * level)
        return self._steps[level]


@compiled
def _fill_guide(yes: NDArray[np.int64], no: NDArray[np.int64], shift: int, guide: NDArray[np.int64]) -> None:
    """For each bucket: first doubtful word, number of doubtful words (from the bucket's start), results around them."""
    i0 = 0
    i1 = -1
    n = len(yes)
    for b in range(len(guide)):
        start, end = np.int64(b) << shift, np.int64(b + 1) << shift
        while i0 < n and no[i0] <= start:
            i0 += 1
        while i1 + 1 < n and yes[i1 + 1] < end:
            i1 += 1
        if i1 < i0:
            guide[b, 0] = 0
            guide[b, 1] = 0
            guide[b, 2] = i0
            guide[b, 3] = 0
        else:
            first = max(yes[i0], start)
            last = min(no[i1], end)
            guide[b, 0] = first - start
            guide[b, 1] = last - first
            guide[b, 2] = i0
            guide[b, 3] = i1 + 1 - i0
        if i0 == 0 or i0 == n or (i1 >= i0 and i1 + 1 == n and no[i1] < end):
            guide[b, 0] = 0  # outside the table: nothing is decided here
            guide[b, 1] = end - start
            guide[b, 2] = i0
            guide[b, 3] = max(i1 + 1 - i0, 0)


@compiled
def _look_up(
    words: NDArray[np.uint32],
    drop: int,
    shift: int,
    guide: NDArray[np.int64],
    yes: NDArray[np.int64],
    no: NDArray[np.int64],
    first: int,
    out: NDArray[np.int64],
) -> int:
    undecided = 0
    n = len(yes)
    for j in range(len(words)):
        w = np.int64(words[j]) >> drop
        b = w >> shift
        offset = w - (b << shift)
        i = guide[b, 2]
        if offset >= guide[b, 0]:
            if offset - guide[b, 0] < guide[b, 1]:
                # search: least i with w < yes[i]
                lo, hi = i, min(i + guide[b, 3], n)
                while lo < hi:
                    mid = (lo + hi) >> 1
                    if w < yes[mid]:
                        hi = mid
                    else:
                        lo = mid + 1
                if lo == 0 or lo == n or w < no[lo - 1]:
                    out[j] = UNDECIDED
                    undecided += 1
                    continue
                i = lo
            else:
                i += guide[b, 3]
        out[j] = first + i
    return undecided
