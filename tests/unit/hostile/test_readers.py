"""Files that want more than to be read: views over other files, deep nesting, absurd sizes."""

import gzip
import io
import re
import zipfile
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from stirred.census import read
from stirred.census.readers import delimited
from stirred.census.readers.sources import redact_errors
from stirred.cli.main import main
from stirred.errors import DataError, StirredError
from stirred.publish import parse


@pytest.mark.parametrize(
    "view",
    [
        "SELECT 1 AS a, * FROM read_csv('{path}', header = false, columns = {{'a': 'VARCHAR'}})",
        "SELECT content AS a FROM read_text('{path}')",
        "SELECT file AS a FROM glob('{folder}/*')",
    ],
)
def test_a_view_over_a_system_file_is_not_a_table_of_records(view: str, tmp_path: Path) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("MARKER7391\n")
    with duckdb.connect(str(tmp_path / "census.duckdb")) as connection:
        connection.execute("CREATE VIEW homes AS " + view.format(path=secret, folder=tmp_path))
    (tmp_path / "census.toml").write_text('[record.household]\nfiles = ["census.duckdb"]\ntable = "homes"\n')
    with pytest.raises(DataError, match="reads other files") as told:
        read(tmp_path).count("household")
    assert "MARKER7391" not in str(told.value)


def test_a_table_of_the_database_is_read(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "census.duckdb")) as connection:
        connection.execute("CREATE TABLE homes AS SELECT range AS a FROM range(5)")
    (tmp_path / "census.toml").write_text('[record.household]\nfiles = ["census.duckdb"]\ntable = "homes"\n')
    assert read(tmp_path).count("household") == 5


@pytest.mark.parametrize(
    "text", ["a = " + "[" * 100_000, "a = " + "{b=" * 5_000 + "1", "[" + "a." * 100_000 + "b]"]
)
def test_deeply_nested_toml_is_one_clear_error(text: str, tmp_path: Path) -> None:
    (tmp_path / "census.toml").write_text(text)
    with pytest.raises(StirredError):
        read(tmp_path)
    with pytest.raises(StirredError):
        parse(text, folder=tmp_path)


def repeated(path: Path, rows: int, times: int) -> None:
    """A Parquet file whose footer lists the same bytes as many row groups."""
    pq.write_table(pa.table({"county": [1] * rows, "size": [2] * rows}), path)
    meta, more = pq.read_metadata(path), 1
    while more < times:
        meta.append_row_groups(meta)
        more *= 2
    footer = io.BytesIO()
    meta.write_metadata_file(footer)
    content = path.read_bytes()
    data = content[: -8 - int.from_bytes(content[-8:-4], "little")]
    path.write_bytes(data + footer.getvalue()[4:])


def lying(path: Path) -> None:
    """A Parquet file whose row group holds fewer records than it says."""
    pq.write_table(pa.table({"county": list(range(1000))}), path)
    content = path.read_bytes()
    foot = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    # 1000 as a zigzag varint stands in the footer for the file, the row group and its column
    footer = content[foot:].replace(b"\xd0\x0f", b"\xd2\x0f", 1)
    path.write_bytes(content[:foot] + footer)


def long_line(path: Path) -> None:
    with path.open("wb") as file:
        file.write(b"id,county\n1,")
        for _ in range(20):
            file.write(b"a" * (1 << 20))
        file.write(b"\n2,b\n")


def long_header(path: Path) -> None:
    path.write_bytes(b"id," + b"c" * (2 << 20) + b"\n1,2\n")


def bomb(path: Path) -> None:
    with gzip.open(path, "wb", 1) as file:
        file.write(b"id,county\n1,")
        for _ in range(20):
            file.write(bytes(1 << 20))


def archive(path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        for name, fields in (("rigeo2020.pl", 97), ("ri000012020.pl", 149), ("ri000022020.pl", 152)):
            made.writestr(name, "|" * (fields - 1) + "\n" + "a" * (3 << 16))
        made.writestr("ri000032020.pl", "|" * 14 + "\n")


HOSTILE = {
    "repeated.parquet": (lambda path: repeated(path, 20_000, 1024), "declares 20,480,000 records in"),
    "twice.parquet": (lambda path: repeated(path, 10, 2), "the same bytes"),
    "lying.parquet": (lying, "different numbers of records|its row groups"),
    "wide.parquet": (
        lambda path: pq.write_table(pa.table({f"c{i}": [1] for i in range(2001)}), path),
        "2,001 columns",
    ),
    "name.parquet": (
        lambda path: pq.write_table(pa.table({"n" * 3_000_000: [1]}), path),
        "name of 3,000,000",
    ),
    "cut.parquet": (
        lambda path: path.write_bytes(b"PAR1" + b"\xff" * 20 + b"PAR1"),
        "does not look|complete",
    ),
    "line.csv": (long_line, "a line is longer than"),
    "header.csv": (long_header, "a line is longer than"),
    "bomb.csv.gz": (bomb, "a line is longer than"),
    "wide.csv": (lambda path: path.write_text("a" + ",a" * 3000 + "\n"), "3,001 columns|twice"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_files_that_would_exhaust_the_machine_are_refused(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    make, why = HOSTILE[name]
    monkeypatch.chdir(tmp_path)
    make(tmp_path / name)
    told = len((tmp_path / name).read_bytes())
    assert main(["data", "describe", name, "--out", "census.toml"]) == 2
    assert re.search(why, capsys.readouterr().err)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert told == (tmp_path / name).stat().st_size
    record = f'[record.household]\nfiles = ["{name}"]\n[record.household.variables]\ncounty = {{type = "integer"}}\n'
    (tmp_path / "census.toml").write_text(record)
    with pytest.raises(StirredError, match=why):
        read(tmp_path).count("household")


def test_an_archive_with_an_endless_line_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive(tmp_path / "ri2020.pl.zip")
    monkeypatch.setattr(delimited, "BLOCK_BYTES", 1 << 16)
    monkeypatch.setattr(delimited, "MAX_LINE_BYTES", 1 << 16)
    (tmp_path / "census.toml").write_text('[record.area]\nfiles = ["ri2020.pl.zip"]\n')
    with pytest.raises(DataError, match="a line is longer than"):
        read(tmp_path).count("area")


def test_nested_columns_are_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nested = {"id": [1, 2], "deep": [[[[1]]], [[[2], [3]]]], "pair": [{"a": 1}, {"a": 2}]}
    pq.write_table(pa.table(nested), tmp_path / "household.parquet")
    assert main(["data", "describe", str(tmp_path / "household.parquet")]) == 0
    assert 'leave_out = ["deep", "pair"]' in capsys.readouterr().out


def test_a_library_that_stops_itself_is_one_clear_error() -> None:
    """Polars raises it on some damaged Parquet files; it is no Exception, so that nothing else would catch it."""
    with pytest.raises(DataError, match="the file is damaged"), redact_errors("household"):
        raise pl.exceptions.PanicException("index 7391 out of range")


@pytest.mark.parametrize("dictionary", [True, False])
def test_an_empty_file_among_others_is_read(tmp_path: Path, dictionary: bool) -> None:
    """Of no records a program writes a row group without pages: it lies, as far as its footer says, at the byte 0."""
    homes = pa.table({"a": ["x", "y"], "b": [1, 2]})
    (tmp_path / "homes").mkdir()
    for name, rows in (("0", homes.slice(0, 0)), ("1", homes)):
        pq.write_table(rows, tmp_path / "homes" / f"{name}.parquet", use_dictionary=dictionary)
    assert pq.read_metadata(tmp_path / "homes" / "0.parquet").num_row_groups == 1
    (tmp_path / "census.toml").write_text('[record.household]\nfiles = ["homes/*.parquet"]\n')
    assert read(tmp_path).count("household") == 2
