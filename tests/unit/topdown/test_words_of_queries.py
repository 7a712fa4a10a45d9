"""The report names what was measured in words, in every language, and moves as the measured tree sees them."""

from pathlib import Path

import pytest

from stirred.census import Census
from stirred.chance import Key
from stirred.errors import InputError
from stirred.languages import CODES, Language, Phrase
from stirred.mechanisms import topdown
from stirred.mechanisms.exhibits import Listing, Series
from stirred.mechanisms.topdown import TopDown, Workload, promise
from stirred.mechanisms.topdown.workload import SpineOptions, describe_axis, describe_query
from stirred.publish.packet.lookup import read_labels, write_labels

PRESETS = sorted(path.stem for path in (Path(topdown.__file__).parent / "presets").glob("*.toml"))


@pytest.mark.parametrize("name", PRESETS)
def test_every_query_of_a_preset_has_words_of_its_own(name: str) -> None:
    workload = Workload.preset(name)
    words = [describe_query(workload, query.name) for query in workload.queries]
    axes = [describe_axis(axis.name) for axis in workload.histogram.axes]
    assert all(isinstance(text, Phrase) for text in (*words, *axes))
    for code in CODES:
        said = [Language.of(code).translate(text) for text in words]
        assert len(set(said)) == len(said)
        for axis in workload.histogram.axes:
            short = [
                name
                for name in (axis.name, *axis.recodes)
                if name not in {"race", "sex", "age", "hispanic", "own"}
            ]
            assert not any(f" {name} " in f" {text} " for name in short for text in said)


def test_names_of_ones_own_stay_as_they_are() -> None:
    own = Workload.parse(
        """
name = "own"
rho_squared = "1"
levels = ["region", "block"]
[[axis]]
name = "work"
size = 3
recodes.busy = [0, 1, 1]
[[query]]
name = "busy"
of = ["busy"]
[level_shares]
region = "1/2"
block = "1/2"
[query_shares]
region = { busy = 1 }
block = { busy = 1 }
"""
    )
    assert describe_query(own, "busy") == "busy"


def listing(options: SpineOptions | None) -> list[str]:
    exhibit = promise.show_noise(Workload.preset("pl94-persons"), options=options)
    series, costs = exhibit.parts
    assert isinstance(series, Series)
    assert isinstance(costs, Listing)
    assert {"voting age × race", "type of quarters"} <= {str(row["query"]) for row in series.rows}
    return [str(row[0]) for row in costs.rows]


def test_a_move_across_the_border_of_parts_is_not_said_to_be_cheap() -> None:
    """A move inside a county from one part of the state to the other is seen by the measurements of both parts."""
    assert "block within county" in listing(None)
    split = listing(SpineOptions(aian="aiannh"))
    assert "block within county" not in split
    assert "block within county, on one side of the border of aiannh" in split
    assert "block within us" in listing(None)
    assert (
        "block within us" not in split
    )  # one state without a nation above it spends that share on the parts
    assert "block within block_group made anew" in listing(SpineOptions(block_groups=("place",)))


def test_a_check_before_a_run_knows_the_parts_of_the_census() -> None:
    """By default a census with AIAN areas is measured in parts, as production did."""
    spine = ["state", "county", "tract", "block_group", "block"]
    homes: dict[str, object] = {name: ["1", "1"] for name in spine}
    homes |= {"block": ["1", "2"], "aiannh": ["9999", "0010"], "household_id": [1, 2]}
    geography = {"spine": spine, "off_spine": {"aiannh": {"of": "block"}}}
    schema = {"geography": geography, "record": {"household": {"id": "household_id"}}}
    exhibits, details = TopDown(workload="pl94").preview(Census.of(schema, {"household": homes}))
    assert len(exhibits) == 2
    for exhibit in exhibits:
        (costs,) = (part for part in exhibit.parts if isinstance(part, Listing))
        changes = [str(row[0]) for row in costs.rows]
        assert "block within county, on one side of the border of aiannh" in changes
        assert "block within county" not in changes
    for told in details["workloads"].values():  # type: ignore[attr-defined]
        assert "block within county" not in told["semantics"]


def test_a_missing_column_of_the_second_product_is_refused_before_the_first() -> None:
    homes = {"state": ["1"], "block": ["1"], "household_id": [1], "kind": [1], "gq_type": [0]}
    people = {"household_id": [1], "age": [30], "hispanic": [1], "race": [1]}
    schema = {
        "geography": {"spine": ["state", "block"]},
        "record": {"household": {"id": "household_id"}, "person": {"household": "household_id"}},
    }
    census = Census.of(schema, {"household": homes, "person": people})
    TopDown(workload="pl94").refuse(census)
    del homes["gq_type"]
    with pytest.raises(InputError, match="have no column gq_type"):
        TopDown(workload="pl94").refuse(Census.of(schema, {"household": homes, "person": people}))


def test_codes_that_a_workload_makes_have_labels_in_the_packet(tmp_path: Path) -> None:
    """A user of the packet has no workload file: 0 and 1 of an axis of one's own would mean nothing."""
    people = {
        "state": ["a"] * 4,
        "block": ["1", "1", "2", "2"],
        "sex": ["M", "F", "F", "M"],
        "hispanic": [1, 2, 1, 1],
    }
    schema = {
        "geography": {"spine": ["state", "block"]},
        "record": {
            "person": {
                "variables": {
                    "hispanic": {"levels": [1, 2], "labels": {"1": "no", "2": "yes"}},
                    "sex": {"levels": ["M", "F"]},
                }
            }
        },
    }
    own = Workload.parse(
        """
name = "own"
rho_squared = "1"
levels = ["state", "block"]
[[axis]]
name = "sex_level"
labels = ["men", "women"]
source = { column = "sex", values = [["M"], ["F"]] }
[[axis]]
name = "origin"
labels = ["not", "it is"]
source = { column = "hispanic", offset = 1 }
[[query]]
name = "all"
of = ["sex_level", "origin"]
[level_shares]
state = "1/2"
block = "1/2"
[query_shares]
state = { all = 1 }
block = { all = 1 }
"""
    )
    census = Census.of(schema, {"person": people})
    release = TopDown(workload=own, replicates=0).release(census, key=Key.for_tests(1))
    write_labels(tmp_path, census.schema, [release.labels])
    assert read_labels(tmp_path) == {
        "sex_level": {"0": "men", "1": "women"},
        "hispanic": {"1": "no", "2": "yes"},  # a variable of the census: its codebook decides
    }
    assert set(read_labels(tmp_path)) <= set(release.microdata["person"].schema.names)


def test_the_share_of_a_missing_level_is_said_to_be_spent_on_parts() -> None:
    people = {"state": ["a", "a"], "county": ["x", "y"], "block": ["1", "2"]}
    census = Census.of(
        {"geography": {"spine": ["state", "county", "block"]}, "record": {"person": {}}}, {"person": people}
    )
    preset = Workload.preset("pl94-persons")
    assert "spent at level state" in promise.note_moved_shares(census, preset)[0]
    assert (
        "spent on the parts of state"
        in promise.note_moved_shares(census, preset, SpineOptions(aian="aiannh"))[0]
    )
