"""Real public files as censuses for the slow tests: households of Oregon with their persons, blocks of Washington."""

from pathlib import Path

import polars as pl

RACES = ("hisp", "white", "black", "aian", "asian", "nhpi", "other", "two")

OREGON = """
name = "oregon"
label = "Oregon 2000, 5 % sample"
[geography]
spine = ["state", "region", "puma"]
type = "text"
[geography.level]
state = {column = "PUMA5", first = 1}
region = {column = "PUMA5", first = 3}
puma = {column = "PUMA5"}
[record.household]
files = ["HOUSEHOLDS"]
id = "SERIALNO"
size = "PERSONS"
kind = {column = "UNITTYPE", housing_units = [0], group_quarters = [1, 2]}
[record.household.variables]
UNITTYPE = {levels = [0, 1, 2], labels = {0 = "housing unit", 1 = "institution", 2 = "other group quarters"}}
PERSONS = {label = "persons", type = "integer", range = "0..17"}
BLDGSZ.label = "building"
BLDGSZ.levels = ["01", "02", "03", "04", "05", "06", "07", "08", "09", "10"]
BLDGSZ.missing = {policy = "level", empty_as = "-"}
[record.person]
files = ["person.parquet"]
id = "person_id"
household = "SERIALNO"
[record.person.variables]
AGE = {label = "age", type = "integer", range = "0..93"}
WRKLYR = {label = "work last year", levels = [0, 1, 2], labels = {0 = "under 16", 1 = "worked", 2 = "did not work"}}
"""

WASHINGTON = """
name = "washington"
label = "Four counties of Washington, 2010"
[geography]
preset = "us"
code = "geoid"
type = "text"
[record.household]
files = ["household.parquet"]
id = "household_id"
[record.household.variables]
size = {label = "persons (7: seven or more)", type = "integer", range = "1..7"}
race = {label = "householder's group (synthetic: in proportion to the adults of the block)", levels = [RACES]}
[record.person]
files = ["person.parquet"]
id = "person_id"
[record.person.variables]
race = {label = "group", levels = [RACES]}
adult = {label = "18 or over", levels = ["no", "yes"]}
"""


def oregon(folder: Path, source: Path) -> Path:
    """The census.toml of the Oregon sample: housing units with their persons, and group quarters; incomes are not read."""
    text = OREGON.replace("HOUSEHOLDS", (source / "households.parquet").as_posix())
    people = pl.read_parquet(source / "persons.parquet").with_row_index(
        "person_id"
    )  # cell keys are made from identifiers
    people.write_parquet(folder / "person.parquet")
    (folder / "census.toml").write_text(text)
    return folder / "census.toml"


def washington(folder: Path, blocks: Path, *, most: int | None = None) -> Path:
    """The census.toml of Washington's blocks, one record for each household and each person that the tables count.

    The tables do not say which household has which race: householders get that of adults of their block, evenly.
    """
    table = pl.read_parquet(blocks).head(most) if most else pl.read_parquet(blocks)
    _persons(table).with_row_index("person_id").write_parquet(folder / "person.parquet")
    _households(table).with_row_index("household_id").write_parquet(folder / "household.parquet")
    levels = ", ".join(f'"{race}"' for race in RACES)
    (folder / "census.toml").write_text(WASHINGTON.replace("RACES", levels))
    return folder / "census.toml"


def _persons(table: pl.DataFrame) -> pl.DataFrame:
    parts = []
    for race in RACES:
        grown = pl.col(f"vap_{race}")
        for adult, count in (("yes", grown), ("no", pl.col(f"pop_{race}") - grown)):
            parts.append(
                table.select(
                    "geoid", pl.lit(race).alias("race"), pl.lit(adult).alias("adult"), count.alias("n")
                )
            )
    return _repeated(pl.concat(parts))


def _households(table: pl.DataFrame) -> pl.DataFrame:
    sizes = pl.concat(
        table.select("geoid", pl.lit(size).alias("size"), pl.col(f"hh{size}").alias("n"))
        for size in range(1, 8)
    )
    homes = _repeated(sizes).sort("geoid", "size")
    place, households = pl.int_range(pl.len()).over("geoid"), pl.len().over("geoid")
    adults = table.select("geoid", "vap", *(pl.col(f"vap_{race}") for race in RACES))
    homes = homes.with_columns(place.alias("place"), households.alias("all")).join(adults, on="geoid")
    # sizes and groups are crossed by stepping through the adults with a stride that is prime to most numbers of them
    chosen = (
        (pl.col("place") * 7919 + pl.col("place") * pl.col("vap") // pl.col("all")) % pl.col("vap")
    ).alias("chosen")
    homes = homes.filter(pl.col("vap") > 0).with_columns(chosen)
    race, before = pl.lit(RACES[-1]), pl.lit(0)
    steps = []
    for name in RACES:
        before = before + pl.col(f"vap_{name}")
        steps.append((pl.col("chosen") < before, name))
    for condition, name in reversed(steps):
        race = pl.when(condition).then(pl.lit(name)).otherwise(race)
    return homes.select("geoid", "size", race.alias("race"))


def _repeated(counts: pl.DataFrame) -> pl.DataFrame:
    """One row for each of the ``n`` records of a row."""
    return counts.filter(pl.col("n") > 0).select(pl.exclude("n").repeat_by("n")).explode(pl.all())
