"""Prior to posterior for a noisy table of a release, with the bounds that its exact tables give."""

from collections.abc import Sequence
from dataclasses import replace

import polars as pl

from stirred.assess.attack.inference.counts import KnownNoise, Prior, prior_to_posterior
from stirred.assess.attack.result import AttackResult
from stirred.assess.risk import Baseline, RiskMeasure, name_measure
from stirred.assess.universe.bounds import find_separators, keep_maximal
from stirred.census import Census
from stirred.frames import frame_of
from stirred.mechanisms.base import Mechanism
from stirred.mechanisms.registry import rebuild_mechanism
from stirred.mechanisms.release import Release


def infer_counts(
    release: Release,
    by: Sequence[str],
    *,
    mechanism: Mechanism | None = None,
    record_type: str = "",
    priors: Sequence[Prior] = (),
    exact: Sequence[pl.DataFrame] = (),
    census: Census | None = None,
) -> AttackResult:
    """Compute prior and posterior of each count of a noisy table, with the standard errors it states.

    ``exact`` are published tables that hold exactly (some of the variables and ``count``): the bounds they give are the case
    with invariants. The ``census`` adds how many of the best guesses are right, which is internal.
    """
    made = mechanism or rebuild_mechanism(release)
    asked = record_type or made.record_type
    table = frame_of(made.table(release, by, record_type=asked)).with_columns(
        pl.col(list(by)).cast(pl.String)
    )
    if "standard_error" not in table.columns:
        return AttackResult(measures=(_no_law(made.name, asked),))
    value = "estimate" if "estimate" in table.columns else "count"
    table = table.with_columns(_round_errors(pl.col("standard_error")).alias("standard_error"))
    noisy = add_bounds(table.filter(pl.col("standard_error") > 0), by, exact).sort("standard_error")
    if not noisy.height:
        return AttackResult(measures=(_no_law(made.name, asked),))
    truth = None
    if census is not None:
        counts = frame_of(census.counts(asked, list(by))).with_columns(pl.col(list(by)).cast(pl.String))
        joined = noisy.join(
            counts.rename({"count": "truth"}),
            on=list(by),
            how="left",
            nulls_equal=True,
            maintain_order="left",
        )
        truth = joined["truth"].fill_null(0).to_numpy()
    parts = []
    for (scale,), rows in noisy.with_row_index().group_by("standard_error", maintain_order=True):
        found = prior_to_posterior(
            rows[value].to_numpy(),
            KnownNoise(law="gaussian", scale=float(str(scale))),
            priors=priors,
            low=rows["low"].to_numpy() if exact else None,
            high=rows["high"].to_numpy() if exact else None,
            truth=None if truth is None else truth[rows["index"].to_numpy()],
            about=f"noisy counts of {asked} records by {', '.join(by)}",
        )
        parts.append((rows.height, found))
    return _join_measures(parts)


def add_bounds(table: pl.DataFrame, by: Sequence[str], exact: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Add the bounds of each count that exact tables of some of its variables give; Dobra and Fienberg's where they apply.

    >>> cells = pl.DataFrame({"a": ["x"], "b": ["u"]})
    >>> tables = [pl.DataFrame({"a": ["x", "y"], "count": [4, 1]}), pl.DataFrame({"b": ["u", "v"], "count": [3, 2]})]
    >>> add_bounds(cells, ["a", "b"], tables).select("low", "high").row(0)
    (2.0, 3.0)
    """
    frame = table.with_columns(pl.lit(float("inf")).alias("high"), pl.lit(0.0).alias("sum"))
    shown = [frozenset(name for name in one.columns if name in by) for one in exact]
    shared = find_separators(shown)
    sharp = (
        shared is not None
        and frozenset(by) == frozenset[str]().union(*shown)
        and len({*shown}) == len(keep_maximal(shown))
    )
    for names, one in zip(shown, exact, strict=True):
        margin = _margin_column(frame, one, names)
        frame = frame.with_columns(
            pl.min_horizontal("high", margin).alias("high"), (pl.col("sum") + margin).alias("sum")
        )
    for names in shared or ():
        one = next(table for table, has in zip(exact, shown, strict=True) if names <= has)
        frame = frame.with_columns((pl.col("sum") - _margin_column(frame, one, names)).alias("sum"))
    low = pl.max_horizontal(pl.lit(0.0), "sum") if sharp else pl.lit(0.0)
    return frame.with_columns(low.alias("low")).drop("sum")


def _margin_column(frame: pl.DataFrame, table: pl.DataFrame, names: frozenset[str]) -> pl.Series:
    """Return the margin of each row of the frame."""
    if not names:
        return pl.Series("margin", [float(table["count"].sum())] * frame.height, pl.Float64)
    keys = sorted(names)
    counts = (
        table.with_columns(pl.col(keys).cast(pl.String))
        .group_by(keys)
        .agg(pl.col("count").sum().alias("margin"))
    )
    found = frame.select(keys).join(counts, on=keys, how="left", nulls_equal=True, maintain_order="left")
    return found["margin"].cast(pl.Float64).fill_null(0.0)


def _round_errors(error: pl.Expr) -> pl.Expr:
    """Round standard errors to three digits, so that rows with similar noise are computed together."""
    return error.cast(pl.Float64).fill_null(0.0).round_sig_figs(3)


def _join_measures(parts: Sequence[tuple[int, AttackResult]]) -> AttackResult:
    """Join the measures of groups of rows: means over all rows, and the largest relative risk."""
    total = sum(rows for rows, _ in parts)
    measures = []
    for place, first in enumerate(parts[0][1].measures):
        values = [(rows, found.measures[place]) for rows, found in parts]
        if first.kind == "relative":
            measures.append(max((m for _, m in values), key=lambda m: m.value or 0.0))
            continue
        mean = sum(rows * (m.value or 0.0) for rows, m in values) / total
        bases = tuple(
            Baseline(name=base.name, value=sum(rows * m.baselines[i].value for rows, m in values) / total)
            for i, base in enumerate(first.baselines)
            if all(len(m.baselines) > i for _, m in values)
        )
        measures.append(replace(first, value=mean, baselines=bases))
    tables = {name: pl.concat([found.tables[name] for _, found in parts]) for name in parts[0][1].tables}
    return AttackResult(measures=tuple(measures), tables=tables)


def _no_law(mechanism: str, record_type: str) -> RiskMeasure:
    return RiskMeasure(
        name=name_measure("count_guess_alone"),
        about=f"counts of {record_type} records",
        kind="absolute",
        value=None,
        unit="share",
        public=True,
        reason=f"{mechanism} states no standard error of this table, or the table is exact",
    )
