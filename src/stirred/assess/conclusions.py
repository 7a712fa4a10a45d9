"""Compare conclusions of users before and after: segregation, regressions, districts, improbable areas. Internal.

Records come one by one or as counted cells: a column ``count`` says how many records a row stands for.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from stirred.assess.utility.areas import Oddity, redistricting_deviation
from stirred.assess.utility.relations import (
    Estimate,
    cross_table,
    interval_overlap,
    propensity_score,
    records,
    regression,
)
from stirred.assess.utility.segregation import dissimilarity, entropy_index


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedNumber:
    """A number that users publish, before and after."""

    what: str
    original: float
    protected: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Coefficient:
    """A regression coefficient before and after, and how far their 95 % intervals overlap."""

    model: str
    original: Estimate
    protected: Estimate

    @property
    def overlap(self) -> float:
        """1 for equal intervals; 0 or below for separate intervals."""
        return interval_overlap(self.original, self.protected)


@dataclass(frozen=True, slots=True, kw_only=True)
class Conclusions:
    """All compared conclusions for one release."""

    changes: tuple[ChangedNumber, ...] = ()
    coefficients: tuple[Coefficient, ...] = ()
    oddities: tuple[Oddity, ...] = ()


def segregation(
    original: pl.DataFrame, protected: pl.DataFrame, area: str, group: str
) -> list[ChangedNumber]:
    """Theil's entropy index over all groups, and the dissimilarity of the two largest groups."""
    found = []
    tables = [cross_table(frame, area, group) for frame in (original, protected)]
    label = f"{group} over {area}"
    h = [entropy_index(table) for table in tables]
    found.append(ChangedNumber(what=f"entropy index, {label}", original=h[0], protected=h[1]))
    largest = _largest(original, group)
    if len(largest) == 2:
        d = [_between(frame, area, group, largest) for frame in (original, protected)]
        found.append(
            ChangedNumber(
                what=f"dissimilarity of the two largest groups, {label}", original=d[0], protected=d[1]
            )
        )
    return found


def _largest(frame: pl.DataFrame, group: str) -> list[object]:
    counts = frame.group_by(group).agg(len=records(frame))
    counts = counts.sort(["len", group], descending=[True, False]).head(2)
    return counts[group].to_list()


def _between(frame: pl.DataFrame, area: str, group: str, groups: Sequence[object]) -> float:
    areas = frame.select(area).unique().sort(area)
    sides = [
        areas.join(
            frame.filter(pl.col(group) == one).group_by(area).agg(len=records(frame)),
            on=area,
            how="left",
            nulls_equal=True,
        )
        .sort(area)["len"]
        .fill_null(0)
        .to_numpy()
        .astype(np.float64)
        for one in groups
    ]
    return dissimilarity(sides[0], sides[1])


def districts(original: pl.DataFrame, protected: pl.DataFrame, level: str) -> ChangedNumber:
    """The largest deviation of areas from equal population, as a share of the ideal."""
    values = [
        redistricting_deviation(
            frame.group_by(level).agg(len=records(frame)).sort(level)["len"].to_numpy().astype(np.float64)
        )
        for frame in (original, protected)
    ]
    return ChangedNumber(
        what=f"redistricting deviation over {level}", original=values[0], protected=values[1]
    )


def coefficients(
    original: pl.DataFrame, protected: pl.DataFrame, outcome: str, regressors: Sequence[str]
) -> list[Coefficient]:
    """Least squares on both files; levels that one of them lacks are left out."""
    before = {item.name: item for item in regression(original, outcome, regressors)}
    after = {item.name: item for item in regression(protected, outcome, regressors)}
    model = f"{outcome} on {', '.join(regressors)}"
    return [
        Coefficient(model=model, original=before[name], protected=after[name])
        for name in before
        if name in after
    ]


def distinguishable(
    original: pl.DataFrame, protected: pl.DataFrame, variables: Sequence[str]
) -> ChangedNumber:
    """The propensity-score ratio: 1 for two samples of one population, 0 for equal files; original is 0 by definition."""
    _, ratio = propensity_score(original, protected, variables)
    return ChangedNumber(what=f"propensity ratio over {', '.join(variables)}", original=0.0, protected=ratio)
