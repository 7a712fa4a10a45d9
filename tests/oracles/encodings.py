"""The three ways to encode invariants in the paper's Section 2.2, on a domain small enough to enumerate.

1. Through the multiverse (the one this package uses): the condition is asked inside each universe only.
2. Through the input premetric: d = ∞ where the invariants differ. The same condition, but the distance no longer shows
   the protection unit.
3. By keeping only the neighbours (d = 1) that agree on the invariants. Under swapping none is left, so the condition
   requires nothing.

Four households with a tenure and a block, and the swapping invariants (tenure in total, households by block):

>>> households = [(tenure, block) for tenure in "or" for block in "ab"]
>>> data = data_sets(households, size=2)
>>> def swap_invariants(x):
...     return tuple(sorted(t for t, b in x)), tuple(sorted(b for t, b in x))
>>> through_multiverse(data, swap_invariants) == through_premetric(data, swap_invariants)
True
>>> len(through_multiverse(data, swap_invariants)), len(through_neighbours(data, swap_invariants))
(1, 0)
"""

from collections.abc import Callable, Hashable, Iterable
from itertools import combinations, combinations_with_replacement
from math import inf
from typing import TypeVar

Record = TypeVar("Record", bound=Hashable)
DataSet = tuple[Record, ...]
Pairs = frozenset[tuple[DataSet[Record], DataSet[Record], float]]


def data_sets(records: Iterable[Record], *, size: int) -> list[DataSet[Record]]:
    """All multisets of that many records.

    >>> len(data_sets("ab", size=2))
    3
    """
    return list(combinations_with_replacement(sorted(records, key=repr), size))


def distance(x: DataSet[Record], y: DataSet[Record]) -> float:
    """The Hamming distance of two multisets: half their symmetric difference, ∞ between sizes (Equation 5)."""
    if len(x) != len(y):
        return inf
    return sum(max(0, x.count(record) - y.count(record)) for record in set(x))


def through_multiverse(
    data: list[DataSet[Record]], invariant: Callable[[DataSet[Record]], Hashable]
) -> Pairs[Record]:
    """The pairs the condition speaks about, with their distance, when it is asked inside universes only."""
    pairs = ((x, y, distance(x, y)) for x, y in combinations(data, 2) if invariant(x) == invariant(y))
    return frozenset(pair for pair in pairs if pair[2] < inf)


def through_premetric(
    data: list[DataSet[Record]], invariant: Callable[[DataSet[Record]], Hashable]
) -> Pairs[Record]:
    """The same with one universe and d = ∞ where the invariants differ: an infinite bound requires nothing."""
    bent = ((x, y, distance(x, y) if invariant(x) == invariant(y) else inf) for x, y in combinations(data, 2))
    return frozenset(pair for pair in bent if pair[2] < inf)


def through_neighbours(
    data: list[DataSet[Record]], invariant: Callable[[DataSet[Record]], Hashable]
) -> Pairs[Record]:
    """Only neighbours at distance 1 that agree on the invariants."""
    return frozenset(pair for pair in through_multiverse(data, invariant) if pair[2] == 1)
