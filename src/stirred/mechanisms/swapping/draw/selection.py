"""Select records: each with the probability of its swap rate, and again where a stratum has exactly one selected.

A record's words are 16 random bytes named by its own identifier, so no step depends on the order of the rows, on
chunks or on threads.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from stirred.chance.samplers.bernoulli import Threshold, threshold
from stirred.compiled import compile_kernel
from stirred.engine import Engine
from stirred.mechanisms.swapping.draw.strata import NO_STRATUM

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
    threshold: np.uint64,
    everything_below: bool,
    rows: NDArray[np.uint32],
    second: NDArray[np.uint64],
    ties: NDArray[np.uint32],
) -> tuple[int, int]:
    """Write positions whose first word is below the threshold, and ties; return how many there are of each.

    The true threshold is p·2⁶⁴, rarely an integer: below its floor a word selects, above it does not, and at it
    more bits must decide. ``everything_below`` says that the floor is 2⁶⁴ itself (p = 1).
    """
    found = 0
    tied = 0
    for i in range(strata.size):
        word = words[i, 0]
        if strata[i] == NO_STRATUM:
            continue
        if word == threshold and not everything_below:
            ties[tied] = i
            tied += 1
        rows[found] = i
        second[found] = words[i, 1]
        found += 1 if word < threshold or everything_below else 0
    return found, tied


@compile_kernel
def _select_by_class(
    words: NDArray[np.uint64],
    strata: NDArray[np.uint32],
    classes: NDArray[np.uint16],
    thresholds: NDArray[np.uint64],
    rows: NDArray[np.uint32],
    second: NDArray[np.uint64],
    ties: NDArray[np.uint32],
) -> tuple[int, int]:
    """Select as ``_select`` does, with a threshold for each class of records."""
    found = 0
    tied = 0
    for i in range(strata.size):
        if strata[i] == NO_STRATUM:
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
    rest = coin.p * 2**64 - coin.first
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
    """Draw one selection of the listed records in independent slices."""

    words: WordSource
    ids: NDArray[np.uint64]
    strata: NDArray[np.uint32]
    thresholds: tuple[Threshold, ...]
    classes: NDArray[np.uint16] | None = None  # the threshold of each record; None: there is only one

    def slice(
        self, rows: NDArray[np.uint32] | slice, counter: int
    ) -> tuple[NDArray[np.uint32], NDArray[np.uint64]]:
        """Return the selected records among ``rows`` and the second word of each."""
        ids, strata = self.ids[rows], self.strata[rows]
        words = self.words.blocks(SELECT_LABEL, ids, counter=counter)
        n = strata.size
        found, second, ties = np.empty(n, np.uint32), np.empty(n, np.uint64), np.empty(n, np.uint32)
        classes = None if self.classes is None else self.classes[rows]
        if classes is None:
            coin = self.thresholds[0]
            count, ties_found = _select(words, strata, coin.word, coin.certain, found, second, ties)
        else:
            floors = np.array([coin.word for coin in self.thresholds], np.uint64)
            count, ties_found = _select_by_class(words, strata, classes, floors, found, second, ties)
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
    """Select until no stratum of two or more records has exactly one selected; a stratum of one has none."""
    strata = selection.strata
    rows, words = _join_parts(engine.map(lambda part: selection.slice(part, 0), _slice_rows(strata.size)))
    counts = np.zeros(sizes.size, np.uint32)
    _tally(strata, rows, counts)
    settled_rows: list[NDArray[np.uint32]] = []
    settled_words: list[NDArray[np.uint64]] = []
    pool: NDArray[np.uint32] | None = None
    attempts = 1
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
        counter = attempts
        rows, words = _join_parts(
            engine.map(lambda part: selection.slice(again[part], counter), _slice_rows(again.size))  # noqa: B023
        )
        _tally(strata, rows, counts)
        attempts += 1
    return np.concatenate(settled_rows), np.concatenate(settled_words), counts, attempts
