"""Exact linear algebra over the rationals on sparse rows: spans with their combinations, and kernel vectors."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import lcm
from typing import TypeVar

Row = dict[int, Fraction]
Label = TypeVar("Label", bound=Hashable)


@dataclass(slots=True)
class Span:
    """The span of labelled rows in echelon form; each stored row keeps the labels it is a combination of.

    >>> span = Span()
    >>> span.add("a", {0: Fraction(1), 1: Fraction(1)})
    >>> span.add("b", {1: Fraction(1)})
    >>> span.find_combination({0: Fraction(2)})
    {'a': Fraction(2, 1), 'b': Fraction(-2, 1)}
    """

    pivots: dict[int, tuple[Row, dict[Hashable, Fraction]]] = field(default_factory=dict)

    @property
    def rank(self) -> int:
        return len(self.pivots)

    def _reduce(self, row: Mapping[int, Fraction]) -> tuple[Row, dict[Hashable, Fraction]]:
        rest, used = dict(row), dict[Hashable, Fraction]()
        while True:
            place = next((c for c in sorted(rest) if c in self.pivots), None)
            if place is None:
                return rest, used
            pivot, made = self.pivots[place]
            factor = rest[place]
            _subtract(rest, pivot, factor)
            _subtract(used, made, -factor)

    def add(self, label: Hashable, row: Mapping[int, Fraction]) -> None:
        """Add a row; a row that lies in the span changes nothing."""
        rest, used = self._reduce(row)
        if not rest:
            return
        place = min(rest)
        scale = 1 / rest[place]
        made = {name: -value * scale for name, value in used.items()}
        made[label] = made.get(label, Fraction(0)) + scale
        self.pivots[place] = ({c: value * scale for c, value in rest.items()}, made)

    def find_combination(self, row: Mapping[int, Fraction]) -> dict[Hashable, Fraction] | None:
        """Return the row as a combination of the labelled rows, or None where it lies outside their span."""
        rest, used = self._reduce(row)
        return None if rest else {label: value for label, value in used.items() if value}

    def find_kernel_vector(self, outside: Mapping[int, Fraction]) -> dict[int, int]:
        """Return an integer vector that is orthogonal to every row of the span, but not to ``outside``."""
        rest, _ = self._reduce(outside)
        free = min(c for c in rest if c not in self.pivots)
        # back substitution: set the free column to 1, every other free column to 0
        value: Row = {free: Fraction(1)}
        for place in sorted(self.pivots, reverse=True):
            pivot, _ = self.pivots[place]
            total = sum((pivot[c] * value[c] for c in pivot if c != place and c in value), Fraction(0))
            if total:
                value[place] = -total
        scale = lcm(*(entry.denominator for entry in value.values()))
        return {c: int(entry * scale) for c, entry in value.items() if entry}


def _subtract(row: dict[Label, Fraction], other: Mapping[Label, Fraction], factor: Fraction) -> None:
    for name, value in other.items():
        left = row.get(name, Fraction(0)) - factor * value
        if left:
            row[name] = left
        else:
            row.pop(name, None)


def build_rows(keys: Sequence[tuple[str, ...] | None]) -> dict[tuple[str, ...], Row]:
    """Return the 0/1 rows of a table: cell i is counted under its key, or not at all where the key is None.

    >>> build_rows([("a",), None, ("a",)])
    {('a',): {0: Fraction(1, 1), 2: Fraction(1, 1)}}
    """
    found: dict[tuple[str, ...], Row] = {}
    for place, key in enumerate(keys):
        if key is not None:
            found.setdefault(key, {})[place] = Fraction(1)
    return found


def compute_rank(rows: Iterable[Mapping[int, Fraction]]) -> int:
    """Return the rank of rows over the rationals.

    >>> compute_rank([{0: Fraction(1)}, {0: Fraction(2)}, {1: Fraction(1)}])
    2
    """
    span = Span()
    for place, row in enumerate(rows):
        span.add(place, row)
    return span.rank
