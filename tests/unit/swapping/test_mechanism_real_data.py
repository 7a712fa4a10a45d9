"""Real public files: Washington's blocks of 2010 as households, and Oregon's 2000 microdata with their persons."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from shared_data import extract, shared
from stirred.census import Census
from stirred.chance import Key
from stirred.mechanisms.swap import PermutationSwapping, effective_rate
from stirred.spec import SizeLaw

KEY = Key.for_tests(2010)


def washington() -> pl.DataFrame:
    """One row per household: block, size, and a made-up mark so that something is held besides the size."""
    blocks = pl.read_parquet(shared("wa2010", "blocks.parquet"))
    sizes = [f"hh{k}" for k in range(1, 8)]
    long = blocks.unpivot(
        sizes, index=["county", "tract", "block_group", "geoid"], variable_name="size"
    ).filter(pl.col("value") > 0)
    homes = long.with_columns(pl.col("size").str.slice(2).cast(pl.Int8)).select(
        (pl.col("county") + pl.col("tract")).alias("tract"),
        pl.col("geoid").alias("block"),
        "size",
        pl.int_ranges("value").alias("row"),
    )
    homes = homes.explode("row").drop("row")
    mark = np.random.default_rng(0).integers(0, 1000, homes.height)
    return homes.with_columns(pl.Series("mark", mark), pl.int_range(pl.len()).alias("hid"))


def counts(frame: pl.DataFrame, *by: str) -> pl.DataFrame:
    return frame.with_columns(pl.selectors.categorical().cast(pl.String)).group_by(by).len().sort(by)


@pytest.mark.slow
def test_washington_2010_swapped_within_tract_and_size() -> None:
    homes = washington()
    assert homes.height == 1_454_695
    schema = {"geography": {"spine": ["tract", "block"]}, "record": {"household": {"id": "hid"}}}
    census = Census.of(schema, {"household": homes})
    psa = PermutationSwapping(
        match=["tract", "size"], swap=["block"], rate="1/20", release_identifiers={"mark": "made up"}
    )
    promise = psa.specification(census)
    largest = counts(homes, "tract", "size")["len"].max()
    assert promise.varies.b == largest
    assert promise.varies.law == SizeLaw("by-size", "1/20")
    release = psa.release(census, key=KEY)
    after = pl.from_arrow(release.microdata["household"])
    assert counts(homes, "tract", "size", "block").equals(counts(after, "tract", "size", "block"))
    assert counts(homes, "tract", "size", "mark").equals(counts(after, "tract", "size", "mark"))
    assert all(check.kept for check in release.checks)
    # what moved: a share q of each stratum is selected and lands in another block n·(n - n_s)/(n - 1) of the time
    joint = counts(homes, "tract", "size", "block")
    strata = joint.group_by("tract", "size").agg(
        pl.col("len").sum().alias("n"), (pl.col("len") ** 2).sum().alias("squares")
    )
    n = strata["n"].to_numpy().astype(float)
    q = effective_rate(n, psa.rate)
    expected = float((q * (n * n - strata["squares"].to_numpy()) / np.maximum(n - 1, 1)).sum())
    unique = pl.col("len") == 1
    marked = [counts(f, "tract", "size", "mark", "block") for f in (homes, after)]
    lone = counts(homes, "tract", "size", "mark").filter(unique).drop("len")
    places = [m.join(lone, on=["tract", "size", "mark"]).sort("tract", "size", "mark") for m in marked]
    moved = float((places[0]["block"] != places[1]["block"]).mean())
    share = expected / homes.height
    # records that are alone with their mark in a stratum show whether they moved; about 700,000 of them
    assert moved == pytest.approx(share, rel=0.1)


@pytest.mark.parametrize(
    ("where", "households", "persons"),
    [(extract, 3_624, 8_764), pytest.param(shared, 76_516, 171_666, marks=pytest.mark.slow)],
)
def test_oregon_households_take_their_persons_along(
    where: Callable[..., Path], households: int, persons: int
) -> None:
    names = ("oregon_households.parquet",), ("oregon_persons.parquet",)
    if where is shared:
        names = ("pums2000_oregon", "households.parquet"), ("pums2000_oregon", "persons.parquet")
    homes, people = (pl.read_parquet(where(*name)) for name in names)
    homes = homes.with_columns(pl.col("BLDGSZ").replace("", None))  # an empty field is a missing value
    schema = {
        "geography": {"spine": ["PUMA5"]},
        "record": {"household": {"id": "SERIALNO"}, "person": {"household": "SERIALNO", "of": "household"}},
    }
    census = Census.of(schema, {"household": homes, "person": people})
    psa = PermutationSwapping(
        match=["PERSONS", "UNITTYPE"],
        swap=["PUMA5"],
        rate="1/10",
        release_identifiers=dict.fromkeys(
            ("HINC", "INCTOT"), "a public sample"
        ),  # incomes of a public sample: nearly each is alone in the extract
    )
    release = psa.release(census, key=KEY)
    after, along = (pl.from_arrow(release.microdata[name]) for name in ("household", "person"))
    assert (after.height, along.height) == (households, persons)
    assert counts(homes, "PERSONS", "UNITTYPE", "PUMA5").equals(counts(after, "PERSONS", "UNITTYPE", "PUMA5"))
    assert not counts(homes, "PUMA5", "BLDGSZ").equals(counts(after, "PUMA5", "BLDGSZ"))
    held = ["PERSONS", "UNITTYPE", "BLDGSZ", "HINC", "HWEIGHT", "AGE", "WRKLYR", "INCTOT"]
    before_join = people.join(homes, on="SERIALNO")
    after_join = along.join(after, on="SERIALNO")
    assert counts(before_join, *held).equals(counts(after_join, *held))
    assert not counts(before_join, "PUMA5", "AGE").equals(counts(after_join, "PUMA5", "AGE"))
    assert all(check.kept for check in release.checks)
