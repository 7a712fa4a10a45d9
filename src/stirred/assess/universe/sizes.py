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
from stirred.assess.universe.sampling import MAX_MULTIPLICATIONS, SampledCount, sample_tables
from stirred.assess.universe.several import count_many_margins
from stirred.assess.universe.shape import CHOICES_COLUMN, COUNT_COLUMN, Shape

ROWS, COLUMNS = "rows", "columns"
LOG_TOLERANCE = 0.02  # of the logarithm of a stratum's number of tables


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
    total += float((cells[COUNT_COLUMN] * cells[CHOICES_COLUMN].log()).sum())
    return LogSize(value=total, low=total, high=total, methods=("closed form",))


def log_places(shape: Shape, strata: pl.DataFrame) -> LogSize | None:
    r"""$\sum_m (\ln n_m! - \sum_s \ln n_{ms}!)$: records are told apart, and only their places are unknown."""
    if len(shape.tables) != 2:
        return None
    total = float(strata["log_places"].sum())
    return LogSize(value=total, low=total, high=total, methods=("closed form",))


def _multinomial(shape: Shape, shown: Shown) -> float:
    return log_placements(shape.margin(shown)[COUNT_COLUMN].to_numpy())


def log_unlabelled(
    shape: Shape,
    strata: pl.DataFrame | None,
    confidence: float = 0.95,
    *,
    samples: int = 400,
    seed: int = 1,
) -> LogSize | None:
    """Return the log number of tables of counts in the universe; None where it cannot be counted."""
    if len(shape.tables) == 1:
        total = float(
            log_choices(shape.cells[COUNT_COLUMN].to_numpy(), shape.cells[CHOICES_COLUMN].to_numpy()).sum()
        )
        return LogSize(value=total, low=total, high=total, methods=("closed form",))
    if strata is None:
        found = count_many_margins(shape, samples=samples, seed=seed)
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


def size_strata(
    shape: Shape,
    *,
    areas: Sequence[str] = (),
    samples: int = 200,
    seed: int = 1,
    work: int = 3 * MAX_MULTIPLICATIONS,
    exactly: int = 20_000,
) -> pl.DataFrame | None:
    """Return one row for each stratum of two exact tables: size, types, logarithms and methods.

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
        shape.margin(shown).group_by(by, maintain_order=True).agg(pl.col(COUNT_COLUMN).sort().alias(name))
        if by
        else pl.DataFrame({name: [sorted(shape.margin(shown)[COUNT_COLUMN].to_list())]})
        for shown, name in ((first, ROWS), (second, COLUMNS))
    ]
    joined = both[0].join(both[1], on=by, nulls_equal=True) if by else pl.concat(both, how="horizontal")
    profiles = list(zip(joined[ROWS].to_list(), joined[COLUMNS].to_list(), strict=True))
    unique = {(tuple(r), tuple(c)) for r, c in profiles}
    found = _count_profiles(
        sorted(unique, key=lambda margins: (sum(margins[0]), margins)), samples, seed, work, exactly
    )
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


def _count_profiles(
    profiles: list[Margins], samples: int, seed: int, work: int, exactly: int
) -> dict[Margins, Answer]:
    """Count each set of margins once: small ones exactly, then by sampling, then by bounds."""
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
        share = min(work, MAX_MULTIPLICATIONS)
        sampled = _sample_profile(rows, columns, samples, seed, share) if share > 0 else None
        if sampled is None:
            found[rows, columns] = (log_estimate(rows, columns), low, high, 0.0, "bounds")
            continue
        work -= sampled.work
        value = float(np.clip(sampled.log_count, low, high))
        found[rows, columns] = (value, value, value, sampled.error, "sampled")
    return found


def _sample_profile(
    rows: tuple[int, ...], columns: tuple[int, ...], samples: int, seed: int, work: int
) -> SampledCount | None:
    return sample_tables(rows, columns, samples=samples, seed=seed, work=work, tolerance=LOG_TOLERANCE)


def bits_per_record(size: float, records: int) -> float:
    """Convert a natural logarithm to bits per record.

    >>> bits_per_record(log(2), 1)
    1.0
    """
    return size / log(2) / max(records, 1)
