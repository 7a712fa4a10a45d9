"""A census is held against its schema before every release: refused, or without the households that break a rule."""

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stirred.census import Census, read, validate
from stirred.census.validation.structure import ID, find_orphans, find_wrong_sizes, merge_sorted
from stirred.errors import DataError, InputError

MARK = "MARKER"
SCHEMA = {
    "geography": {"spine": ["region", "district"]},
    "record": {
        "household": {
            "id": "hid",
            "size": "size",
            "variables": {"tenure": ["own", "rent"], "size": "1..9", "rent": "number"},
        },
        "person": {"id": "pid", "household": "hid", "variables": {"sex": ["f", "m"], "age": "0..115"}},
    },
    "rule": [
        {"name": "renters pay", "record": "household", "forbid": {"tenure": ["rent"], "size": "9..9"}},
        {"name": "no child owns", "record": "person", "forbid": {"age": "0..9", "tenure": ["own"]}},
    ],
}


def tables(homes: int = 12) -> dict[str, pl.DataFrame]:
    ids = list(range(10, 10 + homes))
    sizes = [1 + i % 3 for i in range(homes)]
    links = [i for i, size in zip(ids, sizes, strict=True) for _ in range(size)]
    return {
        "household": pl.DataFrame(
            {
                "hid": [f"h{i}" for i in ids],
                "region": ["a" if i < ids[homes // 2] else "b" for i in ids],
                "district": [("a" if i < ids[homes // 2] else "b") + str(i % 2) for i in ids],
                "size": sizes,
                "tenure": ["own" if i % 2 else "rent" for i in ids],
                "rent": [1.5 * i for i in ids],
            }
        ),
        "person": pl.DataFrame(
            {
                "pid": list(range(1000, 1000 + len(links))),
                "hid": [f"h{i}" for i in links],
                "sex": ["f" if i % 2 else "m" for i in range(len(links))],
                "age": [20 + i for i in range(len(links))],
            }
        ),
    }


def changed(
    made: dict[str, pl.DataFrame], name: str, column: str, row: int, value: object
) -> dict[str, pl.DataFrame]:
    values = made[name][column].to_list()
    values[row] = value
    return {**made, name: made[name].with_columns(pl.Series(column, values, strict=False))}


FAULTS: dict[str, tuple[str, str, int, object, set[str]]] = {
    # the record type, column, row and new value; and the households that go out
    "a code outside the schema": ("household", "tenure", 2, MARK, {"h12"}),
    "a number outside its range": ("person", "age", 0, 471147, {"h10"}),
    "a code of a person": ("person", "sex", 1, MARK, {"h11"}),
    "an empty field": ("household", "tenure", 3, None, {"h13"}),
    "text among numbers": ("household", "rent", 4, MARK, {"h14"}),
    "a decimal that is infinite": ("household", "rent", 4, float("inf"), {"h14"}),
    "an identifier used twice": ("household", "hid", 5, "h10", {"h10", "h15"}),
    "a person's identifier used twice": ("person", "pid", 0, 1001, {"h10", "h11"}),
    "an empty identifier": ("household", "hid", 5, None, {"h15"}),
    "an orphan": ("person", "hid", 1, MARK, {"h11"}),
    "a person without a link": ("person", "hid", 1, None, {"h11"}),
    "a size that is not the number of persons": ("household", "size", 0, 2, {"h10"}),
    "a negative size": ("household", "size", 0, -4711, {"h10"}),
    "a rule within a record": ("household", "size", 0, 9, {"h10"}),
    "a rule across the link": ("person", "age", 1, 5, {"h11"}),
    "an empty place": ("household", "district", 1, None, {"h11"}),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_refused_and_shows_no_value(fault: str) -> None:
    name, column, row, value, _ = FAULTS[fault]
    census = Census.of(SCHEMA, changed(tables(), name, column, row, value))
    with pytest.raises(DataError) as caught:
        census.check()
    told = str(caught.value)
    assert not any(secret in told for secret in (MARK, "4711", "h10", "h11", "h15", "1001"))
    assert "data check" in told


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_dropped_with_its_household(fault: str) -> None:
    name, column, row, value, gone = FAULTS[fault]
    made = tables()
    clean = Census.of(SCHEMA, changed(made, name, column, row, value)).check(invalid="drop")
    assert not validate(clean)
    left = [i for i in made["household"]["hid"] if i not in gone]
    assert clean.table("household")["hid"].to_pylist() == left
    assert clean.table("person")["hid"].to_pylist() == [i for i in made["person"]["hid"] if i not in gone]
    lost = made["person"].filter(pl.col("hid").is_in(list(gone))).height
    assert dict(clean.dropped_counts) == {"household": len(gone), "person": lost}
    assert clean.table("household", ["hid", "rent"]).num_rows == len(left)


def test_all_faults_at_once_leave_what_is_sound() -> None:
    made, gone = tables(40), set()
    elsewhere = (
        "a rule across the link",
        "a size that is not the number of persons",
    )  # no faults in every row
    for index, fault in enumerate(name for name in FAULTS if name not in elsewhere):
        name, column, _, value, _ = FAULTS[fault]
        home = made["household"]["hid"][2 * index]
        at = made["person"]["hid"].to_list().index(home) if name == "person" else 2 * index
        gone.add(home)
        made = changed(made, name, column, at, value)
    clean = Census.of(SCHEMA, made).check(invalid="drop")
    kept = set(clean.table("household")["hid"].to_pylist())
    assert kept
    assert not kept & (gone - {None, MARK})
    assert not validate(clean)


def test_a_sound_census_is_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    monkeypatch.setattr(
        "stirred.census.census.validate", lambda *a, **k: (calls.append(1), validate(*a, **k))[1]
    )
    census = Census.of(SCHEMA, tables())
    assert census.check() is census
    assert census.check() is census
    dropped = census.check(invalid="drop")
    assert dropped.check(invalid="drop") is dropped
    assert dropped.check() is dropped
    assert len(calls) == 1
    assert dropped.notes
    assert not census.notes
    assert dict(dropped.dropped_counts) == {}
    replace(census, files=census.files).check()
    assert len(calls) == 2


def test_another_file_is_not_checked_by_accident() -> None:
    census = Census.of(SCHEMA, tables()).check()
    wrong = changed(tables(), "household", "tenure", 2, MARK)["household"].lazy()
    with pytest.raises(DataError):
        replace(census, files={**census.files, "household": wrong}).check()


def test_an_unknown_choice_is_refused() -> None:
    with pytest.raises(InputError):
        Census.of(SCHEMA, tables()).check(invalid="mend")  # type: ignore[arg-type]


def test_an_empty_field_of_a_column_that_is_not_declared_is_a_value() -> None:
    census = Census.of({}, {"household": {"colour": ["red", None], "rooms": [1, None], "rent": [1.5, None]}})
    assert census.check().count("household") == 2


def test_two_parents_cannot_be_dropped() -> None:
    schema = {"geography": {"spine": ["region", "district"]}}
    census = Census.of(schema, {"household": {"region": ["a", "b"], "district": ["x", "x"]}})
    with pytest.raises(DataError, match="remain after"):
        census.check(invalid="drop")


def test_absent_columns_cannot_be_dropped() -> None:
    census = Census.of(SCHEMA, {**tables(), "person": tables()["person"].drop("age")})
    with pytest.raises(DataError, match="does not help"):
        census.check(invalid="drop")


def test_codes_that_the_file_of_areas_does_not_know_are_dropped(tmp_path: Path) -> None:
    (tmp_path / "areas.csv").write_text("code,parent\nr,\nd1,r\nd2,r\n")
    (tmp_path / "homes.csv").write_text(f"hid,district,n\n1,d1,1\n2,{MARK},2\n3,d2,3\n")
    (tmp_path / "census.toml").write_text(
        '[geography]\nspine = ["region", "district"]\n[geography.areas]\nfiles = ["areas.csv"]\n'
        '[record.household]\nfiles = ["homes.csv"]\nid = "hid"\n'
    )
    with pytest.raises(DataError):
        read(tmp_path).check()
    assert read(tmp_path).check(invalid="drop").table("household", ["hid", "region"]).to_pydict() == {
        "hid": [1, 3],
        "region": ["r", "r"],
    }


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_forms_are_those_of_the_records_that_are_left(tmp_path: Path, ending: str) -> None:
    homes = pl.DataFrame({"hid": ["1", "2", "x"], "place": ["7", "8", "9"], "tenure": ["own", "rent", MARK]})
    homes.write_csv(tmp_path / "homes.csv") if ending == "csv" else homes.write_parquet(
        tmp_path / "homes.parquet"
    )
    (tmp_path / "census.toml").write_text(
        f'[geography]\nspine = ["place"]\n[record.household]\nfiles = ["homes.{ending}"]\nid = "hid"\n'
        '[record.household.variables]\ntenure = ["own", "rent"]\n'
    )
    found = read(tmp_path).check(invalid="drop").table("household", ["hid", "place"]).to_pydict()
    assert found == (
        {"hid": [1, 2], "place": [7, 8]} if ending == "csv" else {"hid": ["1", "2"], "place": ["7", "8"]}
    )


FLAT = {
    "geography": {"spine": ["region"]},
    "record": {
        "household": {"household_from": "hid", "variables": {"region": "text", "tenure": ["own", "rent"]}},
        "person": {"variables": {"age": "0..115"}},
    },
}


def test_households_of_a_person_file_go_out_whole() -> None:
    flat = pl.DataFrame(
        {
            "hid": [1, 1, 2, 2, 3, 4, 4, None],
            "region": ["a", "a", "a", "b", "b", "b", "b", "b"],
            "tenure": ["own", "own", "rent", "rent", MARK, "own", "own", "own"],
            "age": [30, 31, 32, 33, 34, 35, 471147, 36],
        }
    )
    schema = {**FLAT, "record": {**FLAT["record"]}}
    census = Census.of(schema, {"person": flat})
    with pytest.raises(DataError):
        census.check()
    clean = census.check(invalid="drop")
    assert clean.table("household", ["hid", "region"]).to_pydict() == {"hid": [1], "region": ["a"]}
    assert clean.table("person", ["age"]).to_pydict() == {"age": [30, 31]}


def test_too_many_faulty_households_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stirred.census.validation.dropping.MAX_IDS_HELD", 3)
    made = tables()
    wrong = made["household"].with_columns(tenure=pl.lit(MARK))
    with pytest.raises(DataError, match="more than 3 household records"):
        Census.of(SCHEMA, {**made, "household": wrong}).check(invalid="drop")


@given(
    st.lists(st.integers(0, 40), max_size=60),
    st.dictionaries(st.integers(0, 40), st.none() | st.integers(0, 3), max_size=20),
    st.sampled_from([1, 3, 1000]),
)
def test_a_merge_counts_as_the_join_does(links: list[int], homes: dict[int, int | None], rows: int) -> None:
    persons = pl.LazyFrame({ID: sorted(links)}, schema={ID: pl.Int64})
    ids = sorted(homes)
    there = pl.LazyFrame({ID: ids, "size": [homes[i] for i in ids]}, schema={ID: pl.Int64, "size": pl.Int64})
    orphans = find_orphans(persons, there).select(pl.col("persons").sum()).collect().item()
    wrong = find_wrong_sizes(persons, there).collect().height
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("stirred.census.validation.structure.ROWS_PER_BATCH", rows)
        assert merge_sorted(persons, there) == (orphans, wrong)
