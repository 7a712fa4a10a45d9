"""census.toml: what it can say, and how its mistakes are told."""

from pathlib import Path

import pytest

from stirred.census import Census
from stirred.census.toml import load_schema, parse_schema
from stirred.errors import SchemaError


def household(**variables: object) -> dict[str, object]:
    return {"record": {"household": {"variables": variables}}}


def test_levels_may_be_listed_a_range_or_codes_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "race.csv").write_text("code,label\n01,White\n02,Black\n")
    (tmp_path / "occ.psv").write_text("id|name\n10|farmer\n20|baker\n")
    schema = parse_schema(
        household(
            tenure=["own", "rent"],
            size="1..7",
            rooms={"range": [1, 9]},
            race={"codes_from": "race.csv"},
            job={"codes_from": {"file": "occ.psv", "code": "id", "label": "name", "type": "integer"}},
        ),
        folder=tmp_path,
    )
    record = schema.record("household")
    assert record.variable("tenure").levels == ("own", "rent")
    assert record.variable("size").levels == range(1, 8)
    assert record.variable("rooms").level_count == 9
    assert record.variable("race").levels == ("01", "02")
    assert record.variable("race").labels == (("01", "White"), ("02", "Black"))
    assert record.variable("job").levels == (10, 20)
    assert record.variable("job").labels == (("10", "farmer"), ("20", "baker"))


@pytest.mark.parametrize(
    ("preset", "levels"),
    [
        ("us", ("state", "county", "tract", "block_group", "block")),
        ("nuts", ("nuts0", "nuts1", "nuts2", "nuts3", "lau")),
    ],
)
def test_presets_of_the_spine(preset: str, levels: tuple[str, ...]) -> None:
    assert parse_schema({"geography": {"preset": preset}}).spine == levels


def test_a_spine_has_any_depth_and_names() -> None:
    names = [f"level{i}" for i in range(12)]
    assert parse_schema({"geography": {"spine": names}}).spine == tuple(names)


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({"geografy": {}}, "geografy: unknown key, did you mean geography?"),
        ({"geography": {"spin": []}}, "geography.spin: unknown key, did you mean spine"),
        ({"record": {"household": {"file": []}}}, "record.household.file: unknown key, did you mean files"),
        (
            household(size={"levls": [1]}),
            "record.household.variables.size.levls: unknown key, did you mean levels",
        ),
        (household(size={"missing": {"polcy": "keep"}}), "polcy: unknown key, did you mean policy?"),
        (household(size=[]), "the list of levels is empty"),
        (household(size=[1, 1]), "a level is listed twice"),
        (household(size="7..1"), "the range is empty"),
        (household(size={"levels": [1], "range": "1..2"}), "not from levels and range"),
        (household(size={"type": "category"}), "a category needs levels"),
        (household(size={"type": "number", "levels": [1]}), "number variables have no levels"),
        (
            household(size={"levels": [1], "missing": {"policy": "level", "empty_as": "x"}}),
            "all text or all integers",
        ),
        (household(size={"missing": {"policy": "keep", "empty_as": 1}}), 'empty_as needs policy = "level"'),
        (household(count="integer"), "the name count is taken"),
        ({"geography": {"spine": ["a", "a"]}}, "a level is named twice"),
        ({"geography": {"spine": ["a"], "off_spine": {"p": {"of": "b"}}}}, "b is not a level of the spine"),
        ({"geography": {"off_spine": {"g": {"kind": "grid"}}}}, "a grid needs the length of its cells"),
        (
            {"geography": {"off_spine": {"p": {"nests_in": "q"}, "q": {"nests_in": "p"}}}},
            "the geographies nest in a cycle",
        ),
        ({"record": {"person": {"household": "h"}}}, "no record type with an id to link to"),
        (
            {"record": {"household": {}, "person": {"household": "h"}}},
            "record.household.id: needed, because person links to it",
        ),
        ({"rule": [{"name": "r", "record": "x", "at_most": ["a", "b"]}]}, "no record type x"),
        ({"rule": [{"name": "r", "record": "x"}]}, "exactly one of forbid, at_most, and total"),
        (
            {
                **household(size="1..7"),
                "rule": [{"name": "r", "record": "household", "forbid": {"sise": [1]}}],
            },
            "household has no variable sise, did you mean size",
        ),
        ({"largest_household": 0}, "largest_household"),
    ],
)
def test_every_mistake_is_named_with_its_place(document: dict[str, object], words: str) -> None:
    with pytest.raises(SchemaError) as caught:
        parse_schema(document)
    assert words in str(caught.value)


def test_all_mistakes_are_told_at_once() -> None:
    with pytest.raises(SchemaError, match="3 mistakes"):
        parse_schema({"nam": "x", "copies": 0, "record": {"household": {"sizes": "x"}}})


def test_what_was_typed_is_never_shown() -> None:
    with pytest.raises(SchemaError) as caught:
        parse_schema(
            {
                "copies": "SECRET-4711",
                "record": {"household": {"variables": {"age": {"range": "SECRET-4711"}}}},
            }
        )
    assert "SECRET" not in str(caught.value)


def test_an_unknown_preset_is_refused_with_a_guess() -> None:
    with pytest.raises(SchemaError, match="did you mean nuts"):
        parse_schema({"geography": {"preset": "nutz"}})


@pytest.mark.parametrize("content", [b"name = [", b"\xff\xfe\x00"])
def test_a_file_that_is_no_toml(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "census.toml").write_bytes(content)
    with pytest.raises(SchemaError):
        load_schema(tmp_path / "census.toml")
    with pytest.raises(SchemaError, match="cannot open"):
        load_schema(tmp_path / "absent.toml")


@pytest.mark.parametrize("content", ["", "code\n1\n1\n", "code\n"])
def test_a_code_file_without_usable_codes(tmp_path: Path, content: str) -> None:
    (tmp_path / "c.csv").write_text(content)
    with pytest.raises(SchemaError, match="code"):
        parse_schema(household(x={"codes_from": "c.csv"}), folder=tmp_path)


def test_the_schema_is_hashable_and_equal_to_its_twin() -> None:
    document = household(size="1..7", tenure=["own", "rent"])
    assert parse_schema(document) == parse_schema(document)
    assert hash(parse_schema(document)) == hash(parse_schema(document))


def test_the_domain_knows_what_determines_what() -> None:
    census = Census.of(
        {
            "name": "toy",
            "copies": 2,
            "geography": {
                "spine": ["state", "county", "block"],
                "off_spine": {
                    "district": {"of": "block", "nests_in": "state"},
                    "grid": {"kind": "grid", "cell_metres": 1000},
                },
            },
            "record": {
                "household": {
                    "id": "h",
                    "size": "size",
                    "variables": {"size": "1..9", "tenure": ["own", "rent"]},
                },
                "person": {"household": "h", "variables": {"age": "0..115"}},
            },
            "rule": [
                {"name": "no infant owns", "record": "person", "forbid": {"age": "0..14", "tenure": ["own"]}}
            ],
        },
        {
            "household": {key: ["a"] for key in ("state", "county", "block", "district", "grid", "tenure")}
            | {"h": [1], "size": [1]},
            "person": {"h": [1], "age": [30]},
        },
    )
    domain = census.domain
    assert domain.spine == ("state", "county", "block")
    assert domain.closure("household", ["block"]) == {"block", "county", "state", "district"}
    assert domain.closure("household", ["district"]) == {"district", "state"}
    assert domain.closure("household", ["grid"]) == {"grid"}  # a grid cell decides no area
    # an identifier determines its record in each data set, and another one in the next
    assert domain.closure("person", ["h"]) == {"h"}
    linked = {name for rule in domain.keys("person") for name in rule.determines}
    assert {"size", "tenure", "county"} <= linked
    assert "age" not in linked
    assert domain.levels("household", "tenure") == ("own", "rent")
    assert domain.variable("person", "tenure").size == 2
    assert (domain.copies, domain.largest_household, domain.size_variable) == (2, 9, "size")
    assert {constraint.kind for constraint in domain.constraints} == {"structural zero", "size"}
