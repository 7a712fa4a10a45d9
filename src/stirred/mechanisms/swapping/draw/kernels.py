"""The compiled steps of a swap (select, group, derange) as pure functions over arrays.

A record's words are 16 random bytes named by its own identifier, so no step depends on the order of the rows, on
chunks or on threads. Only the selected records are ever grouped.
"""

import numpy as np
from numpy.typing import NDArray

from stirred.compiled import compiled

OUT = np.uint32(0xFFFFFFFF)  # the stratum of a record that takes no part


@compiled
def select(
    words: NDArray[np.uint64],
    strata: NDArray[np.uint32],
    threshold: np.uint64,
    everything_below: bool,
    rows: NDArray[np.uint32],
    second: NDArray[np.uint64],
    ties: NDArray[np.uint32],
) -> tuple[int, int]:
    """Positions whose first word lies below the threshold, with their second word; words equal to it are ties.

    The true threshold is p·2⁶⁴, rarely an integer: below its floor a word selects, above it does not, and at it
    more bits must decide. ``everything_below`` says that the floor is 2⁶⁴ itself (p = 1).
    """
    found = 0
    tied = 0
    for i in range(strata.size):
        word = words[i, 0]
        if strata[i] == OUT:
            continue
        if word == threshold and not everything_below:
            ties[tied] = i
            tied += 1
        rows[found] = i
        second[found] = words[i, 1]
        found += 1 if word < threshold or everything_below else 0
    return found, tied


@compiled
def select_by_class(
    words: NDArray[np.uint64],
    strata: NDArray[np.uint32],
    classes: NDArray[np.uint16],
    thresholds: NDArray[np.uint64],
    rows: NDArray[np.uint32],
    second: NDArray[np.uint64],
    ties: NDArray[np.uint32],
) -> tuple[int, int]:
    """As ``select``, with a threshold for each class of records."""
    found = 0
    tied = 0
    for i in range(strata.size):
        if strata[i] == OUT:
            continue
        word = words[i, 0]
        threshold = thresholds[classes[i]]
        if word == threshold:
            ties[tied] = i
            tied += 1
        elif word < threshold:
            rows[found] = i
            second[found] = words[i, 1]
            found += 1
    return found, tied


@compiled
def in_pending(strata: NDArray[np.uint32], pending: NDArray[np.bool_], rows: NDArray[np.uint32]) -> int:
    """Positions whose stratum must be selected again."""
    found = 0
    for i in range(strata.size):
        stratum = strata[i]
        if stratum != OUT:
            # always written, kept when pending: a branch here would be mispredicted in four cases of ten
            rows[found] = i
            found += int(pending[stratum])
    return found


@compiled
def still_pending(rows: NDArray[np.uint32], strata: NDArray[np.uint32], pending: NDArray[np.bool_]) -> int:
    """Move the listed records whose stratum is pending to the front of the list; returns how many."""
    found = 0
    for row in rows:
        rows[found] = row
        found += int(pending[strata[row]])
    return found


@compiled
def settle(
    rows: NDArray[np.uint32],
    words: NDArray[np.uint64],
    strata: NDArray[np.uint32],
    counts: NDArray[np.uint32],
) -> int:
    """Move the selected records that are not alone in their stratum to the front; returns how many."""
    found = 0
    for i in range(rows.size):
        row = rows[i]
        rows[found] = row
        words[found] = words[i]
        found += int(counts[strata[row]] != 1)
    return found


@compiled
def tally(strata: NDArray[np.uint32], rows: NDArray[np.uint32], counts: NDArray[np.uint32]) -> None:
    """Add one to the count of each listed record's stratum."""
    for row in rows:
        counts[strata[row]] += np.uint32(1)


@compiled
def strata_count(strata: NDArray[np.uint32]) -> int:
    """One more than the largest code of a stratum; 0 when no record takes part."""
    largest = -1
    for stratum in strata:
        if stratum != OUT and stratum > largest:
            largest = int(stratum)
    return largest + 1


@compiled
def sizes(strata: NDArray[np.uint32], counts: NDArray[np.uint32]) -> None:
    """Number of records of every stratum that take part."""
    for stratum in strata:
        if stratum != OUT:
            counts[stratum] += np.uint32(1)


@compiled
def group(
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


@compiled
def strictly_ascending(ids: NDArray[np.uint64]) -> bool:
    """Whether identifiers are strictly ascending."""
    for i in range(1, ids.size):  # noqa: SIM110 — compiled: a loop is what the compiler wants
        if ids[i - 1] >= ids[i]:
            return False
    return True


@compiled
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


@compiled
def multiply_high(x: np.uint64, y: np.uint64) -> tuple[np.uint64, np.uint64]:
    """High and low half of the 128-bit product of a word and a bound below 2³²."""
    low = np.uint64(x & np.uint64(0xFFFFFFFF)) * y
    high = np.uint64(x >> np.uint64(32)) * y + (low >> np.uint64(32))
    return high >> np.uint64(32), x * y


@compiled
def derange(
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


@compiled
def spread(
    starts: NDArray[np.int64],
    grouped_rows: NDArray[np.uint32],
    images: NDArray[np.uint32],
    givers: NDArray[np.uint32],
) -> None:
    """The record each grouped record receives its swap variables from."""
    for g in range(starts.size - 1):
        start = starts[g]
        for i in range(start, starts[g + 1]):
            givers[i] = grouped_rows[start + images[i]]


@compiled
def rows_of_groups(
    groups: NDArray[np.int64],
    starts: NDArray[np.int64],
    grouped_rows: NDArray[np.uint32],
    word_starts: NDArray[np.int64],
    rows: NDArray[np.uint32],
) -> None:
    """The records of the listed groups, one group after the other."""
    for g in range(groups.size):
        start = starts[groups[g]]
        for i in range(starts[groups[g] + 1] - start):
            rows[word_starts[g] + i] = grouped_rows[start + i]
