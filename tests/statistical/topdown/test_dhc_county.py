"""DHC after PL: a county of more than 1,000 blocks at the production person schema agrees with its PL in every block."""

import resource
import time
from pathlib import Path

import polars as pl
import pytest

from stirred import Workload
from stirred.census import Census, read
from stirred.census.synthetic import write_preset
from stirred.chance import Key
from stirred.mechanisms.topdown import TopDown
from stirred.spec.files import save

KEY = Key.for_tests(5)
SPINE = ["state", "county", "tract", "block_group", "block"]
MAJOR = [0] * 18 + [1] * 6 + [2] * 3 + [3] + [4] * 5 + [5] + [6] * 2 + [7] * 6

PARTS = {
    "size": ("hhsize", (1, 2, 3, 4, 5, 6, 7)),
    "couple": ("coupled", (1, 2, 3, 4, 0)),
    "children": ("own", (1, 3, 2, 0)),
    "relatives": ("relatives", (1, 0)),
    "minors": ("minors", (1, 3, 2, 0)),
    "young": ("young", (0, 1)),
    "multigenerational": ("multig", (0, 1)),
}  # columns of a household: the recode of its type, and the code of each group


def county(folder: Path, households: int | None, code: str | None) -> Census:
    """A synthetic census, or one county of it, with its own list of areas."""
    write_preset("demo", folder, households=households)
    if code is not None:
        homes = pl.read_parquet(folder / "household" / "*.parquet").filter(
            pl.col("county").cast(pl.String) == code
        )
        people = pl.read_parquet(folder / "person" / "*.parquet").join(
            homes.select("household_id"), on="household_id", how="semi"
        )
        areas = pl.read_parquet(folder / "areas.parquet")
        name = pl.col("code").cast(pl.String)
        areas.filter(name.str.starts_with(code) | (name == code[:2])).write_parquet(folder / "areas.parquet")
        for table, record in ((homes, "household"), (people, "person")):
            for file in (folder / record).iterdir():
                file.unlink()
            table.write_parquet(folder / record / "91.parquet")
    return read(folder / "census.toml")


def published(census: Census, folder: Path, workload: str = "pl94", **settings) -> Path:
    """A packet of the PL product, as far as DHC reads it."""
    (folder / "public" / "data").mkdir(parents=True)
    release = TopDown(workload=workload, **settings, replicates=0).release(
        census, key=KEY, out=folder / "public" / "data"
    )
    save(release.specification, folder / "public" / "spec.json")
    return folder


def text(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.select(pl.all().cast(pl.String)).sort(pl.all())


@pytest.mark.slow
def test_a_county_agrees_with_its_pl_in_every_block(tmp_path):
    census = county(tmp_path / "census", None, "91001")
    packet = published(census, tmp_path / "pl")
    assert census.count("person") >= 30_000
    began = time.process_time()
    mechanism = TopDown(workload="dhc", given=packet, replicates=0)
    release = mechanism.release(census, key=KEY)
    assert time.process_time() - began < 600
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 8 * 1024 * 1024
    earlier = text(
        pl.read_parquet(packet / "public/data/person.parquet").select(
            "block", "gq_type", "votingage", "hispanic", "race"
        )
    )
    people = pl.DataFrame(release.microdata["person"]).with_columns(
        gq_type=pl.col("relationship").cast(pl.Int64).replace_strict(dict(enumerate(MAJOR))),
        votingage=(pl.col("age") >= 18).cast(pl.Int16),
    )
    assert earlier["block"].n_unique() > 700
    assert text(people.select("block", "gq_type", "votingage", "hispanic", "race")).equals(earlier)
    units = pl.DataFrame(release.microdata["household"])
    h1 = pl.read_parquet(packet / "public/data/household.parquet").select("block", "h1")
    assert text(units.select("block", h1=(pl.col("tenvac") < 3).cast(pl.Int16))).equals(text(h1))
    # some structural zeros, from the outside
    spouse = people.filter(pl.col("relationship").is_in([0, 1, 2, 3, 4, 5]))
    assert spouse["age"].min() >= 15
    assert people.filter((pl.col("relationship") == 27) & (pl.col("age") < 20)).is_empty()
    assert people.filter((pl.col("relationship") == 33) & ~pl.col("age").is_between(16, 65)).is_empty()
    assert str(release.specification.rho_squared.upper(8)) == "15.29386925"
    assert all(check.kept for check in release.checks)


@pytest.mark.slow
@pytest.mark.parametrize("place", ["", "-pr"])
def test_without_noise_dhc_is_the_census(tmp_path, place):
    census = county(tmp_path / "census", 300, None)
    packet = published(census, tmp_path / "pl", f"pl94{place}", rho_squared="inf")
    release = TopDown(workload=f"dhc{place}", given=packet, rho_squared="inf", replicates=0).release(
        census, key=KEY
    )
    columns = [*SPINE, "relationship", "sex", "age", "hispanic", "race"]
    truth = census.scan("person", columns).collect()
    assert text(pl.DataFrame(release.microdata["person"]).select(columns)).equals(text(truth))
    homes = census.scan("household", ["block", "kind", "tenure", "vacancy", *PARTS]).collect()
    homes = homes.filter(pl.col("kind") < 3).with_columns(pl.col("size").clip(1, 7))
    tenvac = (
        pl.when(pl.col("kind") == 1).then(pl.col("tenure").clip(1, 3) - 1).otherwise(pl.col("vacancy") + 2)
    )
    want = homes.select("block", tenvac.alias("tenvac"), *PARTS)
    types = Workload.preset("dhc-units").histogram.axis("hhtype")
    decoded = pl.DataFrame(
        {"hhtype": range(types.size)}
        | {name: [codes[group] for group in types.recode(recode)] for name, (recode, codes) in PARTS.items()}
    )
    got = pl.DataFrame(release.microdata["household"]).with_columns(pl.col("hhtype").cast(pl.Int64))
    got = got.join(decoded, on="hhtype").select("block", "tenvac", *PARTS)
    assert text(got).equals(text(want))


@pytest.mark.slow
@pytest.mark.parametrize("rho_squared", ["inf", None])
def test_dhc_on_its_own_spine(tmp_path, rho_squared):
    """Primitive areas and subsets of tracts are measured; the published geography is the ordinary one."""
    census = county(tmp_path / "census", 300, None)
    packet = published(census, tmp_path / "pl", rho_squared=rho_squared)
    mechanism = TopDown(
        workload="dhc-persons", given=packet, rho_squared=rho_squared, replicates=0,
        primitives=["place"], optimized_block_groups=["place"],
    )  # fmt: skip
    release = mechanism.release(census, key=KEY)
    assert all(check.kept for check in release.checks)
    levels = release.tables["dhc-persons-solves"]["level"].to_pylist()
    assert levels[1:] == [
        "county",
        "prim",
        "tract_subset_group",
        "tract_subset",
        "block_group_optimized",
        "block",
    ]
    assert not [note for note in release.specification.notes if "no level prim" in note]
    columns = [*SPINE, "relationship", "sex", "age", "hispanic", "race"]
    made = pl.DataFrame(release.microdata["person"])
    assert max(release.tables["dhc-persons-solves"]["violation"].to_pylist()) <= 0.001
    if rho_squared == "inf":
        assert text(made.select(columns)).equals(text(census.scan("person", columns).collect()))
