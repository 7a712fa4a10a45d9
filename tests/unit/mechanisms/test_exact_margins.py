"""Exact margins: a level that the codebook does not list is refused, even of one record, and never left out silently."""

import pytest

from stirred import ExactMargins
from stirred.census import Census
from stirred.chance import Key
from stirred.errors import DataError


def census(last: str | None) -> Census:
    """Twenty households, of which the last has a tenure of its own."""
    schema = {
        "geography": {"spine": ["county"]},
        "record": {
            "household": {
                "id": "hid",
                "variables": {"tenure": {"levels": ["own", "rent"], "missing": "keep"}},
            }
        },
    }
    tenure = ["own", "rent"] * 9 + ["own", last]
    rows = {"hid": list(range(20)), "county": ["a", "b"] * 10, "tenure": tenure}
    return Census.of(schema, {"household": rows})


@pytest.mark.parametrize("last", ["squat", None])
def test_one_record_without_a_listed_level_is_refused(last: str | None) -> None:
    mechanism = ExactMargins(rows="county", columns="tenure", rho_squared="1/2", both=False)
    with pytest.raises(DataError, match="1 household records have no listed level of tenure") as refused:
        mechanism.refuse(census(last))
    assert "squat" not in str(refused.value)
    with pytest.raises(DataError):
        mechanism.release(census(last), key=Key.for_tests(1))
    assert mechanism.release(census("rent"), key=Key.for_tests(1)).tables["county-by-tenure"].num_rows == 4
