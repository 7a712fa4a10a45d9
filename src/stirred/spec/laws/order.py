r"""Compare two laws of b at every b from 2 on, exactly.

Up to 60 records each b is compared by itself. Beyond, $e^{2\varepsilon} = \max\{A,\ G(b)/C\}$ with
$G(b) = (b+1)^2$ or $b(b-1)+1$: between the places where a law starts to grow, and on each side of the vertex of the
quadratic $G_1(b)/C_1 - G_2(b)/C_2$, the difference of the two is monotone, so bisection finds every change of its sign.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import ceil
from typing import Literal

from stirred.spec.laws.derangements import MAX_EXACT_RECORDS
from stirred.spec.laws.sizes import Kind, SizeLaw, compute_odds

Side = Literal["equal", "smaller", "larger"]
Sign = Literal[-1, 0, 1]
_SIDE_BY_SIGN: dict[int, Side] = {-1: "smaller", 0: "equal", 1: "larger"}
_PHRASE_BY_SIGN = {-1: "a smaller budget than", 0: "the same budget as", 1: "a larger budget than"}
_SHORT_PHRASE_BY_SIGN = {-1: "a smaller one", 0: "the same", 1: "a larger one"}
_SLOPE_BY_KIND: dict[Kind, int] = {"theorem-1": 2, "by-size": -1}  # G(b) = b² + slope · b + 1


@dataclass(frozen=True, slots=True)
class Run:
    """A stretch of b on which the order of two laws stays the same; ``last`` None: it has no end."""

    first: int
    last: int | None
    sign: Sign

    def words(self) -> str:
        """Return the range of b in words, as the end of a sentence."""
        if self.last == self.first:
            return f"at b = {self.first:,}"
        if self.last is None:
            return f"from b = {self.first:,} on"
        return f"from b = {self.first:,} to {self.last:,}"


@dataclass(frozen=True, slots=True)
class LawOrder:
    """The order of two laws at every b ≥ 2, by stretches of b and in one word.

    >>> order = compare_laws(SizeLaw("by-size", "1/2"), SizeLaw("by-size", "3/4"))
    >>> [(run.words(), run.sign) for run in order.runs]
    [('from b = 2 to 3', -1), ('at b = 4', 0), ('from b = 5 on', 1)]
    """

    first: SizeLaw
    second: SizeLaw
    runs: tuple[Run, ...]

    @property
    def relation(self) -> Literal["equal", "smaller", "larger", "crosses"]:
        """Return how the first law stands to the second over all b; "smaller" is never above and somewhere below."""
        signs = {run.sign for run in self.runs} - {0}
        return "crosses" if len(signs) == 2 else _SIDE_BY_SIGN[next(iter(signs), 0)]

    @property
    def at(self) -> int | None:
        """Return the smallest b at which the order of crossing laws changes, or None where they do not cross."""
        if self.relation != "crosses":
            return None
        began = next(i for i, run in enumerate(self.runs) if run.sign)
        return self.runs[began + 1].first

    @property
    def before(self) -> Side:
        """Return how the first law compares with the second at the smallest b where they differ."""
        return _SIDE_BY_SIGN[next((run.sign for run in self.runs if run.sign), 0)]

    @property
    def after(self) -> Side:
        """Return how the first law compares with the second for all large b."""
        return _SIDE_BY_SIGN[self.runs[-1].sign]

    @property
    def equal_at(self) -> int | None:
        """Return the smallest b at which the two laws agree, or None."""
        return next((run.first for run in self.runs if run.sign == 0), None)

    def sign(self, b: int) -> Sign:
        """Return −1, 0 or 1 where the first law is smaller, equal or larger at this b."""
        return next((run.sign for run in reversed(self.runs) if run.first <= b), 0)

    def sentence(self) -> str:
        """Return the order of the two laws as one sentence."""
        same = self.first.kind == self.second.kind
        mine, theirs = (
            law.describe_rates() if same else law.describe_law() for law in (self.first, self.second)
        )
        head, *rest = self.runs
        opening = f"{mine} gives {_PHRASE_BY_SIGN[head.sign]} {theirs}"
        if not rest:
            return f"{opening} for every size b of the largest stratum"
        told = ", ".join(f"{_SHORT_PHRASE_BY_SIGN[run.sign]} {run.words()}" for run in rest)
        return f"{opening} {head.words()}, {told} (b: records in the largest stratum)"

    def __str__(self) -> str:
        return self.sentence()


@lru_cache(maxsize=4096)
def compare_laws(first: SizeLaw, second: SizeLaw) -> LawOrder:
    r"""The order of two laws for all b ≥ 2; Theorem 1 at odds $o_1 < o_2$ crosses where $b + 1 = o_1 o_2$.

    >>> order = compare_laws(SizeLaw("theorem-1", "1/20"), SizeLaw("theorem-1", "86450/86451"))
    >>> order.relation, order.at, order.before, order.after
    ('crosses', 4549, 'smaller', 'larger')
    >>> print(compare_laws(SizeLaw("theorem-1", "1/2"), SizeLaw("theorem-1", "1/20")))
    swap rate 1/2 gives a smaller budget than swap rate 1/20 for every size b of the largest stratum
    """
    if not (first.is_finite and second.is_finite):
        order = _sign(first.is_finite < second.is_finite, first.is_finite > second.is_finite)
        return LawOrder(first, second, (Run(2, None, order),))

    def sign(b: int) -> Sign:
        one, other = first.power(b), second.power(b)
        return _sign(one > other, one < other)

    starts = [(b, sign(b)) for b in range(2, MAX_EXACT_RECORDS + 1)]
    starts += _find_beyond(first, second, sign)
    runs: list[tuple[int, Sign]] = []
    for b, found in starts:
        if not runs or runs[-1][1] != found:
            runs.append((b, found))
    ends = [b - 1 for b, _ in runs[1:]]
    return LawOrder(
        first, second, tuple(Run(b, last, s) for (b, s), last in zip(runs, [*ends, None], strict=True))
    )


def _sign(above: bool, below: bool) -> Sign:
    return 1 if above else -1 if below else 0


def _find_beyond(first: SizeLaw, second: SizeLaw, sign: Callable[[int], Sign]) -> Iterator[tuple[int, Sign]]:
    """Yield (b, sign) at each b beyond 60 from which another sign may hold."""
    low = MAX_EXACT_RECORDS + 1
    grows = sorted((_find_growth_start(first), _find_growth_start(second)))
    # both grow from here on, as (b² + slope·b + 1)/C, so their difference has the sign of a quadratic
    start, squares = grows[1], (compute_odds(first.rate) ** 2, compute_odds(second.rate) ** 2)
    leading = squares[1] - squares[0]
    linear = _SLOPE_BY_KIND[first.kind] * squares[1] - _SLOPE_BY_KIND[second.kind] * squares[0]
    turn = ceil(-linear / (2 * leading)) if leading else start
    cuts = sorted({low, *grows, max(start, turn)})
    for begin, end in pairwise(cuts):
        yield from _find_changes(begin, end - 1, sign)
    final = leading or linear
    last, settled = cuts[-1], _sign(final > 0, final < 0)
    while sign(last) != settled:
        last *= 2
    yield from _find_changes(cuts[-1], last, sign)


def _find_growth_start(law: SizeLaw) -> int:
    """Return the smallest b beyond 60 from which the law is on its growing branch."""

    def grows(b: int) -> bool:
        return (
            b * b + _SLOPE_BY_KIND[law.kind] * b + 1
            >= (compute_odds(law.highest) * compute_odds(law.rate)) ** 2
        )

    return find_first(grows, MAX_EXACT_RECORDS + 1)


def find_first(holds: Callable[[int], bool], low: int) -> int:
    """Return the smallest whole number from ``low`` on that meets a condition; all larger ones must meet it.

    >>> find_first(lambda b: b * b >= 1000, 2)
    32
    """
    step = 1
    while not holds(low + step - 1):
        step *= 2
    below, above = low + step // 2 - 1, low + step - 1  # it fails at ``below`` or that lies under ``low``
    while above - below > 1:
        middle = (below + above) // 2
        below, above = (below, middle) if holds(middle) else (middle, above)
    return above


def _find_changes(begin: int, end: int, sign: Callable[[int], Sign]) -> Iterator[tuple[int, Sign]]:
    """Yield the places where the sign of a monotone difference changes on a stretch, with its first place."""

    def changed(b: int) -> bool:
        return b >= end or sign(b) != here

    here = sign(begin)
    yield begin, here
    while here != sign(end):
        begin = find_first(changed, begin)
        here = sign(begin)
        yield begin, here


__all__ = ["LawOrder", "Run", "compare_laws", "find_first"]
