"""Columns that identify records are found by counts, before a release."""

import numpy as np

from stirred.census import Census
from stirred.mechanisms.identifiers import identifying

ROWS = 400


def homes(**more: object) -> dict[str, object]:
    rng = np.random.default_rng(1)
    return {
        "hid": [f"H{i:05d}" for i in range(ROWS)],
        "county": rng.integers(0, 5, ROWS),
        "rooms": rng.integers(1, 9, ROWS),
        "income": np.round(rng.gamma(2.0, 20_000.0, ROWS), 2),
        "weight": np.repeat(np.round(rng.gamma(4.0, 200.0, 20), 3), 20),
        **more,
    }


def census(record: dict[str, object]) -> Census:
    return Census.of(
        {"geography": {"spine": ["county"]}, "record": {"household": record}}, {"household": homes()}
    )


def names(found: object) -> list[str]:
    return [one.column for one in found]  # type: ignore[attr-defined]


def test_an_unrecognised_identifier_and_an_exact_income_are_found() -> None:
    found = identifying(census({}), "household", ["hid", "rooms", "income", "weight"])
    assert names(found) == ["hid", "income"]
    assert found[0].why == "400 of 400 household records have a value of their own"


def test_a_declared_identifier_is_found_without_counting() -> None:
    assert names(identifying(census({"id": "hid"}), "household", ["hid", "rooms"])) == ["hid"]


def test_a_variable_with_few_declared_levels_is_not_counted() -> None:
    declared = {"variables": {"rooms": "1..8", "county": "integer"}}
    assert identifying(census(declared), "household", ["rooms"]) == ()


def test_a_link_to_records_that_are_left_out_is_found() -> None:
    persons = {"hid": np.repeat(np.arange(ROWS // 4), 4), "age": np.arange(ROWS) % 90}
    tables = {"household": homes(hid=np.arange(ROWS)), "person": persons}
    schema = {
        "geography": {"spine": ["county"]},
        "record": {"household": {"id": "hid"}, "person": {"household": "hid"}},
    }
    both = Census.of(schema, tables)
    (found,) = identifying(both, "person", ["hid", "age"])
    assert (found.column, found.links_to) == ("hid", "household")
    assert "household" in found.why


def test_a_file_of_a_few_records_is_not_judged() -> None:
    few = Census.of({"record": {"household": {}}}, {"household": {"age": range(10)}})
    assert identifying(few, "household", ["age"]) == ()
