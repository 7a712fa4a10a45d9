r"""Bound the loss of strata with three or more types by exchanges of two records, from the margins.

Two data sets of one universe are joined by exchanges of two records inside it, so that
$\varepsilon \le (2 - 2/r)\,\varepsilon_2$: r is the smaller number of types, $\varepsilon_2$ the largest loss per unit at
distance 2. One exchange moves the numbers t of values that leave each type by at most one in two types, hence
$2\varepsilon_2 \le \max|\ln\Phi(t')/\Phi(t)|$ with
$\Phi(t) = \sum_k w(\sum k_h)\prod_h\binom{n_h-t_h}{k_h-t_h}\Delta(k_h,t_h)$. Proofs: proof.md, Theorems N and O.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import combinations_with_replacement, product
from math import ceil, comb, inf, lcm, log, prod

from stirred.mechanisms.swapping.budget.by_size import Rate, compute_odds, parse_rate
from stirred.mechanisms.swapping.budget.reduction import partial_derangements
from stirred.spec.laws.derangements import count_derangements
from stirred.spec.numbers.budget import Budget

MAX_RECORDS_WITH_MARGINS = 40  # records: larger strata keep Theorem B
MAX_STATES_PER_STRATUM = 3_000  # vectors t for one stratum, up to the order of types of equal size
MAX_RATIO_DIGITS = 60  # of an exact ratio; a longer one is rounded up

Margins = tuple[int, ...]
State = tuple[Margins, ...]  # for each size of a type, largest first: the t of its types in descending order

TIGHT_EXCHANGES = "bound.tight.exchanges"  # a key of the catalog


@dataclass(frozen=True, slots=True)
class ExchangeBound:
    """The bound of one stratum, and the number of vectors t that were evaluated."""

    budget: Budget
    work: int


def bound_by_exchanges(
    hold_margins: Sequence[int] | None,
    swap_margins: Sequence[int] | None,
    rate: Rate,
    *,
    below: Budget | None = None,
) -> ExchangeBound | None:
    r"""A stratum with given margins: $\varepsilon \le (1 - 1/r)\max|\ln\Phi(t')/\Phi(t)|$, the smaller of both sides.

    A side that is not known is left out. None where no side can be evaluated, or where neither bound is ``below``.

    >>> str(bound_by_exchanges((3, 1, 1), (2, 2, 1), "9/10").budget.upper(3))
    '0.692'
    """
    sides = {tuple(sorted(side, reverse=True)) for side in (hold_margins, swap_margins) if side is not None}
    p = parse_rate(rate)
    if any(len(side) < 2 for side in sides):
        return ExchangeBound(Budget.zero(), 0)
    if not sides or p in (0, 1):
        return None
    share = 1 - Fraction(1, min(len(side) for side in sides))
    stop = inf if below is None or not below.is_finite else float(below.upper(9)) / float(share)
    looked = [
        _largest_exchange_ratio(side, compute_odds(p), stop) for side in sorted(sides) if _is_affordable(side)
    ]
    ratios = [ratio for ratio, _ in looked if ratio is not None]
    if not ratios:
        return None
    return ExchangeBound(Budget.log(min(ratios)) * share, sum(work for _, work in looked))


def count_states(margins: Sequence[int]) -> int:
    """Count the vectors t, taking types of equal size together.

    >>> count_states((2, 2, 1))
    12
    """
    return prod(comb(size + types, types) for size, types in Counter(margins).items())


def _is_affordable(margins: Margins) -> bool:
    return sum(margins) <= MAX_RECORDS_WITH_MARGINS and count_states(margins) <= MAX_STATES_PER_STRATUM


def phi(margins: Sequence[int], leaving: Sequence[int], o: Fraction) -> Fraction:
    r"""Φ(t): the weight of the permutations that send given $t_h$ values out of each type to given types.

    >>> phi((1, 1), (1, 1), Fraction(1, 3))
    Fraction(1, 9)
    """
    by_moved = [1]
    for size, t in zip(margins, leaving, strict=True):
        own = _series(size, t)
        joined = [0] * (len(by_moved) + size)
        for i, a in enumerate(by_moved):
            for j, b in enumerate(own):
                joined[i + j] += a * b
        by_moved = joined
    return sum((c * o**k / count_derangements(k) for k, c in enumerate(by_moved) if c), Fraction(0))


def _series(size: int, t: int) -> list[int]:
    """Return C(size − t, k − t) Δ(k, t) for k = 0 … size."""
    return [comb(size - t, k - t) * partial_derangements(k, t) if k >= t else 0 for k in range(size + 1)]


@lru_cache(maxsize=1 << 12)
def _largest_exchange_ratio(margins: Margins, o: Fraction, stop: float) -> tuple[Fraction | None, int]:
    """Return the largest ratio of Φ at two vectors that one exchange joins, and the number evaluated.

    None as soon as the logarithm of a ratio exceeds ``stop``. Floats choose the candidates; integers decide.
    """
    sizes = tuple(sorted(Counter(margins).items(), reverse=True))
    phis = _Phis(sizes, o)
    best, where = 0.0, (1, 1)
    for state in phis.states():
        own = phis.log(state)
        for other in _list_earlier(state):
            if is_possible(other):
                gap = abs(own - phis.log(other))
                if gap > stop + 1e-9:
                    return None, len(phis.values)
                if gap >= best - 1e-9:
                    high, low = phis.values[state], phis.values[other]
                    high, low = (high, low) if high > low else (low, high)
                    if high * where[1] > where[0] * low:
                        where = (high, low)
                    best = max(best, gap)
    return _round_ratio(Fraction(*where)), len(phis.values)


def is_possible(state: Sequence[Sequence[int]]) -> bool:
    """Return whether the vector t can occur: no t exceeds the sum of the others.

    >>> is_possible([(0, 1, 1)]), is_possible([(0, 1, 2)])
    (True, False)
    """
    every = [t for group in state for t in group]
    return 2 * max(every) <= sum(every)


class _Phis:
    """Compute Φ of every state, times one common denominator, when it is needed.

    Polynomials are packed into whole numbers, so that one multiplication of these multiplies them.
    """

    def __init__(self, sizes: Sequence[tuple[int, int]], o: Fraction) -> None:
        n = sum(size * types for size, types in sizes)
        self.sizes = sizes
        # all coefficients together are at most 2^n n!: moved sets, and permutations of each
        self.width = n + n * n.bit_length() + 1
        common = lcm(*(count_derangements(k) for k in range(n + 1) if k != 1))
        self.weights = [
            common // count_derangements(k) * o.numerator**k * o.denominator ** (n - k) if k != 1 else 0
            for k in range(n + 1)
        ]
        self.packed = [
            [sum(c << (self.width * k) for k, c in enumerate(_series(size, t))) for t in range(size + 1)]
            for size, _ in sizes
        ]
        self.values: dict[State, int] = {}
        self.logs: dict[State, float] = {}

    def states(self) -> Iterator[State]:
        """Iterate over the states that can occur, those with the most leaving values first."""
        groups = [combinations_with_replacement(range(size, -1, -1), types) for size, types in self.sizes]
        return filter(is_possible, product(*groups))

    def log(self, state: State) -> float:
        """Return ln Φ of a state, up to a constant."""
        if state not in self.logs:
            total = prod(numbers[t] for numbers, ts in zip(self.packed, state, strict=True) for t in ts)
            value, mask = 0, (1 << self.width) - 1
            for weight in self.weights:
                value += (total & mask) * weight
                total >>= self.width
            self.values[state] = value
            self.logs[state] = log(value)
        return self.logs[state]


def _list_earlier(state: State) -> set[State]:
    """Return the states with one t, or two t of different types, smaller by one."""
    found = set()
    for i, t in _list_lowerable(state):
        once = _lower_state(state, i, t)
        found.add(once)
        for j, u in _list_lowerable(state):
            if (i, t) != (j, u) or state[i].count(t) > 1:
                found.add(_lower_state(once, j, u))
    return found


def _list_lowerable(state: State) -> set[tuple[int, int]]:
    return {(i, t) for i, ts in enumerate(state) for t in ts if t}


def _lower_state(state: State, i: int, t: int) -> State:
    """Return the state in which one type of group i with t leaving values has one fewer."""
    ts = list(state[i])
    ts.remove(t)
    return (*state[:i], tuple(sorted((*ts, t - 1), reverse=True)), *state[i + 1 :])


def _round_ratio(ratio: Fraction) -> Fraction:
    """Return the ratio, or a slightly larger one of 15 digits if it is too long to print."""
    if max(ratio.numerator, ratio.denominator) < 10**MAX_RATIO_DIGITS:
        return ratio
    exponent = Decimal(ratio.numerator // ratio.denominator).adjusted() - 14
    unit = Fraction(10) ** exponent
    return ceil(ratio / unit) * unit
