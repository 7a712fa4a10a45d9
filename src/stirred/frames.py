"""Convert between Arrow and Polars with definite types: Polars declares a union where one type always comes back."""

from typing import cast

import polars as pl
import pyarrow as pa

OLDEST = pl.CompatLevel.oldest()  # Arrow types that Spark and older readers know


def collected(frame: pl.LazyFrame, *, streaming: bool = False) -> pl.DataFrame:
    """Compute all rows of a lazy frame.

    >>> collected(pl.LazyFrame({"a": [1, 2]})).height
    2
    """
    return frame.collect(engine="streaming" if streaming else "auto")


def frame_of(table: pa.Table | pa.RecordBatch) -> pl.DataFrame:
    """The rows of an Arrow table in Polars.

    >>> frame_of(pa.table({"a": [1, 2]})).columns
    ['a']
    """
    return cast(pl.DataFrame, pl.from_arrow(table))


def arrow_of(frame: pl.DataFrame) -> pa.Table:
    """The rows of a Polars frame in Arrow, in types that every reader knows.

    >>> arrow_of(pl.DataFrame({"a": ["x"]})).schema.field("a").type
    DataType(large_string)
    """
    return frame.to_arrow(compat_level=OLDEST)
