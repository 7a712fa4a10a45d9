"""The paper's Figure 2: the swap rate against the budget, for strata from 2 to a million records."""

from fractions import Fraction
from typing import Final

from stirred.mechanisms.swapping.budget.by_size import smallest_budget, theorem_1
from stirred.paper.printed import state_number

STRATA: Final = (2, 10, 100, 1_000, 10_000, 100_000, 1_000_000)
GRID: Final = tuple(Fraction(k, 10_000) for k in (10, 20, 50, *range(100, 9901, 100), 9950, 9980, 9990, 9999))


def figure_budget() -> dict[str, object]:
    """Return the curves ε(p) of Theorem 1 for several b, the smallest ε of each, and the dotted rates.

    >>> [d["epsilon"] for d in figure_budget()["diamonds"]][1]
    1.19895
    """
    rows = [
        {"b": b, "rate": str(p), "percent": float(100 * p), "epsilon": epsilon, **state_number(epsilon)}
        for b in STRATA
        for p in GRID
        for epsilon in [float(theorem_1(b, p).upper(5))]
    ]
    diamonds = []
    for b in STRATA:
        least, at = smallest_budget(b)
        diamonds.append({"b": b, "percent": float(100 * at), "epsilon": float(least.upper(5))})
    return {
        "name": "figure-budget",
        "title": "Figure 2: swap rate against ε",
        "source": "Theorem 1",
        "inputs": {"b": list(STRATA)},
        "rows": rows,
        "diamonds": diamonds,
        "dotted_percent": [5, 50],
    }
