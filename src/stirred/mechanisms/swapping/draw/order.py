"""Order records for publication by a shuffle that depends on the key and the identifiers, never on the input's order.

Its words are independent of those of the selection: with shared words, the position of a record would reveal
whether it was selected.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stirred.compiled import compile_kernel
from stirred.engine import Engine
from stirred.mechanisms.swapping.draw.selection import WordSource

ROWS_PER_ORDER_CALL = 1 << 16
ORDER_LABEL = "order"


@compile_kernel
def _count_buckets(words: NDArray[np.uint64], shift: np.uint64, counts: NDArray[np.int64]) -> None:
    for word in words:
        counts[np.int64(word >> shift)] += 1


@compile_kernel
def _scatter_rows(
    words: NDArray[np.uint64], shift: np.uint64, cursor: NDArray[np.int64], rows: NDArray[np.uint32]
) -> None:
    for i in range(words.size):
        bucket = np.int64(words[i] >> shift)
        rows[cursor[bucket]] = i
        cursor[bucket] += 1


@compile_kernel
def _sort_buckets(words: NDArray[np.uint64], starts: NDArray[np.int64], rows: NDArray[np.uint32]) -> int:
    """Sort each bucket by word; returns how many neighbours have equal words."""
    equal = 0
    for b in range(starts.size - 1):
        part = rows[starts[b] : starts[b + 1]]
        if part.size > 1:
            keys = words[part]
            order = np.argsort(keys)
            part[:] = part[order]
            for i in range(1, part.size):
                if keys[order[i]] == keys[order[i - 1]]:
                    equal += 1
    return equal


def draw_order_words(words: WordSource, ids: NDArray[np.uint64], engine: Engine) -> NDArray[np.uint64]:
    """Return the word by which each record is sorted for publication."""
    first = np.empty(ids.size, np.uint64)

    def fill(part: slice) -> None:
        first[part] = words.blocks(ORDER_LABEL, ids[part])[:, 0]

    for _ in engine.map(
        fill,
        [slice(i, min(i + ROWS_PER_ORDER_CALL, ids.size)) for i in range(0, ids.size, ROWS_PER_ORDER_CALL)],
    ):
        pass
    return first


def shuffle_rows(words: WordSource, ids: NDArray[np.uint64], engine: Engine) -> NDArray[np.uint32]:
    """Return the rows in a random order that depends only on the words and the set of identifiers."""
    n = ids.size
    first = draw_order_words(words, ids, engine)
    bits = max(0, min(24, int(n).bit_length() - 9))  # about 256 to 512 records a bucket
    shift = np.uint64(64 - bits) if bits else np.uint64(63)
    counts = np.zeros((1 << bits) if bits else 2, np.int64)
    _count_buckets(first, shift, counts)
    starts = np.concatenate(([0], np.cumsum(counts)))
    rows = np.empty(n, np.uint32)
    _scatter_rows(first, shift, starts[:-1].copy(), rows)
    edges = np.linspace(0, counts.size, 17).astype(np.int64)

    def sort(k: int) -> int:
        return _sort_buckets(first, starts[edges[k] : edges[k + 1] + 1], rows)

    if sum(engine.map(sort, range(16))):
        _order_equals(words, ids, first, rows)
    return rows


@compile_kernel
def _find_equals(words: NDArray[np.uint64], rows: NDArray[np.uint32], places: NDArray[np.int64]) -> int:
    found = 0
    for i in range(1, rows.size):
        if words[rows[i]] == words[rows[i - 1]] and found < places.size:
            places[found] = i
            found += 1
    return found


def _order_equals(
    words: WordSource,
    ids: NDArray[np.uint64],
    first: NDArray[np.uint64],
    rows: NDArray[np.uint32],
) -> None:
    """Order records with equal first words (probability 0.0005 among 130 million) by their second word."""
    places = np.empty(1 << 16, np.int64)
    for i in places[: _find_equals(first, rows, places)]:
        stop = int(i) + 1
        start = int(i) - 1
        while start > 0 and first[rows[start - 1]] == first[rows[i]]:
            start -= 1
        while stop < rows.size and first[rows[stop]] == first[rows[i]]:
            stop += 1
        tied = rows[start:stop]
        second = words.blocks(ORDER_LABEL, ids[tied])[:, 1]
        tied[:] = tied[np.lexsort((ids[tied], second))]


def assign_canonical_ids(numbers: list[NDArray[Any]], rows: int) -> NDArray[np.uint64]:
    """Return the rank of each record when all are sorted by value, as identifiers where the census has none.

    Equal records get neighbouring ranks in any order, which changes no released row.
    """
    if not numbers:
        return np.arange(rows, dtype=np.uint64)
    order = np.lexsort(numbers[::-1])
    ids = np.empty(rows, np.uint64)
    ids[order] = np.arange(rows, dtype=np.uint64)
    return ids
