"""Fingerprint rows by their values, so that the output can be compared with the input on any engine.

Salts are fresh random words made once for a run: no data set can be made to collide, and a task that runs again finds
the same numbers.
"""

import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from stirred.mechanisms.swapping.pipeline.verify import Fingerprint, fold
from stirred.mechanisms.swapping.records.columns import level_codes, of_table
from stirred.mechanisms.swapping.values import Hasher, Words, missing, one

ROWS = 1 << 18  # rows processed together


@dataclass(frozen=True, slots=True)
class Scatter:
    """One word for each row of a table from some of its columns: equal for equal values."""

    hasher: Hasher
    empty: int  # the word of an empty value
    salts: tuple[int, ...]  # one for each place in a list of columns

    @staticmethod
    def fresh(places: int) -> "Scatter":
        """Make new random salts."""
        words = np.frombuffer(secrets.token_bytes(8 * (places + 3)), np.uint64).tolist()
        return Scatter(Hasher(words[0], words[1]), words[2], tuple(words[3:]))

    @staticmethod
    def known(places: int) -> "Scatter":
        """Fixed salts: enough to divide records into parts, which are not published."""
        step = 0x9E3779B97F4A7C15  # the odd number next to 2⁶⁴ over the golden ratio: its multiples are far apart
        return Scatter(Hasher(), step, tuple((step * i) % 2**64 for i in range(2, places + 2)))

    def column(self, column: pa.ChunkedArray) -> Words:
        """The word of each value of a column."""
        array = one(column)
        found = self.hasher.words(array)
        if array.null_count:
            found = found.copy()
            found[missing(array)] = np.uint64(self.empty)
        return found

    def columns(self, table: pa.Table, names: Iterable[str]) -> dict[str, Words]:
        """The words of several columns."""
        return {name: self.column(table.column(name)) for name in dict.fromkeys(names)}

    def rows(self, columns: Mapping[str, Words], names: Sequence[str], rows: int) -> Words:
        """The word of each row from the words of its columns."""
        mixed = np.zeros(rows, np.uint64)
        for name, salt in zip(names, self.salts, strict=False):
            fold(mixed, columns[name], np.uint64(salt))
        return mixed


@dataclass(frozen=True, slots=True)
class ValueMargin:
    """A table whose cells must not change, by the values of its columns."""

    name: str
    columns: tuple[str, ...]
    only: tuple[str, tuple[str, ...]] | None = None  # of the records with one of these levels; None: of all

    def places(self, table: pa.Table) -> NDArray[np.intp]:
        """Which rows are counted."""
        if self.only is None:
            return np.arange(table.num_rows)
        name, levels = self.only
        column = of_table(table, [name])[name]
        return np.flatnonzero(np.isin(column.codes, level_codes(column, levels)))


@dataclass(frozen=True, slots=True)
class Looker:
    """Compute the fingerprints of all margins, and a word for each record from what it must keep."""

    margins: tuple[ValueMargin, ...]
    scatter: Scatter

    def _words(self, table: pa.Table) -> Iterator[tuple[NDArray[np.intp], Words]]:
        """Of each margin, the rows that it counts and a word for each of them."""
        names = (name for margin in self.margins for name in margin.columns)
        columns = self.scatter.columns(table, names)
        for margin in self.margins:
            places = margin.places(table)
            some = {name: columns[name][places] for name in margin.columns} if margin.only else columns
            yield places, self.scatter.rows(some, margin.columns, places.size)

    def prints(self, table: pa.Table) -> list[Fingerprint]:
        """The fingerprint of each margin."""
        total = [Fingerprint() for _ in self.margins]
        for start in range(0, table.num_rows, ROWS):
            found = (Fingerprint.of(words) for _, words in self._words(table.slice(start, ROWS)))
            total = [a + b for a, b in zip(total, found, strict=True)]
        return total

    def cells(self, table: pa.Table) -> list[int]:
        """How many cells of each margin are not empty."""
        found: list[list[Words]] = [[np.empty(0, np.uint64)] for _ in self.margins]
        for start in range(0, table.num_rows, ROWS):
            for words, (_, some) in zip(found, self._words(table.slice(start, ROWS)), strict=True):
                words.append(some)
        return [
            pl.Series(np.concatenate(words)).n_unique() if margin.columns else 0
            for margin, words in zip(self.margins, found, strict=True)
        ]

    def owners(self, table: pa.Table, ids: Words, held: int) -> Fingerprint:
        """Of identifiers with all that is held; of records that take no part, with their place too."""
        total = Fingerprint()
        for start in range(0, table.num_rows, ROWS):
            part = table.slice(start, ROWS)
            found = np.zeros(part.num_rows, np.uint64)
            for i, (places, words) in enumerate(self._words(part)):
                if i >= held:
                    found[places] = words
            fold(found, ids[start : start + ROWS], np.uint64(self.scatter.salts[-1]))
            total += Fingerprint.of(found)
        return total

    def linked(self, table: pa.Table, names: Sequence[str], links: Words) -> Fingerprint:
        """Of linked records with the identifier of their owner."""
        total = Fingerprint()
        for start in range(0, table.num_rows, ROWS):
            part = table.slice(start, ROWS)
            words = self.scatter.rows(self.scatter.columns(part, names), names, part.num_rows)
            fold(words, links[start : start + ROWS], np.uint64(self.scatter.salts[-1]))
            total += Fingerprint.of(words)
        return total


def flat(found: Iterable[Fingerprint]) -> list[int]:
    """Fingerprints as numbers, to be sent in one field."""
    return [number for each in found for number in (each.rows, each.first, each.second)]


def added(fields: Iterable[Sequence[int]], number: int) -> list[Fingerprint]:
    """The sums of fingerprints that were sent as numbers."""
    total = [Fingerprint() for _ in range(number)]
    for field in fields:
        total = [t + Fingerprint(*field[3 * i : 3 * i + 3]) for i, t in enumerate(total)]
    return total
