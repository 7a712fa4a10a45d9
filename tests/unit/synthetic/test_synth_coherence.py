"""Households and their persons agree, checked by plain Python that shares no code with the kernels."""

from collections.abc import Iterator

import numpy as np
import pytest

from stirred.census import Census, validate
from stirred.census.synthetic import SyntheticCensus, synthesise
from stirred.census.synthetic.households import DETAILED_RACE_WEIGHTS, GQ_CODES, RACE_MASKS, parse_weights
from stirred.census.synthetic.states import make_areas_table

Row = dict[str, int]


@pytest.fixture(scope="module")
def made() -> SyntheticCensus:
    return synthesise("demo", households=6_000, seed=3)


@pytest.fixture(scope="module")
def homes(made: SyntheticCensus) -> list[tuple[Row, list[Row]]]:
    persons = made.tables["person"].to_pylist()
    by_home: dict[int, list[Row]] = {}
    for person in persons:
        by_home.setdefault(person["household_id"], []).append(person)
    return [(row, by_home.get(row["household_id"], [])) for row in made.tables["household"].to_pylist()]


def occupied(homes: list[tuple[Row, list[Row]]]) -> Iterator[tuple[Row, list[Row]]]:
    return ((home, people) for home, people in homes if home["kind"] == 1)


def test_the_census_has_no_problem(made: SyntheticCensus) -> None:
    validate(Census.of(made.schema, made.tables)).raise_if_any()


def test_sizes_are_the_persons(homes: list[tuple[Row, list[Row]]]) -> None:
    assert all(home["size"] == len(people) for home, people in homes)
    assert all(home["size"] == 0 for home, _ in homes if home["kind"] == 2)
    assert all(home["size"] >= 1 for home, _ in homes if home["kind"] != 2)
    assert sum(home["kind"] == 1 for home, _ in homes) == 6_000


def test_persons_follow_their_households(made: SyntheticCensus) -> None:
    household, person = made.tables["household"], made.tables["person"]
    repeated = np.repeat(household["household_id"].to_numpy(), household["size"].to_numpy())
    assert np.array_equal(repeated, person["household_id"].to_numpy())
    assert np.all(np.diff(person["person_id"].to_numpy()) > 0)


def test_householder_comes_first_and_once(homes: list[tuple[Row, list[Row]]]) -> None:
    for home, people in occupied(homes):
        assert people[0]["relationship"] == (0 if len(people) == 1 else 1)
        assert all(2 <= other["relationship"] <= 17 for other in people[1:])
        for name in ("sex", "age", "race", "hispanic"):
            assert home[name] == people[0][name]


def test_type_and_couple_follow_from_relationships(homes: list[tuple[Row, list[Row]]]) -> None:
    couples = {2: 1, 4: 2, 3: 3, 5: 4}
    seen = set()
    for home, people in occupied(homes):
        codes = [person["relationship"] for person in people]
        partners = [code for code in codes if code in couples]
        assert len(partners) <= 1
        assert home["couple"] == (couples[partners[0]] if partners else 0)
        if partners:
            partner = people[codes.index(partners[0])]
            assert (partner["sex"] == people[0]["sex"]) == (partners[0] in (4, 5))
        if {2, 4} & set(codes):
            expected = 1
        elif any(6 <= code <= 14 for code in codes):
            expected = 2 if people[0]["sex"] == 1 else 3
        else:
            expected = 4 if len(people) == 1 else 5
        assert home["type"] == expected
        seen.add(expected)
    assert seen == {1, 2, 3, 4, 5}


def test_children_generations_and_the_oldest(homes: list[tuple[Row, list[Row]]]) -> None:
    for home, people in occupied(homes):
        own = [person["age"] for person in people if person["relationship"] in (6, 7, 8)]
        little, school = any(age < 6 for age in own), any(6 <= age < 18 for age in own)
        assert (
            home["children"]
            == {(False, False): 0, (True, False): 1, (True, True): 2, (False, True): 3}[little, school]
        )
        codes = {person["relationship"] for person in people}
        assert home["multigenerational"] == int(bool(own) and bool(codes & {10, 11, 12}))
        oldest = max(person["age"] for person in people)
        assert home["elderly"] == sum(oldest >= limit for limit in (60, 65, 75))


def test_relatives_and_everybody_under_18(homes: list[tuple[Row, list[Row]]]) -> None:
    for home, people in occupied(homes):
        codes = {person["relationship"] for person in people}
        assert home["relatives"] == int(bool(codes & {2, 4, *range(6, 15)}))
        young = [person for person in people if person["age"] < 18]
        assert home["young"] == int(bool(young))
        others = [person["age"] for person in young if person["relationship"] > 5]
        little, school = any(age < 6 for age in others), any(age >= 6 for age in others)
        assert home["minors"] == {(0, 0): 0, (1, 0): 1, (1, 1): 2, (0, 1): 3}[little, school]


def test_parents_and_children_are_a_generation_apart(homes: list[tuple[Row, list[Row]]]) -> None:
    for _, people in occupied(homes):
        head = people[0]["age"]
        for person in people[1:]:
            if person["relationship"] in (6, 7, 8):
                assert head - person["age"] >= 15
            if person["relationship"] == 10:
                assert person["age"] - head >= 15
            if person["relationship"] in (2, 3, 4, 5):
                assert abs(person["age"] - head) <= 20


def test_topdown_household_zeros(homes: list[tuple[Row, list[Row]]]) -> None:
    """An old householder has no small children of their own (the facts on TopDown, age_child)."""
    for home, _ in occupied(homes):
        if home["sex"] == 1 and home["age"] >= 75:
            assert home["children"] not in (1, 2)
        if home["sex"] == 2 and home["age"] >= 60:
            assert home["children"] not in (1, 2)
        if home["sex"] == 2 and home["age"] >= 75:
            assert home["children"] == 0


def test_detailed_codes_cover_every_race(homes: list[tuple[Row, list[Row]]]) -> None:
    race_of = {
        int(code): race for race, text in enumerate(DETAILED_RACE_WEIGHTS) for code, _ in parse_weights(text)
    }
    for _, people in homes:
        for person in people:
            codes = [person[f"race_code_{k}"] for k in range(1, 9)]
            used = [code for code in codes if code]
            assert codes == used + [0] * (8 - len(used))
            assert len(set(used)) == len(used)
            assert (
                sum(1 << race for race in {race_of[code] for code in used}) == RACE_MASKS[person["race"] - 1]
            )
            assert (person["ethnicity_code"] == 9950) == (person["hispanic"] == 1)


def test_vacant_units_and_facilities(homes: list[tuple[Row, list[Row]]]) -> None:
    householder = (
        "tenure",
        "type",
        "couple",
        "children",
        "multigenerational",
        "elderly",
        "relatives",
        "minors",
        "young",
        "sex",
        "age",
        "race",
        "hispanic",
    )
    for home, people in homes:
        assert (home["vacancy"] > 0) == (home["kind"] == 2)
        assert (home["gq_type"] > 0) == (home["gq_code"] > 0) == (home["kind"] == 3)
        if home["kind"] != 1:
            assert not any(home[name] for name in householder)
        if home["kind"] == 3:
            place = GQ_CODES.index(home["gq_code"])
            assert all(person["relationship"] == 18 + place for person in people)


def test_geography_is_a_tree(made: SyntheticCensus) -> None:
    assert made.geography is not None
    geography = made.geography.to_pylist()
    for row in geography:
        assert row["block"].startswith(row["block_group"])
        assert row["block_group"].startswith(row["tract"])
        assert row["tract"].startswith(row["county"])
        assert row["county"].startswith(row["state"])
    blocks = {row["block"] for row in geography}
    assert len(blocks) == len(geography)
    assert set(made.tables["household"]["block"].to_pylist()) < blocks  # many blocks are empty
    areas = make_areas_table(made.geography).to_pylist()
    assert sum(row["level"] == "block" for row in areas) == len(blocks)
    assert {row["parent"] for row in areas} - {""} <= {row["code"] for row in areas}
