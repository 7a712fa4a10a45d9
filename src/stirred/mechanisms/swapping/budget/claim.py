"""Compute the budget of a whole census: every bound that applies to its strata, with its name, proof and sharpness.

Strata are swapped independently, so the loss per unit is the largest over strata, and each stratum may use the
smallest bound proved for it. Sizes and margins are invariants: nothing here costs anything to publish.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stirred.errors import InputError
from stirred.languages import Phrase
from stirred.mechanisms.swapping.budget.by_size import (
    CHECKED_THEOREMS,
    TIGHT_SIZE,
    TIGHT_THEOREM_1,
    Rate,
    compute_odds,
    parse_rate,
    theorem_1,
    tight_budget,
)
from stirred.mechanisms.swapping.budget.more_types import (
    MAX_RECORDS_WITH_MARGINS,
    TIGHT_EXCHANGES,
    bound_by_exchanges,
)
from stirred.mechanisms.swapping.budget.two_types import (
    MAX_RATE_CLOSED,
    TIGHT_CLOSED,
    TIGHT_REDUCTION,
    margins_closed,
    reduce_two_types,
)
from stirred.spec.numbers.budget import Bound, Budget

Counts = NDArray[np.int64]
MAX_PRODUCTS = 1_000_000_000  # products spent on exact reductions; strata left over keep their closed bound
MAX_STATES = 10_000  # vectors t spent on strata with three and more types; strata left over keep Theorem B


@dataclass(frozen=True, slots=True, kw_only=True)
class Stratum:
    """One stratum: its size, the number of hold and swap types in it, and their counts where known."""

    n: int
    hold_types: int
    swap_types: int
    hold_margins: tuple[int, ...] | None = None
    swap_margins: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        for margins, types in ((self.hold_margins, self.hold_types), (self.swap_margins, self.swap_types)):
            if margins is not None and (len(margins) != types or sum(margins) != self.n):
                raise InputError(
                    "the margins of a stratum do not fit its size",
                    why=f"{len(margins)} margins for {types} types must add up to {self.n} records",
                    fix="give one count for each type, with this sum",
                )


def write_margins(hold: Iterable[int] | None, swap: Iterable[int] | None) -> str:
    """Write all margins of a stratum as one text, equal for equal strata; "*" is a side that is not known.

    >>> write_margins((1, 2, 1), None), read_margins("2.1.1/*")
    ('2.1.1/*', ((2, 1, 1), None))
    """
    sides = ("*" if side is None else ".".join(map(str, sorted(side, reverse=True))) for side in (hold, swap))
    return "/".join(sides)


def read_margins(text: str) -> tuple[tuple[int, ...] | None, tuple[int, ...] | None]:
    """Read the margins that ``write_margins`` wrote, as (hold, swap)."""
    hold, swap = (None if side == "*" else tuple(map(int, side.split("."))) for side in text.split("/"))
    return hold, swap


@dataclass(frozen=True, slots=True, kw_only=True)
class StratumTable:
    """All strata as columns; ``hold_larger`` and ``swap_larger`` count the commoner of two types, 0 where unknown.

    ``margins`` holds all margins (``write_margins``) of small strata with three and more types on both sides, "" elsewhere.
    """

    n: Counts
    hold_types: Counts
    swap_types: Counts
    hold_larger: Counts
    swap_larger: Counts
    margins: NDArray[np.object_]

    @staticmethod
    def of(strata: "StratumTable | Iterable[Stratum]") -> "StratumTable":
        """Make the table from single strata.

        >>> StratumTable.of([Stratum(n=3, hold_types=2, swap_types=3, hold_margins=(2, 1))]).hold_larger
        array([2])
        """
        if isinstance(strata, StratumTable):
            return strata
        every = tuple(strata)
        rows = [
            (s.n, s.hold_types, s.swap_types, max(s.hold_margins or (0,)), max(s.swap_margins or (0,)))
            for s in every
        ]
        table = np.array(rows, np.int64).reshape(-1, 5)
        texts = [
            write_margins(s.hold_margins, s.swap_margins)
            if s.n <= MAX_RECORDS_WITH_MARGINS
            and min(s.hold_types, s.swap_types) > 2
            and (s.hold_margins or s.swap_margins)
            else ""
            for s in every
        ]
        return StratumTable.columns(*table.T, margins=texts)

    @staticmethod
    def columns(
        n: ArrayLike,
        hold_types: ArrayLike,
        swap_types: ArrayLike,
        hold_larger: ArrayLike = 0,
        swap_larger: ArrayLike = 0,
        *,
        margins: ArrayLike = "",
    ) -> "StratumTable":
        """Make the table from arrays of equal length (or single numbers), one entry for each stratum."""
        parts = np.broadcast_arrays(
            *(np.asarray(x, np.int64) for x in (n, hold_types, swap_types, hold_larger, swap_larger))
        )
        size, hold, swap, hold_more, swap_more = (np.atleast_1d(part) for part in parts)
        return StratumTable(
            n=size,
            hold_types=hold,
            swap_types=swap,
            hold_larger=hold_more,
            swap_larger=swap_more,
            margins=np.broadcast_to(np.asarray(margins, np.object_), size.shape),
        )

    def kinds(self) -> Counts:
        """Return the distinct (n, larger hold margin, larger swap margin) of strata where data sets can differ.

        A margin is 0 where that side does not have two types, and −1 where it has but the margin is unknown.
        """
        live = (self.n >= 2) & (self.hold_types >= 2) & (self.swap_types >= 2)
        hold = np.where(self.hold_types == 2, np.where(self.hold_larger > 0, self.hold_larger, -1), 0)
        swap = np.where(self.swap_types == 2, np.where(self.swap_larger > 0, self.swap_larger, -1), 0)
        n, hold, swap = self.n[live], hold[live], swap[live]
        # Sorting one packed number is ten times as fast as sorting rows; the few largest strata do not fit.
        small = n < 1 << 20
        packed = np.unique((n[small] << 42) | ((hold[small] + 1) << 21) | (swap[small] + 1))
        mask = (1 << 21) - 1
        rows = np.stack([packed >> 42, ((packed >> 21) & mask) - 1, (packed & mask) - 1], axis=1)
        large = np.unique(np.stack([n, hold, swap], axis=1)[~small], axis=0)
        return np.concatenate([rows, large])

    def list_many_types(self) -> list[tuple[int, str]]:
        """List size and margins of strata with three or more types on both sides, each once, the largest first."""
        live = (self.hold_types > 2) & (self.swap_types > 2)
        sizes = self.n[live]
        if not sizes.size or sizes.max() > MAX_RECORDS_WITH_MARGINS:
            return [(int(sizes.max()), "")] if sizes.size else []
        return sorted(set(zip(sizes.tolist(), self.margins[live].tolist(), strict=True)), reverse=True)


def bounds(strata: StratumTable | Iterable[Stratum], rate: Rate) -> tuple[Bound, ...]:
    """Return every bound that applies, the paper's first; ``claim`` chooses the smallest proved one.

    >>> [b.name for b in bounds([Stratum(n=264331, hold_types=2, swap_types=14)], "1/2")]
    ['Theorem 1', 'largest loss by size', 'two types, closed form']
    """
    p = parse_rate(rate)
    columns = StratumTable.of(strata)
    kinds = columns.kinds()
    if not len(kinds):
        return (
            Bound(
                name=Phrase("bound.nothing"),
                budget=Budget.zero(),
                source=Phrase("bound.source.nothing"),
                tight=Phrase("bound.tight.every"),
            ),
        )
    b = int(kinds[:, 0].max())
    found = [
        Bound(
            name=Phrase("bound.theorem_1"),
            budget=theorem_1(b, p),
            source=Phrase("checked.theorem_1", b=b, name=CHECKED_THEOREMS["A"]),
            tight=Phrase(TIGHT_THEOREM_1),
        ),
        Bound(
            name=Phrase("bound.size"),
            budget=tight_budget(b, p),
            source=Phrase("checked.theorem", letter="B", name=CHECKED_THEOREMS["B"]),
            tight=Phrase(TIGHT_SIZE),
        ),
    ]
    if 0 < p < 1 and bool((kinds[:, 1:] != 0).any()):
        found += _bound_two_types(kinds, p)
    if 0 < p < 1:
        found += _bound_many_types(columns.list_many_types(), kinds, p, min(bound.budget for bound in found))
    return tuple(found)


def claim(found: Iterable[Bound]) -> Bound:
    """Return the smallest proved bound, the earlier one on a tie; if none is proved, the first bound.

    >>> str(claim(bounds([Stratum(n=10, hold_types=4, swap_types=4)], "1/2")).budget)
    '2.2500'
    """
    every = tuple(found)
    proved = [bound for bound in every if bound.status == "proved"]
    return min(proved, key=lambda bound: bound.budget) if proved else every[0]


def _bound_two_types(kinds: Counts, p: Fraction) -> list[Bound]:
    order, upper = _order_by_bound(kinds, p)
    result = []
    if p <= MAX_RATE_CLOSED:
        # Floats order the strata much better than to 1e-9, so the exact maximum is among these.
        near = [i for i in order[:4096] if upper[i] >= upper[order[0]] - 1e-9]
        result.append(
            Bound(
                name=Phrase("bound.closed"),
                budget=max(_cheap_bound(*map(int, kinds[i]), p) for i in near),
                source=Phrase("bound.source.closed"),
                tight=Phrase(TIGHT_CLOSED),
            )
        )
    if bool((kinds[:, 1:] > 0).any()):
        result.append(
            Bound(
                name=Phrase("bound.reduction"),
                budget=_bound_by_reduction(kinds, order, upper, p),
                source=Phrase("bound.source.reduction"),
                tight=Phrase(TIGHT_REDUCTION),
            )
        )
    return result


def _bound_by_reduction(kinds: Counts, order: Counts, upper: NDArray[np.float64], p: Fraction) -> Budget:
    """Return the largest over strata of the smallest two-type bound, evaluating only strata that may decide."""
    best, left = Budget.zero(), MAX_PRODUCTS
    for i in order:
        if upper[i] + 1e-9 <= float(best.lower(9)):
            break
        n, hold, swap = map(int, kinds[i])
        value = _cheap_bound(n, hold, swap, p)
        if value <= best:
            continue
        for m in (hold, swap):
            if m > 0 and left > 0:
                found = reduce_two_types(max(m, n - m), min(m, n - m), p)
                left -= found.work
                value = min(value, found.budget)
        best = max(best, value)
    return best


def _bound_many_types(many: list[tuple[int, str]], kinds: Counts, p: Fraction, known: Budget) -> list[Bound]:
    """Return the bound for three or more types if it is smaller than all others, else an empty list."""
    if not many or not many[0][1]:
        return []  # the largest of them decides, and only Theorem B is known for it
    two = kinds[(kinds[:, 1:] != 0).any(axis=1)]
    best, left = (
        _bound_by_reduction(two, *_order_by_bound(two, p), p) if len(two) else Budget.zero(),
        MAX_STATES,
    )
    for n, text in many:
        value = tight_budget(n, p)
        if value <= best:
            break
        if best >= known:
            return []
        found = bound_by_exchanges(*read_margins(text), p, below=value) if text and left > 0 else None
        if found is not None:
            left -= found.work
            value = min(value, found.budget)
        best = max(best, value)
    if best >= known:
        return []
    return [
        Bound(
            name=Phrase("bound.exchanges"),
            budget=best,
            source=Phrase("bound.source.exchanges"),
            tight=Phrase(TIGHT_EXCHANGES),
        )
    ]


def _order_by_bound(kinds: Counts, p: Fraction) -> tuple[Counts, NDArray[np.float64]]:
    """Order the kinds of strata by their cheap bound in doubles; return the order and the bounds."""
    o = float(compute_odds(p))
    n = kinds[:, 0].astype(np.float64)
    table = np.array([float(tight_budget(k, p).upper(12)) for k in range(8)])
    size = np.maximum(np.log(o), 0.5 * np.log(np.maximum(n * (n - 1) + 1, 1)) - np.log(o))
    size = np.where(n < 8, table[np.minimum(kinds[:, 0], 7)], size)
    if p <= MAX_RATE_CLOSED:
        margins = np.where(kinds[:, 1:] < 0, n[:, None] - 1, kinds[:, 1:].astype(np.float64))
        m = np.where(margins > 0, margins, np.inf).min(axis=1)
        size = np.minimum(size, 0.5 * np.log(m / o + (1 + 2 / o) ** 2))
    return np.argsort(-size, kind="stable"), size


@lru_cache(maxsize=1 << 14)
def _cheap_bound(n: int, hold: int, swap: int, p: Fraction) -> Budget:
    """Return the smaller of Theorem B and, for two types, Theorem D."""
    best = tight_budget(n, p)
    if p <= MAX_RATE_CLOSED:
        for margin in (hold, swap):
            if margin:
                m = margin if margin > 0 else n - 1
                best = min(best, margins_closed(m, max(n - m, 1), p))
    return best
