"""Compare conclusions of users before and after: segregation, regressions, districts, improbable areas. Internal.

Records come one by one or as counted cells: a column ``count`` says how many records a row stands for. ``about`` names the
records that a number is about; it is part of every label.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from stirred.assess.utility.areas import Oddity, redistricting_deviation
from stirred.assess.utility.relations import (
    Estimate,
    count_records,
    cross_table,
    interval_overlap,
    largest_levels,
    propensity_score,
    regression,
)
from stirred.assess.utility.segregation import dissimilarity, entropy_index

Labels = Mapping[str, Mapping[str, str]]  # variable → level → its words


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedNumber:
    """A number that users publish, before and after; ``about`` names the records that it is about."""

    what: str
    about: str
    original: float
    protected: float

    @property
    def label(self) -> str:
        """Return the number's name with the records that it is about; labels are unique."""
        return f"{self.what}, {self.about}"

    @property
    def change(self) -> float:
        """Return the protected number less the original one."""
        return self.protected - self.original


@dataclass(frozen=True, slots=True, kw_only=True)
class Coefficient:
    """A regression coefficient before and after, and how far their 95 % intervals overlap."""

    model: str
    about: str
    original: Estimate
    protected: Estimate

    @property
    def overlap(self) -> float:
        """Return the overlap of the intervals: 1 if equal, 0 or below if separate."""
        return interval_overlap(self.original, self.protected)


@dataclass(frozen=True, slots=True, kw_only=True)
class Conclusions:
    """All compared conclusions for one release."""

    changes: tuple[ChangedNumber, ...] = ()
    coefficients: tuple[Coefficient, ...] = ()
    oddities: tuple[Oddity, ...] = ()


def compare_segregation(
    original: pl.DataFrame,
    protected: pl.DataFrame,
    area: str,
    group: str,
    *,
    about: str,
    labels: Labels | None = None,
) -> list[ChangedNumber]:
    """Compare Theil's entropy index over all groups, and the dissimilarity of the two largest groups."""
    found = []
    tables = [cross_table(frame, area, group) for frame in (original, protected)]
    h = [entropy_index(table) for table in tables]
    what = f"entropy index, {group} over {area}"
    found.append(ChangedNumber(what=what, about=about, original=h[0], protected=h[1]))
    groups = largest_levels(original, group, 2)
    if len(groups) == 2:
        d = [_compare_groups(frame, area, group, groups) for frame in (original, protected)]
        one, other = (_level_label(labels, group, level) for level in groups)
        what = f"dissimilarity of {one} and {other}, {group} over {area}"
        found.append(ChangedNumber(what=what, about=about, original=d[0], protected=d[1]))
    return found


def _level_label(labels: Labels | None, name: str, level: str) -> str:
    return (labels or {}).get(name, {}).get(level, level)


def _compare_groups(frame: pl.DataFrame, area: str, group: str, groups: Sequence[str]) -> float:
    areas = frame.select(area).unique().sort(area)
    sides = [
        areas.join(
            frame.filter(pl.col(group).cast(pl.String) == one).group_by(area).agg(len=count_records(frame)),
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


def compare_districts(
    original: pl.DataFrame, protected: pl.DataFrame, level: str, *, about: str
) -> ChangedNumber:
    """Compare the largest deviation of areas from equal population, as a share of the ideal."""
    values = [
        redistricting_deviation(
            frame.group_by(level)
            .agg(len=count_records(frame))
            .sort(level)["len"]
            .to_numpy()
            .astype(np.float64)
        )
        for frame in (original, protected)
    ]
    return ChangedNumber(
        what=f"redistricting deviation over {level}", about=about, original=values[0], protected=values[1]
    )


def compare_coefficients(
    original: pl.DataFrame,
    protected: pl.DataFrame,
    outcome: str,
    regressors: Sequence[str],
    *,
    about: str,
    labels: Labels | None = None,
) -> list[Coefficient]:
    """Compare least-squares coefficients of both files; levels that one of them lacks are left out.

    Nominal variables, which come as text, enter as categories; a nominal outcome is the share of its largest level.
    """
    model = f"{outcome} on {', '.join(regressors)}"
    if not original[outcome].dtype.is_numeric() and (most := largest_levels(original, outcome, 1)):
        model = f"share of {outcome}={_level_label(labels, outcome, most[0])} on {', '.join(regressors)}"
        original, protected = (
            frame.with_columns(pl.col(outcome).cast(pl.String).eq(most[0]).cast(pl.Int64).fill_null(0))
            for frame in (original, protected)
        )
    before = {item.name: item for item in regression(original, outcome, regressors)}
    after = {item.name: item for item in regression(protected, outcome, regressors)}
    return [
        Coefficient(
            model=model,
            about=about,
            original=replace(before[name], name=_label_coefficient(name, labels)),
            protected=replace(after[name], name=_label_coefficient(name, labels)),
        )
        for name in before
        if name in after
    ]


def _label_coefficient(coefficient: str, labels: Labels | None) -> str:
    name, equals, level = coefficient.partition("=")
    return f"{name}={_level_label(labels, name, level)}" if equals else coefficient


def compare_propensity(
    original: pl.DataFrame, protected: pl.DataFrame, variables: Sequence[str], *, about: str
) -> ChangedNumber:
    """Compare the propensity-score ratio: 1 for two samples of one population, 0 for equal files."""
    _, ratio = propensity_score(original, protected, variables)
    what = f"propensity ratio over {', '.join(variables)}"
    return ChangedNumber(what=what, about=about, original=0.0, protected=ratio)
