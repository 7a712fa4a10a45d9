"""Columns that identify records are found by counts, before a release."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from stirred import CellKey, ExactMargins, GaussianTables, SpecialTabulations, Workload
from stirred.census import Census, read
from stirred.census.describe import to_toml
from stirred.chance import Key
from stirred.errors import PrivacyError
from stirred.mechanisms.identifiers import (
    FIRST_PATTERN,
    LOOKALIKE_KINDS,
    _count_lookalikes,
    find_identifying,
    find_lone_areas,
    require_unidentifying,
)
from stirred.mechanisms.topdown import TopDown

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
    found = find_identifying(census({}), "household", ["hid", "rooms", "income", "weight"])
    assert names(found) == ["hid", "income"]
    assert found[0].why == "400 of 400 household records have a value of their own"


def test_a_declared_identifier_is_found_without_counting() -> None:
    assert names(find_identifying(census({"id": "hid"}), "household", ["hid", "rooms"])) == ["hid"]


def test_a_variable_with_few_declared_levels_is_not_counted() -> None:
    declared = {"variables": {"rooms": "1..8", "county": "integer"}}
    assert find_identifying(census(declared), "household", ["rooms"]) == ()


def test_a_link_to_records_that_are_left_out_is_found() -> None:
    persons = {"hid": np.repeat(np.arange(ROWS // 4), 4), "age": np.arange(ROWS) % 90}
    tables = {"household": homes(hid=np.arange(ROWS)), "person": persons}
    schema = {
        "geography": {"spine": ["county"]},
        "record": {"household": {"id": "hid"}, "person": {"household": "hid"}},
    }
    both = Census.of(schema, tables)
    (found,) = find_identifying(both, "person", ["hid", "age"])
    assert (found.column, found.links_to) == ("hid", "household")
    assert "household" in found.why


def test_a_file_of_a_few_records_is_not_judged() -> None:
    few = Census.of({"record": {"household": {}}}, {"household": {"age": range(10)}})
    assert find_identifying(few, "household", ["age"]) == ()


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("telephone numbers", [f"tel 0664 {i:07d}" for i in range(40)]),
        ("telephone numbers", [f"+43 1 {i:07d}" for i in range(40)]),
        ("mail addresses", [f"n{i}@example.org" for i in range(40)]),
        ("numbers of bank accounts", [f"AT61 1904 3002 3457 {i:04d}" for i in range(40)]),
        ("national numbers of persons", [f"123-45-{i:04d}" for i in range(40)]),
        ("national numbers of persons", [f"{i:08d}Z" for i in range(40)]),
    ],
)
def test_what_names_a_person_is_recognised_by_its_values(kind: str, values: list[str]) -> None:
    """One record in ten has such a value, the others have none: empty fields do not dilute it."""
    notes = [values[i // 10] if i % 10 == 0 else None for i in range(ROWS)]
    made = Census.of({"record": {"household": {}}}, {"household": homes(note=notes)})
    (found,) = find_identifying(made, "household", ["note"])
    assert found.why == f"40 values look like {kind}"


def test_names_are_counted_as_by_one_pattern() -> None:
    """A text of up to five words is tried in two steps; one pattern, which takes longer to compile, says the same."""
    one = r"^\p{Lu}[\p{L}\p{M}'’.-]+([ ,]+\p{Lu}[\p{L}\p{M}'’.-]*){0,4}$"
    rng = np.random.default_rng(3)
    words = [
        "Ann",
        "J",
        "É",
        "é",
        "O'Neil",
        "Mc.",
        "x",
        "A1",
        "",
        "Λ",
        ",",
        "[a",
        "Jean-Luc",
        "Zoë\u0301",
        "\n",
    ]
    texts = [
        rng.choice([" ", ", ", ",", "  "]).join(rng.choice(words, rng.integers(1, 8))) for _ in range(2_000)
    ]
    wanted = pc.sum(pc.match_substring_regex(pa.array(texts), one)).as_py()
    assert 50 < wanted < 1_500
    assert dict(_count_lookalikes(pa.array(texts)))[FIRST_PATTERN + LOOKALIKE_KINDS.index("names")] == wanted


def test_surnames_of_which_a_few_are_unique() -> None:
    common = ["Gruber", "Huber", "Wagner", "Pichler", "Moser"]
    names = [common[i % 5] if i % 10 < 6 else "Na" + "mexyzuvw"[i % 8] * (i // 8) for i in range(ROWS)]
    made = Census.of({"record": {"household": {}}}, {"household": homes(surname=names)})
    (found,) = find_identifying(made, "household", ["surname"])
    assert (found.rule, found.looks_like) == ("lookalike", "names")


def test_open_columns_of_few_shared_values_and_truth_values_pass() -> None:
    made = Census.of(
        {"record": {"household": {}}},
        {"household": homes(water=["pipe", "well"] * (ROWS // 2), owned=[True, False] * (ROWS // 2))},
    )
    assert find_identifying(made, "household", ["rooms", "water", "owned", "county"]) == ()


def test_a_wide_range_is_a_number_and_its_bands_are_levels() -> None:
    incomes = {"income": np.arange(ROWS) * 137}
    wide = {"variables": {"income": "0..999999"}}
    banded = {"variables": {"income": {"bands": "1-2-5"}}}
    for declared, names in ((wide, ["income"]), (banded, [])):
        made = Census.of({"record": {"household": declared}}, {"household": incomes})
        assert [one.column for one in find_identifying(made, "household", ["income"])] == names


def test_a_level_of_places_that_hold_one_record_each_is_no_area() -> None:
    frame = {"unit": np.arange(ROWS), "county": np.arange(ROWS) % 5}
    made = Census.of({"geography": {"spine": ["county", "unit"]}}, {"household": frame})
    (found,) = find_lone_areas(made, "household", ["county", "unit"])
    assert found.why == "400 of 400 areas hold one of the household records"


WORKLOAD = """name = "w"
record = "household"
rho_squared = "1"
levels = ["county", "unit"]
[[axis]]
name = "rooms"
labels = ["1", "2", "3"]
source = { column = "rooms", offset = 1 }
[[query]]
name = "all"
of = ["rooms"]
[level_shares]
county = "1/2"
unit = "1/2"
[query_shares.county]
all = 1
[query_shares.unit]
all = 1
"""
SURNAMES = [f"Na{'mexyzuvw'[i % 8] * (i // 8 + 1)}" for i in range(ROWS)]
TABULATING: dict[str, Any] = {
    "cell-key": lambda by: CellKey(tables=[by], without_guarantee="x"),
    "special-tabulations": lambda by: SpecialTabulations(tables=[by], without_guarantee="x"),
    "exact-margins": lambda by: ExactMargins(rows=by[0], columns=by[1], rho_squared="1/2"),
}


def town(**more: object) -> Census:
    schema = {"geography": {"spine": ["county"]}, "record": {"household": {"id": "hid"}}}
    return Census.of(schema, {"household": homes(surname=SURNAMES, **more)})


@pytest.mark.parametrize("column", ["surname", "income", "hid"])
@pytest.mark.parametrize("name", TABULATING)
def test_no_table_is_by_a_column_that_identifies_records(name: str, column: str) -> None:
    census, key = town(), Key.for_tests(1)
    mechanism = TABULATING[name](["county", column])
    for ask in (mechanism.refuse, lambda census: mechanism.release(census, key=key)):
        with pytest.raises(PrivacyError, match=f"{column} would identify records") as caught:
            ask(census)
        assert "fix:" in str(caught.value)
        assert SURNAMES[0] not in str(caught.value)
    TABULATING[name](["county", "rooms"]).refuse(census)


@pytest.mark.parametrize("name", [*TABULATING, "gaussian-tables", "topdown"])
def test_no_table_is_by_places_that_hold_one_record(name: str) -> None:
    """An enterprise number that was taken for an area is published as a list, whatever the noise of its counts is."""
    frame = {"unit": np.arange(ROWS), "county": np.arange(ROWS) % 5, "rooms": np.arange(ROWS) % 3 + 1}
    record = {"id": "hid", "variables": {"rooms": "1..3"}}
    schema = {"geography": {"spine": ["county", "unit"]}, "record": {"household": record}}
    census = Census.of(schema, {"household": {"hid": np.arange(ROWS), **frame}})
    if name == "gaussian-tables":
        mechanism: Any = GaussianTables(tables=[["unit", "rooms"]], rho_squared="1/2")
    elif name == "topdown":
        mechanism = TopDown(workload=Workload.parse(WORKLOAD), replicates=0)
    else:
        mechanism = TABULATING[name](["unit", "rooms"])
    for ask in (mechanism.refuse, lambda census: mechanism.release(census, key=Key.for_tests(1))):
        with pytest.raises(PrivacyError, match="400 of 400 areas hold one"):
            ask(census)


def test_places_that_a_public_file_lists_are_not_judged(tmp_path: Path) -> None:
    (tmp_path / "areas.csv").write_text("code,level\n" + "".join(f"{i},unit\n" for i in range(ROWS)))
    areas = {"files": ["areas.csv"], "code": "code", "level": "level"}
    pl.DataFrame({"hid": range(ROWS), "unit": range(ROWS)}).write_csv(tmp_path / "h.csv")
    document = {"name": "t", "geography": {"spine": ["unit"], "areas": areas}}
    record = {"household": {"files": ["h.csv"], "id": "hid"}}
    (tmp_path / "census.toml").write_text(to_toml({**document, "record": record}))
    require_unidentifying(read(tmp_path / "census.toml"), "household", ["unit"])
