"""The size of a universe: its logarithm for labelled and for unlabelled data sets, with an interval, stratum by stratum."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log, sqrt
from statistics import NormalDist

import numpy as np
import polars as pl

from stirred.assess.universe.bounds import Shown
from stirred.assess.universe.counting import (
    count_tables,
    log_choices,
    log_estimate,
    log_placements,
    log_range,
)
from stirred.assess.universe.sampling import MOST_WORK, SampledCount, sample_tables
from stirred.assess.universe.several import several_tables
from stirred.assess.universe.shape import CHOICES, COUNT, Shape

ROWS, COLUMNS = "rows", "columns"
TOLERANCE = 0.02  # of the logarithm of a stratum's number of tables


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSize:
    """The natural logarithm of a number of data sets, between ``low`` and ``high``; equal where it is exact."""

    value: float
    low: float
    high: float
    methods: tuple[str, ...]  # "closed form", "exact", "sampled", "bounds"


def log_labelled(shape: Shape) -> LogSize | None:
    r"""$\sum_C \ln\frac{n!}{\prod n_C!} - \sum_S \ln\frac{n!}{\prod n_S!}$ for decomposable tables.

    Records are told apart, and a data set gives each of them a value of every variable; those of no table add n ln K.
    None where the tables are not decomposable: no closed form is known then.
    """
    if shape.shared is None:
        return None
    total = sum(_multinomial(shape, shown) for shown in shape.tables)
    total -= sum(_multinomial(shape, shown) for shown in shape.shared)
    cells = shape.cells
    total += float((cells[COUNT] * cells[CHOICES].log()).sum())
    return LogSize(value=total, low=total, high=total, methods=("closed form",))


def log_places(shape: Shape, strata: pl.DataFrame) -> LogSize | None:
    r"""$\sum_m (\ln n_m! - \sum_s \ln n_{ms}!)$: records are told apart, and only their places are unknown."""
    if len(shape.tables) != 2:
        return None
    total = float(strata["log_places"].sum())
    return LogSize(value=total, low=total, high=total, methods=("closed form",))


def _multinomial(shape: Shape, shown: Shown) -> float:
    return log_placements(shape.margin(shown)[COUNT].to_numpy())


def log_unlabelled(
    shape: Shape,
    strata: pl.DataFrame | None,
    confidence: float = 0.95,
    *,
    samples: int = 400,
    seed: int = 1,
) -> LogSize | None:
    """The number of tables of counts in the universe; None for three or more exact tables of very many cells."""
    if len(shape.tables) == 1:
        total = float(log_choices(shape.cells[COUNT].to_numpy(), shape.cells[CHOICES].to_numpy()).sum())
        return LogSize(value=total, low=total, high=total, methods=("closed form",))
    if strata is None:
        found = several_tables(shape, samples=samples, seed=seed)
        if found is None:
            return None
        value, error, methods = found
        reach = NormalDist().inv_cdf(0.5 + confidence / 2) * error
        return LogSize(value=value, low=max(value - reach, 0.0), high=value + reach, methods=methods)
    reach = NormalDist().inv_cdf(0.5 + confidence / 2) * sqrt(float((strata["error"] ** 2).sum()))
    methods = tuple(sorted(strata["method"].unique().to_list()))
    return LogSize(
        value=float(strata["log_tables"].sum()),
        low=float(strata["low"].sum()) - reach,
        high=float(strata["high"].sum()) + reach,
        methods=methods,
    )


def strata_of(
    shape: Shape,
    *,
    areas: Sequence[str] = (),
    samples: int = 200,
    seed: int = 1,
    work: int = 3 * MOST_WORK,
    exactly: int = 20_000,
) -> pl.DataFrame | None:
    """One row for each stratum of two exact tables: its size, its types, the logarithms, and how they were found.

    The columns are the table that shows more ``areas``: its values are exchanged. ``exactly`` are the steps of exact
    counting for one stratum, ``work`` the multiplications of all sampling together.
    """
    if len(shape.tables) != 2 or shape.shared is None:
        return None
    (stratum,) = shape.shared
    first, second = shape.tables
    if len(first & {*areas}) > len(second & {*areas}):
        first, second = second, first
    by = sorted(stratum)
    both = [
        shape.margin(shown).group_by(by, maintain_order=True).agg(pl.col(COUNT).sort().alias(name))
        if by
        else pl.DataFrame({name: [sorted(shape.margin(shown)[COUNT].to_list())]})
        for shown, name in ((first, ROWS), (second, COLUMNS))
    ]
    joined = both[0].join(both[1], on=by, nulls_equal=True) if by else pl.concat(both, how="horizontal")
    profiles = list(zip(joined[ROWS].to_list(), joined[COLUMNS].to_list(), strict=True))
    unique = {(tuple(r), tuple(c)) for r, c in profiles}
    found = _all(sorted(unique, key=lambda margins: (sum(margins[0]), margins)), samples, seed, work, exactly)
    answers = [found[tuple(r), tuple(c)] for r, c in profiles]
    return joined.select(
        *by,
        pl.col(COLUMNS).list.sum().alias("records"),
        pl.col(ROWS).list.len().alias("held_types"),
        pl.col(COLUMNS).list.len().alias("places"),
        pl.Series("log_places", [log_placements(c) for _, c in profiles], pl.Float64),
        pl.Series("log_tables", [a[0] for a in answers], pl.Float64),
        pl.Series("low", [a[1] for a in answers], pl.Float64),
        pl.Series("high", [a[2] for a in answers], pl.Float64),
        pl.Series("error", [a[3] for a in answers], pl.Float64),
        pl.Series("method", [a[4] for a in answers], pl.String),
    ).with_columns(
        # one type or one place: nothing can be exchanged
        ((pl.col("held_types") == 1) | (pl.col("places") == 1)).alias("single")
    )


Margins = tuple[tuple[int, ...], tuple[int, ...]]
Answer = tuple[float, float, float, float, str]  # value, low, high, standard error, method


def _all(profiles: list[Margins], samples: int, seed: int, work: int, exactly: int) -> dict[Margins, Answer]:
    """Each set of margins once; small ones exactly, then by sampling while the work lasts, then by bounds."""
    found: dict[Margins, Answer] = {}
    for rows, columns in profiles:
        low, high = log_range(rows, columns)
        if high == low:
            found[rows, columns] = (low, low, high, 0.0, "closed form")
            continue
        exact = count_tables(rows, columns, states=exactly) if len(rows) * len(columns) <= 400 else None
        if exact is not None:
            found[rows, columns] = (log(exact), log(exact), log(exact), 0.0, "exact")
            continue
        share = min(work, MOST_WORK)
        sampled = _sampled(rows, columns, samples, seed, share) if share > 0 else None
        if sampled is None:
            found[rows, columns] = (log_estimate(rows, columns), low, high, 0.0, "bounds")
            continue
        work -= sampled.work
        value = float(np.clip(sampled.log_count, low, high))
        found[rows, columns] = (value, value, value, sampled.error, "sampled")
    return found


def _sampled(
    rows: tuple[int, ...], columns: tuple[int, ...], samples: int, seed: int, work: int
) -> SampledCount | None:
    return sample_tables(rows, columns, samples=samples, seed=seed, work=work, tolerance=TOLERANCE)


def bits(size: float, records: int) -> float:
    """A natural logarithm as bits per record.

    >>> bits(log(2), 1)
    1.0
    """
    return size / log(2) / max(records, 1)
