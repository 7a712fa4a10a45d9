"""Draw which record receives whose swap variables: Algorithm 1 of the paper over all strata at once."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol, cast

import numpy as np
from numpy.typing import NDArray

from stirred.engine import Engine, Local, Progress
from stirred.mechanisms.swapping.draw import kernels as kernel

ROWS = 1 << 16  # records per call of the cipher: the words stay in the second-level cache


class Words(Protocol):
    """The source of random words: 16 bytes per identifier, determined by (label, identifier, counter)."""

    def blocks(self, label: str, ids: NDArray[np.uint64], *, counter: int = 0) -> NDArray[np.uint64]:
        """Two words for each identifier."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Moves:
    """Record ``receivers[i]`` takes the swap variables of record ``givers[i]``; all others keep their own."""

    receivers: NDArray[np.uint32]
    givers: NDArray[np.uint32]
    attempts: int = 1  # selections drawn, counting the strata that had to be selected again

    def apply(self, column: NDArray[np.generic]) -> NDArray[np.generic]:
        """The column after the swap.

        >>> both = np.array([0, 2], np.uint32)
        >>> Moves(receivers=both, givers=both[::-1]).apply(np.array([7, 8, 9]))
        array([9, 8, 7])
        """
        swapped = column.copy()
        swapped[self.receivers] = column[self.givers]
        return swapped


@dataclass(frozen=True, slots=True)
class Threshold:
    r"""The first word below which a record is selected: $\lfloor p\,2^{64} \rfloor$, and the rest of p that decides a tie.

    >>> Threshold.of(Fraction(1, 2)).floor == 2**63
    True
    """

    floor: int
    rest: Fraction

    @classmethod
    def of(cls, rate: Fraction) -> "Threshold":
        """The threshold of an exact rate between 0 and 1."""
        scaled = rate * 2**64
        return cls(int(scaled), scaled - int(scaled))


def _tie(words: Words, label: str, identifier: np.uint64, counter: int, rest: Fraction) -> bool:
    """Whether a record whose first word equals the threshold is selected: compare the digits that follow."""
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


def _class(classes: NDArray[np.uint16] | None, i: int) -> int:
    return 0 if classes is None else int(classes[i])


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Draws one selection of the listed records in independent slices."""

    words: Words
    ids: NDArray[np.uint64]
    strata: NDArray[np.uint32]
    thresholds: tuple[Threshold, ...]
    classes: NDArray[np.uint16] | None = None  # the threshold of each record; None: there is only one

    def slice(
        self, rows: NDArray[np.uint32] | slice, counter: int
    ) -> tuple[NDArray[np.uint32], NDArray[np.uint64]]:
        """Selected records among ``rows`` and the second word of each."""
        ids, strata = self.ids[rows], self.strata[rows]
        words = self.words.blocks("swap/select", ids, counter=counter)
        n = strata.size
        found, second, ties = np.empty(n, np.uint32), np.empty(n, np.uint64), np.empty(n, np.uint32)
        classes = None if self.classes is None else self.classes[rows]
        if classes is None:
            sure = self.thresholds[0].floor >= 2**64
            floor = np.uint64(0 if sure else self.thresholds[0].floor)
            count, tied = kernel.select(words, strata, floor, sure, found, second, ties)
        else:
            floors = np.array([threshold.floor for threshold in self.thresholds], np.uint64)
            count, tied = kernel.select_by_class(words, strata, classes, floors, found, second, ties)
        found, second = found[:count], second[:count]
        lucky = [
            i
            for i in ties[:tied].tolist()
            if _tie(self.words, "swap/select", ids[i], counter, self.thresholds[_class(classes, i)].rest)
        ]
        if lucky:
            found = np.append(found, np.array(lucky, np.uint32))
            second = np.append(second, words[lucky, 1])
        if isinstance(rows, slice):
            return found + np.uint32(rows.start), second.copy()
        return rows[found], second.copy()


def _slices(n: int) -> list[slice]:
    return [slice(start, min(start + ROWS, n)) for start in range(0, n, ROWS)]


def _joined(
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
    rows, words = _joined(engine.map(lambda part: selection.slice(part, 0), _slices(strata.size)))
    counts = np.zeros(sizes.size, np.uint32)
    kernel.tally(strata, rows, counts)
    settled_rows: list[NDArray[np.uint32]] = []
    settled_words: list[NDArray[np.uint64]] = []
    pool: NDArray[np.uint32] | None = None
    attempts = 1
    while True:
        lone = (counts == 1) & (sizes >= 2)
        kept = kernel.settle(rows, words, strata, counts)
        settled_rows.append(rows[:kept])
        settled_words.append(words[:kept])
        counts[counts == 1] = 0
        if not lone.any():
            break
        if pool is None:
            pool = np.empty(strata.size, np.uint32)
            pool = pool[: kernel.in_pending(strata, lone, pool)].copy()
        else:
            pool = pool[: kernel.still_pending(pool, strata, lone)]
        again: NDArray[np.uint32] = pool
        counter = attempts
        rows, words = _joined(
            engine.map(lambda part: selection.slice(again[part], counter), _slices(again.size))  # noqa: B023
        )
        kernel.tally(strata, rows, counts)
        attempts += 1
    return np.concatenate(settled_rows), np.concatenate(settled_words), counts, attempts


def derange(
    words: Words,
    ids: NDArray[np.uint64],
    starts: NDArray[np.int64],
    grouped_rows: NDArray[np.uint32],
    grouped_words: NDArray[np.uint64],
) -> NDArray[np.uint32]:
    """The place within its group whose values each selected record receives, uniform over derangements."""
    images = np.empty(grouped_rows.size, np.uint32)
    groups = np.flatnonzero(np.diff(starts)).astype(np.int64)
    unfinished = np.empty(groups.size, np.int64)
    failed = kernel.derange(groups, starts, grouped_words, starts[groups], images, unfinished)
    counter = 0
    while failed:
        groups = unfinished[:failed].copy()
        word_starts = np.concatenate(([0], np.cumsum(starts[groups + 1] - starts[groups]))).astype(np.int64)
        rows = np.empty(word_starts[-1], np.uint32)
        kernel.rows_of_groups(groups, starts, grouped_rows, word_starts, rows)
        fresh = words.blocks("swap/derange", ids[rows], counter=counter)
        counter += 1
        column = np.ascontiguousarray(fresh[:, 0])
        failed = kernel.derange(groups, starts, column, word_starts, images, unfinished)
        if failed:
            # the second word of the block is used in the next attempt of the groups that failed
            again = unfinished[:failed].copy()
            at = np.searchsorted(groups, again)
            column = np.ascontiguousarray(fresh[:, 1])
            failed = kernel.derange(again, starts, column, word_starts[at], images, unfinished)
    return images


def draw(
    words: Words,
    *,
    ids: NDArray[np.uint64],
    strata: NDArray[np.uint32],
    rate: Fraction | Sequence[Fraction],
    classes: NDArray[np.uint16] | None = None,
    sizes: NDArray[np.uint32] | None = None,
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> Moves:
    """One draw of the Permutation Swapping Algorithm; ``strata`` are dense codes, ``ids`` unique words.

    A record takes no part when its stratum is ``kernel.OUT``. The draw is a function of the words and of the set
    of (identifier, stratum) pairs alone. With ``classes`` there is a rate for each class of records, strictly
    between 0 and 1.
    """
    place = engine or cast(Engine, Local())
    if sizes is None:
        sizes = stratum_sizes(strata)
    report = progress or (lambda *_: None)
    report("select", 0, 2)
    rates = (rate,) if isinstance(rate, Fraction) else tuple(rate)
    selection = Selection(
        words=words, ids=ids, strata=strata, thresholds=tuple(map(Threshold.of, rates)), classes=classes
    )
    rows, second, counts, attempts = select(selection, sizes, place)
    report("derange", 1, 2)
    starts = np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))
    grouped_rows, grouped_words = np.empty(rows.size, np.uint32), np.empty(rows.size, np.uint64)
    kernel.group(strata, rows, second, starts[:-1].copy(), grouped_rows, grouped_words)
    del rows, second
    kernel.sort_groups(ids, starts, grouped_rows, grouped_words)
    images = derange(words, ids, starts, grouped_rows, grouped_words)
    givers = np.empty(grouped_rows.size, np.uint32)
    kernel.spread(starts, grouped_rows, images, givers)
    report("derange", 2, 2)
    return Moves(receivers=grouped_rows, givers=givers, attempts=attempts)


def stratum_sizes(strata: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """How many records every stratum has.

    >>> stratum_sizes(np.array([0, 1, 1], np.uint32))
    array([1, 2], dtype=uint32)
    """
    counts = np.zeros(kernel.strata_count(strata), np.uint32)
    kernel.sizes(strata, counts)
    return counts
