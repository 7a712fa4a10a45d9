"""A county in the layout of the Bureau's microdata, through PL and DHC, to microdata in that layout again."""

from pathlib import Path

import polars as pl
import pytest

from stirred.census import Census, read
from stirred.census.synthetic import write_preset
from stirred.chance import Key
from stirred.mechanisms.topdown import TopDown
from stirred.mechanisms.topdown.run import mdf
from stirred.spec.files import save

KEY = Key.for_tests(5)
BLOCKS = ("TABBLKST", "TABBLKCOU", "TABTRACTCE", "TABBLK")
PERSON = (*BLOCKS, "RTYPE", "GQTYPE", "RELSHIP", "QSEX", "QAGE", "CENHISP", "CENRACE", "LIVE_ALONE")
MAJOR = {1: 101, 2: 201, 3: 301, 4: 401, 5: 501, 6: 601, 7: 701}


def county(folder: Path) -> Path:
    """A small synthetic county as two files in the Bureau's layout."""
    write_preset("demo", folder / "own", households=300)
    census = read(folder / "own" / "census.toml")
    made = TopDown(workload="dhc-persons", names="bureau").tabulated(census, key=KEY)
    place = folder / "bureau"
    place.mkdir()
    records = pl.DataFrame(made.microdata["person"])
    code = records["county"].cast(pl.String).mode()[0]
    records = records.filter(pl.col("county").cast(pl.String) == code)
    mdf.rows("RELSHIP", records).write_csv(place / "mdf-person.txt", separator="|")
    homes = census.scan("household", ["county", "block", "kind", "gq_type", "tenure", "vacancy"]).collect()
    homes = homes.filter(pl.col("county").cast(pl.String) == code)
    block = pl.col("block").cast(pl.String)
    homes.select(
        **{name: block.str.slice(*mdf.GEOGRAPHY[name]) for name in BLOCKS},
        RTYPE=pl.when(pl.col("kind") == 3).then(4).otherwise(2),
        GQTYPE=pl.col("gq_type").cast(pl.Int64).replace_strict(MAJOR, default=0).cast(pl.String).str.zfill(3),
        TEN=pl.col("tenure"),
        VACS=pl.col("vacancy"),
    ).write_csv(place / "mdf-unit.txt", separator="|")
    return place


def through(census: Census, folder: Path, rho_squared: str | None) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The persons of PL and of the DHC that continues it, in the Bureau's layout."""
    data = folder / "packet" / "public" / "data"
    data.mkdir(parents=True)
    earlier = TopDown(workload="pl94", names="own", rho_squared=rho_squared).release(
        census, key=KEY, out=data
    )
    save(earlier.specification, folder / "packet" / "public" / "spec.json")
    (folder / "dhc").mkdir()
    dhc = TopDown(workload="dhc-persons", given=folder / "packet", names="bureau", rho_squared=rho_squared)
    release = dhc.release(census, key=KEY, out=folder / "dhc")
    assert all(check.kept for check in release.checks)
    return pl.DataFrame(earlier.microdata["person"].to_table()), texts(folder / "dhc" / "mdf-person.txt")


def texts(file: Path) -> pl.DataFrame:
    return pl.read_csv(file, separator="|", infer_schema_length=0)


@pytest.mark.slow
def test_without_noise_the_file_comes_back(tmp_path: Path) -> None:
    place = county(tmp_path)
    _, found = through(read(place), tmp_path, "inf")
    wanted = texts(place / "mdf-person.txt")
    assert found.columns == wanted.columns
    assert found.select(PERSON).sort(PERSON).equals(wanted.select(PERSON).sort(PERSON))


@pytest.mark.slow
def test_with_noise_it_agrees_with_its_redistricting_file(tmp_path: Path) -> None:
    earlier, found = through(read(county(tmp_path)), tmp_path, None)
    columns = ("block", "gq_type", "votingage", "hispanic", "race")
    mine = found.select(
        pl.concat_str(BLOCKS).alias("block"),
        (pl.col("GQTYPE").cast(pl.Int64) // 100).clip(0, 7).alias("gq_type"),
        (pl.col("QAGE").cast(pl.Int64) >= 18).cast(pl.Int64).alias("votingage"),
        pl.col("CENHISP").cast(pl.Int64).alias("hispanic"),
        pl.col("CENRACE").cast(pl.Int64).alias("race"),
    )
    theirs = earlier.select(
        pl.col("block").cast(pl.String), *(pl.col(name).cast(pl.Int64) for name in columns[1:])
    )
    assert mine.sort(columns).equals(theirs.sort(columns))
    assert found.filter(pl.col("RTYPE") == "5")["RELSHIP"].is_in(["37", "38"]).all()
