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
    """The span of labelled rows in echelon form; each stored row remembers which labels it is a combination of.

    >>> span = Span()
    >>> span.add("a", {0: Fraction(1), 1: Fraction(1)})
    >>> span.add("b", {1: Fraction(1)})
    >>> span.combination({0: Fraction(2)})
    {'a': Fraction(2, 1), 'b': Fraction(-2, 1)}
    """

    pivots: dict[int, tuple[Row, dict[Hashable, Fraction]]] = field(default_factory=dict)

    @property
    def rank(self) -> int:
        return len(self.pivots)

    def _reduced(self, row: Mapping[int, Fraction]) -> tuple[Row, dict[Hashable, Fraction]]:
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
        rest, used = self._reduced(row)
        if not rest:
            return
        place = min(rest)
        scale = 1 / rest[place]
        made = {name: -value * scale for name, value in used.items()}
        made[label] = made.get(label, Fraction(0)) + scale
        self.pivots[place] = ({c: value * scale for c, value in rest.items()}, made)

    def combination(self, row: Mapping[int, Fraction]) -> dict[Hashable, Fraction] | None:
        """The row as a combination of the labelled ones; None where it lies outside their span."""
        rest, used = self._reduced(row)
        return None if rest else {label: value for label, value in used.items() if value}

    def kernel_vector(self, outside: Mapping[int, Fraction]) -> dict[int, int]:
        """An integer vector whose product with every row of the span is zero, and with ``outside`` (not in it) is not."""
        rest, _ = self._reduced(outside)
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


def rows_of(keys: Sequence[tuple[str, ...] | None]) -> dict[tuple[str, ...], Row]:
    """The 0/1 rows of a table: cell number i is counted under its key, or not at all where the key is None.

    >>> rows_of([("a",), None, ("a",)])
    {('a',): {0: Fraction(1, 1), 2: Fraction(1, 1)}}
    """
    found: dict[tuple[str, ...], Row] = {}
    for place, key in enumerate(keys):
        if key is not None:
            found.setdefault(key, {})[place] = Fraction(1)
    return found


def rank(rows: Iterable[Mapping[int, Fraction]]) -> int:
    """The rank over the rationals.

    >>> rank([{0: Fraction(1)}, {0: Fraction(2)}, {1: Fraction(1)}])
    2
    """
    span = Span()
    for place, row in enumerate(rows):
        span.add(place, row)
    return span.rank
