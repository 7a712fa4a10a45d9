r"""Where a record truly is, given where a swap shows it: Bayes on the law of one record.

In a stratum of n records, $n_t$ of which are shown at t, a record at t stays with chance $1 - q(n-n_t)/(n-1)$ and one from
elsewhere comes to t with chance $q n_t/(n-1)$. All data sets of the universe being equally likely, the chance that a record
shown at t is truly there is the former, also for records that share all they hold: given the release, the permutation
has the law it had before.
"""

from collections.abc import Sequence

import numpy as np
import polars as pl

from stirred.errors import InputError
from stirred.mechanisms.participation import Exchange

STAY, COME, PRIOR, POSTERIOR, BEST = "stay", "come", "prior", "posterior", "best_guess"


def _group_size(*by: str) -> pl.Expr:
    return pl.len().over(list(by)) if by else pl.len()


def posterior_places(units: pl.DataFrame, law: Exchange, *, given: Sequence[str] = ()) -> pl.DataFrame:
    """Return the released records with the chance that each is in place, before and after the release.

    The prior takes the margins of the stratum, which are exact; with ``given`` it takes how the other records with these
    values are spread in the stratum, from the release's own table without its shrinkage, and one record's worth of the
    margins.

    >>> law = Exchange(record_type="h", match=(), moving=("t",), selected=lambda n: np.full(np.shape(n), 0.3))
    >>> posterior_places(pl.DataFrame({"t": ["a", "b", "b", "b"]}), law)["posterior"].round(4).to_list()
    [0.7, 0.9, 0.9, 0.9]
    """
    match, place = [*law.match], [*law.moving]
    frame = _add_sizes(units, match, place)
    sizes = frame["n"].unique().to_numpy()
    chance = pl.DataFrame({"n": sizes, "q": law.selected(sizes)}, schema_overrides={"n": frame["n"].dtype})
    frame = frame.join(chance, on="n", how="left", maintain_order="left")
    others = pl.max_horizontal(pl.col("n") - 1, 1)
    frame = frame.with_columns(
        (1 - pl.col("q") * (pl.col("n") - pl.col("n_t")) / others).alias(STAY),
        (pl.col("q") * pl.col("n_t") / others).alias(COME),
        (pl.col("n_t") / pl.col("n")).alias(PRIOR),
        # the best guess: where it is shown, or the largest other place
        (pl.col("q") * pl.col("n_other") / others).alias("elsewhere"),
    )
    if given:
        frame = frame.with_columns(_share_at_place(match, place, [*given]).alias(PRIOR))
    here, away = pl.col(PRIOR) * pl.col(STAY), (1 - pl.col(PRIOR)) * pl.col(COME)
    frame = frame.with_columns((here / (here + away)).fill_nan(1.0).alias(POSTERIOR))
    best = pl.max_horizontal(POSTERIOR, "elsewhere") if not given else pl.col(POSTERIOR)
    return frame.with_columns(best.alias(BEST)).drop("elsewhere", "n_other")


def _add_sizes(units: pl.DataFrame, match: list[str], place: list[str]) -> pl.DataFrame:
    """Add n, n_t and the size of the largest other place."""
    if units.height == 0:
        raise InputError(
            "there is no record whose place could be inferred",
            why="the release has none that takes part in the swap",
            fix="attack a release that has records",
        )
    counts = units.group_by([*match, *place]).len("n_t")
    ranked = counts.sort("n_t", descending=True)
    over = [*match]
    first = pl.col("n_t").first().over(over) if over else pl.col("n_t").first()
    second = pl.col("n_t").slice(1, 1).sum().over(over) if over else pl.col("n_t").slice(1, 1).sum()
    total = pl.col("n_t").sum().over(over) if over else pl.col("n_t").sum()
    ranked = ranked.with_columns(total.alias("n"), first.alias("top"), second.alias("next"))
    ranked = ranked.with_columns(
        pl.when(pl.col("n_t") == pl.col("top")).then("next").otherwise("top").alias("n_other")
    )
    keep = [*match, *place, "n", "n_t", "n_other"]
    return units.join(
        ranked.select(pl.col(keep)), on=[*match, *place], how="left", maintain_order="left", nulls_equal=True
    ).with_columns(pl.col("n", "n_t", "n_other").cast(pl.Int64))


def _share_at_place(match: list[str], place: list[str], given: list[str]) -> pl.Expr:
    """Estimate the share of the other records with these values at the shown place, without shrinkage."""
    alike = _group_size(*match, *given).cast(pl.Int64) - 1  # the record itself is what is inferred
    here = _group_size(*match, *given, *place).cast(pl.Int64) - 1
    weight = pl.col("q") * pl.col("n") / pl.max_horizontal(pl.col("n") - 1, 1)
    even = alike * pl.col("n_t") / pl.col("n")
    shrunk = pl.when(weight < 1 - 1e-9).then((here - weight * even) / (1 - weight)).otherwise(even)
    return ((pl.max_horizontal(shrunk, 0.0) + pl.col("n_t") / pl.col("n")) / (alike + 1)).clip(0.0, 1.0)


def remove_shrinkage(units: pl.DataFrame, law: Exchange, held: Sequence[str]) -> pl.DataFrame:
    r"""The table of held values by place before the swap, without bias: $(N' - \lambda n_h n_t / n)/(1-\lambda)$.

    >>> law = Exchange(record_type="h", match=(), moving=("t",), selected=lambda n: np.full(np.shape(n), 0.3))
    >>> units = pl.DataFrame({"h": ["x", "x", "y", "y"], "t": ["a", "a", "b", "b"]})
    >>> remove_shrinkage(units, law, ["h"])["estimate"].round(3).to_list()
    [2.667, 2.667]
    """
    match, place = [*law.match], [*law.moving]
    cells = units.group_by([*match, *held, *place]).len("released")
    n = pl.col("released").sum().over(match) if match else pl.col("released").sum()
    cells = cells.with_columns(
        n.alias("n"),
        pl.col("released").sum().over([*match, *held]).alias("n_h"),
        pl.col("released").sum().over([*match, *place]).alias("n_t"),
    )
    sizes = cells["n"].unique()
    q = law.selected(sizes.to_numpy())
    weights = pl.DataFrame({"n": sizes, "weight": q * sizes.to_numpy() / np.maximum(sizes.to_numpy() - 1, 1)})
    even = pl.col("weight") * pl.col("n_h") * pl.col("n_t") / pl.col("n")
    rest = 1 - pl.col("weight")
    estimate = pl.when(rest > 1e-9).then((pl.col("released") - even) / rest)
    found = cells.join(weights, on="n").with_columns(estimate.alias("estimate"))
    return found.select(*match, *held, *place, "released", "estimate").sort([*match, *held, *place])
