"""Compare relations between variables in the protected file and in the original."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from stirred.assess.utility.metrics import Array


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A number with its standard error and 95 % interval."""

    name: str
    value: float
    error: float

    @property
    def interval(self) -> tuple[float, float]:
        """Return value ± 1.96 standard errors."""
        return self.value - 1.959963985 * self.error, self.value + 1.959963985 * self.error


def count_records(frame: pl.DataFrame) -> pl.Expr:
    """Count the records in some rows: the sum of the column ``count`` if there is one, else the rows.

    >>> pl.DataFrame({"a": [1, 1], "count": [3, 4]}).select(count_records(pl.DataFrame({"count": [0]}))).item()
    7
    """
    return pl.col("count").sum() if "count" in frame.columns else pl.len()


def cross_table(frame: pl.DataFrame, first: str, second: str) -> Array:
    """Return the two-way table of counts (a column ``count`` weights the rows if there is one).

    >>> cross_table(pl.DataFrame({"a": [1, 1, 2], "b": ["x", "y", "y"]}), "a", "b").tolist()
    [[1.0, 1.0], [0.0, 1.0]]
    """
    counts = frame.group_by(first, second).agg(count_records(frame).cast(pl.Float64).alias("n"))
    wide = (
        counts.pivot(on=second, index=first, values="n", sort_columns=True)
        .sort(first)
        .drop(first)
        .fill_null(0)
    )
    return wide.to_numpy().astype(np.float64)


def cramers_v(table: Array) -> float:
    r"""Cramér's $V = \sqrt{\chi^2 / (N (\min(r, c) - 1))}$ of a two-way table.

    >>> cramers_v(np.array([[10.0, 0.0], [0.0, 10.0]]))
    1.0
    """
    table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    n, smaller = table.sum(), min(table.shape) - 1
    if smaller < 1 or n == 0:
        return float("nan")
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / n
    return float(np.sqrt((np.square(table - expected) / expected).sum() / (n * smaller)))


def regression(frame: pl.DataFrame, outcome: str, regressors: Sequence[str]) -> list[Estimate]:
    """Fit least squares with an intercept; return estimates with robust (HC1) standard errors.

    Text columns enter as indicators of their levels but the first in the order of codes; a column ``count`` says how many
    records a row stands for.

    >>> f = pl.DataFrame({"y": [1.0, 2.0, 3.0, 4.1], "x": [0, 1, 2, 3]})
    >>> [round(e.value, 3) for e in regression(f, "y", ["x"])]
    [0.98, 1.03]
    """
    names, columns = ["intercept"], [np.ones(frame.height)]
    for name in regressors:
        if frame[name].dtype.is_numeric():
            names.append(name)
            columns.append(frame[name].to_numpy().astype(np.float64))
            continue
        for level in sort_levels(frame[name].cast(pl.String).unique().drop_nulls().to_list())[1:]:
            names.append(f"{name}={level}")
            columns.append(
                (frame[name].cast(pl.String) == level).fill_null(value=False).to_numpy().astype(np.float64)
            )
    X = np.column_stack(columns)
    y = frame[outcome].to_numpy().astype(np.float64)
    w = frame["count"].to_numpy().astype(np.float64) if "count" in frame.columns else np.ones(frame.height)
    bread = np.linalg.pinv((X * w[:, None]).T @ X)
    beta = bread @ (X.T @ (w * y))
    residual = y - X @ beta
    n = float(w.sum())
    scale = n / max(n - X.shape[1], 1.0)
    covariance = scale * bread @ ((X * (w * np.square(residual))[:, None]).T @ X) @ bread
    spread = np.sqrt(np.clip(np.diag(covariance), 0, None))
    return [
        Estimate(name=n, value=float(b), error=float(s)) for n, b, s in zip(names, beta, spread, strict=True)
    ]


def sort_levels(levels: Sequence[str]) -> list[str]:
    """Sort codes by their number where all are numbers, else by their text.

    >>> sort_levels(["10", "9"]), sort_levels(["b", "9"])
    (['9', '10'], ['9', 'b'])
    """
    number = all(level.removeprefix("-").isdecimal() for level in levels)
    return sorted(levels, key=(lambda level: (int(level), level)) if number else lambda level: (0, level))


def largest_levels(frame: pl.DataFrame, name: str, most: int) -> list[str]:
    """Return the levels of a variable with the most records, as text; ties go by the order of codes."""
    counts = dict(frame.group_by(pl.col(name).cast(pl.String)).agg(count_records(frame)).drop_nulls().rows())
    return sorted(sort_levels(list(counts)), key=lambda level: -counts[level])[:most]


def interval_overlap(first: Estimate, second: Estimate) -> float:
    """Return how much two 95 % intervals overlap, as the mean share of each (1: equal, ≤ 0: separate).

    >>> interval_overlap(Estimate(name="a", value=0.0, error=1.0), Estimate(name="a", value=0.0, error=1.0))
    1.0
    """
    (a, b), (c, d) = first.interval, second.interval
    if b == a or d == c:
        return float(a == c and b == d)
    common = min(b, d) - max(a, c)
    return float((common / (b - a) + common / (d - c)) / 2)


def propensity_score(
    original: pl.DataFrame, protected: pl.DataFrame, variables: Sequence[str]
) -> tuple[float, float]:
    r"""Return the propensity-score mean squared error and its ratio to the value expected by chance.

    The score of a cell is the share of protected records in it, so
    $\mathrm{pMSE} = \frac1N \sum_{\text{cells}} n (\hat p - c)^2$ with $c$ the overall share; under equality its mean is
    $(k-1)(1-c)^2 c / N$ for $k$ non-empty cells (Snoke et al. 2018).

    >>> f = pl.DataFrame({"a": ["x", "y"]})
    >>> propensity_score(f, f, ["a"])
    (0.0, 0.0)
    """
    keys = list(variables)
    sides = [
        part.group_by(keys).agg(count_records(part).alias(name))
        for part, name in ((original, "o"), (protected, "p"))
    ]
    both = sides[0].join(sides[1], on=keys, how="full", coalesce=True, nulls_equal=True)
    both = both.sort(keys, nulls_last=False).with_columns(pl.col("o", "p").fill_null(0))
    o, p = both["o"].to_numpy().astype(np.float64), both["p"].to_numpy().astype(np.float64)
    n = o + p
    share = p.sum() / n.sum()
    value = float((n * np.square(p / n - share)).sum() / n.sum())
    expected = (len(n) - 1) * (1 - share) ** 2 * share / n.sum()
    return value, float(value / expected) if expected > 0 else 0.0
