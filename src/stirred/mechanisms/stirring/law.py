r"""The laws of stirring: which permutation of a stratum is drawn with which probability, and what it loses.

*By cycles*: a permutation s of the n records of a stratum has probability
$\lambda^{\mathrm{cyc}(s)} / \prod_{k=0}^{n-1} (\lambda + k)$, the law of Ewens. *By types*, where a stratum has few held
types or few places: an arrangement of the types in which c slots have another type than before has probability
$\propto \lambda^{-c/2}$. For two types t = c/2 records of each trade places, with probability
$\propto \binom{n_1}{t}\binom{n_2}{t}\lambda^{-t}$, Fisher's noncentral hypergeometric law; for more, free_slots.py. In
all of them one exchange of two records loses at most $|\ln\lambda|$. λ is a fraction, and every promise is made from this
fraction. Proofs: proof.md.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import combinations, permutations, product
from math import comb, factorial, isqrt, prod
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stirred.errors import InputError
from stirred.kernels import compile_kernel
from stirred.mechanisms.stirring.free_slots import expect_changed, find_roots, is_practical
from stirred.spec.budgets import Budget
from stirred.spec.exact import Interval, parse_fraction
from stirred.spec.laws import Rate, parse_rate

LawName = Literal["auto", "cycles", "types"]
Permutation = tuple[int, ...]
PermutationLaw = Mapping[Permutation, Fraction]
Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

CYCLES, BY_HELD, BY_PLACE = range(3)  # the law of a stratum: by cycles, by its held types, by its places
MAX_LOSS = 40  # of one exchange; above it fewer than one record in 10¹⁷ would move in a small stratum
MIN_RATE = Fraction(1, 10**18)
MAX_RATE = 1 - Fraction(1, 10**10)  # shares are computed to ten digits
MAX_WEIGHT_BITS = 62  # of the weights of one step of the draw, which are added in 64 bits
LOSS_BITS = 20  # bits after the point of λ = e^loss
ODDS_BITS = 24  # the odds of a trade are rounded by at most this part, 2⁻²⁴


# λ from what is asked for: at least a share of records that moves, at most a loss of one exchange, or both.


@dataclass(frozen=True, slots=True)
class Asked:
    """What the settings ask for in every stratum: a rate that is reached, a loss that is not exceeded, and the law.

    The rate p is the share of records that moves by cycles. By types it is reached where as many records change their type
    as if the share p had moved by cycles: fewer move then, because none trades places with one of its own type.

    >>> Asked.of(rate="1/20").weight(11), Asked.of(loss=3).weight(11)
    (Fraction(190, 1), Fraction(21061211, 1048576))
    """

    rate: Fraction | None
    loss: Fraction | None
    law: LawName = "auto"

    @staticmethod
    def of(*, rate: Rate | None = None, loss: Rate | None = None, law: LawName = "auto") -> "Asked":
        """Read exact numbers; refuse a rate outside (0, 1), a loss that is not positive, and neither of the two."""
        if rate is None and loss is None:
            raise InputError(
                "stirring needs a rate or a loss",
                why="without both nothing says how many records move",
                fix='give rate="1/20" (this share moves, by types as many change their type as if it did), '
                'loss="8" (at most this ε per exchange), or both',
            )
        if law not in ("auto", "cycles", "types"):
            raise InputError(
                f"unknown law of stirring: {str(law)[:40]!r}",
                why="a stratum is stirred by cycles or by types",
                fix='give "auto", "cycles" or "types"',
            )
        return Asked(
            None if rate is None else _read_rate(rate), None if loss is None else _read_loss(loss), law
        )

    @property
    def cap(self) -> Fraction | None:
        """Return e^loss, rounded down, or None where no loss is asked for."""
        return None if self.loss is None else round_power(self.loss)

    @property
    def root_cap(self) -> Fraction:
        """Return e^(loss/2), rounded down: the largest μ = √λ that is allowed."""
        return round_power(Fraction(self.loss or 0) / 2)

    def weight(self, n: int) -> Fraction:
        r"""Return λ of a stratum of n records by cycles: $\min(e^{loss}, (n-1)(1-p)/p)$; 1 for fewer than two."""
        if n < 2:
            return Fraction(1)
        cap = self.cap
        asked = cap if self.rate is None else weight_of_rate(n, self.rate)
        assert asked is not None  # one of the two is given
        return _fit_weight(asked if cap is None else min(asked, cap), n)

    def keeps_loss(self, weight: Fraction) -> bool:
        """Return whether λ loses no more than asked; below 1 it may lose more, where nearly all records must move."""
        cap = self.cap
        return cap is None or weight * cap >= 1


def _read_rate(rate: Rate) -> Fraction:
    p = parse_rate(rate)
    if not 0 < p < 1:
        raise InputError(
            f"a stirring cannot move the share {p} of the records",
            why="at 0 nothing is protected, and that all records move can be promised by no law with a finite loss",
            fix='give a rate strictly between 0 and 1, such as "1/20"',
        )
    if not MIN_RATE <= p <= MAX_RATE:
        raise InputError(
            "the rate of a stirring lies too near 0 or 1",
            why="a share is reached to ten digits: the smallest rate is 10⁻¹⁸, the largest 1 − 10⁻¹⁰",
            fix='give a rate such as "1/20" or "99/100"; to shuffle a stratum evenly give a small loss, such as "1/1000"',
        )
    return p


def _read_loss(loss: Rate) -> Fraction:
    value = parse_fraction(loss, "loss of one exchange")
    if not 0 < value <= MAX_LOSS:
        raise InputError(
            f"the loss of one exchange lies above 0 and is at most {MAX_LOSS}",
            why=f"{str(loss)[:40]} was given; at 0 records are shuffled and nothing is left, above {MAX_LOSS} nothing moves",
            fix='give an exact number such as "8" or "17/2"',
        )
    return value


def weight_of_rate(n: int, rate: Fraction) -> Fraction:
    r"""Return the λ at which exactly the share p moves: $\lambda = (n-1)(1-p)/p$.

    >>> weight_of_rate(264331, Fraction(1, 20))
    Fraction(5022270, 1)
    """
    return (n - 1) * (1 - rate) / rate


def moved_share(n: int, weight: Fraction) -> Fraction:
    r"""Return the share of records that are expected to move, by cycles: $p = (n-1)/(\lambda+n-1)$.

    >>> moved_share(11, weight_of_rate(11, Fraction(1, 20)))
    Fraction(1, 20)
    """
    return Fraction(n - 1) / (weight + n - 1) if n > 1 else Fraction(0)


@lru_cache(maxsize=256)
def round_power(loss: Fraction) -> Fraction:
    """Return e^loss rounded down to a fraction, so that its logarithm is at most the loss.

    >>> round_power(Fraction(1)) <= Fraction(271828182846, 10**11)
    True
    """
    low = Interval.point(loss).exp(96).low
    return _cut(low, max(1, min(LOSS_BITS, 40 - int(low).bit_length())))


def _cut(value: Fraction, bits: int) -> Fraction:
    """Return the value rounded down to so many bits after the point."""
    return Fraction((value.numerator << bits) // value.denominator, 1 << bits)


def _fit_weight(weight: Fraction, n: int) -> Fraction:
    """Return λ itself, or λ rounded down where the weights of a step would not fit 64 bits; the share then rises.

    Below 1 one rounding is enough: 1/⌈1/λ⌉ has weights below p/(1 − p) + n, and ``MAX_RATE`` keeps p from 1.
    """
    weight, bits = min(weight, Fraction(1 << (MAX_WEIGHT_BITS - 2))), LOSS_BITS
    while weight.numerator + weight.denominator * (n - 1) >= 1 << MAX_WEIGHT_BITS:
        if weight < 1:
            return Fraction(1, -(-weight.denominator // weight.numerator))
        weight, bits = _cut(weight, bits), max(0, bits - 1)
    return weight


# The law by two types: how many records of each trade places.


@compile_kernel
def compute_trade_moments(n1: float, n2: float, odds: float) -> tuple[float, float]:
    """Return the mean and variance of the number of trades, summed outward from the mode.

    Only sums, products, quotients and square roots are used, which are the same on every machine.
    """
    smaller = min(n1, n2)
    # the mode solves (n1 − t)(n2 − t) odds = t², about
    if abs(odds - 1.0) < 1e-9:
        mode = n1 * n2 / (n1 + n2)
    else:
        half = (n1 + n2) * odds / 2
        mode = n1 * n2 * odds / (half + np.sqrt(half * half + (1.0 - odds) * odds * n1 * n2))
    middle = np.floor(min(max(mode, 0.0), smaller))
    total, first, second = 1.0, 0.0, 0.0
    term, t = 1.0, middle
    while t < smaller and term > 1e-22:
        term *= (n1 - t) * (n2 - t) * odds / ((t + 1.0) * (t + 1.0))
        t += 1.0
        total += term
        first += term * (t - middle)
        second += term * (t - middle) * (t - middle)
    term, t = 1.0, middle
    while t > 0.0 and term > 1e-22:
        term *= t * t / ((n1 - t + 1.0) * (n2 - t + 1.0) * odds)
        t -= 1.0
        total += term
        first += term * (t - middle)
        second += term * (t - middle) * (t - middle)
    mean = first / total
    return middle + mean, max(second / total - mean * mean, 0.0)


@compile_kernel
def _find_odds(n1: Floats, n2: Floats, wanted: Floats, out: Floats) -> None:
    r"""Find the odds at which so many trades are expected, by bisection between two bounds.

    $E[t^2] = \psi\,E[(n_1-t)(n_2-t)]$, so $\psi = (\mu^2+v)/((n_1-\mu)(n_2-\mu)+v)$ with $0 \le v \le \mu$.
    """
    for i in range(n1.size):
        mean = wanted[i]
        inside, outside = mean * mean, (n1[i] - mean) * (n2[i] - mean)
        one, other = inside / outside, (inside + mean) / (outside + mean)
        low, high = min(one, other) * (1 - 1e-9), max(one, other) * (1 + 1e-9)
        for _ in range(60):
            middle = (low + high) / 2
            if compute_trade_moments(n1[i], n2[i], middle)[0] < mean:
                low = middle
            else:
                high = middle
        out[i] = high


def trade_moments(n1: int, n2: int, weight: Fraction) -> tuple[float, float]:
    """Return the expected number of trades and its variance in a stratum of two types.

    >>> [round(value, 9) for value in trade_moments(1, 3, Fraction(3))]  # odds 3·1/3: a trade or none
    [0.5, 0.25]
    """
    mean, spread = compute_trade_moments(float(n1), float(n2), float(1 / weight))
    return float(mean), float(spread)


def weights_of_trades(n1: Counts, n2: Counts, rate: Fraction) -> list[Fraction]:
    r"""Return the λ by types at which as many records change places as when the share p of all moves.

    A record that moves by chance changes its type with probability $2 n_1 n_2 / (n(n-1))$, so
    $E[t] = p\,n_1 n_2/(n-1)$ trades are wanted. λ is rounded down, so that no fewer are expected (to
    ten digits).

    >>> weights_of_trades(np.array([1]), np.array([1]), Fraction(1, 4))
    [Fraction(3, 1)]
    """
    first, second = n1.astype(np.float64), n2.astype(np.float64)
    # the sums over t have relative errors below 10⁻¹¹
    wanted = float(rate) * first * second / (first + second - 1) * (1 + 1e-11)
    odds = np.empty(first.size, np.float64)
    _find_odds(first, second, wanted, odds)
    return [1 / _shorten_odds(Fraction(float(value))) for value in odds]


def _shorten_odds(odds: Fraction) -> Fraction:
    """Return the odds of a trade as the shortest fraction that is as large, to ten digits, and hardly larger."""
    return _simplest(odds * (1 - Fraction(1, 10**10)), odds * (1 + Fraction(1, 1 << ODDS_BITS)))


def _simplest(low: Fraction, high: Fraction) -> Fraction:
    """Return the fraction with the smallest denominator between two numbers."""
    whole = -(-low.numerator // low.denominator)
    if whole <= high:
        return Fraction(whole)
    return whole - 1 + 1 / _simplest(1 / (high - whole + 1), 1 / (low - whole + 1))


# Which law each stratum has: chosen from sizes and counts of types, which are invariants.


class StratumShape(NamedTuple):
    """What the choice of a law reads of a stratum: its size and, on both sides, the counts of its types.

    Counts are sorted, the largest first; None stands for more types than ``MAX_TYPES``.
    """

    n: int
    held: tuple[int, ...] | None
    places: tuple[int, ...] | None

    @property
    def differs(self) -> bool:
        """Return whether an exchange can change something: both sides have two types at least."""
        return self.n > 1 and all(side is None or len(side) > 1 for side in (self.held, self.places))

    def list_sides(self) -> list[tuple[int, tuple[int, ...]]]:
        """Return the kinds of law by types that are possible, each with the counts of its types."""
        sides = ((BY_HELD, self.held), (BY_PLACE, self.places))
        return [(kind, counts) for kind, counts in sides if counts is not None] if self.differs else []


@dataclass(frozen=True, slots=True)
class StratumShapes:
    """The shapes of all strata: each distinct shape once, and the number of its shape for every stratum."""

    distinct: tuple[StratumShape, ...]
    numbers: NDArray[np.intp]

    @staticmethod
    def of(shapes: Iterable[StratumShape]) -> "StratumShapes":
        """Collect the shapes of strata that are given one by one."""
        places: dict[StratumShape, int] = {}
        numbers = [places.setdefault(shape, len(places)) for shape in shapes]
        return StratumShapes(tuple(places), np.array(numbers, np.intp))


@dataclass(frozen=True, slots=True)
class StratumLaw:
    """The law of one stratum: by cycles or by the types of one side, and its λ.

    >>> StratumLaw(CYCLES, Fraction(1, 7)).loss.exact, StratumLaw(BY_HELD, Fraction(9, 4)).root
    ('ln(7)', Fraction(3, 2))
    """

    kind: int
    weight: Fraction

    @property
    def loss(self) -> Budget:
        """Return |ln λ|, what one exchange of two records loses at most."""
        return exchange_loss(self.weight)

    @property
    def root(self) -> Fraction:
        """Return μ = √λ of a law by three or more types, which is a fraction."""
        return Fraction(isqrt(self.weight.numerator), isqrt(self.weight.denominator))


@dataclass(frozen=True, slots=True)
class StratumLaws:
    """The laws of all strata: each distinct law once, and the number of its law for every stratum."""

    laws: tuple[StratumLaw, ...]
    numbers: NDArray[np.intp]

    def __getitem__(self, stratum: int) -> StratumLaw:
        return self.laws[int(self.numbers[stratum])]

    def kinds(self) -> NDArray[np.uint8]:
        """Return the kind of law of every stratum."""
        return np.array([law.kind for law in self.laws], np.uint8)[self.numbers]

    def fractions(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Return the numerator and denominator of λ of every stratum; 0 and 1 where the law is not by cycles."""
        cycles = [law.kind == CYCLES for law in self.laws]
        above = np.array(
            [law.weight.numerator * own for law, own in zip(self.laws, cycles, strict=True)], np.uint64
        )
        below = np.array(
            [law.weight.denominator if own else 1 for law, own in zip(self.laws, cycles, strict=True)],
            np.uint64,
        )
        return above[self.numbers], below[self.numbers]


def choose_laws(shapes: StratumShapes, asked: Asked) -> StratumLaws:
    """Choose the law of every stratum: the one that loses least at the asked rate, or changes least at the asked loss.

    The choice reads ``shapes`` and the settings, nothing else. A law by types is possible where a side has 2 to
    ``MAX_TYPES`` types and its draw takes few enough tries.

    >>> one = StratumShapes.of([StratumShape(264331, (163885, 100446), None)])
    >>> [str(choose_laws(one, Asked.of(rate=f"{p}/100", law=law))[0].loss.upper(2))
    ...  for p in (1, 5, 10, 50) for law in ("cycles", "auto")]
    ['17.09', '10.65', '15.43', '7.39', '14.69', '5.95', '12.49', '2.26']
    >>> ten = choose_laws(StratumShapes.of([StratumShape(100_000, None, (10_000,) * 10)]), Asked.of(rate="1/20"))
    >>> ten[0].kind == BY_PLACE, str(ten[0].loss.upper(2))  # by cycles 14.46
    (True, '10.51')
    """
    by_types: Mapping[tuple[int, ...], LawCandidate] = {}
    if asked.law != "cycles":
        sides = frozenset(side for shape in shapes.distinct for _, side in shape.list_sides())
        by_types = _propose_types(sides, asked)
    found = [_choose_law(shape, asked, by_types) for shape in shapes.distinct]
    laws = tuple(dict.fromkeys(found))
    places = {law: number for number, law in enumerate(laws)}
    return StratumLaws(laws, np.array([places[law] for law in found], np.intp)[shapes.numbers])


class LawCandidate(NamedTuple):
    """A law that a stratum may have: its λ, and the share that would have to move by cycles to change as many slots."""

    weight: Fraction
    effect: float


def changed_slots(counts: Sequence[int], share: float) -> float:
    r"""Return how many slots change their type where a share p of all moves by cycles: $p\,(n^2-\sum_h n_h^2)/(n-1)$.

    >>> changed_slots((3, 1), 0.5)  # 2 n₁ n₂/(n − 1) = 2, and half of it
    1.0
    """
    n = sum(counts)
    return share * (n * n - sum(many * many for many in counts)) / (n - 1)


def expect_type_changes(counts: Sequence[int], weight: Fraction) -> float:
    """Return how many slots are expected to change their type by the law of two or more types."""
    if len(counts) == 2:
        return 2 * trade_moments(counts[0], counts[1], weight)[0]
    return expect_changed(counts, StratumLaw(BY_HELD, weight).root)


@lru_cache(maxsize=4)  # a release asks for its promise, its comparison and its draw
def _propose_types(sides: frozenset[tuple[int, ...]], asked: Asked) -> Mapping[tuple[int, ...], LawCandidate]:
    """Return the law by types for the counts of each side, where there is one."""
    two = sorted(side for side in sides if len(side) == 2)
    more = sorted(side for side in sides if len(side) > 2)
    found: dict[tuple[int, ...], Fraction | None] = {}
    if two:
        found |= zip(two, _weigh_two(two, asked), strict=True)
    if more:
        found |= zip(more, _weigh_more(more, asked), strict=True)
    made = {}
    for side, weight in found.items():
        cap = None if asked.loss is None else asked.cap if len(side) == 2 else asked.root_cap**2
        if weight is None or (len(side) > 2 and not is_practical(side, StratumLaw(BY_HELD, weight).root)):
            continue
        if asked.rate is not None and (cap is None or weight < cap):
            made[side] = LawCandidate(weight, float(asked.rate))
        else:
            made[side] = LawCandidate(weight, expect_type_changes(side, weight) / changed_slots(side, 1.0))
    return made


def _weigh_two(sides: Sequence[tuple[int, ...]], asked: Asked) -> list[Fraction]:
    """Return λ of strata with two types."""
    cap = asked.cap
    if asked.rate is None:
        assert cap is not None  # one of the two is given
        return [cap] * len(sides)
    counts = np.array(sides, np.int64)
    weights = weights_of_trades(counts[:, 1], counts[:, 0], asked.rate)
    return [weight if cap is None else min(weight, cap) for weight in weights]


def _weigh_more(sides: Sequence[tuple[int, ...]], asked: Asked) -> list[Fraction | None]:
    """Return λ of strata with several types; None where more must change than by chance, or where cycles lose less."""
    cap = None if asked.loss is None else asked.root_cap
    if cap is not None and cap <= 1:
        return [None] * len(sides)
    if asked.rate is None:
        return [None if cap is None else cap**2] * len(sides)
    rate, far = asked.rate, asked.law == "types" or cap is not None
    tried = [side for side in sides if weight_of_rate(sum(side), rate) > 1]
    wanted = np.array([changed_slots(side, float(rate)) for side in tried])
    # above this μ cycles lose less
    limits = np.array([2.0**30 if far else float(weight_of_rate(sum(side), rate)) ** 0.5 for side in tried])
    roots = dict(zip(tried, find_roots(tried, wanted, limits), strict=True))
    return [
        None if (root := roots.get(side)) is None else (root if cap is None else min(root, cap)) ** 2
        for side in sides
    ]


def _choose_law(
    shape: StratumShape, asked: Asked, by_types: Mapping[tuple[int, ...], LawCandidate]
) -> StratumLaw:
    weight = asked.weight(shape.n)
    best = StratumLaw(CYCLES, weight)
    sides = [(kind, by_types[counts]) for kind, counts in shape.list_sides() if counts in by_types]
    if not sides:
        return best
    cap, rate = asked.cap, asked.rate
    reached = rate is not None and (cap is None or weight < cap)
    chosen = LawCandidate(
        weight, float(rate if rate is not None and reached else moved_share(shape.n, weight))
    )
    for kind, other in sides:
        if (best.kind == CYCLES and asked.law == "types") or _is_better(other, chosen, rate):
            best, chosen = StratumLaw(kind, other.weight), other
    return best


def _is_better(one: LawCandidate, other: LawCandidate, rate: Fraction | None) -> bool:
    """Return whether the first changes fewer records or, where both reach the asked rate, loses less."""
    if rate is not None and max(one.effect, other.effect) <= float(rate):
        return ratio(one.weight) < ratio(other.weight)
    return one.effect < other.effect


# What a law loses: per exchange, per record that differs, in other divergences, and over several releases.


def ratio(weight: Fraction) -> Fraction:
    """Return e to the loss of one exchange: the larger of λ and 1/λ."""
    if weight <= 0:
        raise InputError(
            "λ is a positive number",
            why="it weighs a permutation by λ to its number of cycles",
            fix="give 1 or more",
        )
    return max(weight, 1 / weight)


def exchange_loss(weight: Fraction) -> Budget:
    """Return |ln λ|: what one exchange of two records loses at most, and loses where held values differ.

    >>> exchange_loss(Fraction(190)).exact
    'ln(190)'
    """
    return Budget.log(ratio(weight))


def most_exchanges(distance: int, types: int) -> int:
    """Return the most exchanges that a Hamming distance can need: cycles join at most as many records as there are types.

    >>> [most_exchanges(h, 10) for h in (0, 2, 3, 10)], most_exchanges(10, 2), most_exchanges(1, 5)
    ([0, 1, 2, 9], 5, 0)
    """
    if distance < 2:
        return 0
    return distance - -(-distance // max(types, 2))


def loss_at(weight: Fraction, distance: int, types: int) -> Budget:
    """Return what a stratum loses at most between data sets at a Hamming distance, with the smaller number of types.

    >>> loss_at(Fraction(7), 3, 5).exact, loss_at(Fraction(7), 1, 5).exact
    ('2*ln(7)', '0')
    """
    return exchange_loss(weight) * most_exchanges(distance, types)


def record_loss(weight: Fraction, types: int) -> Budget:
    r"""Return the loss per unit of Hamming distance: $(1-1/h)\,|\ln\lambda|$, with h the longest cycle that can occur.

    ``types`` is the smallest of the stratum's size, its held types and its places.

    >>> record_loss(Fraction(7), 2).exact, record_loss(Fraction(7), 10).exact
    ('1/2*ln(7)', '9/10*ln(7)')
    """
    return exchange_loss(weight) * Fraction(types - 1, types) if types > 1 else Budget.zero()


def rho_squared(weight: Fraction) -> Budget:
    r"""Return the zCDP budget of one exchange, the usual ρ: $\ln\lambda\,(\lambda-1)/(\lambda+1)$, proof.md, Section 2.

    >>> rho_squared(Fraction(3)).exact
    '1/2*ln(3)'
    """
    odds = ratio(weight)
    return exchange_loss(weight) * Fraction((odds - 1) / (odds + 1))


def delta_after(weight: Fraction, releases: int, epsilon: Fraction) -> Fraction:
    r"""Return the δ of k releases at ε, for one exchange, never below the true one.

    The optimal composition of randomised response (Kairouz, Oh and Viswanath 2015):
    $\delta = \sum_l \binom{k}{l} (\lambda^{k-l} - e^{\varepsilon}\lambda^{l})^+ / (1+\lambda)^k$, with $e^\varepsilon$
    rounded down.

    >>> delta_after(Fraction(3), 1, Fraction(0))
    Fraction(1, 2)
    """
    odds, k = ratio(weight), _read_releases(releases)
    power = Interval.point(epsilon).exp(128).low if epsilon else Fraction(1)
    gained = sum(
        (comb(k, j) * max(Fraction(0), odds ** (k - j) - power * odds**j) for j in range(k + 1)), Fraction(0)
    )
    return gained / (1 + odds) ** k


def epsilon_after(weight: Fraction, releases: int, delta: Fraction) -> Budget:
    r"""Return the smallest ε at which k releases lose δ at most, for one exchange, exactly.

    Between $\lambda^{k-2j-2}$ and $\lambda^{k-2j}$ the δ of ``delta_after`` is linear in $e^{\varepsilon}$.

    >>> epsilon_after(Fraction(3), 2, Fraction(0)).exact, epsilon_after(Fraction(3), 2, Fraction(1, 8)).exact
    ('ln(9)', 'ln(7)')
    """
    odds, k = ratio(weight), _read_releases(releases)
    if not 0 <= delta < 1:
        raise InputError("δ lies in [0, 1)", why=f"{delta} was given", fix='give a number such as "1/10000"')
    whole, gained, lost = (1 + odds) ** k, Fraction(0), Fraction(0)
    for j in range(k // 2 + 1):
        gained, lost = gained + comb(k, j) * odds ** (k - j), lost + comb(k, j) * odds**j
        power = (gained - delta * whole) / lost
        if power >= max(odds ** (k - 2 * j - 2), Fraction(1)) or k - 2 * j - 2 < 0:
            return Budget.log(max(power, Fraction(1)))
    return Budget.zero()


def _read_releases(releases: int) -> int:
    if isinstance(releases, bool) or not isinstance(releases, int) or releases < 1:
        raise InputError("releases are counted from 1", why="another number was given", fix="give 1 or more")
    return releases


# The law in full, for small strata: every permutation with its probability.


def count_cycles(s: Permutation) -> int:
    """Count the cycles of a permutation, fixed points included.

    >>> count_cycles((1, 0, 2))
    2
    """
    seen: set[int] = set()
    found = 0
    for i in range(len(s)):
        found += i not in seen
        while i not in seen:
            seen.add(i)
            i = s[i]
    return found


@lru_cache(maxsize=64)
def enumerate_cycles(n: int, weight: Fraction) -> PermutationLaw:
    """Return the law by cycles of a stratum of n records.

    >>> enumerate_cycles(2, Fraction(3))
    {(0, 1): Fraction(3, 4), (1, 0): Fraction(1, 4)}
    """
    whole = prod((weight + k for k in range(n)), start=Fraction(1))
    return {s: weight ** count_cycles(s) / whole for s in permutations(range(n))}


def enumerate_types(types: Sequence[object], weight: Fraction) -> PermutationLaw:
    """Return the law by types of a stratum whose records have these types.

    >>> enumerate_types("ab", Fraction(3)) == enumerate_cycles(2, Fraction(3))
    True
    >>> enumerate_types("abc", Fraction(4))[0, 1, 2]  # weights 1, three of 1/4, two of 1/8
    Fraction(1, 2)
    """
    groups = [[i for i, own in enumerate(types) if own == kind] for kind in dict.fromkeys(types)]
    if len(groups) < 3:
        return _enumerate_trades(groups[0], groups[-1] if len(groups) == 2 else [], weight)
    chances = free_chances([len(group) for group in groups], StratumLaw(BY_HELD, weight).root)
    found: dict[Permutation, Fraction] = {}
    for numbers, chance in chances.items():
        ways = prod(comb(len(group), f) for group, f in zip(groups, numbers, strict=True))
        each = chance / ways / factorial(sum(numbers))
        for chosen in product(*(combinations(group, f) for group, f in zip(groups, numbers, strict=True))):
            free = [i for part in chosen for i in part]
            for order in permutations(free):
                s = list(range(len(types)))
                for i, j in zip(free, order, strict=True):
                    s[i] = j
                found[tuple(s)] = found.get(tuple(s), Fraction(0)) + each
    return found


def free_chances(counts: Sequence[int], root: Fraction) -> dict[tuple[int, ...], Fraction]:
    """Return the probabilities of the numbers of free slots by type.

    >>> free_chances((1, 1, 1), Fraction(2))[0, 0, 0]
    Fraction(1, 16)
    """
    weights = {
        numbers: factorial(sum(numbers))
        * prod((comb(n, f) / ((root - 1) ** f * factorial(f)) for n, f in zip(counts, numbers, strict=True)))
        for numbers in product(*(range(n + 1) for n in counts))
    }
    whole = sum(weights.values())
    return {numbers: Fraction(value / whole) for numbers, value in weights.items()}


def _enumerate_trades(first: list[int], second: list[int], weight: Fraction) -> PermutationLaw:
    found: dict[Permutation, Fraction] = {}
    for t, chance in enumerate(trade_chances(len(first), len(second), weight)):
        ways = comb(len(first), t) * comb(len(second), t) * factorial(t)
        for pairs in _list_trades(first, second, t):
            s = list(range(len(first) + len(second)))
            for i, j in pairs:
                s[i], s[j] = j, i
            found[tuple(s)] = chance / ways
    return found


def trade_chances(n1: int, n2: int, weight: Fraction) -> list[Fraction]:
    """Return the probabilities of 0, 1, 2, … trades.

    >>> trade_chances(1, 1, Fraction(3))
    [Fraction(3, 4), Fraction(1, 4)]
    """
    weights = [comb(n1, t) * comb(n2, t) / weight**t for t in range(min(n1, n2) + 1)]
    whole = sum(weights)
    return [Fraction(value / whole) for value in weights]


def _list_trades(first: list[int], second: list[int], t: int) -> Iterator[list[tuple[int, int]]]:
    for some in combinations(first, t):
        for others in permutations(second, t):
            yield list(zip(some, others, strict=True))


def injection_chance(n: int, weight: Fraction, pairs: int, cycles: int) -> Fraction:
    r"""Return the probability that m given records go to m given places, by cycles, where this closes f cycles.

    $\lambda^f / \prod_{k=1}^{m} (\lambda + n - k)$: all moments of published counts follow from it.

    >>> injection_chance(5, Fraction(7), 1, 1), injection_chance(5, Fraction(7), 1, 0)
    (Fraction(7, 11), Fraction(1, 11))
    """
    return weight**cycles / prod((weight + n - k for k in range(1, pairs + 1)), start=Fraction(1))
