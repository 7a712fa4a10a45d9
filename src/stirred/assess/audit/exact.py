r"""The exact loss of a small universe: $\max |\ln P_x(y) / P_{x'}(y)| \,/\, d(x, x')$ over pairs and outputs, exactly."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf, log

import numpy as np
from numpy.typing import NDArray

from stirred.mechanisms.contents import Content, Law
from stirred.spec import Budget

LOSS_TOLERANCE = 1e-9  # floats find the candidates, fractions decide among those this near to the largest


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactLoss:
    """The largest loss per unit, and where it occurs."""

    budget: Budget
    first: int = 0
    second: int = 0
    output: Content = ()
    distance: int = 0
    chances: tuple[Fraction, Fraction] = (Fraction(0), Fraction(0))


def find_exact_loss(
    laws: Sequence[Law], distances: NDArray[np.int64], tick: Callable[[int], None] = lambda _: None
) -> ExactLoss:
    """Return the largest loss per unit among laws at given distances (0: not compared).

    >>> half, third = Fraction(1, 2), Fraction(1, 3)
    >>> laws = [{"a": half, "b": half}, {"a": third, "b": 1 - third}]
    >>> find_exact_loss(laws, np.array([[0, 1], [1, 0]])).budget.exact
    'ln(3/2)'
    """
    outputs = list({output: None for law in laws for output in law})
    logs = np.full((len(laws), len(outputs)), -inf)
    place = {output: i for i, output in enumerate(outputs)}
    for i, law in enumerate(laws):
        for output, chance in law.items():
            if chance:
                logs[i, place[output]] = log(chance.numerator) - log(chance.denominator)
    candidates: list[tuple[float, int, int]] = []
    best = 0.0
    for i in range(len(laws) - 1):
        tick(i)
        with np.errstate(invalid="ignore"):
            gap = np.abs(logs[i + 1 :] - logs[i])
        largest = np.nan_to_num(gap, nan=0.0, posinf=inf).max(axis=1)  # −∞ on both sides: neither can give it
        apart = distances[i, i + 1 :]
        loss = np.where(apart > 0, largest / np.maximum(apart, 1), 0.0)
        best = max(best, float(loss.max(initial=0.0)))
        candidates += [
            (float(loss[j]), i, i + 1 + int(j)) for j in np.flatnonzero(loss >= best * (1 - LOSS_TOLERANCE))
        ]
    if best == 0.0:
        return ExactLoss(budget=Budget.zero())
    found: ExactLoss | None = None
    seen: set[tuple[Fraction, int]] = set()
    for loss_found, i, j in sorted(candidates, key=lambda one: int(distances[one[1], one[2]])):
        if loss_found < best * (1 - LOSS_TOLERANCE):
            continue
        with np.errstate(invalid="ignore"):
            gap = np.nan_to_num(np.abs(logs[i] - logs[j]), nan=0.0, posinf=inf)
        output = outputs[int(gap.argmax())]
        one, other = laws[i].get(output, Fraction(0)), laws[j].get(output, Fraction(0))
        units = int(distances[i, j])
        ratio = Fraction(0) if not one or not other else max(one / other, other / one)
        if (ratio, units) in seen:
            continue
        seen.add((ratio, units))
        budget = Budget.log(ratio) * Fraction(1, units) if ratio else Budget.infinite()
        if found is None or budget > found.budget:
            found = ExactLoss(
                budget=budget, first=i, second=j, output=output, distance=units, chances=(one, other)
            )
    return found or ExactLoss(budget=Budget.zero())
