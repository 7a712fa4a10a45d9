"""Person files that hold the households too: they are split, and what differs within a household is named."""

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from stirred.census import Census, check, read, validate
from stirred.errors import DataError, SchemaError

FLAT = pl.DataFrame(
    {
        "hid": [7, 5, 7, 9, 9, 9],
        "region": ["a", "b", "a", "b", "b", "b"],
        "tenure": ["own", "rent", "own", None, None, None],
        "age": [40, 33, 38, 71, 70, 12],
        "sex": ["m", "f", "f", "m", "f", "m"],
    }
)
TOML = """
[geography]
spine = ["region"]
[record.household]
files = ["{file}"]
household_from = "hid"
size = "size"
variables.tenure = {{levels = ["own", "rent"], missing = "keep"}}
[record.person]
files = ["{file}"]
household = "hid"
variables.age = "0..115"
variables.sex = ["f", "m"]
"""
DOCUMENT = {
    "geography": {"spine": ["region"]},
    "record": {
        "household": {
            "household_from": "hid",
            "size": "size",
            "variables": {"tenure": {"levels": ["own", "rent"], "missing": "keep"}},
        },
        "person": {"variables": {"age": "0..115", "sex": ["f", "m"]}},
    },
}


def split(census: Census) -> None:
    assert census.count("household") == 3
    assert census.count("person") == 6
    assert census.table("household", ["region", "tenure", "size"]).to_pydict() == {
        "region": ["a", "b", "b"],
        "tenure": ["own", "rent", None],
        "size": [2, 1, 3],  # no column of the file: the persons are counted
    }
    assert set(census.columns("person")) == {"hid", "age", "sex"}
    assert census.counts("person", ["region", "sex"]).to_pydict() == {
        "region": ["a", "a", "b", "b"],
        "sex": ["f", "m", "f", "m"],
        "count": [1, 1, 2, 2],
    }
    assert not validate(census)


@pytest.mark.parametrize(
    ("file", "write"),
    [
        ("p.csv", pl.DataFrame.write_csv),
        ("p.parquet", pl.DataFrame.write_parquet),
        ("p.arrow", pl.DataFrame.write_ipc),
    ],
)
def test_a_person_file_gives_households(
    tmp_path: Path, file: str, write: Callable[[pl.DataFrame, Path], None]
) -> None:
    write(FLAT, tmp_path / file)
    (tmp_path / "census.toml").write_text(TOML.format(file=file))
    split(read(tmp_path))
    assert str(check(tmp_path)) == "no problems in 3 household records, 6 person records"


@pytest.mark.parametrize("tables", [("person",), ("household",), ("household", "person")])
def test_a_frame_gives_households(tables: tuple[str, ...]) -> None:
    split(Census.of(DOCUMENT, dict.fromkeys(tables, FLAT)))


def test_categories_are_constant_as_text() -> None:
    text = pl.col("region", "tenure", "sex")
    split(Census.of(DOCUMENT, {"person": FLAT.with_columns(text.cast(pl.Categorical))}))


def test_only_one_record_type_needs_to_name_the_file(tmp_path: Path) -> None:
    FLAT.write_csv(tmp_path / "p.csv")
    for lacking in ("household", "person"):
        lines = TOML.format(file="p.csv").split("[record.")
        kept = [
            part.replace('files = ["p.csv"]\n', "") if part.startswith(lacking) else part for part in lines
        ]
        (tmp_path / "census.toml").write_text("[record.".join(kept))
        split(read(tmp_path))


def test_reading_the_schema_makes_no_household(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    FLAT.write_csv(tmp_path / "p.csv")
    (tmp_path / "census.toml").write_text(TOML.format(file="p.csv"))
    monkeypatch.setattr("stirred.census.records.group_households", None)
    assert "size" in {v.name for v in read(tmp_path).domain.record_type("household").variables}


def test_without_declared_variables_the_constant_columns_are_the_households() -> None:
    census = Census.of(
        {
            "geography": {"spine": ["region"]},
            "record": {"household": {"household_from": "hid"}, "person": {}},
        },
        {"person": FLAT},
    )
    assert set(census.columns("household")) == {"hid", "region", "tenure"}
    assert set(census.columns("person")) == {"hid", "age", "sex"}
    assert census.counts("person", ["tenure"])["count"].to_pylist() == [3, 2, 1]


def test_columns_that_differ_within_households_are_named_without_a_value() -> None:
    moved = FLAT.with_columns(
        region=pl.Series(["SECRET1", "b", "a", "b", "b", "SECRET2"]),
        tenure=pl.Series(["own", "rent", None, None, None, None]),
    )
    census = Census.of(DOCUMENT, {"person": moved})
    with pytest.raises(DataError, match=r"region \(2 households\), tenure \(1 households\)") as caught:
        census.count("household")
    assert "SECRET" not in repr(caught.value)
    report = str(validate(census))
    assert "household.region: different values within one household (2 households)" in report
    assert "household.tenure: different values within one household (1 household)" in report
    assert "SECRET" not in report


def test_persons_without_a_household_are_counted_not_grouped(tmp_path: Path) -> None:
    FLAT.with_columns(pl.col("hid").replace(5, None)).write_csv(tmp_path / "p.csv")
    (tmp_path / "census.toml").write_text(TOML.format(file="p.csv"))
    assert read(tmp_path).count("household") == 2
    assert "person.hid: missing values (1 record)" in str(check(tmp_path))


def test_a_missing_key_and_double_variables_are_mistakes_of_the_schema(tmp_path: Path) -> None:
    FLAT.drop("hid").with_columns(hhid=1).write_csv(tmp_path / "p.csv")
    (tmp_path / "census.toml").write_text(TOML.format(file="p.csv"))
    with pytest.raises(SchemaError, match="did you mean hhid"):
        read(tmp_path)
    assert "lacks hid" in str(check(tmp_path))
    twice = {**DOCUMENT, "record": {**DOCUMENT["record"], "person": {"variables": {"tenure": "text"}}}}  # type: ignore[dict-item]
    with pytest.raises(SchemaError, match=r"record.person.variables.tenure: is a variable of household"):
        Census.of(twice, {"person": FLAT})


def test_a_join_in_parts_does_not_split_again(monkeypatch: pytest.MonkeyPatch) -> None:
    census = Census.of(DOCUMENT, {"person": FLAT})
    monkeypatch.setattr("stirred.census.records.MAX_HOUSEHOLDS_JOINED", 1)
    assert census.counts("person", ["region"])["count"].to_pylist() == [2, 4]


def test_numbers_with_a_decimal_comma(tmp_path: Path) -> None:
    (tmp_path / "h.csv").write_text("hid;income;weight\n1;10,5;0,25\n2;-3;1\n")
    (tmp_path / "census.toml").write_text(
        '[record.household]\nfiles = ["h.csv"]\ndecimal = ","\nid = "hid"\nweight = "weight"\n'
        'variables.income = "number"\n'
    )
    table = read(tmp_path).table("household", ["income", "weight"])
    assert table.to_pydict() == {"income": [10.5, -3.0], "weight": [0.25, 1.0]}
    (tmp_path / "h.csv").write_text("hid;income;weight\n1;10.5;0,25\n")
    assert "household.income: values that are not numbers (1 record)" in str(check(tmp_path))
