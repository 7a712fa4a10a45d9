"""Measures for small areas: district deviations, impossible and improbable areas."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from stirred.assess.utility.metrics import Array


def redistricting_deviation(populations: Array) -> float:
    """Return the largest deviation between districts as a share of the ideal: (max − min) / mean.

    >>> redistricting_deviation(np.array([95.0, 105.0, 100.0]))
    0.1
    """
    return (
        float(np.ptp(populations) / populations.mean())
        if populations.size and populations.mean()
        else float("nan")
    )


def majority_flips(group: tuple[Array, Array], total: tuple[Array, Array]) -> int:
    """Count areas in which a group is a majority in one of (reference, protected) and not in the other.

    >>> majority_flips((np.array([51.0]), np.array([49.0])), (np.array([100.0]), np.array([100.0])))
    1
    """
    before = 2 * group[0] > total[0]
    after = 2 * group[1] > total[1]
    return int((before != after).sum())


@dataclass(frozen=True, slots=True, kw_only=True)
class Oddity:
    """A kind of impossible or improbable area, and in how many areas it occurs before and after."""

    name: str
    reference: int
    protected: int


def count_oddities(reference: pl.DataFrame, protected: pl.DataFrame) -> list[Oddity]:
    """Count the Bureau's improbable areas for the given columns, before and after.

    Known columns: households, persons, adults, males, women_18_44, children. One row per area.

    >>> f = pl.DataFrame({"households": [3], "persons": [2]})
    >>> count_oddities(f, f)[0]
    Oddity(name='more households than persons', reference=1, protected=1)
    """
    households, persons = pl.col("households"), pl.col("persons")
    rules: list[tuple[str, set[str], pl.Expr]] = [
        ("more households than persons", {"households", "persons"}, households > persons),
        ("persons but no household", {"households", "persons"}, (households == 0) & (persons > 0)),
        ("households but no person", {"households", "persons"}, (households > 0) & (persons == 0)),
        (
            "more than ten persons a household",
            {"households", "persons"},
            (persons > 10 * households) & (households > 0),
        ),
        ("everybody under 18", {"persons", "adults"}, (persons > 0) & (pl.col("adults") == 0)),
        (
            "all of one sex",
            {"persons", "males"},
            (persons > 5) & pl.col("males").is_in([0]) | (persons > 5) & (pl.col("males") == persons),
        ),
        (
            "children but no woman of 18 to 44",
            {"children", "women_18_44"},
            (pl.col("children") > 0) & (pl.col("women_18_44") == 0),
        ),
    ]
    known = set(reference.columns) & set(protected.columns)
    return [
        Oddity(name=name, reference=reference.filter(rule).height, protected=protected.filter(rule).height)
        for name, needs, rule in rules
        if needs <= known
    ]
