"""Kernels for records in Spark's tasks: give them the schema's types, join them by their link, look up area codes."""

from dataclasses import dataclass

import polars as pl
import pyarrow as pa

from stirred.census import canonical
from stirred.census.census import redact_errors
from stirred.census.codebook.schema import RecordSchema, Schema
from stirred.census.codebook.typed import typed
from stirred.engine.plain import plain, plain_schema
from stirred.errors import DataError
from stirred.frames import OLDEST, arrow_of, collected, frame_of

KEY = "stirred:key"


@dataclass(frozen=True, slots=True)
class Typed:
    """Convert the columns that Spark reads from a file to the variables of the schema; columns not read count as empty."""

    schema: Schema
    record_type: str
    raw: tuple[tuple[str, pl.DataType], ...]
    forms: tuple[tuple[str, str], ...]
    names: tuple[str, ...]

    def __call__(self, table: pa.Table) -> pa.Table:
        """The typed variables."""
        with redact_errors(self.record_type):
            frame = frame_of(widened(table))
            columns = [
                pl.col(name).cast(dtype) if name in frame.columns else pl.lit(None, dtype=dtype).alias(name)
                for name, dtype in self.raw
            ]
            record = self.schema.record(self.record_type)
            shaped = canonical.shaped(frame.lazy().select(columns), dict(self.forms))
            made = typed(self.schema, record, canonical.keyed(self.schema, record, shaped)).select(self.names)
            return plain(arrow_of(collected(made)))


def widened(table: pa.Table) -> pa.Table:
    """The table with its unsigned 64-bit integers restored, which Spark reads as decimals."""
    kinds = [
        pa.field(field.name, pa.uint64() if pa.types.is_decimal(field.type) else field.type)
        for field in table.schema
    ]
    return table.cast(pa.schema(kinds))


@dataclass(frozen=True, slots=True)
class Joined:
    """Add to the records of a part columns of the records they are linked to."""

    record: RecordSchema
    other: RecordSchema
    names: tuple[str, ...]
    columns: tuple[str, ...]

    def __call__(self, _part: int, left: pa.Table, right: pa.Table) -> pa.Table:
        """All records; the columns are empty where the link names no record."""
        here, there = frame_of(left), frame_of(right)
        ids = there.get_column(KEY).drop_nulls()
        again = len(ids) - ids.n_unique()
        if again:
            raise used_before(self.other, f"at least {again:,}")
        made = here.join(there.select(KEY, *self.names), on=KEY, how="left", maintain_order="left")
        return plain(arrow_of(made.select(self.columns)))


@dataclass(frozen=True, slots=True)
class Keyed:
    """Add the link of each record as one more column, as text when the two sides store it in different types."""

    column: str
    text: bool
    keep: tuple[str, ...]

    def __call__(self, table: pa.Table) -> pa.Table:
        """The kept columns and the link."""
        key = table.column(self.column)
        if self.text and not pa.types.is_string(key.type):
            text = pl.Series(key).cast(pl.String).to_arrow(compat_level=OLDEST)
            key = pa.chunked_array([text]).cast(pa.string())
        return table.select(list(self.keep)).append_column(KEY, key)


@dataclass(frozen=True, slots=True)
class LookedUp:
    """Add codes of areas from a small table that is sent with the kernel."""

    key: str
    table: pa.Table
    names: tuple[str, ...]

    def __call__(self, table: pa.Table) -> pa.Table:
        """The table with the codes in more columns."""
        frame, small = frame_of(table), frame_of(self.table)
        small = small.select(pl.col(self.key).cast(frame.schema[self.key], strict=False), *self.names)
        small = small.unique(subset=self.key, keep="first", maintain_order=True)
        made = frame.join(small, on=self.key, how="left", maintain_order="left")
        return plain(arrow_of(made))

    def schema(self, before: pa.Schema) -> pa.Schema:
        """The columns after."""
        for name in self.names:
            before = before.append(plain_schema(self.table.schema).field(name))
        return before


@dataclass(frozen=True, slots=True)
class Selected:
    """Some columns of a table."""

    columns: tuple[str, ...]

    def __call__(self, table: pa.Table) -> pa.Table:
        """Those columns, in that order."""
        return table.select(list(self.columns))


def used_before(record: RecordSchema, again: str) -> DataError:
    """The error for two records of a type that share an identifier."""
    return DataError(
        f"{record.name}.{record.id}: {again} identifiers were used before by another record",
        why="records linked to them would be counted more than once",
        fix="see all problems with: stirred data check census.toml",
    )
