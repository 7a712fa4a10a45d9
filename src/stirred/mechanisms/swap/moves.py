"""Draw the moves of Algorithm 1 (select, derange) and the random order of publication."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from stirred.chance.uniform import Threshold, threshold
from stirred.engine import Engine, Local, Progress
from stirred.kernels import compile_kernel
from stirred.mechanisms.swap.strata import NO_STRATUM, count_sizes

# Select records: each with the probability of its swap rate, and again where a stratum has exactly one selected.
#
# A record's words are 16 random bytes named by its own identifier, so no step depends on the order of the rows, on
# chunks or on threads.

ROWS_PER_CIPHER_CALL = 1 << 16  # records per call of the cipher: the words stay in the second-level cache
SELECT_LABEL = "swap/select"


class WordSource(Protocol):
    """A source of random words: 16 bytes for each identifier, determined by (label, identifier, counter)."""

    def blocks(self, label: str, ids: NDArray[np.uint64], *, counter: int = 0) -> NDArray[np.uint64]:
        """Return two words for each identifier."""
        ...


@compile_kernel
def _select(
    words: NDArray[np.uint64],
    strata: NDArray[np.uint32],
    limit: np.uint64,
    select_all: bool,
    rows: NDArray[np.uint32],
    second: NDArray[np.uint64],
    ties: NDArray[np.uint32],
) -> tuple[int, int]:
    """Write positions whose first word is below the limit, and ties; return how many there are of each.

    The limit is the floor of p·2⁶⁴, rarely an integer: below it a word selects, above it does not, and at it
    more bits must decide. ``select_all`` says that the floor is 2⁶⁴ itself (p = 1).
    """
    found = 0
    tied = 0
    for i in range(strata.size):
        word = words[i, 0]
        if strata[i] == NO_STRATUM:
            continue
        if word == limit and not select_all:
            ties[tied] = i
            tied += 1
        rows[found] = i  # without a branch: the next record overwrites it, unless this one is selected
        second[found] = words[i, 1]
        found += 1 if word < limit or select_all else 0
    return found, tied


@compile_kernel
def _select_by_class(
    words: NDArray[np.uint64],
    strata: NDArray[np.uint32],
    classes: NDArray[np.uint16],
    limits: NDArray[np.uint64],
    rows: NDArray[np.uint32],
    second: NDArray[np.uint64],
    ties: NDArray[np.uint32],
) -> tuple[int, int]:
    """Select as ``_select`` does, with a limit for each class of records."""
    found = 0
    tied = 0
    for i in range(strata.size):
        if strata[i] == NO_STRATUM:
            continue
        word = words[i, 0]
        limit = limits[classes[i]]
        if word == limit:
            ties[tied] = i
            tied += 1
        elif word < limit:
            rows[found] = i
            second[found] = words[i, 1]
            found += 1
    return found, tied


@compile_kernel
def _list_pending(strata: NDArray[np.uint32], pending: NDArray[np.bool_], rows: NDArray[np.uint32]) -> int:
    """Write the positions whose stratum must be selected again; return how many there are."""
    found = 0
    for i in range(strata.size):
        stratum = strata[i]
        if stratum != NO_STRATUM:
            # always written, kept when pending: a branch here would be mispredicted in four cases of ten
            rows[found] = i
            found += int(pending[stratum])
    return found


@compile_kernel
def _keep_pending(rows: NDArray[np.uint32], strata: NDArray[np.uint32], pending: NDArray[np.bool_]) -> int:
    """Move the listed records whose stratum is pending to the front of the list; returns how many."""
    found = 0
    for row in rows:
        rows[found] = row
        found += int(pending[strata[row]])
    return found


@compile_kernel
def _settle(
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


@compile_kernel
def _tally(strata: NDArray[np.uint32], rows: NDArray[np.uint32], counts: NDArray[np.uint32]) -> None:
    """Add one to the count of each listed record's stratum."""
    for row in rows:
        counts[strata[row]] += np.uint32(1)


def break_tie(words: WordSource, label: str, identifier: np.uint64, counter: int, coin: Threshold) -> bool:
    """Return whether a record whose first word equals the threshold is selected, from the digits that follow."""
    rest = coin.p * 2**64 - coin.first  # the digits of p·2⁶⁴ behind the first word
    deeper = 0
    while rest:
        block = words.blocks(f"{label}/tie/{counter}", np.array([identifier], np.uint64), counter=deeper)
        for word in block[0]:
            rest *= 2**64
            digit = int(rest)
            if int(word) != digit:
                return int(word) < digit
            rest -= digit
        deeper += 1
    return False


def toss_coins(words: WordSource, label: str, ids: NDArray[np.uint64], p: Fraction) -> NDArray[np.bool_]:
    """Toss one exact coin for each identifier."""
    coin = threshold(p)
    first = words.blocks(label, ids)[:, 0]
    if coin.certain:
        return np.ones(ids.size, np.bool_)
    result: NDArray[np.bool_] = first < coin.word
    for i in np.flatnonzero(first == coin.word):
        result[i] = break_tie(words, label, ids[i], 0, coin)
    return result


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The inputs of a selection: words, identifiers, strata and thresholds of all records."""

    words: WordSource
    ids: NDArray[np.uint64]
    strata: NDArray[np.uint32]
    thresholds: tuple[Threshold, ...]
    classes: NDArray[np.uint16] | None = None  # the threshold of each record; None: there is only one

    def select_rows(
        self, rows: NDArray[np.uint32] | slice, counter: int
    ) -> tuple[NDArray[np.uint32], NDArray[np.uint64]]:
        """Return the selected records among ``rows`` and the second word of each; ``counter`` is 0 in the first round."""
        ids, strata = self.ids[rows], self.strata[rows]
        words = self.words.blocks(SELECT_LABEL, ids, counter=counter)
        n = strata.size
        found, second, ties = np.empty(n, np.uint32), np.empty(n, np.uint64), np.empty(n, np.uint32)
        classes = None if self.classes is None else self.classes[rows]
        if classes is None:
            coin = self.thresholds[0]
            count, ties_found = _select(words, strata, coin.word, coin.certain, found, second, ties)
        else:
            limits = np.array([coin.word for coin in self.thresholds], np.uint64)
            count, ties_found = _select_by_class(words, strata, classes, limits, found, second, ties)
        found, second = found[:count], second[:count]
        lucky = [
            i
            for i in ties[:ties_found].tolist()
            if break_tie(
                self.words,
                SELECT_LABEL,
                ids[i],
                counter,
                self.thresholds[0 if classes is None else classes[i]],
            )
        ]
        if lucky:
            found = np.append(found, np.array(lucky, np.uint32))
            second = np.append(second, words[lucky, 1])
        if isinstance(rows, slice):
            return found + np.uint32(rows.start), second.copy()
        return rows[found], second.copy()


def _slice_rows(n: int) -> list[slice]:
    return [slice(start, min(start + ROWS_PER_CIPHER_CALL, n)) for start in range(0, n, ROWS_PER_CIPHER_CALL)]


def _join_parts(
    parts: Iterator[tuple[NDArray[np.uint32], NDArray[np.uint64]]],
) -> tuple[NDArray[np.uint32], NDArray[np.uint64]]:
    rows, words = [np.empty(0, np.uint32)], [np.empty(0, np.uint64)]
    for part_rows, part_words in parts:
        rows.append(part_rows)
        words.append(part_words)
    return np.concatenate(rows), np.concatenate(words)


def select(
    selection: Selection, sizes: NDArray[np.uint32], engine: Engine
) -> tuple[NDArray[np.uint32], NDArray[np.uint64], NDArray[np.uint32], int]:
    """Select until no stratum of two or more records has exactly one selected; a stratum of one has none.

    Return the selected rows, the second word of each (the derangement uses it), how many are selected in each stratum,
    and the number of rounds.
    """
    strata = selection.strata
    rows, words = _join_parts(
        engine.map(lambda part: selection.select_rows(part, 0), _slice_rows(strata.size))
    )
    counts = np.zeros(sizes.size, np.uint32)
    _tally(strata, rows, counts)
    settled_rows: list[NDArray[np.uint32]] = []
    settled_words: list[NDArray[np.uint64]] = []
    pool: NDArray[np.uint32] | None = None
    rounds = 1
    while True:
        lone = (counts == 1) & (sizes >= 2)
        kept = _settle(rows, words, strata, counts)
        settled_rows.append(rows[:kept])
        settled_words.append(words[:kept])
        counts[counts == 1] = 0
        if not lone.any():
            break
        if pool is None:
            pool = np.empty(strata.size, np.uint32)
            pool = pool[: _list_pending(strata, lone, pool)].copy()
        else:
            pool = pool[: _keep_pending(pool, strata, lone)]
        again: NDArray[np.uint32] = pool
        counter = rounds
        rows, words = _join_parts(
            engine.map(lambda part: selection.select_rows(again[part], counter), _slice_rows(again.size))  # noqa: B023
        )
        _tally(strata, rows, counts)
        rounds += 1
    return np.concatenate(settled_rows), np.concatenate(settled_words), counts, rounds


# Derange the selected records of every stratum: uniform over the permutations that leave no record in its place.


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
        position = cursor[stratum]
        cursor[stratum] = position + 1
        grouped_rows[position] = row
        grouped_words[position] = words[i]


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
    """Derange every group uniformly; return the position in its group whose values each record receives."""
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


# Draw which record receives whose swap variables: Algorithm 1 of the paper over all strata at once.


@dataclass(frozen=True, slots=True, kw_only=True)
class Moves:
    """Record ``receivers[i]`` takes the swap variables of record ``givers[i]``; all others keep their own."""

    receivers: NDArray[np.uint32]
    givers: NDArray[np.uint32]
    rounds: int = 1  # of selection: the first, and one for each time that strata had to be selected again

    def apply(self, column: NDArray[np.generic]) -> NDArray[np.generic]:
        """Return the column after the swap.

        >>> both = np.array([0, 2], np.uint32)
        >>> Moves(receivers=both, givers=both[::-1]).apply(np.array([7, 8, 9]))
        array([9, 8, 7])
        """
        swapped = column.copy()
        swapped[self.receivers] = column[self.givers]
        return swapped


def draw_moves(
    words: WordSource,
    *,
    ids: NDArray[np.uint64],
    strata: NDArray[np.uint32],
    rate: Fraction | Sequence[Fraction],
    classes: NDArray[np.uint16] | None = None,
    sizes: NDArray[np.uint32] | None = None,
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> Moves:
    """Draw the Permutation Swapping Algorithm once; ``strata`` are dense codes, ``ids`` are unique words.

    A record takes no part when its stratum is ``strata.NO_STRATUM``. The draw is a function of the words and of the set
    of (identifier, stratum) pairs alone. With ``classes`` there is a rate for each class of records, strictly
    between 0 and 1.
    """
    if sizes is None:
        sizes = count_sizes(strata)
    report = progress or (lambda *_: None)
    report("select", 0, 2)
    rates = (rate,) if isinstance(rate, Fraction) else tuple(rate)
    selection = Selection(
        words=words, ids=ids, strata=strata, thresholds=tuple(map(threshold, rates)), classes=classes
    )
    rows, second, counts, rounds = select(selection, sizes, engine or Local())
    report("derange", 1, 2)
    starts = np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))
    grouped_rows, grouped_words = np.empty(rows.size, np.uint32), np.empty(rows.size, np.uint64)
    group_rows(strata, rows, second, starts[:-1].copy(), grouped_rows, grouped_words)
    del rows, second
    sort_groups(ids, starts, grouped_rows, grouped_words)
    images = derange(words, ids, starts, grouped_rows, grouped_words)
    givers = np.empty(grouped_rows.size, np.uint32)
    spread_givers(starts, grouped_rows, images, givers)
    report("derange", 2, 2)
    return Moves(receivers=grouped_rows, givers=givers, rounds=rounds)


# Order records for publication by a shuffle that depends on the key and the identifiers, never on the input's order.
#
# Its words are independent of those of the selection: with shared words, the position of a record would reveal
# whether it was selected.

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
