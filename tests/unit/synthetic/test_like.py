"""Stand-ins from a codebook: valid records of any country's census, without opening a file of records."""

from pathlib import Path

import polars as pl
import pytest

from stirred.census import check, read
from stirred.census.synthetic import write_preset
from stirred.census.synthetic.stand_in import write_stand_in
from stirred.chance import Key
from stirred.errors import InputError
from stirred.mechanisms.swap import PermutationSwapping

GHANA = """
name = "living-standards"
largest_household = 9

[geography]
spine = ["region", "district", "ea"]

[record.household]
files = ["no-such-file.csv"]
id = "hid"
size = "size"
weight = "wgt"

[record.household.variables]
size = {column = "HHSIZE", range = "1..9"}
roof = ["tin", "grass", "tiles"]
income = "number"
water = {codes_from = "water.csv"}

[record.person]
files = ["nor-this.sav"]
id = "pid"
household = "hid"

[record.person.variables]
sex = ["f", "m"]
age = "0..99"
work = {levels = ["none", "farm", "trade"], missing = {policy = "level", codes = ["unknown"]}}

[[rule]]
name = "children do not trade"
record = "person"
forbid = {age = "0..9", work = ["trade", "farm"]}
"""


@pytest.fixture
def codebook(tmp_path: Path) -> Path:
    (tmp_path / "census.toml").write_text(GHANA)
    (tmp_path / "water.csv").write_text("code,label\n1,pipe\n2,well\n3,river\n")
    return tmp_path / "census.toml"


def test_a_stand_in_is_a_valid_census_and_can_be_swapped(codebook: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    told = write_stand_in(codebook, out, households=600, areas={"region": 4, "district": 9, "ea": 30})
    assert not check(out / "census.toml")  # no problem of any kind, the rule included
    census = read(out)
    assert census.count("household") == 600
    assert census.count("person") == pl.from_arrow(census.table("household", ["size"]))["size"].sum()
    assert {"1", "2", "3"} >= set(census.counts("household", ["water"])["water"].to_pylist())
    assert "no-such-file" not in str(told) + (out / "census.toml").read_text()
    assert "no file of records was opened" in (out / "census.toml").read_text()
    psa = PermutationSwapping(match=["region", "size"], swap=["district", "ea"], rate="1/10", drop=["income"])
    assert psa.release(census, key=Key.for_tests(1)).checks


def test_areas_nest_and_levels_differ_between_them(codebook: Path, tmp_path: Path) -> None:
    write_stand_in(codebook, tmp_path / "out", households=5_000, areas={"region": 3, "district": 7, "ea": 20})
    homes = pl.read_parquet(tmp_path / "out" / "household.parquet")
    assert homes.group_by("ea").agg(pl.col("district", "region").n_unique()).select(
        (pl.col("district", "region") == 1).all()
    ).row(0) == (True, True)
    shares = homes.group_by("district").agg((pl.col("roof") == "tin").mean())["roof"]
    assert shares.max() - shares.min() > 0.1


def test_published_tables_are_followed(codebook: Path, tmp_path: Path) -> None:
    table = tmp_path / "roof.csv"
    rows = ["1,tin,900", "1,grass,100", "2,tiles,50", "3,tin,1"]
    table.write_text(
        "region,roof,count,quote\n" + "".join(f"{row},count\n" for row in rows)
    )  # as in a packet
    write_stand_in(codebook, tmp_path / "out", households=4_000, tables=[table])
    homes = pl.read_parquet(tmp_path / "out" / "household.parquet")
    first = homes.filter(pl.col("region") == "1")["roof"]
    assert abs((first == "tin").mean() - 0.9) < 6 * (0.09 / first.len()) ** 0.5  # six sd: 2e-9
    assert set(homes.filter(pl.col("region") == "2")["roof"]) == {"tiles"}


def test_the_same_seed_gives_the_same_stand_in(codebook: Path, tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        write_stand_in(codebook, tmp_path / name, households=300, seed=seed)
    a, b, c = ((tmp_path / name / "household.parquet").read_bytes() for name in "abc")
    assert a == b != c


def test_a_census_with_a_file_of_areas_and_rules(tmp_path: Path) -> None:
    """The synthetic demo's own codebook: kinds of homes, a file of areas, detailed codes, rules over two records."""
    write_preset("demo", tmp_path / "demo", households=200)
    for folder in ("household", "person"):
        for file in (tmp_path / "demo" / folder).glob("*.parquet"):
            file.unlink()
    write_stand_in(tmp_path / "demo", tmp_path / "out", households=400)
    problems = check(tmp_path / "out" / "census.toml")
    assert not problems, str(problems)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"areas": {"county": 3}}, "not a level of the spine"),
        ({"areas": {"region": 9, "district": 3}}, "too few"),
        ({"households": 0}, "too few"),
    ],
)
def test_wrong_figures_are_refused(
    codebook: Path, tmp_path: Path, more: dict[str, object], words: str
) -> None:
    with pytest.raises(InputError, match=words):
        write_stand_in(codebook, tmp_path / "out", **more)  # type: ignore[arg-type]
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("text", ["region,roof\n1,tin\n", "region,colour,count\n1,red,5\n"])
def test_a_wrong_table_is_refused(codebook: Path, tmp_path: Path, text: str) -> None:
    (tmp_path / "table.csv").write_text(text)
    with pytest.raises(InputError, match="cannot be used"):
        write_stand_in(codebook, tmp_path / "out", tables=[tmp_path / "table.csv"])
