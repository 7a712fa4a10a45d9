"""Real output of the Bureau: what the 2010 demonstration data of Guernsey County kept of the published tables, and broke."""

import polars as pl
import pytest

from shared_data import shared
from stirred.assess.universe import CountTables, check_candidates
from stirred.spec import AtLeast, Margin

TYPES = {
    "1": 2,
    "2": 3,
    "3": 4,
    "4": 5,
    "5": 7,
    "6": 8,
    "7": 9,
}  # where a type stands in each age group of P43


@pytest.mark.slow
def test_what_the_ppmf_kept() -> None:
    """Counted before: -2 persons in the county, 2,013 of 3,769 blocks differ, 17 pairs of a block and a type of facility."""
    areas = [
        pl.col("block").str.slice(0, width).alias(name) for name, width in (("county", 5), ("tract", 11))
    ]
    text = {"geoid": pl.String}
    everyone = pl.read_csv(shared("guernsey2010", "sf1_P1.csv"), schema_overrides=text)
    everyone = everyone.rename({"geoid": "block", "P0010001": "count"}).with_columns(areas)
    homes = pl.read_csv(shared("guernsey2010", "sf1_P43.csv"), schema_overrides=text).rename(
        {"geoid": "block"}
    )
    quarters = pl.concat(
        homes.select(
            "block",
            pl.lit(kind).alias("GQTYPE_PL"),
            pl.sum_horizontal(f"P04300{first + place:02}" for first in (3, 13, 23, 34, 44, 54)).alias(
                "count"
            ),
        )
        for kind, place in TYPES.items()
    )
    assert quarters["count"].sum() == 510
    persons = pl.read_parquet(shared("guernsey2010", "ppmf_20210608_persons.parquet")).rename(
        {"geoid": "block"}
    )
    persons = persons.with_columns(*areas, pl.lit(1).alias("count"))
    truth = CountTables.of(("person", everyone), ("resident", quarters))
    released = CountTables.of(("person", persons), ("resident", persons.filter(pl.col("GQTYPE_PL") != "0")))
    facilities = Margin("resident", ("block", "GQTYPE_PL"))
    candidates = [
        AtLeast(facilities, 1),  # a facility of a type stands in a block: invariant
        Margin("person", ("county",)),
        Margin("person", ("tract",)),
        Margin("person", ("block",)),
        AtLeast(Margin("person", ("block",)), 1),
        facilities,
    ]
    found = check_candidates(candidates, truth, released)
    assert [each.holds for each in found] == [True, False, False, False, False, False]
    assert (found[0].numbers, found[1].total, found[3].differ, found[4].differ) == (17, 2, 2013, 129)
