"""Keys of several columns: one key from its parts, the same whatever file the parts come from."""

from pathlib import Path

import hypothesis.strategies as some
import polars as pl
import pytest
from hypothesis import given, settings

import stirred as st
from stirred.census import Census, check, read, validate
from stirred.census.variables import join_texts
from stirred.errors import SchemaError

SCHEMA = {
    "geography": {"spine": ["region"]},
    "record": {
        "household": {
            "id": ["dwelling", "number"],
            "size": "size",
            "variables": {"size": "1..9", "tenure": ["o", "r"]},
        },
        "person": {
            "id": ["dwelling", "number", "line"],
            "household": ["dwelling", "number"],
            "variables": {"sex": ["f", "m"]},
        },
    },
}


def tables() -> tuple[pl.DataFrame, pl.DataFrame]:
    """Dwellings with one or two households, of one to three persons."""
    homes, persons = [], []
    for dwelling in range(60):
        for number in range(1, 2 + dwelling % 2):
            size = 1 + (dwelling + number) % 3
            key = {"dwelling": f"D{dwelling}", "number": number}
            homes.append({**key, "region": f"r{dwelling % 4}", "size": size, "tenure": "or"[dwelling % 2]})
            persons += [{**key, "line": k, "sex": "fm"[k % 2]} for k in range(size)]
    return pl.DataFrame(homes), pl.DataFrame(persons)


@given(
    some.lists(some.lists(some.text("a|~\\1", max_size=4), min_size=2, max_size=2), min_size=2, max_size=9)
)
@settings(max_examples=200, deadline=None)
def test_two_keys_are_equal_only_where_all_parts_are(rows: list[list[str]]) -> None:
    frame = pl.DataFrame(rows, schema=["a", "b"], orient="row").with_columns(
        join_texts([pl.col("a"), pl.col("b")]).alias("key")
    )
    for left in frame.iter_rows(named=True):
        assert (left["key"] is None) == (not left["a"] or not left["b"])
        for right in frame.iter_rows(named=True):
            same = (left["a"], left["b"]) == (right["a"], right["b"])
            assert left["key"] is None or right["key"] is None or (left["key"] == right["key"]) == same


def test_persons_have_the_columns_of_their_household() -> None:
    homes, persons = tables()
    census = Census.of(SCHEMA, {"household": homes, "person": persons})
    assert not validate(census)
    counted = pl.DataFrame(census.counts("person", ["region", "tenure", "sex"]))
    joined_by_hand = persons.join(homes, on=["dwelling", "number"])
    expected = joined_by_hand.group_by("region", "tenure", "sex").len().sort("region", "tenure", "sex")
    assert counted["count"].to_list() == expected["len"].to_list()
    assert "dwelling" not in census.columns("person")


def test_the_release_is_that_of_one_identifier() -> None:
    """A census with the key already made of its parts gives the same records; only the name of the key differs."""
    homes, persons = tables()
    parts = Census.of(SCHEMA, {"household": homes, "person": persons})
    key = pl.concat_str("dwelling", "number", separator="|").alias("dwelling+number")
    line = pl.concat_str("dwelling", "number", "line", separator="|").alias("dwelling+number+line")
    record = SCHEMA["record"]
    one = {
        **SCHEMA,
        "record": {
            "household": {**record["household"], "id": "dwelling+number"},
            "person": {**record["person"], "id": "dwelling+number+line", "household": "dwelling+number"},
        },
    }
    whole = Census.of(
        one,
        {
            "household": homes.select(key, pl.exclude("dwelling", "number")),
            "person": persons.select(line, key, "sex"),
        },
    )
    swap = st.PermutationSwapping(match=["size"], swap=["region"], rate="1/5")
    made = [swap.release(census, key=st.Key.for_tests(1)) for census in (parts, whole)]
    for name in ("household", "person"):
        left, right = (pl.DataFrame(release.microdata[name]) for release in made)
        assert left.equals(right.select(left.columns))
        assert not {"dwelling", "number", "line"} & set(left.columns)


def test_parts_of_two_formats_meet(tmp_path: Path) -> None:
    """Households in CSV with "1.0", persons in Parquet with floats."""
    homes, persons = tables()
    homes.with_columns(pl.col("number").cast(pl.String) + ".0").write_csv(tmp_path / "h.csv")
    persons.with_columns(pl.col("number").cast(pl.Float64)).write_parquet(tmp_path / "p.parquet")
    text = """geography.spine = ["region"]
[record.household]
files = ["h.csv"]
id = ["dwelling", "number"]
size = "size"
variables = {size = "1..9", tenure = ["o", "r"]}
[record.person]
files = ["p.parquet"]
household = ["dwelling", "number"]
variables = {sex = ["f", "m"]}
"""
    (tmp_path / "census.toml").write_text(text)
    assert not check(tmp_path)
    assert read(tmp_path).counts("person", [])["count"].to_pylist() == [persons.height]
    (tmp_path / "census.toml").write_text(text.replace('"number"]\nsize', '"numbr"]\nsize'))
    with pytest.raises(SchemaError, match="lacks numbr") as caught:
        read(tmp_path)
    assert "did you mean number" in caught.value.fix


def test_faults_of_keys_are_counted_not_shown() -> None:
    homes, persons = tables()
    orphan = persons.with_columns(
        pl.when(pl.int_range(pl.len()) == 0).then(9).otherwise("number").alias("number")
    )
    told = str(validate(Census.of(SCHEMA, {"household": homes, "person": orphan})))
    assert "person.dwelling+number: no household has this identifier (orphans) (1 record)" in told
    twice = pl.concat([homes, homes.head(2)])
    told = str(validate(Census.of(SCHEMA, {"household": twice, "person": persons})))
    assert "household.dwelling+number: identifiers used before by another record (2 records)" in told
    assert "D0" not in told
    clean = Census.of(SCHEMA, {"household": homes, "person": orphan}).check(invalid="drop")
    assert clean.count("household") == homes.height - 1


def test_households_are_made_from_persons_by_two_columns() -> None:
    homes, persons = tables()
    flat = persons.join(homes, on=["dwelling", "number"])
    census = Census.of(
        {
            "geography": {"spine": ["region"]},
            "record": {
                "household": {
                    "household_from": ["dwelling", "number"],
                    "size": "size",
                    "variables": {"tenure": ["o", "r"]},
                },
                "person": {"variables": {"sex": ["f", "m"]}},
            },
        },
        {"person": flat},
    )
    assert census.count("household") == homes.height
    assert not validate(census)
    # the schema that is written is read as the same schema
    assert Census.of(census.describe(), {"person": flat}).schema == census.schema
