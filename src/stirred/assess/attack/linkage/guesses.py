r"""What someone guesses who has the release and an address, and links nothing: the baselines of every attack.

With shares $p_i$ of an area's values, the modal guess is right for $\max_i p_i$ of its people, the proportional guess for
$\sum_i p_i^2$ on average.
"""

import numpy as np
import polars as pl

from stirred.assess.attack.linkage.matching import link_records

SECRET, AREA, PARENT = "secret", "area", "parent"


def find_modes(records: pl.DataFrame, by: str) -> pl.DataFrame:
    """Return the most frequent secret of each area, its share, and whether it is a proper mode.

    A tie, or an area of one record, has no proper mode; of values that tie, the one most frequent in all comes first.
    """
    overall = records.group_by(SECRET).agg(pl.len().alias("overall"))
    counted = records.group_by(by, SECRET).agg(pl.len().alias("many")).join(overall, on=SECRET, how="left")
    ordered = counted.sort([by, "many", "overall", SECRET], descending=[False, True, True, False])
    return ordered.group_by(by, maintain_order=True).agg(
        pl.col(SECRET).first().alias("mode"),
        (pl.col("many").first() / pl.col("many").sum()).alias("share"),
        ((pl.col("many").sum() > 1) & ((pl.col("many") == pl.col("many").first()).sum() == 1)).alias(
            "proper"
        ),
    )


def modal_guess(asked: pl.DataFrame, released: pl.DataFrame) -> pl.Series:
    """Guess the mode of the area; without a proper one that of the larger area, then that of all.

    >>> seen = pl.DataFrame({"area": ["a"] * 3, "parent": [""] * 3, "secret": ["x", "x", "y"]})
    >>> modal_guess(pl.DataFrame({"area": ["a", "b"], "parent": ["", ""]}), seen).to_list()
    ['x', 'x']
    """
    if not released.height:
        return pl.Series("guess", [None] * asked.height, dtype=pl.String)
    overall = find_modes(released.with_columns(pl.lit(0).alias("all")), "all")["mode"][0]
    found = asked.select(AREA, PARENT)
    for by, name in ((AREA, "near"), (PARENT, "wide")):
        proper = find_modes(released, by).filter(pl.col("proper")).select(by, pl.col("mode").alias(name))
        found = found.join(proper, on=by, how="left", maintain_order="left")
    return found.select(pl.coalesce("near", "wide", pl.lit(overall)).alias("guess")).to_series()


def proportional_guess(asked: pl.DataFrame, released: pl.DataFrame, *, seed: int) -> pl.Series:
    """Draw a value from the released records of the area, or from all records where it has none."""
    draws = np.random.default_rng(seed)
    ordered = released.sort(AREA)
    spans = ordered.with_row_index("at").group_by(AREA).agg(pl.col("at").min(), pl.len().alias("many"))
    asked_spans = asked.select(AREA).join(spans, on=AREA, how="left", maintain_order="left")
    start = asked_spans["at"].fill_null(0).to_numpy().astype(np.int64)
    many = asked_spans["many"].fill_null(ordered.height).to_numpy().astype(np.int64)
    if not ordered.height:
        return pl.Series("guess", [None] * asked.height, dtype=pl.String)
    place = start + np.floor(draws.random(asked.height) * many).astype(np.int64)
    return ordered[SECRET].gather(place).alias("guess")


def majority_guess(asked: pl.DataFrame, released: pl.DataFrame, *, least: float = 0.5) -> pl.Series:
    """Guess the released majority of the area; null where no value has that share.

    This is the rule of Francis (arXiv 2202.04872), which needs neither sex nor age.
    """
    major = (
        find_modes(released, AREA).filter(pl.col("share") > least).select(AREA, pl.col("mode").alias("guess"))
    )
    return asked.select(AREA).join(major, on=AREA, how="left", maintain_order="left")["guess"]


def random_draw_hits(people: pl.DataFrame, *, key: str, seed: int) -> dict[str, float]:
    """Count the hits of random (sex, age) pairs, as many for each area as it has people (Ruggles' null).

    ``with replacement`` asks whether anyone there has the pair, as published; ``without`` links each person once at most.
    ``people`` has the columns area and key, whose text begins with the area.
    """
    draws = np.random.default_rng(seed)
    if not people.height:
        return {"with replacement": 0.0, "without": 0.0}
    pair = people.select("area", pl.col(key).str.slice(pl.col("area").str.len_chars()).alias("pair"))
    drawn = pair["pair"].gather(draws.integers(0, people.height, people.height))
    guessed = people.select("area").with_columns(drawn)
    guessed = guessed.select("area", pl.concat_str(["area", "pair"]).alias(key))
    hit = guessed.join(people.select(key).unique(), on=key, how="semi").height
    once = link_records(guessed, people, [key], seed=seed).height
    return {"with replacement": hit / people.height, "without": once / people.height}
