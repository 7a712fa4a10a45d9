r"""What mechanisms may lose and do lose on the enumerated data sets of a town.

*May lose.* A statement with one budget allows $\varepsilon\, d(x, x')$ between two data sets of one universe and anything
between others. For neighbours only, the distance is the shortest path of neighbours inside the universe. Several statements
together are kept by mechanisms that publish an output for each. The first statements imply a second one exactly where, at
every pair of data sets that the second speaks of, what they allow together is within it (for pure DP a mechanism with two
outcomes reaches what a metric allows at a pair, see `extreme`).

*Do lose.* A mechanism as a finite law, data set by data set: its largest log-ratio per unit of distance.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import exp, inf
from typing import Any, Literal

import mpmath
import numpy as np
from numpy.typing import NDArray

from oracles.census import Strata
from oracles.promises import DIGITS, Found, Law, at_pair, delta_at, kullback_leibler
from oracles.towns import NEVER, Count, Distance, Kept, Town

Output = Literal["pure", "zcdp", "approximate"]
Floats = NDArray[np.float64]
BEYOND = "1e-15"  # a difference of this size is no rounding of thirty digits


@dataclass(frozen=True)
class Statement:
    """A promise in plain values. ``budget`` None is infinite; a law gives it by the size b of the largest stratum."""

    kept: Kept
    distance: Distance
    output: Output
    budget: Any  # mpf, Law or None
    delta: tuple[int, int] = (0, 1)
    strata: Strata | None = None

    def at(self, b: int) -> Any:
        return self.budget.at(b) if isinstance(self.budget, Law) else self.budget


@dataclass(frozen=True)
class Judgement:
    """What all pairs of data sets say, and the first pair that breaks the second statement."""

    found: Found
    pair: tuple[int, int] | None = None


def judge(town: Town, first: Sequence[Statement], second: Statement) -> Judgement:
    """Whether mechanisms that keep all of the first keep the second, on the enumerated data sets."""
    if second.budget is None:
        return Judgement("holds")
    label, apart = town.universes(second.kept), town.distances(second.distance)
    # in a universe that the second speaks of, which pairs at finite distance
    asked = np.triu(label[:, None] == label[None, :], 1) & (apart > 0)
    x, y = np.nonzero(asked)
    if not len(x):
        return Judgement("holds")
    columns = [apart[x, y]]
    for one in (*first, second):
        steps = np.zeros_like(x) if one is second else town.steps(one.kept, one.distance)[x, y]
        b = np.zeros_like(x) if one.strata is None else sizes_of(town, one.strata)[x]
        columns += [steps, b]
    rows, where = np.unique(np.stack(columns, axis=1), axis=0, return_index=True)
    worst: Found = "holds"
    for row, place in zip(rows.tolist(), where.tolist(), strict=True):
        k, rest = row[0], row[1:]
        losses = [(one, *rest[2 * i : 2 * i + 2]) for i, one in enumerate(first)]
        told = _at_row(losses, second, rest[-1], k)
        if told == "broken":
            return Judgement("broken", (int(x[place]), int(y[place])))
        worst = told if told == "cannot tell" else worst
    return Judgement(worst)


def sizes_of(town: Town, strata: Strata) -> NDArray[np.int64]:
    """b of every data set."""
    asked = ("b", strata)
    if asked not in town._kept:
        names = tuple(name for name, _ in town.homes)
        found = []
        for data in town.data:
            rows: dict[tuple[str, ...], int] = {}
            for kind in data:
                record = tuple(value for _, value in town.kinds[kind].values)
                rows[record] = rows.get(record, 0) + 1
            found.append(strata.of(names, rows))
        town._kept[asked] = np.array(found, np.int64)
    sizes: NDArray[np.int64] = town._kept[asked]
    return sizes


def _at_row(losses: Sequence[tuple[Statement, int, int]], second: Statement, b: int, k: int) -> Found:
    limit = second.at(b)
    wanted = (second.output, limit, second.delta, k)
    if len(losses) == 1:
        ((one, d, mine),) = losses
        free = d == NEVER or one.budget is None
        return at_pair((one.output, one.at(mine) or mpmath.mpf(0), one.delta, None if free else d), wanted)
    with mpmath.workdps(DIGITS):
        if any(d == NEVER or one.budget is None for one, d, _ in losses):
            return at_pair(("pure", mpmath.mpf(0), (0, 1), None), wanted)
        return _together([(one, one.at(mine), d) for one, d, mine in losses], wanted)


def _together(
    losses: Sequence[tuple[Statement, Any, int]], wanted: tuple[str, Any, tuple[int, int], int]
) -> Found:
    """Several outputs at once: mechanisms that are allowed, and do they break the second? Else "cannot tell"."""
    revealed = [one.output == "approximate" and one.delta[0] > 0 for one, _, _ in losses]
    kinds = {
        one.output if hidden else ("zcdp" if one.output == "zcdp" else "pure")
        for (one, _, _), hidden in zip(losses, revealed, strict=True)
    }
    kind, limit, delta, k = wanted
    if kinds == {"pure"} and kind == "approximate":
        return _product([(e * d, mpmath.mpf(0)) for _, e, d in losses], wanted)
    if kinds == {"pure"} and kind == "pure":
        return at_pair(
            ("pure", mpmath.fsum(e * d for _, e, d in losses), (0, 1), 1), (kind, limit * k, delta, 1)
        )
    if kinds == {"zcdp"}:
        total = mpmath.sqrt(mpmath.fsum((e * d) ** 2 for _, e, d in losses))
        if kind == "approximate":
            return at_pair(("zcdp", total, (0, 1), 1), wanted) if k == 1 else "cannot tell"
        return at_pair(("zcdp", total, (0, 1), 1), (kind, limit * k, delta, 1))
    if "approximate" not in kinds:
        if kind == "zcdp":  # order 1 of randomised response, all orders of the Gaussian
            low = mpmath.fsum(
                (e * d) ** 2 if one.output == "zcdp" else kullback_leibler(e * d) for one, e, d in losses
            )
            return "broken" if low > (limit * k) ** 2 + mpmath.mpf(BEYOND) else "cannot tell"
        strict = kind == "pure" or delta[0] == 0
        moved = any(one.output == "zcdp" and e * d > 0 for one, e, d in losses)
        return "broken" if strict and moved else "cannot tell"
    if kind != "approximate" or delta[0] == 0:
        return "broken"
    if "zcdp" in kinds:
        return "cannot tell"
    return _product([(e * d, mpmath.mpf(one.delta[0]) / one.delta[1]) for one, e, d in losses], wanted)


def _product(parts: Sequence[tuple[Any, Any]], wanted: tuple[str, Any, tuple[int, int], int]) -> Found:
    """Randomised responses that tell everything with some probability, all at once, against an (ε, δ) promise."""
    _, limit, delta, k = wanted
    allowed = delta_at(limit, mpmath.mpf(delta[0]) / delta[1], k)
    if allowed >= 1:
        return "holds"
    over = mpmath.mpf(0)
    each = []
    for loss, reveal in parts:
        p = 1 / (1 + mpmath.exp(-loss))
        each.append(
            [
                (reveal, mpmath.mpf(0)),
                ((1 - reveal) * p, (1 - reveal) * (1 - p)),
                ((1 - reveal) * (1 - p), (1 - reveal) * p),
            ]
        )
    for outcome in product(*each):
        one, other = (mpmath.fprod(pair[side] for pair in outcome) for side in (0, 1))
        over += max(mpmath.mpf(0), one - mpmath.exp(limit * k) * other)
    return "broken" if over > allowed + mpmath.mpf(BEYOND) else "cannot tell"


# --- mechanisms that are given by their law

Laws = Mapping[int, Mapping[Any, Fraction | float]]  # for data sets by number: the probability of each output


def _pairs(
    town: Town, laws: Laws, kept: Kept, distance: Distance
) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """The laws of both data sets, and their distance, for all pairs of one universe."""
    outputs = {
        output: place
        for place, output in enumerate({output: None for law in laws.values() for output in law})
    }
    table = np.zeros((len(laws), len(outputs)))
    for row, law in enumerate(laws.values()):
        for output, chance in law.items():
            table[row, outputs[output]] = float(chance)
    places = np.array([*laws], np.int64)
    label, apart = town.universes(kept)[places], town.distances(distance)[np.ix_(places, places)]
    x, y = np.nonzero((label[:, None] == label[None, :]) & (apart > 0))
    return table[x], table[y], apart[x, y]


def true_loss(town: Town, laws: Laws, kept: Kept, distance: Distance) -> float:
    """The largest |ln P(E)/Q(E)| per unit of distance between data sets of one universe; ∞ where one rules an output out."""
    p, q, apart = _pairs(town, laws, kept, distance)
    if not len(apart):
        return 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        gap = np.where((p == 0) & (q == 0), 0.0, np.abs(np.log(p) - np.log(q)))
    return float((gap.max(axis=1) / apart).max())


def true_concentration(town: Town, laws: Laws, kept: Kept, distance: Distance) -> float:
    """The largest √(D_α/α) per unit of distance over a few orders: the zCDP loss ρ from below."""
    p, q, apart = _pairs(town, laws, kept, distance)
    best = 0.0
    for alpha in (1.001, 1.5, 2.0, 4.0, 8.0) if len(apart) else ():
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = np.where(p == 0, 0.0, np.exp(alpha * np.log(p) + (1 - alpha) * np.log(q)))
            rate = np.log(terms.sum(axis=1)) / (alpha - 1) / alpha
        best = max(best, float((np.sqrt(np.maximum(0, rate)) / apart).max()))
    return best


def excess(town: Town, laws: Laws, kept: Kept, distance: Distance, epsilon: float, delta: float) -> float:
    """By how much the hockey-stick divergence at e^{kε} exceeds δ_k = δ(1 + e^ε + …) at some pair at distance k."""
    p, q, apart = _pairs(town, laws, kept, distance)
    if not len(apart):
        return 0.0
    over = np.maximum(0, p - np.exp(epsilon * apart)[:, None] * q).sum(axis=1)
    grown = [delta * sum(exp(i * epsilon) for i in range(k)) for k in range(int(apart.max()) + 1)]
    return float((over - np.array(grown)[apart]).max())


def extreme(town: Town, one: Statement, x: int, y: int) -> dict[int, dict[int, float]]:
    """A mechanism with two outcomes that keeps a pure statement, and loses at (x, y) all that it allows there.

    The probability of an outcome is q·e^{min(A(x, ·), T)}, with T what is allowed at the pair and q small. Where nothing
    bounds the pair it is told apart with certainty.
    """
    steps = town.steps(one.kept, one.distance)
    epsilon = float(one.at(0))
    far = inf if steps[x, y] == NEVER else epsilon * int(steps[x, y])
    if far == inf:
        return {place: {int(step == NEVER): 1.0} for place, step in enumerate(steps[x].tolist())}
    q = 1e-6 * exp(-far)
    allowed = np.where(steps[x] == NEVER, far, np.minimum(far, epsilon * steps[x]))
    return {place: {1: q * exp(a), 0: 1 - q * exp(a)} for place, a in enumerate(allowed.tolist())}


def noisy_table(town: Town, table: Count, ratio: float) -> dict[int, dict[Any, float]]:
    """Every count of a table with noise of P(z) ∝ ratio^|z| on the range of the counts: a finite law for each data set."""
    cells = town.table(table)
    top = int(cells.max()) if cells.size else 0
    found: dict[int, dict[Any, float]] = {}
    for place, row in enumerate(cells.tolist()):
        law: dict[Any, float] = {(): 1.0}
        for count in row:
            weights = [ratio ** abs(value - count) for value in range(top + 1)]
            law = {
                (*shown, value): chance * weight / sum(weights)
                for shown, chance in law.items()
                for value, weight in enumerate(weights)
            }
        found[place] = law
    return found
