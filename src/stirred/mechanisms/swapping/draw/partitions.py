r"""Number the margins of small strata: a stratum of n records has a partition of n as its margins.

The number of a partition is its rank among the partitions of n in lexicographic order,
$\sum_i P(n_i, \lambda_i - 1)$ with $n_i = \lambda_i + \lambda_{i+1} + \dots$ and $P(m, k)$ the partitions of m with parts
of at most k, so that equal margins have equal numbers and no text is made for each stratum.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from stirred.compiled import compile_kernel
from stirred.mechanisms.swapping.draw.strata import NO_STRATUM, ROWS_PER_CALL, StratumCodes, number_rows
from stirred.mechanisms.swapping.records.columns import Column

MAX_RECORDS_RANKED = 40  # records; 37,338 partitions, so that a rank fits 16 bits


def _count_partitions(largest: int) -> NDArray[np.int64]:
    """Return P(m, k), the number of partitions of m with no part above k, as a matrix."""
    found = np.zeros((largest + 1, largest + 1), np.int64)
    found[0, :] = 1
    for m in range(1, largest + 1):
        for k in range(1, largest + 1):
            found[m, k] = found[m, k - 1] + (found[m - k, k] if k <= m else 0)
    return found


PARTITION_COUNTS = _count_partitions(MAX_RECORDS_RANKED)


def unrank_margins(n: int, rank: int) -> tuple[int, ...]:
    """Return the partition of n with the given rank, largest part first.

    >>> [unrank_margins(4, rank) for rank in range(5)]
    [(1, 1, 1, 1), (2, 1, 1), (2, 2), (3, 1), (4,)]
    """
    parts = []
    while n:
        part = int(np.searchsorted(PARTITION_COUNTS[n], rank, side="right"))
        rank -= int(PARTITION_COUNTS[n, part - 1])
        n -= part
        parts.append(part)
    return tuple(parts)


def rank_margins(
    strata: StratumCodes, columns: Sequence[Column], chosen: NDArray[np.bool_]
) -> NDArray[np.uint16]:
    """Return the ranks of the margins of the chosen strata, each of at most ``MAX_RECORDS_RANKED`` records.

    >>> import pyarrow as pa
    >>> from stirred.mechanisms.swapping.draw.strata import form_strata
    >>> place = Column(name="place", codes=np.array([2, 7, 2, 2]), type=pa.int64())
    >>> unrank_margins(4, rank_margins(form_strata([], rows=4), [place], np.array([True]))[0])
    (3, 1)
    """
    sizes = strata.sizes[chosen].astype(np.int64)
    starts = np.cumsum(sizes) - sizes
    places = np.full(chosen.size, -1, np.int64)
    places[chosen] = starts
    types = np.empty(int(sizes.sum()), np.uint64)
    number = number_rows(columns)
    for start in range(0, strata.codes.size, ROWS_PER_CALL):
        part = slice(start, start + ROWS_PER_CALL)
        _scatter_types(strata.codes[part], number.numbers(part), places, types)
    ranks = np.empty(sizes.size, np.uint16)
    _rank_strata(types, starts, sizes, PARTITION_COUNTS, ranks)
    return ranks


@compile_kernel
def _scatter_types(
    strata: NDArray[np.uint32],
    numbers: NDArray[np.uint64],
    places: NDArray[np.int64],
    types: NDArray[np.uint64],
) -> None:
    """Put the type of each record behind those of its stratum; places of strata that are not chosen are −1."""
    for i in range(strata.size):
        if strata[i] != NO_STRATUM:
            place = places[strata[i]]
            if place >= 0:
                types[place] = numbers[i]
                places[strata[i]] = place + 1


@compile_kernel
def _rank_strata(
    types: NDArray[np.uint64],
    starts: NDArray[np.int64],
    sizes: NDArray[np.int64],
    partitions: NDArray[np.int64],
    ranks: NDArray[np.uint16],
) -> None:
    counts = np.empty(partitions.shape[0], np.int64)
    for s in range(sizes.size):
        own = types[starts[s] : starts[s] + sizes[s]]
        _sort_in_place(own)
        found = 0
        for i in range(own.size):
            if i and own[i] == own[i - 1]:
                counts[found - 1] += 1
            else:
                counts[found] = 1
                found += 1
        _sort_in_place(counts[:found])
        rest, rank = sizes[s], 0
        for i in range(found - 1, -1, -1):
            rank += partitions[rest, counts[i] - 1]
            rest -= counts[i]
        ranks[s] = rank


@compile_kernel
def _sort_in_place(values: NDArray[np.int64] | NDArray[np.uint64]) -> None:
    """Sort a few values in place, in ascending order."""
    for i in range(1, values.size):
        value, at = values[i], i
        while at and values[at - 1] > value:
            values[at] = values[at - 1]
            at -= 1
        values[at] = value
