"""Census.of without a schema: frames of any library are described, and what was guessed is said."""

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as pads
import pytest

from stirred.census import Census, read, validate
from stirred.chance import Key
from stirred.errors import DataError, InputError, SchemaError
from stirred.mechanisms.swap import PermutationSwapping
from unit.census.surveys import austria, ghana

MAKERS: dict[str, Callable[[pl.DataFrame], Any]] = {
    "polars": lambda frame: frame,
    "lazy": lambda frame: frame.lazy(),
    "pandas": lambda frame: frame.to_pandas(),
    "arrow": lambda frame: frame.to_arrow(),
    "duckdb": lambda frame: duckdb.from_arrow(frame.to_arrow()),
    "columns": lambda frame: frame.to_dict(as_series=False),
    "rows": lambda frame: frame.to_dicts(),
}


@pytest.mark.parametrize("library", MAKERS)
def test_one_table_of_any_library(library: str) -> None:
    census = Census.of(MAKERS[library](austria()))
    assert census.schema.spine == ("region",)
    home = census.schema.record("household")
    assert (home.id, home.size, home.weight) == ("hid", "size", "weight")
    assert "household: hid is the identifier (unique, named like one)" in census.guesses
    assert any("not decided" in guess for guess in census.guesses)
    assert census.counts("household", ["region"])["count"].to_pylist() == [
        row["len"] for row in austria().group_by("region").len().sort("region").to_dicts()
    ]


@pytest.mark.parametrize("library", MAKERS)
def test_households_and_persons_are_linked(library: str) -> None:
    homes, persons = ghana()
    census = Census.of({"household": MAKERS[library](homes), "person": MAKERS[library](persons)})
    assert census.schema.spine == ("region", "district", "ea")
    assert census.schema.record("person").household == "hhid"
    assert sum(census.counts("person", ["region"])["count"].to_pylist()) == persons.height
    assert not validate(census)


def test_a_flat_table_gives_households_and_persons() -> None:
    homes, persons = ghana()
    flat = persons.join(homes, on="hhid", how="left", maintain_order="left")
    for given in (flat, {"person": flat}, {"household": flat}, {"": flat}):
        census = Census.of(given)
        assert census.schema.record_types == ("household", "person")
        assert census.count("household") == homes.height
        assert set(census.columns("person")) == {"hhid", "hhid+pid", "sex", "age"}
        assert any("hhid tells the households apart" in guess for guess in census.guesses)
        again = Census.of(census.describe(), flat)
        assert again.counts("person", ["ea"]).equals(census.counts("person", ["ea"]))


def test_the_description_is_edited_and_given_back(tmp_path: Path) -> None:
    homes, persons = ghana()
    tables = {"household": homes, "person": persons}
    document = Census.of(tables).describe()
    document["record"]["household"]["variables"]["water"] = "1..7"
    census = Census.of(document, tables)
    assert census.guesses == ()
    assert census.schema.record("household").variable("water").levels == range(1, 8)
    with pytest.raises(DataError, match=r"household.water: values outside the listed levels"):
        census.require_valid()
    homes.write_parquet(tmp_path / "h.parquet")
    persons.write_parquet(tmp_path / "p.parquet")
    document["record"]["household"]["files"] = ["h.parquet"]
    document["record"]["person"]["files"] = ["p.parquet"]
    (tmp_path / "census.toml").write_text(document.toml(), encoding="utf-8")
    assert read(tmp_path).counts("person", ["ea"]).equals(census.counts("person", ["ea"]))


def test_describe_writes_a_schema_that_was_given() -> None:
    document = {"geography": {"spine": ["region"]}, "record": {"household": {"id": "hid"}}}
    census = Census.of(document, {"household": austria()})
    assert census.guesses == ()
    assert Census.of(census.describe(), {"household": austria()}).schema == census.schema


def test_levels_come_from_the_records_only_when_asked_for() -> None:
    frame = austria().with_columns(tenure=pl.lit("own"), kind=pl.lit("b").cast(pl.Enum(["a", "b"])))
    shy, bold = Census.of(frame), Census.of(frame, levels="records")
    assert shy.schema.record("household").variable("tenure").levels is None
    assert bold.schema.record("household").variable("tenure").levels == ("own",)
    for census in (shy, bold):  # a type that lists its levels is a codebook
        assert census.schema.record("household").variable("kind").levels == ("a", "b")
        assert not validate(census)


def test_truth_values_dates_and_categories_are_described() -> None:
    frame = austria().with_columns(
        owner=pl.col("size") > 2,
        seen=pl.date(2020, 1, 1),
        kind=pl.col("urban").cast(pl.String).cast(pl.Categorical),
        lots=pl.concat_list("size", "urban"),
    )
    census = Census.of(frame.drop("lots"), levels="records")
    assert census.schema.record("household").variable("owner").levels == ("0", "1")
    assert census.schema.record("household").variable("kind").levels == ("1", "2", "3")
    assert not validate(census)
    assert set(census.counts("household", ["owner"])["owner"].to_pylist()) == {"0", "1"}
    assert "lots" not in Census.of(frame).columns("household")


@pytest.mark.parametrize(
    ("columns", "kind"),
    [
        ({"x": [None] * 30}, "text"),
        ({"x": []}, "text"),
        ({"x": [float("nan"), 1.0] * 20}, "number"),
        ({"x": [1e300, 2.0] * 20}, "number"),
        ({"x": ["12345678901234567890", "12345678901234567891"] * 20}, "text"),
        ({"x": ["007", "12"] * 20}, "text"),
        ({"x": ["1e5", "2.5"] * 20}, "number"),
        ({"x": ["-3", "12"] * 20}, "integer"),
        ({"x": [2**63, 2**63 + 1] * 20}, "integer"),
    ],
)
def test_odd_columns_have_the_type_that_loses_nothing(columns: dict[str, list[Any]], kind: str) -> None:
    assert Census.of(columns).schema.record("household").variable("x").kind == kind
    census = Census.of(columns, levels="records")
    assert census.count("household") == len(columns["x"])
    if not any(isinstance(value, float) for value in columns["x"]):
        assert not validate(census)


def test_names_that_a_document_uses_are_names_of_columns_too() -> None:
    frame = pl.DataFrame(
        {"#": ["x", "y"] * 20, "count": [1, 2] * 20, "record": [1, 2] * 20, 'a "b"': [1.5] * 40}
    )
    census = Census.of(frame)
    assert set(census.columns("household")) == {"#", "count_value", "record", 'a "b"'}
    assert set(tomllib.loads(census.describe().toml())["record"]["household"]["variables"]) == set(
        census.columns("household")
    )


def test_a_table_with_nothing_but_identifying_numbers_is_refused() -> None:
    with pytest.raises(SchemaError, match="every column of the file is left out"):
        Census.of({"x": [k + 0.5 for k in range(50)]}).count("household")


def test_a_schema_alone_is_no_census() -> None:
    schema = Census.of({}, {"household": austria()}).schema
    for given in (schema, {"geography": {"spine": ["region"]}}):
        with pytest.raises(InputError, match="a census needs tables"):
            Census.of(given)
    with pytest.raises(InputError, match="cannot read a schema from DataFrame"):
        Census.of(pd.DataFrame({"a": [1]}), {"household": austria()})
    homes, persons = ghana()
    with pytest.raises(InputError, match="one table was given for several record types"):
        Census.of(Census.of({"household": homes, "person": persons}).describe(), homes)


def test_no_value_is_in_guesses_or_errors() -> None:
    frame = austria().with_columns(tenure=pl.lit("SECRET"))
    assert "SECRET" not in " ".join(Census.of(frame, levels="records").guesses)
    with pytest.raises(DataError) as caught:
        Census.of([{"a": 1}, {"a": "SECRET"}])
    assert "SECRET" not in repr(caught.value)


def test_a_flat_frame_gives_the_release_of_two_tables() -> None:
    homes, persons = ghana()
    flat = persons.join(homes, on="hhid", how="left", maintain_order="left")
    mechanism = PermutationSwapping(
        match=["region", "hsize"], swap=["district", "ea"], rate="1/2", drop=["loc", "clustwgt"]
    )
    one, two = (
        mechanism.release(Census.of(tables), key=Key.for_tests(1))
        for tables in (flat, {"household": homes, "person": persons})
    )
    assert one.specification == two.specification
    for name in ("household", "person"):
        assert _table(one.microdata[name]).equals(_table(two.microdata[name]))
    # a person that kept its place would undo the swap
    assert not {"region", "district", "ea", "loc", "clustwgt"} & set(one.microdata["person"].schema.names)


def _table(data: pa.Table | pads.Dataset) -> pa.Table:
    return data if isinstance(data, pa.Table) else data.to_table()
