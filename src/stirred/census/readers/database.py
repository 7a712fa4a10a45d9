"""Read tables and views of a DuckDB database (extra ``duckdb``), opened read-only and streamed in batches."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import polars as pl
from polars.io.plugins import register_io_source

from stirred._support import import_optional
from stirred.census.readers.sources import resolve_files
from stirred.census.schema import Source
from stirred.errors import DataError, SchemaError, did_you_mean
from stirred.frames import frame_of

ROWS_PER_BATCH = 100_000
# a view may name any file of the machine or of the network; what is counted as records is in the database itself
CONFINED_SETTINGS = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "lock_configuration": "true",
}


def tables_of(path: Path) -> list[str]:
    """Return the names of the tables and views of a database, sorted; no record is read."""
    library = import_optional("duckdb", "duckdb", why="DuckDB databases are read with it")
    with _redact_errors(library, path), _connect(library, path) as connection:
        return sorted(_tables(connection))


def _tables(connection: Any) -> list[str]:
    asked = "SELECT table_name FROM information_schema.tables"
    return [row[0] for row in connection.execute(asked).fetchall()]


def scan_database(source: Source, folder: Path) -> pl.LazyFrame:
    """Yield a lazy frame over one table or view; only the needed columns are read."""
    library = import_optional("duckdb", "duckdb", why="DuckDB databases are read with it")
    path = resolve_files(source.files, folder)[0]
    with _redact_errors(library, path), _connect(library, path) as connection:
        names = _tables(connection)
        if not source.table:
            raise SchemaError(
                f"cannot tell which table of {path.name} holds the records",
                why=f"it holds {', '.join(sorted(names)) or 'no table'}",
                fix='name it: table = "…" in census.toml, or --table NAME of stirred data describe',
            )
        if source.table not in names:
            raise SchemaError(
                f"{path.name} has no table {source.table}",
                why="census.toml names this table",
                fix=did_you_mean(source.table, names or ("(no tables)",)),
            )
        empty = connection.sql(f"SELECT * FROM {_quote_name(source.table)} LIMIT 0").to_arrow_table()
    frame = frame_of(empty)
    schema = dict(frame.schema)

    def chunks(
        columns: list[str] | None, predicate: pl.Expr | None, rows: int | None, batch: int | None
    ) -> Iterator[pl.DataFrame]:
        # a query without columns must still count its rows
        chosen = list(schema) if columns is None else columns or list(schema)[:1]
        query = f"SELECT {', '.join(map(_quote_name, chosen))} FROM {_quote_name(source.table)}"
        if rows is not None and predicate is None:
            query += f" LIMIT {int(rows)}"
        with _redact_errors(library, path), _connect(library, path) as connection:
            for part in connection.sql(query).to_arrow_reader(batch or ROWS_PER_BATCH):
                piece = frame_of(part)
                yield piece if predicate is None else piece.filter(predicate)

    return register_io_source(chunks, schema=schema)


def _connect(library: ModuleType, path: Path) -> Any:
    try:
        return library.connect(str(path), read_only=True, config=CONFINED_SETTINGS)
    except library.Error:
        raise DataError(
            f"cannot open {path.name}",
            why="it is not a DuckDB database, or another program has it open",
            fix="check the file, and close other programs that use it",
        ) from None


@contextmanager
def _redact_errors(library: ModuleType, path: Path) -> Iterator[None]:
    """Replace errors of the database inside the block by errors that show no value."""
    try:
        yield
    except library.PermissionException:
        raise DataError(
            f"cannot read {path.name}",
            why="a view of it reads other files, which Stirred does not let a database do",
            fix="store the records in a table of the database: CREATE TABLE … AS SELECT …",
        ) from None
    except library.Error:
        raise DataError(
            f"cannot read {path.name}", why="the database is damaged", fix="copy it again"
        ) from None


def _quote_name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
