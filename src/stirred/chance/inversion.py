"""Draw from any law on the integers by inversion; each draw is addressed by its number.

Distribution functions are enclosed in intervals of any precision, which are narrowed until the draw is decided.
"""

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from stirred.chance.keys import Key, Part, to_words
from stirred.chance.streams import BLOCK_BYTES, CHUNK_BYTES, EXTENSION_BITS, SLACK_BYTES, Stream, Uniform
from stirred.chance.uniform import multiply_words, settle_floor
from stirred.errors import InputError
from stirred.kernels import compile_kernel

# Integer intervals that contain $e^{-x}$: no floating point, and every rounding widens the interval.
#
# $[l, h]$ at ``bits`` means $l \le 2^{bits} v \le h$. Products round the low end down and the high end up, so a chain
# of products keeps its value inside, whatever its length (proof.md, Section 5).


def enclose_exp(x: Fraction, bits: int) -> tuple[int, int]:
    """The interval of $e^{-x}$ for x ≥ 0, a few units wide.

    >>> low, high = enclose_exp(Fraction(1), 20)
    >>> low, high  # 2**20 / e = 385749.6...
    (385749, 385750)
    """
    halvings = max(0, x.numerator.bit_length() - x.denominator.bit_length() + 2)
    work = bits + halvings + 16
    scaled = x.numerator << work
    divisor = x.denominator << halvings
    y_low = scaled // divisor  # y = x / 2^halvings < 1/2
    y_high = y_low + 1
    total_low = total_high = term_low = term_high = 1 << work
    n = 0
    while term_high > 1:
        n += 1
        term_low = (term_low * y_low >> work) // n
        term_high = -((-(term_high * y_high)) >> work)
        term_high = -(-term_high // n)
        if n % 2:
            total_low, total_high = total_low - term_high, total_high - term_low
        else:
            total_low, total_high = total_low + term_low, total_high + term_high
    # alternating and decreasing: what is left out is at most the last term
    low, high = max(0, total_low - term_high), min(1 << work, total_high + term_high)
    for _ in range(halvings):
        low, high = low * low >> work, -((-(high * high)) >> work)
    extra = work - bits
    return low >> extra, -(-high >> extra)


def is_below_exp(uniform: Uniform, x: Fraction) -> bool:
    """Decide whether $U < e^{-x}$ with as many bits as needed: a coin of probability exactly $e^{-x}$."""
    while True:
        low, high = enclose_exp(x, uniform.bits + 32)
        if (uniform.value + 1) << 32 <= low:
            return True
        if uniform.value << 32 >= high:
            return False
        uniform.extend()


# Distribution functions of laws on the integers, as intervals of any precision.
#
# ``steps(bits)`` of a law returns numbers ``low[i] ≤ 2^bits F(first + i) ≤ high[i]`` for consecutive values, both
# lists increasing. Weights follow recurrences in integers that are rounded outward; the sum beyond the last weight is
# bounded by a geometric series (proof.md, Section 5).


class EnclosedSteps(NamedTuple):
    """Intervals of $2^{bits} F(k)$ for k = first, first + 1, …"""

    first: int
    low: list[int]
    high: list[int]


class Law(Protocol):
    """A probability law on the whole numbers; tables of it are kept, so it must be hashable."""

    def __hash__(self) -> int: ...

    def steps(self, bits: int) -> EnclosedSteps:
        """Enclose the distribution function; the values left out have a total probability below about 2^-bits."""
        ...


@dataclass(frozen=True, slots=True)
class FallingLaw:
    r"""Weights $e^{-\varphi(k)}$ for k ≥ 0 with $\varphi(k) = a k^2 + b k$; on one side or mirrored at 0.

    The discrete Gaussian is $a = 1 / 2\sigma^2, b = 0$, the discrete Laplace $a = 0, b = 1 / s$.

    >>> law = FallingLaw(Fraction(0), Fraction(1), mirrored=False)   # geometric: F(0) = 1 - 1/e
    >>> steps = law.steps(20)  # from k = -1 on
    >>> steps.low[1] <= 2**20 * 0.6321205588 <= steps.high[1]
    True
    """

    square: Fraction
    linear: Fraction
    mirrored: bool

    def rise(self, start: int, step: int) -> Fraction:
        """Return φ(start + step) − φ(start) as one Fraction, because it is computed for every coin."""
        (a, b), (c, d) = self.square.as_integer_ratio(), self.linear.as_integer_ratio()
        return Fraction(step * (a * d * (2 * start + step) + b * c), b * d)

    def steps(self, bits: int) -> EnclosedSteps:
        guard = 2 * self._length(bits).bit_length() + 16
        lows, highs, beyond = self._weights(bits, bits + guard)
        # sums start at the far end, so that small numbers are added first: tail(k) = Σ_{j ≥ k} w(j)
        tail_low = list(accumulate(reversed(lows)))[::-1]
        tail_high = [t + beyond for t in list(accumulate(reversed(highs)))[::-1]]
        if self.mirrored:
            total_low = 2 * tail_low[0] - highs[0]
            total_high = 2 * tail_high[0] - lows[0]
        else:
            total_low, total_high = tail_low[0], tail_high[0]
        # survival: P(X ≥ k) for k = 1 …
        up_low = [(t << bits) // total_high for t in tail_low[1:]]
        up_high = [-((-t << bits) // total_low) for t in tail_high[1:]]
        one = 1 << bits
        low = [one - t for t in up_high]
        high = [one - t for t in up_low]
        if not self.mirrored:
            return EnclosedSteps(-1, [0, *low], [0, *high])
        # F(-k) = P(X ≥ k)
        return EnclosedSteps(-len(up_low), up_low[::-1] + low, up_high[::-1] + high)

    def _length(self, bits: int) -> int:
        """Return about how many weights exceed 2^-bits: φ(k) > bits ln 2 beyond."""
        reach = 7 * (bits + 8) // 10 + 1
        lengths = []
        if self.square:
            lengths.append(int(reach / self.square) + 1)
        if self.linear:
            lengths.append(int(reach / self.linear) ** 2 + 1)
        return int(min(lengths) ** 0.5) + 2

    def _weights(self, bits: int, work: int) -> tuple[list[int], list[int], int]:
        r_low, r_high = enclose_exp(self.square + self.linear, work)
        s_low, s_high = enclose_exp(2 * self.square, work)
        if not self.square:
            s_low = s_high = 1 << work
        low = high = 1 << work
        lows, highs = [low], [high]
        stop = 1 << max(work - bits - 8, 1)
        while high > stop:
            low = low * r_low >> work
            high = (high * r_high >> work) + 1
            lows.append(low)
            highs.append(high)
            r_low = r_low * s_low >> work
            r_high = min(r_high, (r_high * s_high >> work) + 1)
        # w(K+j) ≤ w(K) r^j with the last ratio r: Σ_{j ≥ 1} ≤ w(K) r / (1 - r)
        beyond = high * r_high // ((1 << work) - r_high) + 1
        return lows, highs, beyond


@dataclass(frozen=True, slots=True)
class BinomialLaw:
    """The number of successes among ``trials`` coins of probability p, 0 < p < 1.

    >>> BinomialLaw(1, Fraction(1, 4)).steps(8).first
    -1
    """

    trials: int
    p: Fraction

    def steps(self, bits: int) -> EnclosedSteps:
        n = self.trials
        spread = int(n * self.p * (1 - self.p)) + 1
        work = bits + 2 * spread.bit_length() + 24
        mode = min(n, int((n + 1) * self.p))
        a, b = self.p.numerator, self.p.denominator - self.p.numerator
        rising = ((a * (n - k), b * (k + 1)) for k in range(mode, n))
        sinking = ((b * k, a * (n - k + 1)) for k in range(mode, 0, -1))
        up_low, up_high, above = _chain_weights(rising, bits, work)
        down_low, down_high, below = _chain_weights(sinking, bits, work)
        lows = [*reversed(down_low), 1 << work, *up_low]
        highs = [*reversed(down_high), 1 << work, *up_high]
        total_low, total_high = sum(lows), sum(highs) + above + below
        one = 1 << bits
        first = mode - len(down_low)
        low = [min(one, (t << bits) // total_high) for t in accumulate(lows)]
        high = [min(one, -((-(t + below) << bits) // total_low)) for t in accumulate(highs)]
        if first == 0:
            first, low, high = -1, [0, *low], [0, *high]
        if mode + len(up_low) == n:
            low[-1] = high[-1] = one
        return EnclosedSteps(first, low, high)


def _chain_weights(
    ratios: Iterator[tuple[int, int]], bits: int, work: int
) -> tuple[list[int], list[int], int]:
    """Compute weights by decreasing rational ratios; the rest after the last one is bounded by a geometric series."""
    low = high = 1 << work
    lows: list[int] = []
    highs: list[int] = []
    stop = 1 << (work - bits - 8)
    for top, bottom in ratios:
        if high <= stop and 2 * top <= bottom:
            return lows, highs, high  # ratio at most 1/2 from here on
        if high <= stop and top < bottom:
            return lows, highs, high * top // (bottom - top) + 1
        low = low * top // bottom
        high = -(-high * top // bottom)
        lows.append(low)
        highs.append(high)
    return lows, highs, 0


# Addressable draws: draw number i of a stream is computed from its own bytes, alone or in a range.
#
# Draw i of a law of ``width`` bytes reads the bytes i·width … (i+1)·width − 1 of the main keystream and, when these
# do not decide, the extension of that position. So ``draw_range(stream, start, n)`` is ``at_positions(stream,
# start … start + n − 1)``, and ``at(key, label, ids)`` is ``at_positions(key.stream(label), ids)``.

# a kernel writes this where the first words do not decide; no law gives this value
UNDECIDED: Final = np.iinfo(np.int64).min
# a law's first draws are made by numpy, which gives the same values more slowly: loading a kernel takes longer than these
NUMPY_MAX_DRAWS: Final = 1 << 14
# single draws that are made at a time: fewer would let threads wait for each other, more would not stay in the cache
DRAWS_AT_ONCE: Final = 1 << 16


class AddressableLaw(ABC):
    """A law whose draws are addressed by number."""

    width: int
    _asked = 0

    def _use_numpy(self, n: int) -> bool:
        """Return whether a law was asked for so few draws, with these n, that it needs no kernel."""
        self._asked += n
        return self._asked <= NUMPY_MAX_DRAWS

    @abstractmethod
    def _decide(self, words: NDArray[np.uint32], out: NDArray[np.int64]) -> int:
        """Fill ``out`` from the first words, with UNDECIDED where they are not enough, and return how many are undecided."""

    @abstractmethod
    def _settle(self, stream: Stream, position: int, words: NDArray[np.uint32]) -> int:
        """Decide one draw with the extension of its position."""

    def draw(self, stream: Stream, n: int, *, out: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
        """Return the next ``n`` draws and advance the stream."""
        start = stream.claim(n, self.width)
        return self.draw_range(stream, start // self.width, n, out=out)

    def draw_range(
        self, stream: Stream, start: int, n: int, *, out: NDArray[np.int64] | None = None
    ) -> NDArray[np.int64]:
        """Return the draws start … start + n − 1, whatever the position of the stream."""
        if start < 0 or n < 0:
            raise InputError(
                "draws are numbered from 0 on",
                why="start or n is negative",
                fix="give start and n of 0 or more",
            )
        result = np.empty(n, dtype=np.int64) if out is None else out
        if result.shape != (n,) or result.dtype != np.int64 or not result.flags.c_contiguous:
            raise InputError(
                "draws need a contiguous array of 64-bit integers",
                why="out has another shape or type",
                fix="out=np.empty(n, dtype=np.int64)",
            )
        position = start * self.width
        skip = position % BLOCK_BYTES
        source = stream.keystream(position - skip)
        buffer = np.empty((CHUNK_BYTES + SLACK_BYTES) // 4 + 1, dtype=np.uint32)
        per_word = self.width // 4
        done = 0
        while done < n:
            count = min(n - done, (CHUNK_BYTES - skip) // self.width)
            source.fill(buffer, skip + count * self.width)
            first = skip // 4
            words = buffer[first : first + count * per_word]
            part = result[done : done + count]
            if self._decide(words, part):
                for i in np.flatnonzero(part == UNDECIDED):
                    own = words[i * per_word : (i + 1) * per_word]
                    part[i] = self._settle(stream, position + (done + int(i)) * self.width, own)
            done += count
            skip = 0
        return result

    def at_positions(self, stream: Stream, positions: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return single draws by number, in any order, without computing the others."""
        return self.at_rows(stream, positions, np.zeros(1, np.uint64)).ravel()

    def at_rows(
        self, stream: Stream, firsts: NDArray[np.uint64], offsets: NDArray[np.uint64]
    ) -> NDArray[np.int64]:
        """Return the draws first + offset, a row for each first."""
        firsts, offsets = to_words(firsts), to_words(offsets)
        columns = len(offsets)
        result = np.empty((len(firsts), columns), dtype=np.int64)
        per_word, per_block = self.width // 4, BLOCK_BYTES // self.width
        step, cipher = max(1, DRAWS_AT_ONCE // max(1, columns)), stream.cipher()
        most = min(step, len(firsts)) * columns
        place, room = (np.empty(shape, np.uint64) for shape in (most, (most, 2)))
        for start in range(0, len(firsts) if columns else 0, step):
            part, drawn = firsts[start : start + step], result[start : start + step].reshape(-1)
            if self._use_numpy(len(drawn)):
                numbers = (part[:, None] + offsets).ravel()
                words = gather_words_numpy(
                    stream.blocks(numbers // np.uint64(per_block), cipher), numbers, per_block, per_word
                )
            else:
                shift = np.uint64(per_block.bit_length() - 1)
                blocks = room[: _find_blocks(part, offsets, shift, place, room)]
                cipher.encrypt(blocks)
                words = _gather_words(blocks.view(np.uint32).ravel(), place[: len(drawn)], per_word)
            if self._decide(words, drawn):
                for i in np.flatnonzero(drawn == UNDECIDED):
                    own = words[i * per_word : (i + 1) * per_word]
                    number = int(part[i // columns]) + int(offsets[i % columns])
                    drawn[i] = self._settle(stream, number * self.width, own)
        return result

    def at(self, key: Key, label: Part | tuple[Part, ...], ids: NDArray[Any]) -> NDArray[np.int64]:
        """Return the draws of single cells: the id is the number of the draw in the stream with this label."""
        stream = key.stream(*label) if isinstance(label, tuple) else key.stream(label)
        return self.at_positions(stream, ids)


def gather_words_numpy(
    blocks: NDArray[np.uint64], numbers: NDArray[np.uint64], per_block: int, per_word: int
) -> NDArray[np.uint32]:
    """Return the words of each draw by NumPy, from one block for each draw."""
    place = (numbers % np.uint64(per_block)).astype(np.int64)
    words = blocks.view(np.uint32).reshape(len(numbers), per_block, per_word)
    return words[np.arange(len(numbers)), place].ravel()


@compile_kernel
def _find_blocks(
    firsts: NDArray[np.uint64], offsets: NDArray[np.uint64], shift: np.uint64, place: NDArray[np.uint64],
    counters: NDArray[np.uint64],
) -> int:  # fmt: skip
    """Fill the counters of the blocks that hold the draws and the place of each; return their number."""
    u = np.uint64
    count, i, last = 0, 0, u(0)
    low = (u(1) << shift) - u(1)
    for row in range(len(firsts)):
        for column in range(len(offsets)):
            number = firsts[row] + offsets[column]
            block = number >> shift
            if count == 0 or block != last:
                last = block
                swapped = (block << u(32)) | (block >> u(32))
                swapped = ((swapped & u(0x0000FFFF0000FFFF)) << u(16)) | (
                    (swapped >> u(16)) & u(0x0000FFFF0000FFFF)
                )
                swapped = ((swapped & u(0x00FF00FF00FF00FF)) << u(8)) | (
                    (swapped >> u(8)) & u(0x00FF00FF00FF00FF)
                )
                counters[count, 0], counters[count, 1] = u(0), swapped
                count += 1
            place[i] = (u(count - 1) << shift) | (number & low)
            i += 1
    return count


@compile_kernel
def _gather_words(words: NDArray[np.uint32], place: NDArray[np.uint64], per_word: int) -> NDArray[np.uint32]:
    """Select from the words of the blocks those that belong to each draw."""
    out = np.empty(len(place) * per_word, dtype=np.uint32)
    if per_word == 1:
        for i in range(len(place)):
            out[i] = words[place[i]]
        return out
    for i in range(len(place)):
        first = place[i] * np.uint64(per_word)
        for j in range(per_word):
            out[i * per_word + j] = words[first + np.uint64(j)]
    return out


# Draw from any law on the integers by inversion: look up the least k with $U < F(k)$, with more bits where needed.
#
# A W-bit word w leaves U in $[w, w + 1) / 2^W$. The table keeps, for each threshold F(k), the words that are surely
# below it and those that are surely not. A guide over the leading bits of w finds the right threshold in one step;
# where a bucket of the guide holds several, a search finds it. Words that touch a threshold are decided with more bits
# of U against narrower intervals of F. The support is not cut off (proof.md, Section 6).

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
    >>> from stirred.chance.keys import Key
    >>> from stirred.chance.inversion import BinomialLaw
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


# Draw from laws that are too wide for a table: a coarse table, a uniform step, and a coin that nearly always accepts.
#
# For weights $e^{-\varphi(|k|)}$ and a stride m write $|X| = mY + Z$ with $0 \le Z < m$. Draw Y with weights
# $e^{-\varphi(mY)}$ from a table, Z uniformly, a sign, and accept with probability $e^{-x}$, $x = \varphi(mY + Z) -
# \varphi(mY)$; of the two signs of 0 only one counts. An accepted draw has exactly the stated law, and with a coarse
# deviation of 2,000 an attempt fails twice in 10,000. The kernel accepts when the first word is below $1 - x$, which
# is below $e^{-x}$; every other case is decided with more bits (proof.md, Section 7).


class CoarseLaw(AddressableLaw):
    """A mirrored falling law with a stride: 16 bytes of keystream per draw.

    >>> from fractions import Fraction
    >>> from stirred.chance.keys import Key
    >>> wide = CoarseLaw(FallingLaw(Fraction(1, 2 * 10**12), Fraction(0), mirrored=True), stride=500)
    >>> wide.draw(Key.for_tests(1).stream("wide"), 1000).std() > 500_000
    np.True_
    """

    width = 16

    def __init__(
        self, law: FallingLaw, *, stride: int, word_bits: int = 32, extension_bits: int = EXTENSION_BITS
    ) -> None:
        self.law, self.stride = law, stride
        self.word_bits, self.extension_bits = word_bits, extension_bits
        self.table = TabledLaw(
            FallingLaw(law.square * stride**2, law.linear * stride, mirrored=False),
            word_bits=word_bits,
            extension_bits=extension_bits,
        )
        # x ≤ slope · Y · f + level with f = (Z + 1) / m, rounded up, at 31 bits
        self._slope = np.uint64(-(-2 * law.square * stride**2 * (1 << 31) // 1))
        self._level = np.uint64(-(-(law.square * stride**2 + law.linear * stride) * (1 << 31) // 1) + 1)

    def _decide(self, words: NDArray[np.uint32], out: NDArray[np.int64]) -> int:
        self.table._decide(words[::4].copy(), out)
        return _accept_first(words, np.uint64(self.stride), self._slope, self._level, out)

    def _settle(self, stream: Stream, position: int, words: NDArray[np.uint32]) -> int:
        found = self._attempt(stream, position, 0, [int(word) for word in words])
        attempt = 0
        while found is None:
            attempt += 1
            block = stream.extension(position + 12, attempt)
            found = self._attempt(
                stream, position, attempt, [(block >> s) & 0xFFFFFFFF for s in (0, 32, 64, 96)]
            )
        return found

    def _attempt(self, stream: Stream, position: int, attempt: int, words: list[int]) -> int | None:
        """Make one exact attempt; each of its three uniform numbers has its own extension."""

        def uniform(offset: int, value: int, bits: int) -> Uniform:
            level = attempt << 16
            return stream.uniform(position + offset, value, bits, chunk=self.extension_bits, level=level)

        y = self.table.settle(uniform(0, words[0] >> (32 - self.word_bits), self.word_bits))
        z = settle_floor(uniform(8, words[2] | words[3] << 32, 64), self.stride)
        size = self.stride * y + z
        negative = bool(words[1] & 1)
        if negative and size == 0:
            return None
        if not is_below_exp(uniform(4, words[1] >> 1, 31), self.law.rise(self.stride * y, z)):
            return None
        return -size if negative else size


@compile_kernel
def _accept_first(
    words: NDArray[np.uint32], stride: np.uint64, slope: np.uint64, level: np.uint64, out: NDArray[np.int64]
) -> int:
    """Finish the first attempt where the first words show that it succeeds: word 1 for coin and sign, 2 and 3 for Z."""
    undecided = 0
    one = np.uint64(1)
    for j in range(len(out)):
        y = out[j]
        coin = np.uint64(words[4 * j + 1])
        place = np.uint64(words[4 * j + 2]) | np.uint64(words[4 * j + 3]) << np.uint64(32)
        z, rest = multiply_words(place, stride)
        inside = (place >> np.uint64(48)) + one  # more than 2^16 Z / m
        x = ((slope * np.uint64(max(y, 0)) * inside) >> np.uint64(16)) + one + level
        size = np.int64(stride) * y + np.int64(z)
        negative = coin & one
        whole = rest <= np.uint64(0) - stride  # Z does not depend on further bits
        sure = (coin >> one) + one + x <= np.uint64(1 << 31)
        if y == UNDECIDED or not whole or not sure or (negative and size == 0):
            out[j] = UNDECIDED
            undecided += 1
        else:
            out[j] = -size if negative else size
    return undecided
