"""New weights from public totals: they meet the totals, need no record of the census, and fail clearly."""

import random
from pathlib import Path

import polars as pl
import pytest

from stirred import run
from stirred.census import read
from stirred.chance import Key
from stirred.errors import StirredError
from stirred.publish import parse
from stirred.publish.check import prepare
from stirred.publish.tuning import rehearse

CENSUS = """name = "survey"
[geography]
spine = ["region", "district"]
[record.household]
files = ["household.csv"]
id = "hid"
size = "size"
weight = "weight"
[record.household.variables]
size = {type = "integer", range = "1..9"}
water = {levels = ["pipe", "well"]}
[record.person]
files = ["person.csv"]
household = "hid"
of = "household"
[record.person.variables]
sex = {levels = ["1", "2"]}
"""
PLAN = """title = "survey"
census = "census.toml"
[[mechanism]]
name = "permutation-swapping"
match = ["region", "size"]
swap = ["district"]
rate = "1/5"
drop = ["weight"]
[[table]]
name = "water"
by = ["district", "water"]
weight = "calibrated_weight"
[[table]]
name = "persons"
record_type = "person"
by = ["region", "sex"]
weight = "calibrated_weight"
[weights]
recalibrate_to = ["district.csv", "water.csv"]
"""
DISTRICT = "district,total\nd0,1000\nd1,2500\nd2,500\nd3,4000\nd4,1000\nd5,1000\n"
WATER = "region,water,total\nr0,pipe,1000\nr0,well,1500\nr1,pipe,4500\nr1,well,3000\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    dice = random.Random(6)
    homes = []
    for i in range(400):
        district = dice.randrange(6)
        water = "pipe" if dice.random() < 0.2 + 0.1 * district else "well"
        homes.append(
            (i, f"r{district % 2}", f"d{district}", dice.randint(1, 3), water, 1.5 + dice.randrange(7))
        )
    frame = pl.DataFrame(homes, schema=["hid", "region", "district", "size", "water", "weight"], orient="row")
    frame.write_csv(tmp_path / "household.csv")
    person = frame.select("hid", sex=pl.int_ranges(1, pl.col("size") + 1)).explode("sex")
    person.with_columns(pl.col("sex") % 2 + 1).write_csv(tmp_path / "person.csv")
    (tmp_path / "census.toml").write_text(CENSUS)
    (tmp_path / "district.csv").write_text(DISTRICT)
    (tmp_path / "water.csv").write_text(WATER)
    return tmp_path


def test_the_new_weights_meet_the_public_totals(folder: Path) -> None:
    packet = run(parse(PLAN, folder=folder), folder / "packet", key=Key.for_tests(4))
    homes = pl.read_parquet(packet.public / "data" / "household.parquet")
    assert "weight" not in homes.columns
    assert homes["calibrated_weight"].min() > 0  # type: ignore[operator]
    for text, by in ((DISTRICT, ["district"]), (WATER, ["region", "water"])):
        wanted = pl.read_csv(text.encode()).sort(by)
        found = homes.group_by(by).agg(pl.col("calibrated_weight").sum()).sort(by)
        assert found["calibrated_weight"].to_list() == pytest.approx(wanted["total"].to_list(), rel=1e-6)
    table = pl.read_parquet(packet.public / "tables" / "water.parquet")
    assert table.columns == ["district", "water", "count", "weighted", "quote"]
    assert table["weighted"].sum() == pytest.approx(10_000)
    persons = pl.read_parquet(packet.public / "tables" / "persons.parquet")
    assert persons["weighted"].sum() == pytest.approx((homes["calibrated_weight"] * homes["size"]).sum())
    assert "public totals alone" in (packet.public / "receipt.json").read_text()


def test_the_records_are_those_of_the_run_without_weights(folder: Path) -> None:
    """The draw does not know of the weights, and the weights know only what is released."""
    with_weights = run(parse(PLAN, folder=folder), folder / "one", key=Key.for_tests(4))
    plain = PLAN.split("[[table]]")[0]
    without = run(parse(plain, folder=folder), folder / "two", key=Key.for_tests(4))
    both = [pl.read_parquet(p.public / "data" / "household.parquet") for p in (with_weights, without)]
    assert both[0].drop("calibrated_weight").equals(both[1])
    assert prepare(parse(PLAN, folder=folder), folder / "three").specification == (
        prepare(parse(plain, folder=folder), folder / "three").specification
    )


REFUSED = {
    "no file": ("district.csv", None, "holds no public totals"),
    "no total": ("district.csv", "district,sum\nd0,1\n", "holds no public totals"),
    "no number": ("district.csv", "district,total\nd0,many\n", "holds no public totals"),
    "negative": ("district.csv", "district,total\nd0,-1\nd1,5\n", "holds no public totals"),
    "twice": ("district.csv", DISTRICT + "d0,1\n", "two totals for one cell"),
    "other sum": ("district.csv", DISTRICT.replace("4000", "4001"), "contradict each other"),
    "unknown variable": ("district.csv", DISTRICT.replace("district,", "distrikt,"), "did you mean district"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_wrong_totals_are_refused_before_anything_exists(name: str, folder: Path) -> None:
    file, text, expected = REFUSED[name]
    (folder / file).unlink()
    if text is not None:
        (folder / file).write_text(text)
    before = sorted(path.name for path in folder.iterdir())
    with pytest.raises(StirredError) as caught:
        prepare(parse(PLAN, folder=folder), folder / "packet")
    assert expected in str(caught.value)
    assert "fix:" in str(caught.value)
    assert sorted(path.name for path in folder.iterdir()) == before


def test_a_released_weight_is_not_overwritten(folder: Path) -> None:
    text = PLAN.replace('drop = ["weight"]\n', "").replace("calibrated_weight", "weight")
    text += 'column = "weight"\n'
    with pytest.raises(StirredError, match="cannot be called weight"):
        prepare(parse(text, folder=folder), folder / "packet")


UNREACHABLE = {
    "a level without a total": (
        DISTRICT.replace("d5,1000\n", "").replace("d4,1000", "d4,2000"),
        "lacks totals",
    ),
    "a total without a record": (DISTRICT.replace("d5,1000", "d5,900\nd9,100"), "no record can carry"),
    "totals that cannot be met": (
        "district,total\nd0,100\nd1,100\nd2,100\nd3,100\nd4,100\nd5,9500\n",
        "no weights meet",
    ),
}


@pytest.mark.parametrize("name", UNREACHABLE)
def test_totals_that_no_weights_meet_are_a_clear_error(name: str, folder: Path) -> None:
    text, expected = UNREACHABLE[name]
    (folder / "district.csv").write_text(text)
    plan = parse(PLAN, folder=folder)
    with pytest.raises(StirredError, match=expected):
        run(plan, folder / "packet", key=Key.for_tests(4))
    assert not (folder / "packet").exists()
    (folder / "district.csv").write_text(DISTRICT)  # corrected, the same command goes on
    assert run(plan, folder / "packet", key=Key.for_tests(4)).public.exists()


def test_a_rehearsal_compares_weighted_totals(folder: Path) -> None:
    text = PLAN.replace('drop = ["weight"]\n', "").replace("calibrated_weight", "weight")
    plan = parse(text.split("[weights]")[0], folder=folder)
    found = rehearse(plan, read(folder), runs=3)
    assert set(found["table"]) == {"water", "persons"}
    assert found.filter(pl.col("table") == "persons")["RMSE"].max() == pytest.approx(0, abs=1e-6)
    assert (found.filter(pl.col("table") == "water")["coverage"] > 0.5).all()
