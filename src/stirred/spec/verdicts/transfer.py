"""Decide whether a bound under one output premetric gives a bound under another, at every distance."""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Literal

from stirred.spec.budgets import Budget
from stirred.spec.exact import Interval
from stirred.spec.output_premetrics import (
    Approximate,
    Multiplicative,
    NormalizedRenyi,
    OutputPremetric,
    reading,
    scale_delta,
)

# Rigorous comparisons of budgets through exponentials: each answers True only where intervals prove it.
#
# Exact numbers are enclosed by intervals with 160 good bits; where the two sides cannot be told apart, the answer is False.

INTERVAL_BITS = 160
ONE = Interval.point(Fraction(1))


def _enclose(budget: Budget) -> Interval:
    assert budget.value is not None
    return budget.value.interval(INTERVAL_BITS)


@lru_cache(maxsize=4096)
def _enclose_power(exact: str, low: Fraction, high: Fraction) -> Interval:
    del exact
    return Interval(low, high).exp(INTERVAL_BITS)


def _exp(budget: Budget) -> Interval:
    box = _enclose(budget)
    return _enclose_power("", box.low, box.high)


def _subtract(a: Interval, b: Interval) -> Interval:
    return Interval(a.low - b.high, a.high - b.low)


def _divide(a: Interval, b: Interval) -> Interval:
    """Return a/b for b > 0."""
    return Interval(min(a.low / b.low, a.low / b.high), max(a.high / b.low, a.high / b.high))


def _tanh_half(budget: Budget) -> Interval:
    """Return tanh(B/2) = (e^B − 1)/(e^B + 1)."""
    power = _exp(budget)
    return _divide(_subtract(power, ONE), power + ONE)


def pure_within_concentrated(epsilon: Budget, rho: Budget, least: int) -> bool:
    """Return whether ε·tanh(kε/2)/k ≤ ρ² at the smallest distance k.

    >>> pure_within_concentrated(Budget.of(2), Budget.sqrt("1.6"), 1)  # though ε²/2 = 2
    True
    """
    if not (epsilon.is_finite and rho.is_finite):
        return not rho.is_finite
    left = _enclose(epsilon) * _tanh_half(epsilon * least)
    return left.high / least <= _enclose(rho.square()).low


def pure_above_concentrated(allowed: Budget, rho: Budget, distance: Fraction) -> bool:
    """Return whether B·tanh(B/2) > ρ²k² for a pair at distance k at which the pure loss may be B."""
    if not allowed.is_finite:
        return True
    left = _enclose(allowed) * _tanh_half(allowed)
    return left.low > (_enclose(rho.square()).scale(distance * distance)).high


def enclose_delta_at(epsilon: Budget, delta: Fraction, k: int) -> Interval:
    """Return an enclosure of δ_k = δ(1 + e^ε + … + e^{(k−1)ε})."""
    if epsilon.is_zero:
        return Interval.point(delta * k)
    return _divide(_subtract(_exp(epsilon * k), ONE), _subtract(_exp(epsilon), ONE)).scale(delta)


def _enclose_hockey_stick(allowed: Budget, revealed: Interval, limit: Budget, k: int) -> Interval:
    """Enclose the hockey-stick divergence at e^{kε'} of a mechanism that reveals the data or randomises at B."""
    if not allowed.is_finite:
        return ONE
    power, level = _exp(allowed), _exp(limit * k)
    rest = _divide(_subtract(power, level), power + ONE)
    rest = Interval(max(rest.low, Fraction(0)), max(rest.high, Fraction(0)))
    kept = Interval(max(1 - revealed.high, Fraction(0)), max(1 - revealed.low, Fraction(0)))
    total = revealed + kept * rest
    return Interval(total.low, min(total.high, Fraction(1)) if revealed.high <= 1 else total.high)


def hockey_stick_below(
    allowed: Budget, own: Fraction, budget: Budget, limit: Budget, delta: Fraction, k: int
) -> bool:
    """Return whether every pair under (kε, δ_k) is proved to be under (kε', δ'_k)."""
    if not budget.is_finite:
        return False
    revealed = enclose_delta_at(budget, own, k)
    bound = enclose_delta_at(limit, delta, k)
    if bound.low >= 1:
        return True
    return revealed.high < 1 and _enclose_hockey_stick(allowed, revealed, limit, k).high <= bound.low


def hockey_stick_above(
    allowed: Budget, stated: tuple[Fraction, Budget, int], limit: Budget, delta: Fraction, k: int
) -> bool:
    """Return whether some mechanism under (ε, δ) breaks (kε', δ'_k); ``stated`` is (δ, ε, own distance).

    Two mechanisms are tried: reveal with probability δ and else randomised response; and the chain in which the probability
    of one outcome is δ_j at distance j, which group privacy allows.
    """
    own, budget, steps = stated
    bound = enclose_delta_at(limit, delta, k)
    if bound.high >= 1:
        return False
    if not budget.is_finite:
        return True
    first = _enclose_hockey_stick(allowed, Interval.point(own), limit, k)
    chain = enclose_delta_at(budget, own, steps)
    half = Fraction(1, 2)
    return first.low > bound.high or (chain.high < half and chain.low > bound.high)


def tight_within(rho: Budget, limit: Budget, delta: Fraction, k: int) -> bool:
    """Return whether k²ρ²-zCDP gives (kε', δ'_k), by the conversion of Canonne, Kamath and Steinke."""
    bound = enclose_delta_at(limit, delta, k).low
    if bound >= 1:
        return True
    if not rho.is_finite or bound <= 0:
        return False
    found = reading(rho.square(), bound, distance=k, tight=True, decimals=9).epsilon
    return Fraction(found) <= _enclose(limit * k).low


def gaussian_exceeds(allowed: Budget, limit: Budget, delta: Fraction, k: int) -> bool:
    r"""Whether the Gaussian with $D_{nor} = B$ breaks (kε', δ'_k): its hockey-stick divergence is

    $\Phi(\mu/2 - E/\mu) - e^E\,\Phi(-\mu/2 - E/\mu)$, $\mu = \sqrt2 B$, $E = k\varepsilon'$ (Balle and Wang 2018).
    """
    import mpmath

    bound = enclose_delta_at(limit, delta, k).high
    if bound >= 1 or allowed.is_zero:
        return False
    if not allowed.is_finite:
        return True
    with mpmath.workdps(60):
        low, high = (mpmath.mpf(end.numerator) / end.denominator for end in _find_ends(allowed))
        level = mpmath.mpf(str(limit.upper(40))) * k
        del high  # the divergence grows with μ, so the smaller end is the safe one
        mu = mpmath.sqrt(2) * low
        found = mpmath.ncdf(mu / 2 - level / mu) - mpmath.exp(level) * mpmath.ncdf(-mu / 2 - level / mu)
        # sixty digits were carried; ten are kept as a margin for what the functions may be off by
        return bool(
            found
            > (mpmath.mpf(bound.numerator) / bound.denominator) * (1 + mpmath.mpf(10) ** -10)
            + mpmath.mpf(10) ** -30
        )


def _find_ends(budget: Budget) -> tuple[Fraction, Fraction]:
    box = _enclose(budget)
    return box.low, box.high


# Whether a bound under one output premetric gives a bound under another, at every distance.
#
# Write B = ε·d(x, x') for what the first allows between x and x', and k for their distance under the second.
#
# - *Pure to pure, zCDP to zCDP.* B must be at most ε'k. The first is used up by a coin whose log-odds move with the
#   distance from x (pure) or by a Gaussian whose mean does (zCDP), so a larger B refutes.
# - *Pure to zCDP.* Two distributions with ratio at most e^B are images of randomised response (Kairouz, Oh and
#   Viswanath 2015), for which $D_\alpha = \frac{1}{\alpha-1}\ln\frac{\cosh((\alpha-\frac12)B)}{\cosh(B/2)} \le \alpha
#   B\tanh(B/2)$: ln cosh is concave in the square of its argument. Equality holds for α → 1, so $B\tanh(B/2) \le
#   \rho^2k^2$ decides; it is hardest at the smallest k, because tanh(t)/t falls.
# - *Pure to (ε, δ).* Randomised response has hockey-stick divergence (e^B − e^E)/(1 + e^B) at E = ε'k, which decides.
# - *(ε, δ) to others.* Revealing the data set with probability δ has infinite loss under the pure and the zCDP premetric.
#   Between two (ε, δ), the pair "revealed with probability δ_k, else randomised response" is extreme.
# - *zCDP to (ε, δ).* The conversion of Canonne, Kamath and Steinke (2020, Prop. 12) at every k gives a yes, the
#   Gaussian's own hockey-stick divergence a no; between the two the answer is unknown.
# - *zCDP to pure.* Never, unless ρ = 0: a Gaussian's ratio has no bound.

MAX_DISTANCES = 400  # distances tried one by one for (ε, δ) premetrics


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer:
    """The answer whether the first promise gives the second; a no names a mechanism and a distance."""

    answer: Literal["yes", "no", "unknown"]
    because: str
    mechanism: str = ""
    copies: int = 1  # how often the pair's change has to be repeated
    least: int = 1  # for a yes: the smallest distance it holds from


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferQuestion:
    """Two premetrics with their budgets, both per unit of the second distance: a question to `transfer`.

    ``least`` bounds the distances that occur from below. ``allowed`` is what the first promise allows for a known pair,
    B itself, and ``distance`` that pair's distance under the second; without them nothing is refuted. ``stated`` is the
    first promise in its own unit, with the pair's distance there. Without ``whole`` a distance may be any number.
    """

    first: OutputPremetric
    budget: Budget
    second: OutputPremetric
    limit: Budget
    least: int = 1
    allowed: Budget | None = None
    distance: Fraction | None = None
    stated: tuple[OutputPremetric, Budget, Fraction] | None = None
    neighbours_only: bool = False
    whole: bool = True


def transfer(asked: TransferQuestion) -> Transfer:
    """Decide whether the first promise gives the second, and return the answer with its reason.

    >>> pure, concentrated = Multiplicative(), NormalizedRenyi()
    >>> one = TransferQuestion(first=pure, budget=Budget.of(1), second=concentrated, limit=Budget.sqrt("1/2"))
    >>> transfer(one).answer
    'yes'
    >>> pair = TransferQuestion(first=concentrated, budget=Budget.of(1), second=pure, limit=Budget.of(9),
    ...              allowed=Budget.of(1), distance=Fraction(1))
    >>> transfer(pair).mechanism
    'gaussian'
    """
    if not asked.limit.is_finite:
        return Transfer(answer="yes", because="the second budget is infinite")
    first, second = _simplify(asked.first), _simplify(asked.second)
    if asked.budget.is_zero and not (isinstance(first, Approximate)) and first.is_metric:
        return Transfer(
            answer="yes", because="under the first the output does not depend on the data within a universe"
        )
    if isinstance(first, Multiplicative) and isinstance(second, Multiplicative):
        return _transfer_linear(asked, "randomised response")
    if isinstance(first, NormalizedRenyi) and isinstance(second, NormalizedRenyi):
        return _transfer_linear(asked, "gaussian")
    if isinstance(first, Multiplicative) and isinstance(second, NormalizedRenyi):
        return _pure_to_concentrated(asked)
    if isinstance(first, NormalizedRenyi) and isinstance(second, Multiplicative):
        return _refute(
            asked,
            "gaussian",
            "a Gaussian keeps the promise of the first, and the ratio of its densities has no bound",
        )
    if isinstance(first, Approximate) and not isinstance(second, Approximate) and _is_known(second):
        return _refute(
            asked,
            "reveal",
            "revealing the data set with probability δ keeps the promise of the first, and its loss is infinite",
        )
    if isinstance(second, Approximate) and isinstance(first, Multiplicative | NormalizedRenyi | Approximate):
        return _to_approximate(asked, first, second)
    found = asked.first.convert(asked.budget, asked.second)
    if found is not None and found <= asked.limit:
        return Transfer(
            answer="yes", because=f"{asked.first} converts into {asked.second}: {found} ≤ {asked.limit}"
        )
    return Transfer(answer="unknown", because=f"no rule between {asked.first} and {asked.second} decides")


def _simplify(premetric: OutputPremetric) -> OutputPremetric:
    """Return pure DP for (ε, 0), and any other premetric as it is."""
    return Multiplicative() if isinstance(premetric, Approximate) and not premetric.delta else premetric


def _is_known(premetric: OutputPremetric) -> bool:
    return isinstance(premetric, Multiplicative | NormalizedRenyi)


def write_budget(premetric: OutputPremetric, budget: Budget) -> str:
    """Write the budget as it is usually printed, with its letter."""
    if isinstance(premetric, NormalizedRenyi):
        return f"ρ² = {budget.square()}"
    return f"{premetric.budget_symbol} = {budget}"


def _refute(asked: TransferQuestion, mechanism: str, because: str) -> Transfer:
    """Return a no where a pair is known at which the first allows something, else unknown."""
    if asked.allowed is None or (asked.allowed.is_zero and mechanism != "reveal"):
        return Transfer(answer="unknown", because="no two different data sets of one universe are known")
    return Transfer(answer="no", because=because, mechanism=mechanism)


def _transfer_linear(asked: TransferQuestion, mechanism: str) -> Transfer:
    mine, theirs = write_budget(asked.first, asked.budget), write_budget(asked.second, asked.limit)
    if asked.budget <= asked.limit:
        return Transfer(answer="yes", because=f"{mine} ≤ {theirs}")
    if (
        asked.allowed is not None
        and asked.distance is not None
        and asked.allowed > asked.limit * asked.distance
    ):
        tool = {
            "gaussian": "a Gaussian whose mean moves",
            "randomised response": "a coin whose log-odds move",
        }[mechanism]
        because = f"{mine} > {theirs}, and {tool} with the distance from one data set uses up the budget of the first"
        return Transfer(answer="no", because=because, mechanism=mechanism)
    return Transfer(
        answer="unknown",
        because=f"the rules give {mine}, more than {theirs}; a sharper conversion between the units may exist",
    )


def _pure_to_concentrated(asked: TransferQuestion) -> Transfer:
    theirs = write_budget(asked.second, asked.limit)
    if asked.budget * Budget.sqrt("1/2") <= asked.limit:
        return Transfer(
            answer="yes",
            because=f"ε-DP is ε²/2-zCDP at every distance, and {(asked.budget * Budget.sqrt('1/2')).square()} ≤ {theirs}",
        )
    if asked.whole and pure_within_concentrated(asked.budget, asked.limit, asked.least):
        k = asked.least
        return Transfer(
            answer="yes", because=f"ε·tanh({k}ε/2)/{k} ≤ {theirs}, and {k} is the smallest distance", least=k
        )
    pair = asked.allowed is not None and asked.distance is not None
    if pair and pure_above_concentrated(
        asked.allowed or Budget.zero(), asked.limit, asked.distance or Fraction(1)
    ):
        because = f"randomised response keeps the promise of the first and has more than {theirs}: B·tanh(B/2) > ρ²k²"
        return Transfer(answer="no", because=because, mechanism="randomised response")
    return Transfer(
        answer="unknown",
        because=f"the conversions known do not decide between {write_budget(asked.first, asked.budget)} and {theirs}",
    )


def _to_approximate(asked: TransferQuestion, first: OutputPremetric, second: Approximate) -> Transfer:
    mine = f"{write_budget(asked.first, asked.budget)} under {asked.first}"
    theirs = f"{write_budget(asked.second, asked.limit)} under {asked.second}"
    delta = first.delta if isinstance(first, Approximate) else Fraction(0)
    if not isinstance(first, NormalizedRenyi) and asked.budget <= asked.limit and delta <= second.delta:
        return Transfer(answer="yes", because=f"neither ε nor δ is larger: {mine}, {theirs}")
    if asked.allowed is not None and asked.distance is not None and asked.distance.denominator == 1:
        for copies in range(1, 2 if asked.neighbours_only else 13):
            if _exceeds(asked, second.delta, copies):
                name = "gaussian" if isinstance(first, NormalizedRenyi) else "reveal or randomised response"
                because = f"at distance {asked.distance * copies} a mechanism under {mine} breaks {theirs}"
                return Transfer(answer="no", because=because, mechanism=name, copies=copies)
    if all(
        _holds_at(first, asked.budget, asked.limit, second.delta, k) for k in _list_distances(asked, second)
    ):
        return Transfer(
            answer="yes", because=f"{mine} gives {theirs} at every distance, each checked", least=asked.least
        )
    return Transfer(
        answer="unknown", because=f"the conversions known do not decide between {mine} and {theirs}"
    )


def _list_distances(asked: TransferQuestion, second: Approximate) -> Iterator[int]:
    """Yield every distance until the second promises nothing (δ_k ≥ 1); yield 0 last where there are too many."""
    if asked.neighbours_only:
        yield 1
        return
    for k in range(asked.least, asked.least + MAX_DISTANCES):
        if scale_delta(asked.limit, second.delta, Fraction(k)) >= 1:
            return
        yield k
    yield 0


def _holds_at(first: OutputPremetric, budget: Budget, limit: Budget, delta: Fraction, k: int) -> bool:
    """Return whether the first promise gives (kε', δ'_k) at distance k."""
    if k == 0:
        return False
    if isinstance(first, NormalizedRenyi):
        return tight_within(budget, limit, delta, k)
    own = first.delta if isinstance(first, Approximate) else Fraction(0)
    return hockey_stick_below(budget * k, own, budget, limit, delta, k)


def _exceeds(asked: TransferQuestion, delta: Fraction, copies: int) -> bool:
    """Return whether a mechanism under the first breaks (kε', δ'_k) at the pair with its change repeated."""
    assert asked.allowed is not None
    assert asked.distance is not None
    k, allowed = int(asked.distance * copies), asked.allowed * copies
    if isinstance(asked.first, NormalizedRenyi):
        return gaussian_exceeds(allowed, asked.limit, delta, k)
    own, steps = Fraction(0), Fraction(0)
    budget = asked.budget
    if asked.stated is not None and isinstance(asked.stated[0], Approximate):
        own, budget, steps = asked.stated[0].delta, asked.stated[1], asked.stated[2] * copies
    if steps.denominator != 1:
        return False
    return hockey_stick_above(allowed, (own, budget, int(steps)), asked.limit, delta, k)
