"""CSV files as write.csv of R makes them: powers of ten, TRUE and FALSE, row names, Latin-1; write.table is refused."""

import sys
from pathlib import Path
from types import ModuleType

import polars as pl
import pytest

from stirred.census import Census, read
from stirred.census.describe import describe, to_toml
from stirred.census.describe.columns import find_facts
from stirred.census.validation import validate
from stirred.errors import DataError
from stirred.frames import frame_of

SCHEMA = """name = "from R"
[geography]
spine = ["region"]
[record.household]
files = ["homes.csv"]
encoding = "latin1"
id = "hid"
size = "hh.size"
leave_out = [""]
[record.household.variables]
"hh.size" = "1..4"
income = {type = "integer", range = "0..1000000"}
garden = ["true", "false"]
tenure = {levels = ["own", "rent"], missing = {policy = "level", codes = ["NA"]}}
[record.person]
files = ["people.csv"]
household = "hid"
[record.person.variables]
sex = ["f", "m"]
"""
HOMES = """"","hid","region","hh.size","income","garden","tenure"
"1",100000,"Gen\xe8ve",1,1e+05,TRUE,"own"
"2",1100000,"Gen\xe8ve",2,90000,FALSE,NA
"3",120000000,"Z\xfcrich",1,0,TRUE,"rent"
"""
PEOPLE = """"hid","sex"\n1e+05,"f"\n1100000,"m"\n1100000,"f"\n1.2e+08,"m"\n"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "census.toml").write_text(SCHEMA)
    (tmp_path / "homes.csv").write_bytes(HOMES.encode("latin-1"))
    (tmp_path / "people.csv").write_text(PEOPLE)
    return tmp_path


def test_one_number_is_one_number_however_it_is_written(folder: Path) -> None:
    census = read(folder / "census.toml")
    assert not validate(census)
    homes = frame_of(census.table("household", ["hid", "region", "income", "garden", "tenure"]))
    assert homes.rows() == [
        (100_000, "Genève", 100_000, "true", "own"),
        (1_100_000, "Genève", 90_000, "false", "NA"),
        (120_000_000, "Zürich", 0, "true", "rent"),
    ]
    assert frame_of(census.table("person", ["hid"]))["hid"].to_list() == [
        100_000,
        1_100_000,
        1_100_000,
        120_000_000,
    ]


def test_the_link_is_guessed(folder: Path) -> None:
    assert 'household = "hid"' in to_toml(describe(["homes.csv", "people.csv"], folder=folder))


def test_few_identifiers_are_seen_to_be_unique() -> None:
    _, facts = find_facts(
        pl.LazyFrame({"hid": [float(number) for number in range(1, 61)]})
    )  # as SPSS stores them
    assert facts["hid"].unique


def test_codes_that_look_like_powers_of_ten_stay_texts(folder: Path) -> None:
    (folder / "people.csv").write_text('"hid","sex"\n1e5,"f"\n')
    assert frame_of(read(folder / "census.toml").table("person", ["hid"]))["hid"].to_list() == ["1e5"]


def test_columns_divided_by_spaces_are_refused(folder: Path) -> None:
    (folder / "people.csv").write_text('"hid" "sex"\n"1" 1e+05 "f"\n')
    with pytest.raises(DataError, match="divided by spaces") as refused:
        read(folder / "census.toml").table("person", ["sex"])
    assert "write.csv" in refused.value.fix


def test_missing_integers_of_r_are_refused_and_never_released() -> None:
    """What reticulate 1.28 hands over for data.frame(rooms = c(1L, NA), size = 1:2): the missing value is a number."""
    for whole in (pl.Int32, pl.Int64):
        frame = pl.DataFrame({"rooms": [1, -2147483648], "size": [1, 2]}, schema_overrides={"rooms": whole})
        numpy = {name: frame[name].to_numpy() for name in frame.columns}
        pandas = frame.to_pandas()  # what reticulate makes of a data frame
        for table in (
            frame,
            frame.to_arrow(),
            frame.to_dict(as_series=False),
            frame.to_dicts(),
            numpy,
            pandas,
        ):
            with pytest.raises(DataError, match="missing values of R in rooms") as caught:
                Census.of({"record": {"household": {}}}, {"household": table})
            assert "write.csv" in caught.value.fix
    near = pl.DataFrame({"rooms": [1, -2147483647, None]})
    assert Census.of({"record": {"household": {}}}, {"household": near}).count("household") == 3


def test_truth_values_are_refused_inside_r_where_missing_ones_look_true(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    frame = pl.DataFrame({"garden": [True, True, False]})
    tables = (frame, frame.to_pandas(), {"garden": frame["garden"].to_numpy()})
    for table in tables:
        Census.of({"record": {"household": {}}}, {"household": table})
    monkeypatch.setitem(sys.modules, "rpytools", ModuleType("rpytools"))
    for table in tables:
        with pytest.raises(DataError, match="truth values of R cannot be taken over: garden"):
            Census.of({"record": {"household": {}}}, {"household": table})


def test_names_may_hold_separators_and_quotation_marks(tmp_path: Path) -> None:
    (tmp_path / "census.toml").write_text(
        """name = "names"
[geography]
spine = ["region, old"]
[record.household]
files = ["homes.csv"]
[record.household.variables]
'rent "cold"' = ["x", "y"]
"""
    )
    (tmp_path / "homes.csv").write_text('"region, old","rent ""cold"""\n"A","x"\n"B","y"\n')
    census = read(tmp_path / "census.toml")
    assert not validate(census)
    assert frame_of(census.table("household", ["region, old", 'rent "cold"'])).rows() == [
        ("A", "x"),
        ("B", "y"),
    ]
