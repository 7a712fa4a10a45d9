"""Small data sets that are written out, and pairs of them that prove a "no"."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from stirred.spec.invariants.margins import Margin

Values = tuple[tuple[str, str], ...]  # variables with their values, sorted by name


@dataclass(frozen=True, slots=True)
class DataSet:
    """A data set as distinct records with their number; variables that are left out are equal in all records.

    >>> x = DataSet.of("household", [({"tenure": "own"}, 2), ({"tenure": "rent"}, 1)])
    >>> x.table(Margin("household", ("tenure",)))
    {('own',): 2, ('rent',): 1}
    """

    rows: tuple[tuple[str, Values, int], ...]  # record type, values, number of such records

    @staticmethod
    def of(record_type: str, records: Iterable[tuple[Mapping[str, str], int]]) -> "DataSet":
        return DataSet.collect((record_type, tuple(sorted(values.items())), n) for values, n in records)

    @staticmethod
    def collect(rows: Iterable[tuple[str, Values, int]]) -> "DataSet":
        """Return a data set with equal records in one row, in a fixed order."""
        found: dict[tuple[str, Values], int] = {}
        for record_type, values, number in rows:
            found[record_type, values] = found.get((record_type, values), 0) + number
        return DataSet(tuple((kind, values, n) for (kind, values), n in sorted(found.items()) if n))

    def __add__(self, other: "DataSet") -> "DataSet":
        """Return a data set with the records of both."""
        return DataSet.collect((*self.rows, *other.rows))

    def records(self, record_type: str) -> Iterator[tuple[dict[str, str], int]]:
        for kind, values, number in self.rows:
            if kind == record_type:
                yield dict(values), number

    def size(self, record_type: str) -> int:
        return sum(number for _, number in self.records(record_type))

    def table(self, margin: Margin) -> dict[tuple[str, ...], int]:
        """Return the counts of a margin, without cells of zero."""
        found: dict[tuple[str, ...], int] = {}
        conditions = margin.conditions()
        for values, number in self.records(margin.record_type):
            if all(values.get(name, "") in allowed for name, allowed in conditions.items()):
                key = tuple(values.get(name, "") for name in margin.by)
                found[key] = found.get(key, 0) + number
        return found

    def to_json(self) -> list[dict[str, Any]]:
        return [{"record_type": kind, "values": dict(values), "number": n} for kind, values, n in self.rows]

    def __str__(self) -> str:
        return ", ".join(f"{n} × ({_write_values(values)})" for _, values, n in self.rows) or "no records"


def _write_values(values: Values) -> str:
    return ", ".join(f"{name} = {value}" for name, value in values) or "any"


@dataclass(frozen=True, slots=True)
class Witness:
    """Two data sets that prove a "no"; the same further records may be added to both."""

    first: DataSet
    second: DataSet

    def distance(self, record_type: str) -> int | None:
        """Return how many records of the type differ, |x ⊖ x'|/2, or None where their numbers differ."""
        if self.first.size(record_type) != self.second.size(record_type):
            return None
        return self.difference(record_type) // 2

    def difference(self, record_type: str) -> int:
        """Return |x ⊖ x'|, the number of records that are in one data set and not in the other."""
        counts: dict[Values, int] = {}
        for sign, data in ((1, self.first), (-1, self.second)):
            for kind, values, number in data.rows:
                if kind == record_type:
                    counts[values] = counts.get(values, 0) + sign * number
        return sum(map(abs, counts.values()))

    def reverse(self) -> "Witness":
        """Return the witness with its two data sets in the other order."""
        return Witness(self.second, self.first)

    def with_background(self, more: DataSet) -> "Witness":
        return Witness(self.first + more, self.second + more)

    def to_json(self) -> dict[str, Any]:
        return {"x": self.first.to_json(), "x'": self.second.to_json()}

    def __str__(self) -> str:
        """Return both data sets as text, without variables that are equal in all records."""
        rows = [dict(values) for data in (self.first, self.second) for _, values, _ in data.rows]
        names = {name for row in rows for name in row if len({other.get(name) for other in rows}) > 1}
        rest = "" if all({*row} <= names for row in rows) else ", all else equal"
        return f"x = {_write_short(self.first, names)}; x' = {_write_short(self.second, names)}{rest}"


def _write_short(data: DataSet, names: set[str]) -> str:
    kept = (
        (kind, tuple((n, v) for n, v in values if n in names), number) for kind, values, number in data.rows
    )
    return str(DataSet.collect(kept))
