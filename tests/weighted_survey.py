"""A survey like Ghana's living standards survey, made for tests: weights that are constant within enumeration areas."""

from pathlib import Path

import numpy as np
import polars as pl

REGIONS, AREAS, HOMES = 10, 58, 15  # 580 enumeration areas, 8,700 households

CENSUS = """name = "survey"
[geography]
spine = ["region", "ea"]
type = "integer"
[record.household]
files = ["household.parquet"]
id = "hid"
weight = "weight"
[record.person]
files = ["person.parquet"]
household = "hid"
"""
SCHEMA = {
    "geography": {"spine": ["region", "ea"], "type": "integer"},
    "record": {"household": {"id": "hid", "weight": "weight"}, "person": {"household": "hid"}},
}
SWAP = {"match": ["region", "urban"], "swap": ["ea"], "rate": "1/10"}


def households() -> pl.DataFrame:
    """One row a household: region, urban or rural, enumeration area, weight of the area, and a few answers."""
    rng = np.random.default_rng(7)
    area = np.repeat(np.arange(REGIONS * AREAS), HOMES)
    return pl.DataFrame(
        {
            "hid": np.arange(area.size) + 1_000_000,
            "region": area // AREAS,
            "ea": area,
            "urban": np.repeat(rng.integers(0, 2, REGIONS * AREAS), HOMES),
            "weight": np.round(rng.gamma(4.0, 250.0, REGIONS * AREAS), 4)[area],
            "rooms": rng.integers(1, 7, area.size),
            "water": rng.choice(["pipe", "well", "river"], area.size),
        }
    )


def persons(homes: pl.DataFrame) -> pl.DataFrame:
    """About 37,000 persons; half of the children go to the school of their area, all others to none."""
    rng = np.random.default_rng(8)
    owner = np.repeat(
        np.arange(homes.height), rng.integers(1, 8, homes.height) + (rng.random(homes.height) < 0.25)
    )
    age = rng.integers(0, 90, owner.size)
    at_school = (age < 18) & (rng.random(owner.size) < 0.5)
    return pl.DataFrame(
        {
            "hid": homes["hid"].to_numpy()[owner],
            "age": age,
            "sex": rng.choice(["f", "m"], owner.size),
            "school": np.where(at_school, homes["ea"].to_numpy()[owner] + 1, 0),
        }
    )


def written(folder: Path, *drop: str) -> Path:
    """Write the survey to a folder; returns its census.toml."""
    homes = households()
    homes.drop(drop, strict=False).write_parquet(folder / "household.parquet")
    persons(homes).drop(drop, strict=False).write_parquet(folder / "person.parquet")
    text = CENSUS.replace('weight = "weight"\n', "") if "weight" in drop else CENSUS
    (folder / "census.toml").write_text(text)
    return folder / "census.toml"


def put_back(truth: pl.DataFrame, public: pl.DataFrame) -> tuple[int, int]:
    """The attack: each household goes to the area in which its weight is most frequent in the public file.

    Returns how many households it places rightly, and how many have a weight that belongs to one area.
    """
    guess = public.group_by("weight").agg(pl.col("ea").mode().sort().first().alias("guess"))
    only = truth.group_by("weight").agg(pl.col("ea").n_unique().alias("areas"), pl.col("ea").first())
    single = only.filter(pl.col("areas") == 1).join(guess, on="weight", how="left")
    right = single.filter(pl.col("guess") == pl.col("ea"))
    sizes = truth.group_by("weight").len("homes")
    count = [int(some.join(sizes, on="weight")["homes"].sum()) for some in (right, single)]
    return count[0], count[1]
