"""Excel workbooks: types of cells, sheets, titles above the table, and what is refused without showing a value."""

import datetime
import zipfile
from collections.abc import Sequence
from pathlib import Path

import duckdb
import polars as pl
import pytest
import xlsxwriter

from stirred.census import check, read
from stirred.census.describe import describe
from stirred.census.readers import open_source
from stirred.census.readers.workbook import find_header_row
from stirred.census.schema import Source
from stirred.cli.main import main
from stirred.errors import DataError, MissingExtraError, SchemaError

HEADER = ["id", "code", "age", "weight", "born", "alive", "mixed", "nothing"]


def write(path: Path, sheets: dict[str, Sequence[Sequence[object]]]) -> Path:
    """Write rows of cells; empty text is an empty cell."""
    with xlsxwriter.Workbook(path) as book:
        dates = book.add_format({"num_format": "yyyy-mm-dd"})
        for name, rows in sheets.items():
            sheet = book.add_worksheet(name)
            for row, cells in enumerate(rows):
                for column, cell in enumerate(cells):
                    if isinstance(cell, datetime.date):
                        sheet.write_datetime(row, column, cell, dates)
                    elif isinstance(cell, str):
                        sheet.write_string(row, column, cell) if cell else None
                    else:
                        sheet.write(row, column, cell)
    return path


def rows(number: int = 30) -> list[list[object]]:
    """Records with codes, whole and decimal numbers, dates, truth values, and empty cells."""
    day = datetime.date(2020, 4, 1)
    return [
        [i + 1, f"{i % 3:02}", "" if i == 4 else 20 + i, 1.5 + i, day, i % 2 == 0, 7 if i % 2 else "A7", ""]
        for i in range(number)
    ]


def source(file: str = "book.xlsx", **keys: object) -> Source:
    return Source(files=(file,), **keys)  # type: ignore[arg-type]


def test_a_cell_keeps_the_type_that_excel_shows(tmp_path: Path) -> None:
    write(tmp_path / "book.xlsx", {"Persons": [HEADER, *rows()]})
    frame = open_source(source(), tmp_path).collect()
    assert dict(frame.schema) == {
        "id": pl.Int64, "code": pl.String, "age": pl.Int64, "weight": pl.Float64, "born": pl.Date,
        "alive": pl.Boolean, "mixed": pl.String, "nothing": pl.String,
    }  # fmt: skip
    assert frame.height == 30
    assert frame["code"][1] == "01"
    assert frame["age"][4] is None
    assert frame["mixed"].head(2).to_list() == ["A7", "7"]
    assert frame["nothing"].null_count() == 30


def test_the_same_records_as_from_a_text_file(tmp_path: Path) -> None:
    text = """record.household.files = ["{}"]
record.household.id = "id"
record.household.variables.age = {{range = "0..99", missing = "keep"}}
record.household.variables.code = "text"
"""
    write(tmp_path / "book.xlsx", {"Persons": [HEADER, *rows()]})
    open_source(source(), tmp_path).collect().select("id", "code", "age").write_csv(tmp_path / "book.csv")
    found = []
    for file in ("book.xlsx", "book.csv"):
        (tmp_path / "census.toml").write_text(text.format(file))
        assert not check(tmp_path)
        found.append(read(tmp_path).table("household", ["age", "code"]).to_pydict())
    assert found[0] == found[1]


def test_a_title_above_the_table_is_found_and_stated(tmp_path: Path) -> None:
    write(tmp_path / "book.xlsx", {"Persons": [["Survey"], [], HEADER[:4], *(row[:4] for row in rows())]})
    assert find_header_row(source(), tmp_path) == 3
    found = describe(["book.xlsx"], folder=tmp_path)
    assert next(iter(found["record"].values()))["header_row"] == 3
    assert any("row 3" in guess for guess in found.guesses)
    (tmp_path / "census.toml").write_text(found.toml())
    assert read(tmp_path).count(next(iter(found["record"]))) == 30


@pytest.mark.parametrize(
    ("sheets", "keys", "words"),
    [
        ({"A": [["x"], [1]], "B": [["x"], [1]]}, {}, "cannot tell which sheet"),
        ({"Persons": [["x"], [1]]}, {"sheet": "Person"}, "has no sheet Person"),
        ({"Persons": [["x", "x"], [1, 2]]}, {}, "names a column twice"),
        ({"Persons": [["x", ""], [1, 977]]}, {}, "has no name"),
        ({"Persons": [[977, 2], [1, 2]]}, {}, "holds numbers or dates"),
        ({"Persons": [["x"], [1]]}, {"header_row": 9}, "has no row 9"),
        ({"Persons": [["x"], [1]]}, {"header": False, "columns": ("x", "y")}, "1 columns and 2 names"),
        ({"Persons": [["x"], [datetime.date(2020, 1, 1)], [977]]}, {}, "mixes dates"),
    ],
)
def test_what_cannot_be_read_is_refused_without_a_value(
    tmp_path: Path, sheets: dict[str, list[list[object]]], keys: dict[str, object], words: str
) -> None:
    write(tmp_path / "book.xlsx", sheets)
    with pytest.raises((DataError, SchemaError), match=words) as caught:
        open_source(source(**keys), tmp_path)
    assert caught.value.why
    assert caught.value.fix
    assert "977" not in str(caught.value)


def test_cells_that_show_an_error_are_counted(tmp_path: Path) -> None:
    with xlsxwriter.Workbook(tmp_path / "book.xlsx") as book:
        sheet = book.add_worksheet("Persons")
        sheet.write_row(0, 0, ["id", "age"])
        sheet.write_row(1, 0, [1, 30])
        sheet.write(2, 0, 2)
        sheet.write_formula(2, 1, "=NA()", None, "#N/A")
    with pytest.raises(DataError, match="1 cells that show an error of Excel"):
        open_source(source(), tmp_path)


def test_a_cell_far_away_does_not_exhaust_the_machine(tmp_path: Path) -> None:
    with xlsxwriter.Workbook(tmp_path / "book.xlsx") as book:
        sheet = book.add_worksheet("Persons")
        sheet.write(0, 0, "id")
        sheet.write(1_048_575, 16_383, 1)
    with pytest.raises(DataError, match="does not look like records"):
        open_source(source(), tmp_path)


@pytest.mark.parametrize("damage", ["text", "archive", "half"])
def test_damaged_workbooks_are_refused(tmp_path: Path, damage: str) -> None:
    path = write(tmp_path / "book.xlsx", {"Persons": [HEADER, *rows()]})
    if damage == "text":
        path.write_text("id,age\n1,2\n")
    elif damage == "archive":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("a.txt", "nothing")
    else:
        path.write_bytes(path.read_bytes()[:2000])
    with pytest.raises(DataError, match=r"cannot open book\.xlsx"):
        open_source(source(), tmp_path)


def test_a_workbook_without_its_library_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "book.xlsx", {"Persons": [["x"], [1]]})
    monkeypatch.setitem(__import__("sys").modules, "python_calamine", None)
    with pytest.raises(MissingExtraError, match="python_calamine") as caught:
        open_source(source(), tmp_path)
    assert "stirred[xlsx]" in caught.value.fix


def test_describe_takes_the_table_and_the_format_that_it_asks_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with duckdb.connect("base.duckdb") as base:
        base.execute("CREATE TABLE homes AS SELECT range AS hid, range % 3 AS region FROM range(40)")
        base.execute("CREATE TABLE people AS SELECT range % 40 AS hid, range % 90 AS age FROM range(90)")
    assert main(["data", "describe", "base.duckdb"]) == 2
    assert "--table" in capsys.readouterr().err
    assert main(["data", "describe", "base.duckdb", "--table", "homes", "--table", "people"]) == 0
    out = capsys.readouterr().out
    assert 'table = "homes"' in out
    assert 'table = "people"' in out
    Path("records").write_text("hid,region\n" + "".join(f"{i},{i % 3}\n" for i in range(40)))
    assert main(["data", "describe", "records"]) == 2
    assert "--format" in capsys.readouterr().err
    assert main(["data", "describe", "records", "--format", "csv"]) == 0
    assert 'format = "csv"' in capsys.readouterr().out
    assert main(["data", "describe", "records", "--format", "csv", "--sheet", "A"]) == 2


def test_whole_numbers_with_a_point_and_a_zero_are_whole(tmp_path: Path) -> None:
    ages = [f"{i % 30}.0" for i in range(60)]
    pl.DataFrame({"hid": [f"{i}.0" for i in range(60)], "age": ages, "rent": ["1.5", *ages[1:]]}).write_csv(
        tmp_path / "p.csv"
    )
    found = describe(["p.csv"], folder=tmp_path)
    record = next(iter(found["record"].values()))
    assert record["variables"]["age"]["bands"] == "5-years"
    (tmp_path / "census.toml").write_text('record.person.files = ["p.csv"]\n')
    census = read(tmp_path)
    assert census.scan("person").collect_schema() == {"hid": pl.Int64, "age": pl.Int64, "rent": pl.Float64}
    (tmp_path / "census.toml").write_text(
        'record.person.files = ["p.csv"]\nrecord.person.variables.age = "0..99"\n'
    )
    assert not check(tmp_path)
