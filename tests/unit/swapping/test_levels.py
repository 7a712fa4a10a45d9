"""Settings that name levels which do not exist are refused: they would silently apply to no record."""

import pytest

from stirred.census import Census
from stirred.chance import Key
from stirred.errors import InputError
from stirred.mechanisms.swap import ImputedStay, PermutationSwapping, VaryingRates

DATA = {"hid": range(60), "county": [i % 3 for i in range(60)], "tenure": ["own", "rent"] * 30}
DECLARED = {"variables": {"county": "integer", "tenure": ["own", "rent"]}}


def census(declared: bool) -> Census:
    record = {"id": "hid", **(DECLARED if declared else {})}
    return Census.of(
        {"geography": {"spine": ["county"]}, "record": {"household": record}}, {"household": DATA}
    )


def varying(level: str) -> VaryingRates:
    return VaryingRates(swap=["county"], rate="1/4", by="tenure", rates={level: "1/2"})


@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize(
    "mechanism", [varying("q9"), ImputedStay(swap=["county"], rate="1/4", imputed="tenure", levels=["rnt"])]
)
def test_a_level_that_does_not_exist_is_refused(mechanism: PermutationSwapping, declared: bool) -> None:
    there = census(declared)
    for asked in (
        lambda: mechanism.specification(there),
        lambda: mechanism.release(there, key=Key.for_tests(1)),
    ):
        with pytest.raises(InputError, match="tenure has no level") as caught:
            asked()
        assert "rent" in caught.value.fix
    if declared:
        with pytest.raises(InputError, match="tenure has no level"):
            mechanism.refuse(there)


@pytest.mark.parametrize("declared", [True, False])
def test_a_level_that_exists_is_used(declared: bool) -> None:
    assert varying("rent").release(census(declared), key=Key.for_tests(1)).checks


def test_released_records_in_the_users_library() -> None:
    release = PermutationSwapping(swap=["county"], rate="1/4").release(census(False), key=Key.for_tests(1))
    arrow = release.to_arrow()
    assert arrow.num_rows == release.to_polars("household").height == len(release.to_pandas()) == 60
    assert list(release.to_pandas().columns) == arrow.column_names
    with pytest.raises(InputError, match="the release has no person"):
        release.to_polars("person")
