"""Households rebuilt from tables: the solution has the published numbers, and what is certain is right."""

import numpy as np
import polars as pl

from stirred.assess.attack.records import rebuild_from_tables
from stirred.census import Census

RNG = np.random.default_rng(3)
N = 120
CENSUS = Census.of(
    {"geography": {"spine": ["county", "block"]}},
    {
        "household": {
            "county": ["c"] * N,
            "block": RNG.integers(1, 30, N).astype(str).tolist(),
            "size": RNG.integers(1, 4, N).astype(str).tolist(),
            "tenure": RNG.choice(["own", "rent"], N).tolist(),
            "type": RNG.choice(["x", "y"], N).tolist(),
        }
    },
)


def table(*by: str) -> pl.DataFrame:
    return pl.DataFrame(CENSUS.counts("household", list(by)))


def test_households_are_rebuilt_and_held_against_the_census() -> None:
    tables = {"one": table("block", "size", "tenure"), "two": table("block", "tenure", "type")}
    found = rebuild_from_tables(tables, CENSUS, "household", areas=None)
    areas = found.tables["rebuilt households"]
    assert areas["records"].sum() == N
    assert (areas["status"] == "solved").all()
    agreed = found.measure("agreement with the truth, records rebuilt from tables")
    assert agreed.about == "households by size, tenure, type"
    assert (agreed.value or 0.0) > agreed.baselines[0].value
    # by hand: an area with one solution is right in all its records
    single = areas.filter("unique")["area"].to_list()
    inside = {name: one.filter(pl.col("block").cast(pl.String).is_in(single)) for name, one in tables.items()}
    sure = rebuild_from_tables(inside, CENSUS, "household", areas=None)
    assert sure.measure("agreement with the truth, records rebuilt from tables").value == 1.0


def test_two_tables_of_an_area_are_needed() -> None:
    assert not rebuild_from_tables({"one": table("block", "size")}, CENSUS, "household").measures
    apart = {"one": table("block", "size"), "two": table("county", "tenure")}
    assert not rebuild_from_tables(apart, CENSUS, "household").measures


def test_numbers_that_are_off_are_met_as_nearly_as_possible() -> None:
    noisy = table("block", "size").with_columns(
        pl.col("count") + pl.Series(RNG.integers(0, 2, table("block", "size").height))
    )
    tables = {"one": noisy, "two": table("block", "tenure")}
    found = rebuild_from_tables(tables, CENSUS, "household", areas=8, bound=1)
    assert (found.tables["rebuilt households"]["deviation"] > 0).any()
