"""Validation: each rule is broken a known number of times, and exactly that number is told."""

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from small_town import write_town
from stirred.census import Census, Problem, read, validate
from stirred.census.validation import Passes
from stirred.errors import ClusterError, DataError
from stirred.mechanisms.swap.records import require_links, require_owners


def found(census: Census) -> dict[tuple[str, str, str], int]:
    return {(p.record_type, p.column, p.rule): p.count for p in validate(census).problems}


def one(variables: dict[str, object], table: dict[str, list[object]]) -> dict[tuple[str, str, str], int]:
    frame = pl.DataFrame(table, strict=False)
    result = found(Census.of({"record": {"household": {"variables": variables}}}, {"household": frame}))
    return {(column, rule): count for (_, column, rule), count in result.items()}  # type: ignore[misc]


def test_types_levels_and_missing_values() -> None:
    table = {"n": ["1", "x", "", "2.5", "9"], "t": ["own", "rent", "boat", None, "own"]}
    assert one({"n": "1..7", "t": ["own", "rent"]}, table) == {
        ("n", "values that are not whole numbers"): 2,
        ("n", "missing values"): 1,
        ("n", "values outside the listed levels"): 1,
        ("t", "missing values"): 1,
        ("t", "values outside the listed levels"): 1,
    }


def test_floats_that_are_whole_numbers_pass() -> None:
    assert one({"n": "1..7"}, {"n": [1.0, 2.0]}) == {}
    assert one({"n": "1..7"}, {"n": [1.5, 2.0, 3.25]}) == {("n", "values that are not whole numbers"): 2}


@pytest.mark.parametrize(
    ("missing", "expected"),
    [
        ("error", {("x", "missing values"): 2, ("x", "values outside the listed levels"): 1}),
        (
            {"policy": "error", "codes": [9]},
            {("x", "missing values"): 2, ("x", "missing codes, which the policy makes errors"): 1},
        ),
        ({"policy": "level", "codes": [9]}, {("x", "empty fields, and no level stands for them"): 2}),
        ({"policy": "level", "codes": [9], "empty_as": 9}, {}),
        ({"policy": "keep", "codes": [9]}, {}),
        ("keep", {("x", "values outside the listed levels"): 1}),
    ],
)
def test_missing_codes_by_declared_policy(missing: object, expected: dict[tuple[str, str], int]) -> None:
    assert one({"x": {"levels": [1, 2], "missing": missing}}, {"x": [1, 9, None, 2, None]}) == expected


LINKED = {
    "geography": {"spine": ["county"]},
    "largest_household": 3,
    "record": {
        "household": {
            "id": "h",
            "size": "size",
            "kind": {"column": "kind", "occupied": ["o"], "vacant": ["v"], "group_quarters": ["g"]},
        },
        "person": {"household": "h"},
    },
}


def linked(households: dict[str, list[object]], persons: list[int]) -> dict[tuple[str, str, str], int]:
    rows = len(households["h"])
    table = {"county": ["c"] * rows, "kind": ["o"] * rows, **households}
    return found(Census.of(LINKED, {"household": table, "person": {"h": persons}}))


def test_a_sound_census_has_no_problem() -> None:
    assert linked({"h": [1, 2], "size": [1, 2]}, [1, 2, 2]) == {}


def test_duplicates_orphans_and_sizes() -> None:
    assert linked({"h": [1, 2, 2, 2], "size": [1, 1, 1, 1]}, [1, 2]) == {
        ("household", "h", "identifiers used before by another record"): 2
    }
    assert linked({"h": [1], "size": [1]}, [1, 7, 7, 8]) == {
        ("person", "h", "no household has this identifier (orphans)"): 3
    }
    assert linked({"h": [1, 2, 3], "size": [2, 1, 1]}, [1, 2, 3, 3]) == {
        ("household", "size", "not the number of its person records"): 2
    }


def test_kinds_of_units() -> None:
    table = {"h": [1, 2, 3, 4, 5], "size": [0, 1, 5, 4, 1], "kind": ["o", "v", "g", "o", "?"]}
    assert linked(table, [2, *[3] * 5, *[4] * 4, 5]) == {
        ("household", "size", "occupied units without persons"): 1,
        ("household", "size", "vacant units with persons"): 1,
        ("household", "size", "more persons than the largest household"): 1,
        ("household", "size", "kind names no kind of unit"): 1,
    }


def test_links_are_checked_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    for room in ("validation.structure", "records"):
        monkeypatch.setattr(f"stirred.census.{room}.IDS_PER_PART", 10)
    ids = [*range(100), *range(7)]
    persons = [*range(100), *range(1000, 1013)]
    result = linked({"h": ids, "size": [1] * len(ids)}, persons)
    assert result == {
        ("household", "h", "identifiers used before by another record"): 7,
        ("person", "h", "no household has this identifier (orphans)"): 13,
    }


def test_identifiers_of_two_types_still_link() -> None:
    table = {"county": ["c"], "kind": ["o"], "h": [1], "size": [2]}
    census = Census.of(LINKED, {"household": table, "person": {"h": ["1", "1"]}})
    assert found(census) == {}
    assert census.counts("person", ["county"]).to_pydict() == {"county": ["c"], "count": [2]}


def test_geography_is_a_tree() -> None:
    schema = {"geography": {"spine": ["state", "county", "block"]}}
    table = {"state": ["a", "a", "b"], "county": ["x", "y", "x"], "block": ["1", "1", "2"]}
    rule = "areas that lie in two areas of the level above"
    assert found(Census.of(schema, {"household": table})) == {
        ("household", "county", rule): 1,
        ("household", "block", rule): 1,
    }


def test_geographies_beside_the_spine() -> None:
    off = {"vtd": {"of": "block", "nests_in": "county"}, "grid": {"kind": "grid", "cell_metres": 1000}}
    schema = {"geography": {"spine": ["county", "block"], "off_spine": off}}
    table = {
        "county": ["a", "a", "b", "b"],
        "block": ["a1", "a1", "b1", "b2"],
        "vtd": ["v1", "v2", "v2", None],
        "grid": ["N1E1", "N1E2", "N1E2", "N1E2"],
    }
    assert found(Census.of(schema, {"household": table})) == {
        ("household", "block", "areas that lie in two areas of vtd"): 1,
        ("household", "vtd", "areas that cross the borders of county"): 1,
    }


@given(st.integers(1, 30), st.integers(0, 30), st.data())
def test_areas_that_end_in_a_cycle_are_all_counted(size: int, extra: int, data: st.DataObject) -> None:
    import numpy as np

    from stirred.census.validation.structure import _measure_depths

    parents: list[int | None] = [(i + 1) % size for i in range(size)]  # a ring of `size` areas
    parents += [data.draw(st.integers(0, size + i - 1)) for i in range(extra)]  # areas hanging below it
    tree = data.draw(st.integers(0, 10))
    start = len(parents)
    parents += [
        None if i == 0 else start + data.draw(st.integers(0, i - 1)) for i in range(tree)
    ]  # and a sound tree
    frame = pl.DataFrame(
        {
            "code": [str(i) for i in range(len(parents))],
            "parent": [None if p is None else str(p) for p in parents],
        },
        schema={"code": pl.String, "parent": pl.String},
    )
    endless, depth = _measure_depths(frame)
    expected = []
    for at in range(start, len(parents)):
        steps, here = 0, parents[at]
        while here is not None:
            steps, here = steps + 1, parents[here]
        expected.append(steps)
    assert endless == size + extra
    assert np.array_equal(depth, expected)


def test_rules_across_the_link_and_within_a_record() -> None:
    schema = {
        "record": {
            "household": {
                "id": "h",
                "variables": {"tenure": ["own", "rent"], "a": "integer", "b": "integer", "c": "integer"},
            },
            "person": {"household": "h", "variables": {"age": "0..115"}},
        },
        "rule": [
            {"name": "no child owns", "record": "person", "forbid": {"age": "0..14", "tenure": ["own"]}},
            {"name": "a within b", "record": "household", "at_most": ["a", "b"]},
            {"name": "c adds up", "record": "household", "total": "c", "parts": ["a", "b"]},
        ],
    }
    census = Census.of(
        schema,
        {
            "household": {
                "h": [1, 2, 3],
                "tenure": ["own", "rent", "own"],
                "a": [1, 2, 3],
                "b": [1, 1, 4],
                "c": [2, 3, 8],
            },
            "person": {"h": [1, 1, 2, 3], "age": [3, 40, 3, 14]},
        },
    )
    assert found(census) == {
        ("person", "age, tenure", "against the rule: no child owns"): 2,
        ("household", "a, b", "against the rule: a within b"): 1,
        ("household", "c, a, b", "against the rule: c adds up"): 1,
    }


def test_everything_is_raised_at_once_and_nothing_is_shown() -> None:
    census = Census.of(
        {"record": {"household": {"id": "h", "variables": {"size": "1..7", "name": ["x"]}}}},
        {"household": {"h": [4711, 4711], "size": ["SECRET", "8"], "name": ["SECRET", "x"]}},
    )
    problems = validate(census)
    with pytest.raises(DataError) as caught:
        problems.raise_if_any()
    shown = str(caught.value) + str(problems) + repr(problems) + str(problems.to_json())
    assert "SECRET" not in shown
    assert "4711" not in shown
    assert [(p.column, p.count) for p in problems.problems] == [
        ("size", 1),
        ("size", 1),
        ("name", 1),
        ("h", 1),
    ]


def test_progress_is_told_step_by_step() -> None:
    steps: list[tuple[str, int, int]] = []
    census = Census.of({}, {"household": {"x": [1]}})
    validate(census, progress=lambda step, done, total: steps.append((step, done, total)))
    assert [step for step, _, _ in steps] == ["household records", "links", "geography", "rules", "done"]
    assert steps[-1][1:] == (4, 4)


def test_one_problem_reads_as_a_sentence() -> None:
    problem = Problem(record_type="household", column="size", rule="missing values", count=1)
    assert str(problem) == "household.size: missing values (1 record)"


def test_weights_are_finite() -> None:
    census = Census.of(
        {"record": {"household": {"weight": "w"}}},
        {"household": {"w": [1.5, float("nan"), float("inf"), -1.0]}},
    )
    assert found(census) == {
        ("household", "w", "values that are not finite"): 2,
        ("household", "w", "negative values"): 1,
    }


def test_rules_across_a_link_wait_for_identifiers_that_name_one_record() -> None:
    document = {
        "record": {
            "household": {"id": "h", "variables": {"tenure": ["own", "rent"]}},
            "person": {"household": "h", "variables": {"age": "0..115"}},
        },
        "rule": [
            {"name": "no child rents", "record": "person", "forbid": {"age": "0..17", "tenure": ["rent"]}}
        ],
    }
    tables = {"household": {"h": [1, 1], "tenure": ["rent", "rent"]}, "person": {"h": [1], "age": [5]}}
    assert found(Census.of(document, tables)) == {
        ("household", "h", "identifiers used before by another record"): 1
    }


def test_require_valid_names_the_worst_three_and_no_value() -> None:
    schema = {
        "record": {
            "household": {
                "id": "h",
                "variables": {"size": "1..7", "tenure": ["own", "rent"], "income": "number", "gone": "text"},
            }
        }
    }
    table = {
        "h": [1, 1, 3, 4, 5],
        "size": [1, 9, 9, 9, 2],
        "tenure": ["own", "SECRET", "rent", "own", "own"],
        "income": ["1.5", "SECRET", "SECRET", "2", "3"],
    }
    census = Census.of(schema, {"household": table})
    with pytest.raises(DataError) as caught:
        census.require_valid()
    assert caught.value.what == "the records break 5 rules of the schema"
    assert caught.value.why == (
        "household.gone: the file has no such column (1 column); "
        "household.size: values outside the listed levels (3 records); "
        "household.income: values that are not numbers (2 records); and 2 more"
    )
    assert "SECRET" not in repr(caught.value)
    Census.of({}, {"household": {"size": [1]}}).require_valid()


def test_one_orphan_is_enough() -> None:
    assert linked({"h": [1, 2], "size": [1, 1]}, [1, 2, 7]) == {
        ("person", "h", "no household has this identifier (orphans)"): 1
    }
    with pytest.raises(DataError, match="1 records belong to no household"):
        require_owners(1)
    with pytest.raises(DataError, match="1 records belong to no household"):
        require_links(1)


@pytest.mark.parametrize("step", ["count_broken", "count_twice", "count_unlinked", "list_places"])
def test_a_cluster_that_fails_is_no_problem_of_the_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """What a cluster could not count is not said to be wrong with the records: the run is taken up."""

    def lose(*_: object) -> None:
        raise ClusterError("an executor ran out of memory", why="no memory was left", fix="give it more")

    write_town(tmp_path, households=20)
    monkeypatch.setattr(Passes, step, lose)
    with pytest.raises(ClusterError, match="ran out of memory"):
        validate(read(tmp_path))
