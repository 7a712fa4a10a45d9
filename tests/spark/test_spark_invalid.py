"""On Spark, too, records that break the schema are refused, or left out by households; also from addresses."""

from pathlib import Path

import polars as pl
import pytest

from stirred.census import Census, read
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
    from stirred.census import validate

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
