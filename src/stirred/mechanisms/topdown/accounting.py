"""Compute the exact cost of a workload by level, by query, by attribute and by geography."""

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

from stirred.mechanisms.topdown.workload import Workload
from stirred.spec import rho_squared_to_epsilon

DELTA = Fraction(1, 10**10)  # of the Bureau's certificates


def by_level(workload: Workload) -> dict[str, Fraction]:
    """ρ² of each level; they add up to the total.

    >>> by_level(Workload.preset("small"))["state"] / Workload.preset("small").rho_squared
    Fraction(288, 799)
    """
    return {
        level: workload.rho_squared * workload.level_shares.get(level, Fraction(0))
        for level in workload.levels
    }


def by_query(workload: Workload) -> dict[str, Fraction]:
    """ρ² of each query over all levels of a path."""
    return {
        query.name: sum((workload.rho(level, query.name) for level in workload.levels), Fraction(0))
        for query in workload.queries
    }


def attribute(workload: Workload, axis: str) -> Fraction:
    """ρ² for a change of one attribute of one person: the queries that distinguish two of its levels."""
    number = workload.histogram.axes.index(workload.histogram.axis(axis))
    return _spent(workload, lambda name, _: workload.query(name).counts_for(number))


def within(workload: Workload, level: str) -> Fraction:
    """ρ² for a move of one person inside an area of ``level``: the levels strictly below it."""
    below = workload.levels[workload.levels.index(level) + 1 :]
    return _spent(workload, lambda _, own: own in below)


def semantics(workload: Workload, delta: Fraction = DELTA) -> dict[str, tuple[Fraction, Decimal]]:
    """Per-attribute and per-geography lines of a certificate: ρ² and its ε at δ by the tight conversion."""
    lines: dict[str, Fraction] = {"all": workload.rho_squared}
    lines |= {axis.name: attribute(workload, axis.name) for axis in workload.histogram.axes}
    lines |= {
        f"{workload.levels[-1]} within {level}": within(workload, level) for level in workload.levels[:-1]
    }
    return {
        name: (
            rho_squared,
            rho_squared_to_epsilon(rho_squared, delta, tight=True) if rho_squared else Decimal(0),
        )
        for name, rho_squared in lines.items()
    }


def standard_deviations(workload: Workload) -> dict[tuple[str, str], float]:
    """σ of the noise on each query at each level."""
    result = {}
    for level in workload.levels:
        for query in workload.queries:
            rho = workload.rho(level, query.name)
            if rho:
                result[level, query.name] = float(1 / rho) ** 0.5
    return result


def _spent(workload: Workload, counts: Callable[[str, str], bool]) -> Fraction:
    return sum(
        (
            workload.rho(level, query.name)
            for level in workload.levels
            for query in workload.queries
            if counts(query.name, level)
        ),
        Fraction(0),
    )
