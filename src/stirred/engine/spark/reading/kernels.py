"""Kernels for records in Spark's tasks: give them the schema's types, join them by their link, look up area codes."""

from dataclasses import dataclass

import polars as pl
import pyarrow as pa

from stirred.census import canonical
from stirred.census.census import redact_errors
from stirred.census.codebook.schema import RecordSchema, Schema
from stirred.census.codebook.typed import convert_frame
from stirred.engine.plain import plain_schema, to_plain
from stirred.errors import DataError
from stirred.frames import OLDEST_ARROW, arrow_of, collect_frame, frame_of

KEY_COLUMN = "stirred:key"


@dataclass(frozen=True, slots=True)
class ConvertColumns:
    """Convert the columns that Spark reads from a file to the variables of the schema; columns not read count as empty."""

    schema: Schema
    record_type: str
    raw: tuple[tuple[str, pl.DataType], ...]
    forms: tuple[tuple[str, str], ...]
    names: tuple[str, ...]

    def __call__(self, table: pa.Table) -> pa.Table:
        """The typed variables."""
        with redact_errors(self.record_type):
            frame = frame_of(restore_unsigned(table))
            columns = [
                pl.col(name).cast(dtype) if name in frame.columns else pl.lit(None, dtype=dtype).alias(name)
                for name, dtype in self.raw
            ]
            record = self.schema.record(self.record_type)
            shaped = canonical.apply_forms(frame.lazy().select(columns), dict(self.forms))
            made = convert_frame(self.schema, record, canonical.add_keys(self.schema, record, shaped)).select(
                self.names
            )
            return to_plain(arrow_of(collect_frame(made)))


def restore_unsigned(table: pa.Table) -> pa.Table:
    """Return the table with its unsigned 64-bit integers restored, which Spark reads as decimals."""
    kinds = [
        pa.field(field.name, pa.uint64() if pa.types.is_decimal(field.type) else field.type)
        for field in table.schema
    ]
    return table.cast(pa.schema(kinds))


@dataclass(frozen=True, slots=True)
class JoinLinked:
    """Add to the records of a part columns of the records they are linked to."""

    record: RecordSchema
    other: RecordSchema
    names: tuple[str, ...]
    columns: tuple[str, ...]

    def __call__(self, _part: int, left: pa.Table, right: pa.Table) -> pa.Table:
        """All records; the columns are empty where the link names no record."""
        here, there = frame_of(left), frame_of(right)
        ids = there.get_column(KEY_COLUMN).drop_nulls()
        again = len(ids) - ids.n_unique()
        if again:
            raise make_duplicate_error(self.other, f"at least {again:,}")
        made = here.join(
            there.select(KEY_COLUMN, *self.names), on=KEY_COLUMN, how="left", maintain_order="left"
        )
        return to_plain(arrow_of(made.select(self.columns)))


@dataclass(frozen=True, slots=True)
class AddLink:
    """Add the link of each record as one more column, as text when the two sides store it in different types."""

    column: str
    text: bool
    keep: tuple[str, ...]

    def __call__(self, table: pa.Table) -> pa.Table:
        """The kept columns and the link."""
        key = table.column(self.column)
        if self.text and not pa.types.is_string(key.type):
            text = pl.Series(key).cast(pl.String).to_arrow(compat_level=OLDEST_ARROW)
            key = pa.chunked_array([text]).cast(pa.string())
        return table.select(list(self.keep)).append_column(KEY_COLUMN, key)


@dataclass(frozen=True, slots=True)
class AddAreaCodes:
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
        return to_plain(arrow_of(made))

    def schema(self, before: pa.Schema) -> pa.Schema:
        """Return the schema with the columns of the codes appended."""
        for name in self.names:
            before = before.append(plain_schema(self.table.schema).field(name))
        return before


@dataclass(frozen=True, slots=True)
class SelectColumns:
    """Some columns of a table."""

    columns: tuple[str, ...]

    def __call__(self, table: pa.Table) -> pa.Table:
        """Those columns, in that order."""
        return table.select(list(self.columns))


def make_duplicate_error(record: RecordSchema, again: str) -> DataError:
    """Return the error for two records of a type that share an identifier."""
    return DataError(
        f"{record.name}.{record.id}: {again} identifiers were used before by another record",
        why="records linked to them would be counted more than once",
        fix="see all problems with: stirred data check census.toml",
    )
