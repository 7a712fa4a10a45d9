"""Addressable draws: draw number i of a stream is computed from its own bytes, alone or in a range.

Draw i of a law of ``width`` bytes reads the bytes i·width … (i+1)·width − 1 of the main keystream and, when these
do not decide, the extension of that position. So ``draw_range(stream, start, n)`` is ``at_positions(stream,
start … start + n − 1)``, and ``at(key, label, ids)`` is ``at_positions(key.stream(label), ids)``.
"""

from abc import ABC, abstractmethod
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from stirred.chance.cipher import BLOCK_BYTES, CHUNK_BYTES, SLACK_BYTES
from stirred.chance.key import Key, to_words
from stirred.chance.names import Part
from stirred.chance.stream import Stream
from stirred.compiled import compile_kernel
from stirred.errors import InputError

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
