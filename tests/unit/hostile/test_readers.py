"""Files that want more than to be read: views over other files, deep nesting, absurd sizes."""

from pathlib import Path

import duckdb
import pytest

from stirred.census import read
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
