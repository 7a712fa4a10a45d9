"""On Spark, too, records that break the schema are refused, or left out by households; also from addresses."""

from pathlib import Path

import polars as pl
import pytest

from stirred.census import Census, read, validate
from stirred.census.validation import Passes
from stirred.chance import Key
from stirred.engine import Local, Spark
from stirred.errors import DataError, PrivacyError
from stirred.mechanisms.swap import PermutationSwapping
from unit.census.test_refused import MARK, NUMBER, TOML, homes, persons, whole
from unit.swapping import test_parts as parts

pytestmark = pytest.mark.spark("local")

PSA = PermutationSwapping(match=["region"], swap=["district"], rate="1/4")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Parquet files with two faulty households, named by paths and by addresses."""
    first, second = homes(), persons()
    first[3, "tenure"] = MARK
    second[0, "age"] = NUMBER
    for name, frame in (("homes", first), ("persons", second)):
        frame.cast(
            {"hid": pl.Int64, **({"size": pl.Int64} if name == "homes" else {"age": pl.Int64})}
        ).write_parquet(tmp_path / f"{name}.parquet")
    text = TOML.replace(".csv", ".parquet")
    (tmp_path / "census.toml").write_text(text)
    (tmp_path / "far.toml").write_text(text.replace('files = ["', f'files = ["file:{tmp_path}/'))
    return tmp_path


# files beside the census are read as those of the sound census below
@pytest.mark.parametrize("name", [pytest.param("census.toml", marks=pytest.mark.slow), "far.toml"])
def test_spark_refuses_or_drops_as_one_machine_does(spark: Spark, folder: Path, name: str) -> None:
    with pytest.raises(DataError, match="the records break 2 rules") as caught:
        PSA.release(spark.read(folder / name), key=Key.for_tests(1), engine=spark)
    assert not any(secret in str(caught.value) for secret in (MARK, NUMBER))
    clean = spark.read(folder / name).check(invalid="drop")
    here = read(folder / "census.toml").check(invalid="drop")
    assert clean.dropped_counts == here.dropped_counts == {"household": 2, "person": 2}
    assert spark.census(clean).check(invalid="drop").dropped_counts == clean.dropped_counts
    by = ["district", "tenure"]
    assert clean.counts("household", by).equals(here.counts("household", by))
    released = [
        whole(PSA.release(census, key=Key.for_tests(1), engine=engine).microdata["household"])
        for census, engine in ((clean, spark), (here, Local()))
    ]
    assert rows(released[0]) == rows(released[1])


@pytest.mark.parametrize("name", parts.SWAPS_NOBODY)
def test_spark_refuses_a_draw_in_which_nobody_moved(spark: Spark, name: str, tmp_path: Path) -> None:
    census = spark.census(parts.census(kinds=""))
    with pytest.raises(PrivacyError, match="nobody changed places"):
        parts.SWAPS_NOBODY[name].release(census, key=parts.KEY, engine=spark, out=tmp_path)
    assert not list(tmp_path.rglob("*.parquet"))


def rows(table: object) -> list[tuple[object, ...]]:
    """The rows in one order."""
    frame = pl.DataFrame(table)
    return sorted(frame.select(sorted(frame.columns)).rows(), key=repr)


def test_a_sound_census_is_checked_once_on_spark(
    spark: Spark, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    calls: list[Census] = []

    def counted(census: Census, **options: object) -> object:
        calls.append(census)
        return validate(census, **options)  # type: ignore[arg-type]

    monkeypatch.setattr("stirred.census.census.validate", counted)
    homes().cast({"hid": pl.Int64, "size": pl.Int64}).write_parquet(folder / "homes.parquet")
    persons().cast({"hid": pl.Int64, "age": pl.Int64}).write_parquet(folder / "persons.parquet")
    census = spark.read(folder / "census.toml").check()
    promise = PSA.specification(census, engine=spark)
    assert PSA.release(census, key=Key.for_tests(1), engine=spark).specification == promise
    assert len(calls) == 1


EVERY_RULE = """[geography]
spine = ["state", "county"]
[record.household]
files = ["homes.parquet"]
id = "hid"
size = "size"
[record.household.variables]
tenure = ["own", "rent"]
size = "1..9"
[record.person]
files = ["persons.parquet"]
id = "pid"
household = "hid"
of = "household"
[record.person.variables]
sex = ["f", "m"]
age = "0..115"
[[rule]]
name = "children own nothing"
record = "person"
forbid = {age = "0..14", tenure = ["own"]}
[[rule]]
name = "men of 99"
record = "person"
forbid = {age = "99..99", sex = ["m"]}
"""


def write_parquet_census(folder: Path, *, broken: bool, link: pl.DataType) -> Path:
    """Write a census with persons out of order; a broken one breaks every kind of rule."""
    size = [1 + i % 3 for i in range(60)]
    owner = [i for i, number in enumerate(size) for _ in range(number)]
    first: dict[str, list[object]] = {
        "hid": list(range(60)),
        "state": [str(i // 30) for i in range(60)],
        "county": [f"{i // 10:02d}" for i in range(60)],
        "size": size,
        "tenure": ["rent"] * 60,
    }
    second: dict[str, list[object]] = {
        "pid": list(range(120)),
        "hid": owner,
        "sex": ["f"] * 120,
        "age": [30] * 120,
    }
    if broken:
        first["hid"][7] = first["hid"][5]  # used twice; its persons are orphans
        first["county"][40] = "00"  # in two states
        first["county"][41] = "04 "  # looks like 04
        first["tenure"][3] = "castle"
        first["tenure"][20] = "own"
        second["age"][owner.index(20)] = 3  # a child that owns
        second["hid"][90] = 1000  # an orphan
        second["age"][50], second["sex"][50] = 99, "m"
        second["age"][51] = 200
        second["pid"][3] = 0
    homes = pl.DataFrame(first).with_columns(pl.col("hid").cast(pl.Int64))
    people = (
        pl.DataFrame(second).sample(fraction=1.0, shuffle=True, seed=1).with_columns(pl.col("hid").cast(link))
    )
    homes.write_parquet(folder / "homes.parquet", row_group_size=16)
    people.write_parquet(folder / "persons.parquet", row_group_size=16)
    (folder / "census.toml").write_text(EVERY_RULE)
    return folder / "census.toml"


@pytest.mark.parametrize(
    ("link", "broken"),
    [(pl.Int32(), True), (pl.Int64(), False), pytest.param(pl.String(), True, marks=pytest.mark.slow)],
)
def test_executors_hold_the_records_against_the_schema(
    spark: Spark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, link: pl.DataType, broken: bool
) -> None:
    """They find what one machine finds, in the same words, and no pass over the records is made here."""
    path = write_parquet_census(tmp_path, broken=broken, link=link)
    here = validate(read(path))
    assert len(here) == (9 if broken else 0), here
    passes = [name for name in vars(Passes) if not name.startswith("_")]
    assert len(passes) == 5
    for name in passes:
        monkeypatch.setattr(Passes, name, None)
    census = spark.read(path)
    before = spark.gathered_rows
    there = validate(census, passes=census._passes())
    assert str(there) == str(here)
    assert dict(there.checked) == dict(here.checked) == {"household": 60, "person": 120}
    assert spark.gathered_rows - before < 60


def test_what_executors_cannot_read_is_told_as_by_one_machine(spark: Spark, tmp_path: Path) -> None:
    path = write_parquet_census(tmp_path, broken=False, link=pl.Int64())
    persons = tmp_path / "persons.parquet"
    body = bytearray(persons.read_bytes())
    body[40:60] = bytes(20)  # the footer is whole, a page is not
    persons.write_bytes(body)
    here = validate(read(path))
    census = spark.read(path)
    assert here
    assert str(validate(census, passes=census._passes())) == str(here)
