"""Derange the selected records of every stratum: uniform over the permutations that leave no record in its place."""

import numpy as np
from numpy.typing import NDArray

from stirred.compiled import compile_kernel
from stirred.mechanisms.swapping.draw.selection import WordSource


@compile_kernel
def group_rows(
    strata: NDArray[np.uint32],
    rows: NDArray[np.uint32],
    words: NDArray[np.uint64],
    cursor: NDArray[np.int64],
    grouped_rows: NDArray[np.uint32],
    grouped_words: NDArray[np.uint64],
) -> None:
    """Group the listed records by stratum, in their given order (``cursor`` is overwritten)."""
    for i in range(rows.size):
        row = rows[i]
        stratum = strata[row]
        place = cursor[stratum]
        cursor[stratum] = place + 1
        grouped_rows[place] = row
        grouped_words[place] = words[i]


@compile_kernel
def sort_groups(
    ids: NDArray[np.uint64],
    starts: NDArray[np.int64],
    grouped_rows: NDArray[np.uint32],
    grouped_words: NDArray[np.uint64],
) -> None:
    """Order every group by identifier, the canonical order on which the derangement works."""
    for g in range(starts.size - 1):
        start, stop = starts[g], starts[g + 1]
        if stop - start < 2:
            continue
        if stop - start <= 24:
            for i in range(start + 1, stop):
                row, word = grouped_rows[i], grouped_words[i]
                j = i
                while j > start and ids[grouped_rows[j - 1]] > ids[row]:
                    grouped_rows[j] = grouped_rows[j - 1]
                    grouped_words[j] = grouped_words[j - 1]
                    j -= 1
                grouped_rows[j], grouped_words[j] = row, word
        else:
            order = np.argsort(ids[grouped_rows[start:stop]])
            grouped_rows[start:stop] = grouped_rows[start:stop][order]
            grouped_words[start:stop] = grouped_words[start:stop][order]


@compile_kernel
def multiply_high(x: np.uint64, y: np.uint64) -> tuple[np.uint64, np.uint64]:
    """Return the high and low half of the 128-bit product of a word and a bound below 2³²."""
    low = np.uint64(x & np.uint64(0xFFFFFFFF)) * y
    high = np.uint64(x >> np.uint64(32)) * y + (low >> np.uint64(32))
    return high >> np.uint64(32), x * y


@compile_kernel
def _derange_once(
    groups: NDArray[np.int64],
    starts: NDArray[np.int64],
    words: NDArray[np.uint64],
    word_starts: NDArray[np.int64],
    images: NDArray[np.uint32],
    unfinished: NDArray[np.int64],
) -> int:
    """Try once to derange each listed group; returns how many groups failed and lists them.

    Durstenfeld's shuffle with the word of record i at step i; a fixed point, or a word that would make the step
    uneven (Lemire 2019), fails the whole try. Both leave the accepted result uniform over derangements.
    """
    failed = 0
    for g in range(groups.size):
        start = starts[groups[g]]
        size = starts[groups[g] + 1] - start
        image = images[start : start + size]
        word = words[word_starts[g] : word_starts[g] + size]
        for i in range(size):
            image[i] = np.uint32(i)
        good = True
        for i in range(size - 1, 0, -1):
            bound = np.uint64(i + 1)
            j, low = multiply_high(word[i], bound)
            if low < bound and low < (np.uint64(0) - bound) % bound:
                good = False
                break
            image[i], image[j] = image[j], image[i]
            if image[i] == i:
                good = False
                break
        if not good or image[0] == 0:
            unfinished[failed] = groups[g]
            failed += 1
    return failed


@compile_kernel
def spread_givers(
    starts: NDArray[np.int64],
    grouped_rows: NDArray[np.uint32],
    images: NDArray[np.uint32],
    givers: NDArray[np.uint32],
) -> None:
    """Write the record from which each grouped record receives its swap variables into ``givers``."""
    for g in range(starts.size - 1):
        start = starts[g]
        for i in range(start, starts[g + 1]):
            givers[i] = grouped_rows[start + images[i]]


@compile_kernel
def _list_rows(
    groups: NDArray[np.int64],
    starts: NDArray[np.int64],
    grouped_rows: NDArray[np.uint32],
    word_starts: NDArray[np.int64],
    rows: NDArray[np.uint32],
) -> None:
    """Write the records of the listed groups into ``rows``, one group after the other."""
    for g in range(groups.size):
        start = starts[groups[g]]
        for i in range(starts[groups[g] + 1] - start):
            rows[word_starts[g] + i] = grouped_rows[start + i]


def derange(
    words: WordSource,
    ids: NDArray[np.uint64],
    starts: NDArray[np.int64],
    grouped_rows: NDArray[np.uint32],
    grouped_words: NDArray[np.uint64],
) -> NDArray[np.uint32]:
    """Derange every group uniformly; return the place in its group whose values each record receives."""
    images = np.empty(grouped_rows.size, np.uint32)
    groups = np.flatnonzero(np.diff(starts)).astype(np.int64)
    unfinished = np.empty(groups.size, np.int64)
    failed = _derange_once(groups, starts, grouped_words, starts[groups], images, unfinished)
    counter = 0
    while failed:
        groups = unfinished[:failed].copy()
        word_starts = np.concatenate(([0], np.cumsum(starts[groups + 1] - starts[groups]))).astype(np.int64)
        rows = np.empty(word_starts[-1], np.uint32)
        _list_rows(groups, starts, grouped_rows, word_starts, rows)
        fresh = words.blocks("swap/derange", ids[rows], counter=counter)
        counter += 1
        column = np.ascontiguousarray(fresh[:, 0])
        failed = _derange_once(groups, starts, column, word_starts, images, unfinished)
        if failed:
            # the second word of the block is used in the next attempt of the groups that failed
            again = unfinished[:failed].copy()
            at = np.searchsorted(groups, again)
            column = np.ascontiguousarray(fresh[:, 1])
            failed = _derange_once(again, starts, column, word_starts[at], images, unfinished)
    return images
