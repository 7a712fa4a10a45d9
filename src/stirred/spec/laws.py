"""Define the budget of a swap as a law of b, the size of the largest stratum, and compare two laws exactly."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache, reduce
from itertools import combinations, pairwise
from math import ceil
from typing import Literal

from stirred.errors import InputError, SpecificationError
from stirred.languages import Phrase, unit
from stirred.spec.budgets import Budget
from stirred.spec.exact import parse_fraction, write_fraction
from stirred.spec.invariants import Margin, Restriction

# Derangement numbers d(k), and bounds on their ratios that need no large integers.
#
# $d(k) = k\,d(k-1) + (-1)^k$ counts the permutations of k records that leave none in place; d(0) = 1, d(1) = 0.
# The laws of a swap's budget need only ratios, and these are close to rational functions of k
# (mechanisms/swap/proof.md, Section 1).

# From here on the closed bound n(n−1)+1 is used: it exceeds the exact ratio by less than 1 part in 3000.
MAX_EXACT_RECORDS = 60


@cache
def count_derangements(n: int) -> int:
    """Permutations of n records without a fixed point: $d(n) = n d(n-1) + (-1)^n$.

    >>> [count_derangements(n) for n in range(8)]
    [1, 0, 1, 2, 9, 44, 265, 1854]
    """
    value = 1
    for k in range(1, n + 1):
        value = value * k + (-1) ** k
    return value


def bound_step_ratio(n: int) -> Fraction:
    r"""Return d(n)/d(n−2), exact for n ≤ 60, and the upper bound n(n−1)+1 beyond.

    $d(n)/d(n-2) = n(n-1) - (-1)^n (n-1)/d(n-2)$, and d(n−2) ≥ n−1 for n ≥ 6.

    >>> bound_step_ratio(5), bound_step_ratio(264331)
    (Fraction(22, 1), Fraction(69870613231, 1))
    """
    if n in (0, 1, 3):
        raise ValueError("d(n)/d(n-2) needs n = 2 or n >= 4")
    if n <= MAX_EXACT_RECORDS:
        return Fraction(count_derangements(n), count_derangements(n - 2))
    return Fraction(n * (n - 1) + 1)


# A budget as a law of b, the size of the largest stratum: the budgets of swaps, for every universe at once.
#
# A swap selects records with odds $o = p/(1-p)$ and deranges them: k of n records move with probability
# $c\,w(k)$, $w(k) = o^k/d(k)$. A universe whose largest stratum has b records loses at most
#
# $$\varepsilon(b) = \max\{\ln o_{\max},\ \ln g(b) - \ln o_{\min}\} \quad (b \ge 2), \qquad \varepsilon(0) = 0,$$
#
# with $g(b) = b + 1$ (the paper's Theorem 1) or $g(b)^2 = d(b)/d(b-2)$ (by size). One exchange of two records loses
# $|\ln\lambda|$, $\lambda = (n-1)/o$ in a stratum of n records, which is the same with $g(b) = b - 1$ (by exchange). All
# grow with b without bound. Proofs: mechanisms/swap/proof.md, Sections 1 and 2 (one rate) and Theorem F (rates that vary
# by held variables); mechanisms/stirring/proof.md, Section 1.

Rate = Fraction | int | str
Kind = Literal["theorem-1", "by-size", "by-exchange"]
HALF = Fraction(1, 2)
# at which level each law cannot be improved
TIGHT_THEOREM_1 = "bound.tight.theorem_1"  # keys of the catalog
TIGHT_SIZE = "bound.tight.size"

_FORMS = {
    "theorem-1": "max{{ln {most}, ln(b + 1) − ln {least}}}",
    "by-size": "max{{ln {most}, ½ ln(d(b)/d(b − 2)) − ln {least}}}",
    "by-exchange": "max{{ln {most}, ln(b − 1) − ln {least}}}",
}
_STEP_BY_KIND: dict[Kind, int] = {"theorem-1": 1, "by-exchange": -1}  # g(b) − b
_NAMES = {"theorem-1": "Theorem 1", "by-size": "largest loss by size", "by-exchange": "loss of an exchange"}


def parse_rate(rate: Rate) -> Fraction:
    """Return a swap rate as an exact number in [0, 1]; refuse floats.

    >>> parse_rate("1/20")
    Fraction(1, 20)
    """
    p = parse_fraction(rate, "swap rate")
    if not 0 <= p <= 1:
        raise InputError(
            f"the swap rate {str(rate)[:40]} is outside [0, 1]", why="it is a probability", fix='write "1/20"'
        )
    return p


def compute_odds(p: Fraction) -> Fraction:
    """Return the odds o = p/(1−p).

    >>> compute_odds(Fraction(1, 100))
    Fraction(1, 99)
    """
    return p / (1 - p)


@dataclass(frozen=True, slots=True, init=False)
class SizeLaw:
    """ε as a function of b, for one swap rate or for rates between ``rate`` and ``highest``.

    >>> law = SizeLaw("theorem-1", "1/20")
    >>> print(law)
    max{ln o, ln(b + 1) − ln o} at swap rate 1/20 (o = 1/19)
    >>> law.at(264331).exact, SizeLaw("by-size", "1/2").at(3).exact, law.at(0).exact
    ('ln(5022308)', '1/2*ln(2)', '0')
    """

    kind: Kind
    rate: Fraction
    highest: Fraction

    def __init__(self, kind: Kind, rate: Rate, highest: Rate | None = None) -> None:
        if kind not in _FORMS:
            raise SpecificationError(
                f"unknown law of b: {str(kind)[:40]!r}",
                why="the budget of a swap is known as a function of b for some laws only",
                fix=f"give one of: {', '.join(_FORMS)}",
            )
        least = parse_rate(rate)
        most = least if highest is None else parse_rate(highest)
        if most < least:
            raise SpecificationError(
                "the highest swap rate is below the lowest",
                why=f"{most} is less than {least}",
                fix="give the smaller rate first",
            )
        object.__setattr__(self, "kind", kind)
        object.__setattr__(self, "rate", least)
        object.__setattr__(self, "highest", most)

    @property
    def is_finite(self) -> bool:
        """Return whether the budget is finite for b ≥ 2: every record may move and may stay."""
        return self.rate > 0 and self.highest < 1

    def at(self, b: int) -> Budget:
        """Return the exact budget of every universe whose largest stratum has b records."""
        if isinstance(b, bool) or not isinstance(b, int) or b < 0:
            raise SpecificationError(
                f"b = {b} is no number of records",
                why="b counts the records of a stratum",
                fix="give a whole number of at least 0",
            )
        # a stratum of one record never differs inside a universe, so b = 1 does not occur
        return Budget.zero() if b <= 1 else _compute_budget(self, b)

    def power(self, b: int) -> Fraction:
        """Return e^(6ε) for b ≥ 2 and rates inside (0, 1): a rational number, which compares exactly and fast."""
        above, below = compute_odds(self.highest), compute_odds(self.rate)
        if self.kind == "by-size" and b == 3 and above == below:
            return max(sixth for sixth, _ in _list_three_losses(above))
        return max(above * above, _square_growth(self.kind, b) / (below * below)) ** 3

    def describe_rates(self) -> str:
        """Describe the swap rates."""
        if self.rate == self.highest:
            return Phrase("law.rate", rate=write_fraction(self.rate))
        return Phrase("law.rates", least=write_fraction(self.rate), most=write_fraction(self.highest))

    def describe_law(self) -> str:
        """Describe the swap rates and the kind of law."""
        return f"{self.describe_rates()} ({_NAMES[self.kind]})"

    def words(self) -> str:
        """Return the formula of the law with its parameters."""
        if not self.is_finite:
            return Phrase("law.infinite", rates=self.describe_rates())
        if self.rate == self.highest:
            letters, told = {"least": "o", "most": "o"}, f"(o = {write_fraction(compute_odds(self.rate))})"
        else:
            letters = {"least": "o₁", "most": "o₂"}
            told = f"(o₁ = {write_fraction(compute_odds(self.rate))}, o₂ = {write_fraction(compute_odds(self.highest))})"
        return Phrase(
            "law.at", formula=_FORMS[self.kind].format(**letters), rates=self.describe_rates(), odds=told
        )

    def __str__(self) -> str:
        return self.words()


def _square_growth(kind: Kind, b: int) -> Fraction:
    """Return g(b)²; at b = 3 the value of b = 4, because d(1) = 0 and a law may not decrease."""
    if kind != "by-size":
        return Fraction((b + _STEP_BY_KIND[kind]) ** 2)
    return bound_step_ratio(4 if b == 3 else b)


def generate_losses(n: int, o: Fraction) -> Iterator[tuple[Fraction, int]]:
    r"""Every $w(k)/w(k') \ge 1$ of a stratum of n records with the smallest distance Δ at which it can occur.

    >>> sorted(generate_losses(2, Fraction(3)))
    [(Fraction(1, 1), 2), (Fraction(1, 1), 2), (Fraction(9, 1), 2)]
    """
    moved = [0, *range(2, n + 1)]
    for k in moved:
        for other in moved:
            ratio = o ** (k - other) * Fraction(count_derangements(other), count_derangements(k))
            if ratio >= 1:
                yield ratio, max(2, abs(k - other))


def _list_three_losses(o: Fraction) -> list[tuple[Fraction, Budget]]:
    """Return the losses of three records, where the formula fails (d(1) = 0), as sixth powers and as budgets."""
    return [
        (ratio ** (6 // apart), Budget.log(ratio) * Fraction(1, apart))
        for ratio, apart in generate_losses(3, o)
    ]


@lru_cache(maxsize=8192)
def _compute_budget(law: SizeLaw, b: int) -> Budget:
    if not law.is_finite:
        return Budget.infinite()
    above, below = compute_odds(law.highest), compute_odds(law.rate)
    if law.kind != "by-size":
        return Budget.log(max(above, (b + _STEP_BY_KIND[law.kind]) / below))
    if b == 3 and above == below:
        return max(_list_three_losses(above), key=lambda loss: loss[0])[1]
    # For b ≥ 4 and b = 2 the largest loss stands at (b−2, b) or (2, 0) moved records: proof.md, Theorem B.
    return Budget.log(max(above * above, _square_growth(law.kind, b) / (below * below))) * HALF


# The statistic b that the budget of a swap is a function of: the size of the largest stratum in which anything can move.


@dataclass(frozen=True, slots=True, init=False)
class LargestStratum:
    r"""b(U): the most records in a stratum with two different hold values and two different swap values; 0 without one.

    A stratum is a cell of ``match`` among the records of ``where`` that lie in none of ``without`` (records that take
    no part). In every other stratum the invariants fix all records, so a universe with b = 0 is one data set.

    >>> b = LargestStratum("household", match=("size",), hold=("tenure",), swap=("block",))
    >>> b.of([{"size": "1", "tenure": t, "block": s} for t, s in ("oa", "oa", "rb")])
    3
    >>> b.of([{"size": "1", "tenure": t, "block": "a"} for t in "oor"])
    0
    """

    record_type: str
    match: tuple[str, ...]
    hold: tuple[str, ...]
    swap: tuple[str, ...]
    where: Restriction | None
    without: tuple[Restriction, ...]

    def __init__(
        self,
        record_type: str,
        match: Iterable[str] = (),
        hold: Iterable[str] = (),
        swap: Iterable[str] = (),
        where: "Restriction | Mapping[str, Iterable[str]] | None" = None,
        without: "Iterable[Restriction | Mapping[str, Iterable[str]]]" = (),
    ) -> None:
        left_out = {Restriction.of(restriction) for restriction in without}
        object.__setattr__(self, "record_type", record_type)
        # the order of variables plays no part, so that equal statistics are equal objects
        object.__setattr__(self, "match", tuple(sorted({*match})))
        object.__setattr__(self, "hold", tuple(sorted({*hold})))
        object.__setattr__(self, "swap", tuple(sorted({*swap})))
        object.__setattr__(self, "where", Restriction.of(where) if where else None)
        object.__setattr__(self, "without", tuple(sorted(left_out, key=lambda r: r.conditions)))

    def of(self, records: Iterable[Mapping[str, str]]) -> int:
        """Return the statistic of a small data set, given record by record."""
        return self.evaluate_counts((record, 1) for record in records)

    def evaluate_counts(self, records: Iterable[tuple[Mapping[str, str], int]]) -> int:
        """Return the statistic of a data set that is given as distinct records with their numbers."""
        sizes: dict[tuple[str, ...], int] = {}
        held: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
        swapped: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
        for record, number in records:
            if not self._takes_part(record):
                continue
            stratum = tuple(record[name] for name in self.match)
            sizes[stratum] = sizes.get(stratum, 0) + number
            held.setdefault(stratum, set()).add(tuple(record[name] for name in self.hold))
            swapped.setdefault(stratum, set()).add(tuple(record[name] for name in self.swap))
        return max(
            (n for stratum, n in sizes.items() if len(held[stratum]) >= 2 and len(swapped[stratum]) >= 2),
            default=0,
        )

    def _takes_part(self, record: Mapping[str, str]) -> bool:
        def lies_in(restriction: Restriction) -> bool:
            return all(record.get(name) in values for name, values in restriction.conditions)

        if self.where is not None and not lies_in(self.where):
            return False
        return not any(lies_in(restriction) for restriction in self.without)

    def needs(self) -> tuple[Margin, ...]:
        """Return the tables that determine b: match × hold and match × swap, also of records that take no part.

        >>> b = LargestStratum("household", hold=("tenure",), swap=("block",), without=[{"kind": ["vacant"]}])
        >>> [str(margin) for margin in b.needs()]
        ['households by tenure', 'households by block', 'households by tenure where kind = vacant', \
'households by block where kind = vacant']
        """
        if not (self.hold and self.swap):
            return ()  # then nothing can move, and b is 0
        taken = [self.where] if self.where is not None else []
        return tuple(
            Margin(self.record_type, (*self.match, *shown), where)
            for number in range(len(self.without) + 1)
            for chosen in combinations(self.without, number)  # inclusion and exclusion
            if (where := _intersect([*taken, *chosen])) is not None
            for shown in (self.hold, self.swap)
        )

    def never_above(self, other: "LargestStratum") -> bool:
        """Return whether b is at most the other's b in every data set, because its strata are finer.

        >>> fine = LargestStratum("household", ("size",), ("tenure",), ("block",))
        >>> coarse = LargestStratum("household", (), ("size", "tenure"), ("block",))
        >>> fine.never_above(coarse), coarse.never_above(fine)
        (True, False)
        """
        same = (self.record_type, self.where, self.without) == (other.record_type, other.where, other.without)
        return (
            same
            and {*self.match} >= {*other.match}
            and {*self.hold} <= {*other.hold}
            and {*self.swap} <= {*other.swap}
        )

    def words(self) -> str:
        """Return in words what b counts.

        >>> print(LargestStratum("household", ("size",), ("tenure",), ("block",)))
        the number of households in the largest stratum (equal size) whose records differ in held and in swapped variables
        """
        match = " × ".join(self.match)
        told = [Phrase("law.equal", variables=match) if match else Phrase("law.all_records")]
        if self.where is not None:
            told.append(Phrase("invariant.only", condition=self.where.words()))
        told += [Phrase("invariant.without", condition=restriction.words()) for restriction in self.without]
        stratum = reduce(lambda one, two: Phrase("lists.semicolon_pair", first=one, second=two), told)
        return Phrase("law.stratum", ones=unit(self.record_type, "ones"), stratum=stratum)

    def __str__(self) -> str:
        return self.words()


def _intersect(restrictions: Iterable[Restriction]) -> dict[str, tuple[str, ...]] | None:
    """Return the joint conditions of all restrictions, or None where no record can meet them."""
    found: dict[str, tuple[str, ...]] = {}
    for restriction in restrictions:
        for name, values in restriction.conditions:
            found[name] = tuple(value for value in values if value in found.get(name, values))
    return found if all(found.values()) else None


# Compare two laws of b at every b from 2 on, exactly.
#
# Up to 60 records each b is compared by itself. Beyond, $e^{2\varepsilon} = \max\{A,\ G(b)/C\}$ with $G(b) = (b+1)^2$,
# $b(b-1)+1$ or $(b-1)^2$: between the places where a law starts to grow, and on each side of the vertex of the quadratic
# $G_1(b)/C_1 - G_2(b)/C_2$, the difference of the two is monotone, so bisection finds every change of its sign.

Side = Literal["equal", "smaller", "larger"]
Sign = Literal[-1, 0, 1]
_SIDE_BY_SIGN: dict[int, Side] = {-1: "smaller", 0: "equal", 1: "larger"}
_PHRASE_BY_SIGN = {-1: "a smaller budget than", 0: "the same budget as", 1: "a larger budget than"}
_SHORT_PHRASE_BY_SIGN = {-1: "a smaller one", 0: "the same", 1: "a larger one"}
_SLOPE_BY_KIND: dict[Kind, int] = {
    "theorem-1": 2,
    "by-size": -1,
    "by-exchange": -2,
}  # G(b) = b² + slope · b + 1


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

    def has_changed(b: int) -> bool:
        return b >= end or sign(b) != here

    here = sign(begin)
    yield begin, here
    while here != sign(end):
        begin = find_first(has_changed, begin)
        here = sign(begin)
        yield begin, here
