r"""What published tables with known errors let anyone believe, and what a guess finds without them.

The prior is a law of counts with the mean and the spread of the published table, without the spread of its noise: a negative
binomial law, or a Poisson law where counts do not vary more. Errors are taken as normal with the published standard error.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from stirred.assess.attack.inference.beliefs import add_bounds
from stirred.assess.attack.inference.counts import Floats, KnownNoise, Prior, poisson, posterior_counts
from stirred.assess.log_gamma import log_gamma

MAX_CELLS_WEIGHED = 200_000  # cells of a table that are weighed, evenly spread over it
MAX_STANDARD_ERROR = 1_000.0  # standard errors beyond this leave nearly as much open as no number
SURE_CHANCE = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class InferredTable:
    """The expected success of the best guess of a cell, after the table and before it; absolute risk.

    Who has the table may also ignore it, so ``found`` is never below ``guess``. ``ones`` cells count exactly one record
    with a chance of 0.95 or more.
    """

    name: str
    by: tuple[str, ...]
    cells: int
    found: float
    guess: float
    ones: int


def infer_table(
    name: str, table: pl.DataFrame, by: Sequence[str], exact: Sequence[pl.DataFrame] = ()
) -> InferredTable | None:
    """Measure what a published table reveals of its cells; None where it states no finite error.

    ``exact`` are sums of the table that hold exactly: they bound its cells.

    >>> table = pl.DataFrame({"a": [1, 2, 3, 4], "estimate": [0.2, 9.0, 4.1, 2.9], "standard_error": [0.3] * 4})
    >>> found = infer_table("t", table, ["a"])
    >>> round(found.found, 2), round(found.guess, 2)
    (0.98, 0.15)
    """
    if not {"estimate", "standard_error"} <= {*table.columns}:
        return None
    noisy = table.with_columns(pl.col("estimate", "standard_error").cast(pl.Float64)).filter(
        pl.col("standard_error").is_finite()
        & (pl.col("standard_error") > 0)
        & pl.col("estimate").is_finite()
        & (pl.col("standard_error") <= MAX_STANDARD_ERROR)
    )
    if noisy.height < 2:
        return None
    prior, guess = estimate_prior(noisy["estimate"].to_numpy(), noisy["standard_error"].to_numpy())
    if noisy.height > MAX_CELLS_WEIGHED:
        noisy = noisy.gather_every(noisy.height // MAX_CELLS_WEIGHED + 1)
    noisy = noisy.with_columns(pl.col("standard_error").round_sig_figs(2))
    if exact:
        texts = noisy.with_columns(pl.col(list(by)).cast(pl.String))
        noisy = add_bounds(texts, by, exact)
    right, ones = 0.0, 0
    for (scale,), rows in noisy.sort("standard_error").group_by("standard_error", maintain_order=True):
        found = posterior_counts(
            rows["estimate"].to_numpy(),
            KnownNoise(law="gaussian", scale=float(str(scale))),
            prior,
            low=rows["low"].to_numpy() if exact else 0,
            high=rows["high"].to_numpy() if exact else None,
        )
        right += float(found["chance"].sum())
        ones += found.filter((pl.col("likeliest") == 1) & (pl.col("chance") >= SURE_CHANCE)).height
    return InferredTable(
        name=name,
        by=tuple(by),
        cells=noisy.height,
        found=max(right / noisy.height, guess),
        guess=guess,
        ones=ones,
    )


def estimate_prior(estimates: Floats, errors: Floats) -> tuple[Prior, float]:
    """Estimate the law of counts by moments; return it with the chance of its likeliest count.

    >>> prior, best = estimate_prior(np.array([0.0, 0, 0, 0, 10]), np.full(5, 0.1))
    >>> round(best, 2)
    0.55
    """
    mean = max(float(np.clip(estimates, 0, None).mean()), 1e-3)
    spread = float(estimates.var() - np.mean(errors**2))
    if spread <= mean * (1 + 1e-9):
        return _with_mode(poisson(mean), np.floor(mean))
    size, chance = mean**2 / (spread - mean), mean / spread

    def log_weight(c: Floats) -> Floats:
        ways = log_gamma(c + size) - log_gamma(c + 1) - log_gamma(size)
        found: Floats = ways + size * np.log(chance) + c * np.log1p(-chance)
        return found

    mode = np.floor((size - 1) * (1 - chance) / chance) if size > 1 else 0.0
    return _with_mode(
        Prior(name=f"counts are negative binomial with mean {mean:g}", log_weight=log_weight), mode
    )


def _with_mode(prior: Prior, mode: float) -> tuple[Prior, float]:
    return prior, float(np.exp(prior.log_weight(np.array([mode]))[0]))
