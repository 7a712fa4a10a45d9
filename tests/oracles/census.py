"""All data sets of a few records over a small domain: their tables, universes and distances, counted one by one."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations_with_replacement, product

import numpy as np
from scipy.sparse.csgraph import shortest_path

Record = tuple[str, ...]
Data = Mapping[Record, int]  # a multiset of records


@dataclass(frozen=True)
class Table:
    """Counts over some variables, of the records whose variables take certain values."""

    by: tuple[str, ...] = ()
    where: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def key(self, names: tuple[str, ...], record: Record) -> Record | None:
        """The cell that counts a record; None where no cell does."""
        at = dict(zip(names, record, strict=True))
        if any(at[name] not in values for name, values in self.where):
            return None
        return tuple(at[name] for name in self.by)

    def of(self, names: tuple[str, ...], data: Data) -> dict[Record, int]:
        found: Counter[Record] = Counter()
        for record, number in data.items():
            key = self.key(names, record)
            if key is not None:
                found[key] += number
        return {key: number for key, number in found.items() if number}


@dataclass(frozen=True)
class Strata:
    """b: the most records in a stratum (equal match) with two hold values and two swap values; 0 without one."""

    match: tuple[str, ...] = ()
    hold: tuple[str, ...] = ()
    swap: tuple[str, ...] = ()

    def of(self, names: tuple[str, ...], data: Data) -> int:
        strata: dict[Record, list[tuple[Record, Record, int]]] = {}
        for record, number in data.items():
            if number:
                at = dict(zip(names, record, strict=True))
                m, h, s = (tuple(at[n] for n in part) for part in (self.match, self.hold, self.swap))
                strata.setdefault(m, []).append((h, s, number))
        best = 0
        for rows in strata.values():
            if len({h for h, _, _ in rows}) > 1 and len({s for _, s, _ in rows}) > 1:
                best = max(best, sum(number for _, _, number in rows))
        return best


@dataclass(frozen=True)
class Square:
    """What a comparison has to know of a pair of data sets."""

    one_universe: bool  # of the first specification
    hamming: int | None  # None: infinite
    symmetric: int
    b_first: int
    b_second: int
    path: int | None = (
        None  # steps between neighbours inside one universe of the first; None: there is no path
    )


@dataclass(frozen=True)
class Small:
    """A domain of complete products (or of listed records), with all data sets of up to ``most`` records."""

    names: tuple[str, ...]
    records: tuple[Record, ...]
    most: int = 4
    _labels: dict[frozenset[Table], np.ndarray] = field(default_factory=dict, hash=False, compare=False)
    _squares: dict[object, frozenset[Square]] = field(default_factory=dict, hash=False, compare=False)

    @staticmethod
    def of(levels: Mapping[str, Iterable[str]], most: int = 4) -> "Small":
        return Small(tuple(levels), tuple(product(*(tuple(v) for v in levels.values()))), most)

    @cached_property
    def data(self) -> tuple[Data, ...]:
        return tuple(
            Counter(chosen)
            for size in range(self.most + 1)
            for chosen in combinations_with_replacement(self.records, size)
        )

    @cached_property
    def counts(self) -> np.ndarray:
        return np.array(
            [[data.get(record, 0) for record in self.records] for data in self.data], dtype=np.int16
        )

    @cached_property
    def apart(self) -> np.ndarray:
        """|x ⊖ x'| for all pairs."""
        found = np.zeros((len(self.counts), len(self.counts)), dtype=np.int16)
        for column in self.counts.T:
            found += np.abs(column[:, None] - column[None, :])
        return found

    def universes(self, tables: frozenset[Table]) -> np.ndarray:
        """The number of each data set's universe."""
        if tables not in self._labels:
            parts: dict[tuple[tuple[tuple[Record, int], ...], ...], int] = {}
            told = sorted(tables, key=str)
            keys = (
                tuple(tuple(sorted(table.of(self.names, data).items())) for table in told)
                for data in self.data
            )
            self._labels[tables] = np.array([parts.setdefault(key, len(parts)) for key in keys])
        return self._labels[tables]

    def squares(
        self,
        first: frozenset[Table],
        second: frozenset[Table],
        statistics: tuple[Strata | None, Strata | None] = (None, None),
        step: str = "",
    ) -> frozenset[Square]:
        """Every kind of pair of different data sets in one universe of the second."""
        asked = (first, second, statistics, step)
        if asked not in self._squares:
            mine, theirs = self.universes(first), self.universes(second)
            b = [
                np.array([0 if s is None else s.of(self.names, data) for data in self.data])
                for s in statistics
            ]
            one = theirs[:, None] == theirs[None, :]
            np.fill_diagonal(one, False)
            x, y = np.nonzero(one)
            sizes = self.counts.sum(axis=1)
            steps = self.paths(first, step)[x, y] if step else np.full(len(x), -1)
            rows = np.stack(
                [mine[x] == mine[y], sizes[x] == sizes[y], self.apart[x, y], b[0][x], b[1][x], steps], axis=1
            ).astype(np.int64)
            code = rows @ np.array([1, 2, 4, 4 << 10, 4 << 20, 4 << 30])
            kept = rows[np.unique(code, return_index=True)[1]]
            self._squares[asked] = frozenset(
                Square(
                    bool(same),
                    int(d) // 2 if even else None,
                    int(d),
                    int(b1),
                    int(b2),
                    None if p < 0 else int(p),
                )
                for same, even, d, b1, b2, p in kept
            )
        return self._squares[asked]

    def paths(self, tables: frozenset[Table], step: str) -> np.ndarray:
        """The fewest steps between neighbours inside a universe; −1 where no path leads from one to the other.

        A changed record ("ham") keeps the number of records, so that all data sets on the way are enumerated. A record
        that is added or removed ("sym") stays in the universe only where no table counts it, so that a path is as long
        as the distance or does not exist.
        """
        label = self.universes(tables)
        one = label[:, None] == label[None, :]
        if step == "sym":
            counted = np.array(
                [any(t.key(self.names, record) is not None for t in tables) for record in self.records]
            )
            moved = np.zeros(one.shape, dtype=bool)
            for column in self.counts.T[counted]:
                moved |= column[:, None] != column[None, :]
            return np.where(moved, -1, self.apart)
        sizes = self.counts.sum(axis=1)
        near = one & (self.apart == 2) & (sizes[:, None] == sizes[None, :])
        found = shortest_path(near.astype(np.int8), method="D", directed=False, unweighted=True)
        return np.where(np.isinf(found), -1, found).astype(np.int64)


def symmetric(one: Data, other: Data) -> int:
    """|x ⊖ x'|."""
    return sum(abs(one.get(record, 0) - other.get(record, 0)) for record in {*one, *other})


def hamming(one: Data, other: Data) -> int | None:
    """|x ⊖ x'|/2; None (infinite) where the sizes differ."""
    return symmetric(one, other) // 2 if sum(one.values()) == sum(other.values()) else None
