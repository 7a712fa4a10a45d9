r"""Two promises about one pair of data sets, compared with forty digits; closer than 10⁻²⁰ counts as "cannot tell".

The first allows $B = \varepsilon d$. For single pairs the extreme distributions are known: randomised response for pure DP
(Kairouz, Oh and Viswanath 2015), the same with the data set revealed with probability $\delta_k$ for (ε, δ); for zCDP the
Gaussian is one that is allowed, and the conversion of Canonne, Kamath and Steinke bounds all of them.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import comb
from typing import Any, Literal

import mpmath

from oracles.census import Data, Small, Square, Strata, Table, hamming, symmetric

Found = Literal["holds", "broken", "cannot tell"]
DIGITS, BAND = 40, mpmath.mpf(10) ** -20


@dataclass(frozen=True)
class Law:
    """ε by b: Theorem 1, the largest loss by size, or that of an exchange, at one swap rate (a fraction n/d)."""

    kind: Literal["theorem-1", "by-size", "by-exchange"]
    rate: tuple[int, int]

    def at(self, b: int) -> Any:
        return _law(self, b)


def derangements(k: int) -> int:
    """k! Σ (−1)^j/j!, by inclusion and exclusion."""
    factorial = [1]
    for i in range(1, k + 1):
        factorial.append(factorial[-1] * i)
    return sum((-1) ** j * comb(k, j) * factorial[k - j] for j in range(k + 1))


@lru_cache(maxsize=4096)
def _law(law: Law, b: int) -> Any:
    with mpmath.workdps(DIGITS):
        if b <= 1:
            return mpmath.mpf(0)
        o = mpmath.mpf(law.rate[0]) / (law.rate[1] - law.rate[0])
        if law.kind == "theorem-1":
            return max(mpmath.log(o), mpmath.log(b + 1) - mpmath.log(o))
        if law.kind == "by-exchange":  # |ln λ| of every stratum that is not larger
            return max(abs(mpmath.log(n - 1) - mpmath.log(o)) for n in (2, b))
        if b > 60:  # the stated bound d(b)/d(b−2) ≤ b(b − 1) + 1
            return max(mpmath.log(o), mpmath.log(b * (b - 1) + 1) / 2 - mpmath.log(o))
        moved = [0, *range(2, b + 1)]
        # Theorem B, first formula: the loss of k against k' moved records, per unit of distance
        return max(
            ((k - j) * mpmath.log(o) + mpmath.log(derangements(j)) - mpmath.log(derangements(k)))
            / max(2, abs(k - j))
            for k, j in product(moved, moved)
        )


@dataclass(frozen=True)
class Promise:
    """Five parts as plain values; the budget is a text that mpmath evaluates, or a law of b."""

    tables: frozenset[Table]
    distance: Literal["ham", "sym", "ham neighbours", "sym neighbours"]
    output: Literal["pure", "zcdp", "approximate"]
    budget: str | Law
    delta: tuple[int, int] = (0, 1)
    strata: Strata | None = None

    def epsilon(self, b: int) -> Any:
        with mpmath.workdps(DIGITS):
            return self.budget.at(b) if isinstance(self.budget, Law) else _number(self.budget)

    @property
    def step(self) -> str:
        """The change between neighbours, where the promise is for neighbours only."""
        return self.distance[:3] if self.distance.endswith("neighbours") else ""

    def far(self, square: Square) -> int | None:
        """The distance; None for infinite."""
        inner = square.hamming if self.distance.startswith("ham") else square.symmetric
        if self.distance.endswith("neighbours"):
            return 1 if inner == 1 else None
        return inner


@lru_cache(maxsize=1024)
def _number(text: str) -> Any:
    names = {"sqrt": mpmath.sqrt, "ln": mpmath.log, "mpf": mpmath.mpf}
    with mpmath.workdps(DIGITS):
        root = text.startswith("sqrt(")
        inner = text[5:-1] if root else text
        log = inner.startswith("ln(")
        inner = inner[3:-1] if log else inner
        top, _, bottom = inner.partition("/")
        value = names["mpf"](int(top)) / int(bottom or 1)
        value = names["ln"](value) if log else value
        return names["sqrt"](value) if root else value


def _ratio(pair: tuple[int, int]) -> Any:
    return mpmath.mpf(pair[0]) / pair[1]


def delta_at(epsilon: Any, delta: Any, k: int) -> Any:
    """δ(1 + e^ε + … + e^{(k−1)ε}), as a sum."""
    return delta * mpmath.fsum(mpmath.exp(i * epsilon) for i in range(k))


def stick(loss: Any, level: Any) -> Any:
    """The hockey-stick divergence at e^level of randomised response with log-odds ``loss``: Σ max(0, p − e^E q)."""
    p, q = (1 / (1 + mpmath.exp(sign * loss)) for sign in (-1, 1))
    return sum(max(mpmath.mpf(0), a - mpmath.exp(level) * b) for a, b in ((p, q), (q, p)))


def kullback_leibler(loss: Any) -> Any:
    """KL of randomised response: the smallest order, where Rényi's divergence over its order is largest."""
    p, q = (1 / (1 + mpmath.exp(sign * loss)) for sign in (-1, 1))
    return (p - q) * loss  # ln(p/q) = loss


def gaussian(loss: Any, level: Any) -> Any:
    """The hockey-stick divergence of two Gaussians with D_nor = loss (Balle and Wang 2018): μ²/2 = loss²."""
    mu = mpmath.sqrt(2) * loss

    def phi(t: Any) -> Any:
        return mpmath.erfc(-t / mpmath.sqrt(2)) / 2

    return phi(mu / 2 - level / mu) - mpmath.exp(level) * phi(-mu / 2 - level / mu)


def converted(loss: Any, level: Any) -> Any:
    """The smallest δ of the conversion of Canonne, Kamath and Steinke (2020, Prop. 12), on a fine grid of orders."""
    rho = loss**2

    def exponent(t: float) -> Any:
        alpha = 1 + mpmath.exp(t)
        return (alpha - 1) * (alpha * rho - level) - mpmath.log(alpha - 1) + alpha * mpmath.log(1 - 1 / alpha)

    best = min((exponent(mpmath.mpf(i) / 8), i) for i in range(-80, 100))[1]
    low, high = mpmath.mpf(best - 1) / 8, mpmath.mpf(best + 1) / 8
    for _ in range(120):
        a, b = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, b) if exponent(a) < exponent(b) else (a, high)
    return mpmath.exp(exponent((low + high) / 2))


def _below(left: Any, right: Any) -> Found:
    """Whether left ≤ right, with a band."""
    gap = BAND * max(1, abs(left), abs(right))
    return "holds" if left < right - gap else "broken" if left > right + gap else "cannot tell"


@lru_cache(maxsize=200_000)
def at_pair(
    first: tuple[str, Any, tuple[int, int], int | None], second: tuple[str, Any, tuple[int, int], int]
) -> Found:
    """(output, ε, δ, distance) twice; the first distance None: the first allows anything."""
    with mpmath.workdps(DIGITS):
        (kind, epsilon, own, d), (wanted, limit, bound, k) = first, second
        given, allowed = _ratio(own), mpmath.mpf(0)
        if wanted == "approximate":
            allowed = delta_at(limit, _ratio(bound), k)
            if allowed >= 1:
                return "holds"
        strict = wanted != "approximate" or bound[0] == 0  # δ = 0: no set of outcomes is free
        if d is None:
            return "broken"
        loss, level = epsilon * d, limit * k
        revealing = kind == "approximate" and own[0] > 0
        if kind == "zcdp":
            if wanted == "zcdp":
                return _below(loss, level)
            if loss == 0:
                return "holds"
            if strict:
                return "broken"
            if _below(converted(loss, level), allowed) == "holds":
                return "holds"
            return "broken" if _below(gaussian(loss, level), allowed) == "broken" else "cannot tell"
        if not revealing:
            if wanted == "zcdp":
                return _below(kullback_leibler(loss), level**2)
            return _below(loss, level) if strict else _below(stick(loss, level), allowed)
        if strict:
            return "broken"
        shown = delta_at(epsilon, given, d)
        if shown < 1 and _below(shown + (1 - shown) * stick(loss, level), allowed) == "holds":
            return "holds"
        # allowed at every distance: reveal with probability δ, else randomised response; or one outcome with δ_j at j
        lowest = given + (1 - given) * stick(loss, level)
        chain = shown if shown < mpmath.mpf("0.5") else mpmath.mpf(0)
        return "broken" if _below(max(lowest, chain), allowed) == "broken" else "cannot tell"


def on_square(first: Promise, second: Promise, square: Square) -> Found:
    """Whether the first promise gives the second for one kind of pair, which lies in one universe of the second."""
    k = second.far(square)
    if k is None:
        return "holds"
    d = None
    if square.one_universe:  # a promise for neighbours reaches as far as paths of them do
        d = square.path if first.step else first.far(square)
    return at_pair(
        (first.output, first.epsilon(square.b_first), first.delta, d),
        (second.output, second.epsilon(square.b_second), second.delta, k),
    )


def brute(first: Promise, second: Promise, small: Small) -> set[Found]:
    """What all pairs of data sets say; "broken" among them refutes the implication."""
    squares = small.squares(first.tables, second.tables, (first.strata, second.strata), first.step)
    return {on_square(first, second, square) for square in squares}


def refuted_by(first: Promise, second: Promise, small: Small, x: Data, y: Data) -> str:
    """Why a pair of data sets does not refute "the first implies the second"; empty where it does."""
    names = small.names
    for data in (x, y):
        if any(
            record not in small.records or number < 0 or number != int(number)
            for record, number in data.items()
        ):
            return "not a data set of the domain"
    if not symmetric(x, y):
        return "the two are equal"
    if any(table.of(names, x) != table.of(names, y) for table in second.tables):
        return "they lie in two universes of the second"
    b = [0 if p.strata is None else p.strata.of(names, x) for p in (first, second)]
    one = all(table.of(names, x) == table.of(names, y) for table in first.tables)
    path = None
    if first.step and one:
        if max(sum(x.values()), sum(y.values())) > small.most:
            return "too large to look for a path of neighbours"
        i, j = (next(i for i, data in enumerate(small.data) if not symmetric(data, z)) for z in (x, y))
        steps = int(small.paths(first.tables, first.step)[i, j])
        path = None if steps < 0 else steps
    found = on_square(first, second, Square(one, hamming(x, y), symmetric(x, y), b[0], b[1], path))
    return "" if found == "broken" else f"the second: {found}"
