"""Real public files are read whole: every total is published or computed by other programs, never our own output.

The extracts in tests/data are read by every run; the whole files, which are larger, by the slow tests.
"""

from pathlib import Path

import polars as pl
import pytest

from shared_data import extract, shared
from stirred.census import Census, expand, pl94, ppmf, read, validate
from stirred.frames import frame_of

CATEGORIES = ("hisp", "white", "black", "aian", "asian", "nhpi", "other", "two")


def distinct(census: Census, record_type: str, level: str) -> int:
    return census.counts(record_type, [level]).num_rows


def total(census: Census, record_type: str, column: str) -> int:
    return int(census.scan(record_type, [column]).sum().collect().item())


def test_hawaii_2020_block_groups() -> None:
    schema = {
        "geography": {"preset": "us", "code": "geoid", "spine": ["state", "county", "tract", "block_group"]},
        "record": {"group": {"id": "geoid", "variables": {"pop": "integer"}}},
    }
    groups = pl.scan_csv(extract("hawaii_block_groups.csv"), schema_overrides={"geoid": pl.String})
    census = Census.of(schema, {"group": groups})
    assert (census.count("group"), distinct(census, "group", "tract")) == (1_083, 461)
    counties = census.scan("group", ["county", "pop"]).group_by("county").sum().sort("county").collect()
    # published: Hawaii, Honolulu, Kalawao, Kauai and Maui counties
    assert counties["pop"].to_list() == [200_629, 1_016_508, 82, 73_298, 164_754]
    assert total(census, "group", "pop") == 1_455_271
    assert not validate(census)


@pytest.mark.slow
def test_hawaii_2020_blocks() -> None:
    columns = {f"{kind}_{name}": "integer" for kind in ("pop", "vap") for name in CATEGORIES}
    rules = [
        {
            "name": f"{kind} by category",
            "record": "block",
            "total": kind,
            "parts": [f"{kind}_{n}" for n in CATEGORIES],
        }
        for kind in ("pop", "vap")
    ]
    rules += [
        {"name": f"adults are persons: {n}", "record": "block", "at_most": [f"vap_{n}", f"pop_{n}"]}
        for n in CATEGORIES
    ]
    schema = {
        "name": "Hawaii 2020",
        "geography": {"preset": "us", "code": "geoid"},
        "record": {"block": {"id": "geoid", "variables": {"pop": "integer", "vap": "integer", **columns}}},
        "rule": rules,
    }
    census = Census.of(schema, {"block": pl.scan_parquet(shared("hi2020", "blocks.parquet"))})
    assert census.count("block") == 14_732
    assert total(census, "block", "pop") == 1_455_271
    assert total(census, "block", "vap") == 1_155_905
    assert distinct(census, "block", "county") == 5
    assert distinct(census, "block", "tract") == 461
    assert distinct(census, "block", "block_group") == 1_083
    assert census.counts("block", ["county"], {"county": ["15005"]})["count"].to_pylist() == [50]
    assert not validate(census)


@pytest.fixture(scope="module")
def washington() -> Census:
    above = ["state", "county", "tract"]
    schema = {
        "name": "Washington 2010",
        "geography": {
            "preset": "us",
            "level": {
                "county": {"columns": above[:2]},
                "tract": {"columns": above},
                "block_group": {"columns": [*above, "block_group"]},
                "block": {"columns": [*above, "block"]},
            },
        },
        "record": {"household": {"id": "household_id", "variables": {"size": "1..7"}}},
    }
    table = expand(
        pl.scan_parquet(shared("wa2010", "blocks.parquet")),
        {f"hh{k}": {"size": k} for k in range(1, 8)},
        keep=["state", "county", "tract", "block_group", "block"],
        number="household_id",
    )
    return Census.of(schema, {"household": table})


@pytest.mark.slow
def test_washington_2010_expands_to_one_record_per_household(washington: Census) -> None:
    assert washington.count("household") == 1_454_695
    assert not validate(washington)
    groups = washington.counts("household", ["block_group"])
    cells = washington.counts("household", ["block_group", "size"])
    assert max(groups["count"].to_pylist()) == 1_850
    assert max(cells["count"].to_pylist()) == 1_187
    largest = pl.from_arrow(cells).sort("count").row(-1)
    assert largest[0][:5] == "53033"


@pytest.mark.slow
def test_washington_2010_counties(washington: Census) -> None:
    # facts: King 789,232; Kitsap 97,220; Pierce 299,918; Snohomish 268,325
    counts = washington.counts("household", ["county"]).to_pydict()
    expected = {"53033": 789_232, "53035": 97_220, "53053": 299_918, "53061": 268_325}
    assert dict(zip(counts["county"], counts["count"], strict=True)) == expected


@pytest.mark.slow
def test_washington_2010_join_of_sizes_and_race() -> None:
    schema = {
        "geography": {"preset": "us", "code": "geoid"},
        "record": {"block": {"id": "geoid"}},
        "rule": [
            {
                "name": "sizes",
                "record": "block",
                "total": "households",
                "parts": [f"hh{k}" for k in range(1, 8)],
            },
            {"name": "pop", "record": "block", "total": "pop", "parts": [f"pop_{n}" for n in CATEGORIES]},
            {"name": "vap", "record": "block", "total": "vap", "parts": [f"vap_{n}" for n in CATEGORIES]},
        ],
    }
    census = Census.of(schema, {"block": pl.scan_parquet(shared("wa2010", "blocks.parquet"))})
    assert census.count("block") == 66_234
    assert distinct(census, "block", "tract") == 776
    assert distinct(census, "block", "block_group") == 2_647
    assert [total(census, "block", c) for c in ("households", "pop", "vap")] == [
        1_454_695,
        3_690_942,
        2_848_650,
    ]
    assert not validate(census)


@pytest.mark.slow
def test_washington_codes_that_repeat_between_counties_are_no_tree() -> None:
    # Tract and block codes of that file are local to their parents: read as they stand they are no tree.
    census = Census.of(
        {"geography": {"preset": "us"}, "record": {"block": {}}},
        {"block": pl.scan_parquet(shared("wa2010", "blocks.parquet"))},
    )
    rules = {(problem.column, problem.of) for problem in validate(census).problems}
    assert ("tract", "areas") in rules
    assert ("block_group", "areas") in rules


@pytest.mark.slow
def test_washington_sample_from_csv(tmp_path: object) -> None:
    document = {
        "household": pl.scan_csv(shared("wa2010", "HHsample.csv"), infer_schema=False),
        "person": pl.scan_csv(shared("wa2010", "Personsample.csv"), infer_schema=False),
    }
    schema = {
        "record": {
            "household": {"id": "serialno", "variables": {"HHSz": "1..7", "PUMANO": "text"}},
            "person": {"household": "serialno", "variables": {"AgeGrp": [1, 2], "PNUM": "integer"}},
        }
    }
    census = Census.of(schema, document)
    assert (census.count("household"), census.count("person")) == (14_360, 34_996)
    assert not validate(census)
    assert census.counts("person", ["PUMANO"]).num_rows == 27


OREGON = """
name = "Oregon 2000, 5 % sample"
[geography]
spine = ["PUMA5"]
[record.household]
files = ["households.parquet"]
id = "SERIALNO"
size = "PERSONS"
weight = "HWEIGHT"
kind = {column = "UNITTYPE", housing_units = [0], group_quarters = [1, 2]}
[record.household.variables]
UNITTYPE = [0, 1, 2]
PERSONS = "0..17"
BLDGSZ.levels = ["01", "02", "03", "04", "05", "06", "07", "08", "09", "10"]
BLDGSZ.missing = {policy = "level", empty_as = "-"}
HINC = "number"
[record.person]
files = ["persons.parquet"]
household = "SERIALNO"
[record.person.variables]
AGE = "0..93"
WRKLYR = [0, 1, 2]
INCTOT = {type = "number", missing = "keep"}
[[rule]]
name = "nobody under 16 is asked about work"
record = "person"
forbid = {AGE = "0..15", WRKLYR = [1, 2]}
"""


def oregon(folder: Path, households: Path, persons: Path) -> Census:
    text = OREGON.replace('"households.parquet"', f'"{households.as_posix()}"')
    (folder / "census.toml").write_text(text.replace('"persons.parquet"', f'"{persons.as_posix()}"'))
    return read(folder / "census.toml")


def test_two_areas_of_the_oregon_sample(tmp_path: Path) -> None:
    census = oregon(tmp_path, extract("oregon_households.parquet"), extract("oregon_persons.parquet"))
    assert (census.count("household"), census.count("person")) == (3_624, 8_764)
    assert distinct(census, "household", "PUMA5") == distinct(census, "person", "PUMA5") == 2
    assert census.counts("household", [], {"PERSONS": ["0"]})["count"].to_pylist() == [155]
    assert census.counts("household", ["BLDGSZ"], {"BLDGSZ": ["-"]})["count"].to_pylist() == [67]
    occupied = [str(size) for size in range(1, 18)]
    weighted = census.sum_weights("household", [], {"UNITTYPE": ["0"], "PERSONS": occupied})
    assert weighted["weight"].to_pylist() == [83_592]
    assert not validate(census)


@pytest.mark.slow
def test_oregon_pums_households_with_persons(tmp_path: Path) -> None:
    folder = shared("pums2000_oregon", "households.parquet").parent
    census = oregon(tmp_path, folder / "households.parquet", folder / "persons.parquet")
    assert (census.count("household"), census.count("person")) == (76_516, 171_666)
    assert distinct(census, "household", "PUMA5") == 27
    assert distinct(census, "person", "PUMA5") == 27
    assert census.counts("household", [], {"PERSONS": ["0"]})["count"].to_pylist() == [5_949]
    assert census.counts("household", ["BLDGSZ"], {"BLDGSZ": ["-"]})["count"].to_pylist() == [3_881]
    occupied = [str(size) for size in range(1, 18)]
    weighted = census.sum_weights("household", [], {"UNITTYPE": ["0"], "PERSONS": occupied})
    assert weighted["weight"].to_pylist() == [1_334_413]
    # README: serial numbers unique, every person has a unit, persons per unit = PERSONS: no exceptions
    assert not validate(census)
    assert census.domain.largest_household == 17


def test_pl94_171_of_two_tracts() -> None:
    folder = extract("pl94")
    for level, areas in (("750", 93), ("150", 7), ("140", 2)):
        census = pl94(folder, summary_level=level)
        assert census.count("area") == areas
        sums = [total(census, "area", cell) for cell in ("P0010001", "P0030001", "P0050001", "H0010001")]
        assert sums == [6_373, 4_633, 2, 2_531]  # by awk, from the fields of the files
        assert not validate(census)
    assert total(pl94(folder, summary_level="040"), "area", "P0010001") == 614_053


@pytest.mark.slow
def test_pl94_171_legacy_files() -> None:
    folder = shared("pl94_format")
    blocks = pl94(folder)
    assert blocks.count("area") == 569
    # pop 29,225, vap 22,713, GQ 995, housing units 11,425 at blocks, block groups and tracts alike
    for level, areas in (("750", 569), ("150", 28), ("140", 7)):
        census = pl94(folder, summary_level=level)
        assert census.count("area") == areas
        sums = [total(census, "area", cell) for cell in ("P0010001", "P0030001", "P0050001", "H0010001")]
        assert sums == [29_225, 22_713, 995, 11_425]
        assert not validate(census)
    assert total(pl94(folder, summary_level="040"), "area", "P0010001") == 614_053
    assert total(pl94(folder, summary_level="050"), "area", "P0010001") == 614_053
    assert distinct(blocks, "area", "block_group") == 28
    assert distinct(blocks, "area", "tract") == 7


def test_synthetic_guernsey_in_the_layout_of_a_ppmf(tmp_path) -> None:  # type: ignore[no-untyped-def]
    census = ppmf(extract("guernsey_synthetic_ppmf.parquet"))
    assert census.count("person") == 6_753
    assert census.counts("person", ["CENHISP"])["count"].to_pylist() == [6_666, 87]
    quarters = census.counts("person", ["GQTYPE_PL"]).to_pydict()
    by_type = dict(zip(quarters["GQTYPE_PL"], quarters["count"], strict=True))
    assert (by_type["2"], sum(count for code, count in by_type.items() if code != "0")) == (7, 160)
    assert census.counts("person", ["county"])["county"].to_pylist() == ["39059"]
    assert not validate(census)
    text = tmp_path / "ppmf.txt"  # as the Bureau writes it
    frame = pl.read_parquet(extract("guernsey_synthetic_ppmf.parquet"))
    text.write_text("# a comment line\n" + frame.write_csv(separator="|"))
    by = ["block", "CENRACE"]
    assert ppmf(text).counts("person", by).equals(census.counts("person", by))


@pytest.mark.slow
def test_guernsey_ppmf() -> None:
    census = ppmf(shared("guernsey2010", "ppmf_20210608_persons.parquet"))
    assert census.count("person") == 40_085
    assert census.counts("person", ["CENHISP"])["count"].to_pylist()[1] == 337
    quarters = census.counts("person", ["GQTYPE_PL"]).to_pydict()
    by_type = dict(zip(quarters["GQTYPE_PL"], quarters["count"], strict=True))
    assert by_type["2"] == 19  # juvenile
    assert sum(count for code, count in by_type.items() if code != "0") == 517
    assert census.counts("person", ["county"])["county"].to_pylist() == ["39059"]
    assert not validate(census)


@pytest.mark.slow
def test_guernsey_ppmf_as_the_bureau_writes_it(tmp_path) -> None:  # type: ignore[no-untyped-def]
    frame = pl.read_parquet(shared("guernsey2010", "ppmf_20210608_persons.parquet")).drop("geoid")
    text = tmp_path / "ppmf.txt"
    text.write_text("# a comment line\n" + frame.write_csv(separator="|"))
    census = ppmf(text)
    assert census.count("person") == 40_085
    again = ppmf(shared("guernsey2010", "ppmf_20210608_persons.parquet"))
    by = ["block", "CENRACE"]
    assert census.counts("person", by).equals(again.counts("person", by))


def rhode_island(blocks: pl.LazyFrame, districts: Path) -> Census:
    beside = {"of": "block", "key": "geoid", "files": [districts.as_posix()]}
    schema = {
        "geography": {"preset": "us", "code": "geoid", "off_spine": {"vtd": beside}},
        "record": {"block": {"id": "geoid", "variables": {"pop": "integer"}}},
    }
    return Census.of(schema, {"block": blocks})


def cut_groups(census: Census) -> int:
    pieces = frame_of(census.counts("block", ["block_group", "vtd"]))
    return pieces.group_by("block_group").len().filter(pl.col("len") > 1).height


def test_voting_districts_of_bristol_county_cut_block_groups() -> None:
    blocks = pl.scan_csv(extract("bristol_blocks.csv"), schema_overrides={"geoid": pl.String})
    census = rhode_island(blocks, extract("bristol_block_vtd.csv"))
    assert census.count("block") == 1_074
    assert total(census, "block", "pop") == 50_793  # published
    assert census.counts("block", ["vtd"]).num_rows == 17
    assert distinct(census, "block", "block_group") == 37
    assert not validate(census)
    assert cut_groups(census) == 27


@pytest.mark.slow
def test_rhode_island_voting_districts_cut_block_groups() -> None:
    blocks = pl.scan_parquet(shared("us2020", "ri_blocks.parquet"))
    census = rhode_island(blocks, shared("us2020", "ri_block_vtd.csv"))
    assert census.count("block") == 25_649
    assert total(census, "block", "pop") == 1_097_379
    assert census.counts("block", ["vtd"]).num_rows == 423
    assert distinct(census, "block", "block_group") == 792
    assert not validate(census)
    assert cut_groups(census) == 517
