r"""Number the margins of small strata: a stratum of n records has a partition of n as its margins.

The number of a partition is its rank among the partitions of n in lexicographic order,
$\sum_i P(n_i, \lambda_i - 1)$ with $n_i = \lambda_i + \lambda_{i+1} + \dots$ and $P(m, k)$ the partitions of m with parts
of at most k, so that equal margins have equal numbers and no text is made for each stratum.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from stirred.compiled import compiled
from stirred.mechanisms.swapping.draw.strata import OUT, ROWS, StratumCodes, numbered
from stirred.mechanisms.swapping.records.columns import Column

LARGEST = 40  # records; 37,338 partitions, so that a rank fits 16 bits


def _partitions(largest: int) -> NDArray[np.int64]:
    """P(m, k): how many partitions of m have no part above k."""
    found = np.zeros((largest + 1, largest + 1), np.int64)
    found[0, :] = 1
    for m in range(1, largest + 1):
        for k in range(1, largest + 1):
            found[m, k] = found[m, k - 1] + (found[m - k, k] if k <= m else 0)
    return found


PARTITIONS = _partitions(LARGEST)


def margins_of_rank(n: int, rank: int) -> tuple[int, ...]:
    """The partition of n with the given rank, largest part first.

    >>> [margins_of_rank(4, rank) for rank in range(5)]
    [(1, 1, 1, 1), (2, 1, 1), (2, 2), (3, 1), (4,)]
    """
    parts = []
    while n:
        part = int(np.searchsorted(PARTITIONS[n], rank, side="right"))
        rank -= int(PARTITIONS[n, part - 1])
        n -= part
        parts.append(part)
    return tuple(parts)


def margin_ranks(
    strata: StratumCodes, columns: Sequence[Column], chosen: NDArray[np.bool_]
) -> NDArray[np.uint16]:
    """The ranks of the margins of the chosen strata, which have at most ``LARGEST`` records each.

    >>> import pyarrow as pa
    >>> from stirred.mechanisms.swapping.draw.strata import strata
    >>> place = Column(name="place", codes=np.array([2, 7, 2, 2]), type=pa.int64())
    >>> margins_of_rank(4, margin_ranks(strata([], rows=4), [place], np.array([True]))[0])
    (3, 1)
    """
    sizes = strata.sizes[chosen].astype(np.int64)
    starts = np.cumsum(sizes) - sizes
    places = np.full(chosen.size, -1, np.int64)
    places[chosen] = starts
    types = np.empty(int(sizes.sum()), np.uint64)
    number = numbered(columns)
    for start in range(0, strata.codes.size, ROWS):
        part = slice(start, start + ROWS)
        _scatter(strata.codes[part], number.numbers(part), places, types)
    ranks = np.empty(sizes.size, np.uint16)
    _rank(types, starts, sizes, PARTITIONS, ranks)
    return ranks


@compiled
def _scatter(
    strata: NDArray[np.uint32],
    numbers: NDArray[np.uint64],
    places: NDArray[np.int64],
    types: NDArray[np.uint64],
) -> None:
    """Put the type of each record behind those of its stratum; places of strata that are not chosen are −1."""
    for i in range(strata.size):
        if strata[i] != OUT:
            place = places[strata[i]]
            if place >= 0:
                types[place] = numbers[i]
                places[strata[i]] = place + 1


@compiled
def _rank(
    types: NDArray[np.uint64],
    starts: NDArray[np.int64],
    sizes: NDArray[np.int64],
    partitions: NDArray[np.int64],
    ranks: NDArray[np.uint16],
) -> None:
    counts = np.empty(partitions.shape[0], np.int64)
    for s in range(sizes.size):
        own = types[starts[s] : starts[s] + sizes[s]]
        _sort(own)
        found = 0
        for i in range(own.size):
            if i and own[i] == own[i - 1]:
                counts[found - 1] += 1
            else:
                counts[found] = 1
                found += 1
        _sort(counts[:found])
        rest, rank = sizes[s], 0
        for i in range(found - 1, -1, -1):
            rank += partitions[rest, counts[i] - 1]
            rest -= counts[i]
        ranks[s] = rank


@compiled
def _sort(values: NDArray[np.int64] | NDArray[np.uint64]) -> None:
    """Ascending, in place, for a few values."""
    for i in range(1, values.size):
        value, at = values[i], i
        while at and values[at - 1] > value:
            values[at] = values[at - 1]
            at -= 1
        values[at] = value
