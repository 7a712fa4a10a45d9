"""Keep at most τ persons of a household, in an order that no other record changes.

The order is that of a keyed hash (SipHash-2-4) of the household, of all that is read of the person, and of a number that
tells equal records apart. A person added or removed moves nobody else in it, so the kept persons change by one who comes
and one who goes at most (proof.md, Lemma 1).
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stirred.chance.words import Hasher, hash_texts

Ints = NDArray[np.int64]
Words = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Ranks:
    """The persons of some large households: their rows, their household, and their places in its order."""

    rows: Ints  # in ascending order
    place: Words

    def keep_first(self, inside: NDArray[np.bool_], homes: Ints, count: int, tau: int) -> NDArray[np.bool_]:
        """Return which persons inside a universe stay: those of the τ first places of their household."""
        many = np.bincount(homes[inside], minlength=count) > tau
        rows = self.rows[(inside & many[homes])[self.rows]]
        if not len(rows):
            return inside
        place = self.place[np.searchsorted(self.rows, rows)]
        order = np.lexsort((place, homes[rows]))
        sorted_homes = homes[rows][order]
        first = np.searchsorted(sorted_homes, sorted_homes, side="left")
        over = rows[order[np.arange(len(rows)) - first >= tau]]
        result = inside.copy()
        result[over] = False
        return result


def rank_persons(units: pa.Array, values: list[Ints], homes: Ints, least: int, hasher: Hasher) -> Ranks:
    """Return the order of the persons of every household with more than ``least`` of them.

    ``units`` are the identifiers of the households, ``values`` all that is read of a person, ``homes`` the positions of the
    persons' households.
    """
    large = np.bincount(homes, minlength=len(units)) > least
    rows = np.flatnonzero(large[homes])
    if not len(rows):  # nothing is hashed where nobody can be left out
        return Ranks(rows, np.empty(0, np.uint64))
    word: Words = np.zeros(len(units), np.uint64)
    word[large] = hasher.words(units.filter(pa.array(large)))
    own = homes[rows]
    columns = [column[rows].view(np.uint64) for column in values]
    # equal records of one household are numbered: which of them has which number changes nothing
    order = np.lexsort([*columns, own])
    new = np.ones(len(rows), bool)
    new[1:] = np.any([column[order][1:] != column[order][:-1] for column in (own, *columns)], axis=0)
    start = np.maximum.accumulate(np.where(new, np.arange(len(rows)), 0))
    number: Words = np.empty(len(rows), np.uint64)
    number[order] = np.arange(len(rows)) - start
    hashed = _hash_persons([word[own], *columns, number], hasher)
    # ties of the hash, if any, are broken by the values, never by the order of the file
    by_hash = np.lexsort([number, *columns, hashed, own])
    place: Words = np.empty(len(rows), np.uint64)
    place[by_hash] = np.arange(len(rows), dtype=np.uint64)
    return Ranks(rows, place)


def _hash_persons(columns: list[Words], hasher: Hasher) -> Words:
    text = np.ascontiguousarray(np.stack(columns, axis=1)).view(np.uint8).reshape(-1)
    offsets = np.arange(len(columns[0]) + 1, dtype=np.int64) * 8 * len(columns)
    found: Words = np.empty(len(columns[0]), np.uint64)
    hash_texts(text, offsets, np.uint64(hasher.first), np.uint64(hasher.second), found)
    return found
