"""A county in the layout of the Bureau's microdata, through PL and DHC, to microdata in that layout again."""

from collections import Counter
from pathlib import Path

import polars as pl
import pytest

from stirred.census import Census, read
from stirred.census.synthetic import write_preset
from stirred.chance import Key
from stirred.mechanisms.topdown import TopDown
from stirred.mechanisms.topdown.run.records import (
    FIRST_QUARTERS_RELATIONSHIP,
    GEOGRAPHY,
    QUARTERS_CODES,
    make_rows,
)
from stirred.spec.files import save

KEY = Key.for_tests(5)
BLOCKS = ("TABBLKST", "TABBLKCOU", "TABTRACTCE", "TABBLK")
PERSON = (*BLOCKS, "RTYPE", "GQTYPE", "RELSHIP", "QSEX", "QAGE", "CENHISP", "CENRACE", "LIVE_ALONE")
SEVERAL = (
    (801, 802, 901),
    (801, 802, 901),
    (801, 801, 901),
    (101, 102, 105, 404, 405),
    (501, 997, 701),
    (404, 402),
)
SIZES = (1, 1, 2, 5, 9)  # residents of a facility, in turn


def county(folder: Path) -> Path:
    """A small synthetic county as two files in the Bureau's layout; some blocks have several detailed types of quarters."""
    write_preset("demo", folder / "own", households=300)
    census = read(folder / "own" / "census.toml")
    made = TopDown(workload="dhc-persons", names="bureau", replicates=0).tabulate_public(census, key=KEY)
    place = folder / "bureau"
    place.mkdir()
    records = pl.DataFrame(made.microdata["person"])
    code = records["county"].cast(pl.String).mode()[0]
    records = records.filter(pl.col("county").cast(pl.String) == code)
    added = facilities(records)
    people = added.select(pl.all().repeat_by("residents")).explode(pl.all()).drop("code", "residents")
    people = people.with_columns(pl.Series("QAGE", [17 + i % 14 for i in range(people.height)], pl.Int16))
    records = pl.concat([records, people.select(records.columns)]).sort("block")
    make_rows("RELSHIP", records).write_csv(place / "mdf-person.txt", separator="|")
    homes = census.scan("household", ["county", "block", "kind", "gq_code", "tenure", "vacancy"]).collect()
    homes = homes.filter(pl.col("county").cast(pl.String) == code)
    block = pl.col("block").cast(pl.String)
    more = added.select("county", "block", gq_code=pl.col("code").cast(pl.Int16)).with_columns(
        kind=pl.lit(3, pl.Int8), tenure=pl.lit(0, pl.Int8), vacancy=pl.lit(0, pl.Int8)
    )
    plain = [pl.col(name).cast(pl.String) for name in ("county", "block")]
    homes = pl.concat([homes.with_columns(plain), more.select(homes.columns).with_columns(plain)])
    homes.select(
        **{name: block.str.slice(*GEOGRAPHY[name]) for name in BLOCKS},
        RTYPE=pl.when(pl.col("kind") == 3).then(4).otherwise(2),
        GQTYPE=pl.col("gq_code").cast(pl.String).str.zfill(3),
        TEN=pl.col("tenure"),
        VACS=pl.col("vacancy"),
    ).write_csv(place / "mdf-unit.txt", separator="|")
    return place


def facilities(records: pl.DataFrame) -> pl.DataFrame:
    """More facilities, each with a person as its residents are, in the first blocks of the county."""
    blocks = records["block"].unique(maintain_order=True)[: len(SEVERAL)].to_list()
    pairs = [(block, code) for block, codes in zip(blocks, SEVERAL, strict=True) for code in codes]
    found = []
    for i, (block, code) in enumerate(pairs):
        one = records.filter(pl.col("block") == block).head(1)
        level = FIRST_QUARTERS_RELATIONSHIP + QUARTERS_CODES.index(code)
        found.append(
            one.with_columns(
                pl.lit(level).cast(one["RELSHIP"].dtype).alias("RELSHIP"),
                code=pl.lit(code),
                residents=pl.lit(SIZES[i % len(SIZES)]),
            )
        )
    return pl.concat(found)


def by_type(frame: pl.DataFrame) -> dict[tuple[str, str], int]:
    """Records in group quarters by block and detailed type."""
    inside = frame.filter(pl.col("GQTYPE") != "000").select(pl.concat_str(BLOCKS).alias("block"), "GQTYPE")
    return {(block, code): count for block, code, count in inside.group_by("block", "GQTYPE").len().rows()}


def through(census: Census, folder: Path, rho_squared: str | None) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The persons of PL and of the DHC that continues it, in the Bureau's layout."""
    data = folder / "packet" / "public" / "data"
    data.mkdir(parents=True)
    earlier = TopDown(workload="pl94", names="own", rho_squared=rho_squared, replicates=0).release(
        census, key=KEY, out=data
    )
    save(earlier.specification, folder / "packet" / "public" / "spec.json")
    (folder / "dhc").mkdir()
    dhc = TopDown(
        workload="dhc-persons", given=folder / "packet", names="bureau", rho_squared=rho_squared, replicates=0
    )
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
    units, residents = by_type(texts(tmp_path / "bureau" / "mdf-unit.txt")), by_type(found)
    kinds = Counter((block, min(int(code) // 100, 7)) for block, code in units)
    assert max(kinds.values()) >= 3  # several types share the sums of one kind
    assert {*residents} == {*units}
    assert all(residents[place] >= count for place, count in units.items())
