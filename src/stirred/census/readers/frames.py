"""Read tables in memory, from any library that narwhals or the Arrow C interface supports."""

from collections.abc import Mapping

import polars as pl
import pyarrow as pa

from stirred.errors import DataError, InputError
from stirred.frames import frame_of


def to_lazy(frame: object) -> pl.LazyFrame:
    """Return a lazy frame of a table of any supported library, a dictionary of columns, or a list of rows.

    >>> to_lazy({"size": [1, 2]}).collect().height
    2
    """
    if isinstance(frame, pl.LazyFrame):
        return frame
    if isinstance(frame, pl.DataFrame):
        return frame.lazy()
    try:
        return _convert_frame(frame)
    except (pl.exceptions.PolarsError, pa.ArrowException, TypeError, ValueError, OverflowError):
        # the libraries' messages show the value that does not fit
        raise DataError(
            f"cannot read the columns of a {type(frame).__name__}",
            why="a column mixes types, or the columns differ in length",
            fix="give every column one type and all columns one length",
        ) from None


def _convert_frame(frame: object) -> pl.LazyFrame:
    if isinstance(frame, Mapping):
        return pl.DataFrame(dict(frame)).lazy()
    if isinstance(frame, list | tuple) and _is_rows(frame):
        names = dict.fromkeys(name for row in frame for name in row)
        return pl.DataFrame({name: [row.get(name) for row in frame] for name in names}).lazy()
    if isinstance(frame, pa.RecordBatch):
        frame = pa.Table.from_batches([frame])
    if isinstance(frame, pa.Table):
        return _from_arrow(frame)
    import narwhals as nw  # here, because it takes a tenth of a second, and files need none of it

    try:
        native = nw.from_native(frame)  # type: ignore[call-overload]
    except TypeError:
        if hasattr(frame, "__arrow_c_stream__"):
            return _from_arrow(pa.table(frame))
        raise InputError(
            f"cannot read a table from {type(frame).__name__}",
            why="neither narwhals nor the Arrow interface supports it",
            fix="give an Arrow table: pa.table(...)",
        ) from None
    if isinstance(native, nw.LazyFrame):
        native = native.collect("pyarrow")
    return _from_arrow(native.to_arrow())


def is_table(value: object) -> bool:
    """Return whether a value is a table: a frame, a dictionary of columns, or a list of rows.

    >>> is_table({"size": [1, 2]}), is_table([{"size": 1}]), is_table([1, 2]), is_table(pl.Series([1]))
    (True, True, False, False)
    """
    if isinstance(value, pl.LazyFrame | pl.DataFrame | pa.Table | pa.RecordBatch | Mapping) or _is_rows(
        value
    ):
        return True
    import narwhals as nw

    native = nw.from_native(value, pass_through=True)
    return isinstance(native, nw.LazyFrame | nw.DataFrame)


def _is_rows(value: object) -> bool:
    return isinstance(value, list | tuple) and bool(value) and all(isinstance(row, Mapping) for row in value)


def _from_arrow(table: pa.Table) -> pl.LazyFrame:
    frame = frame_of(table)
    return frame.lazy()
