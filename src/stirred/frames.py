"""Convert between Arrow and Polars with definite types: Polars declares a union where one type always comes back."""

from typing import cast

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

FEW = 4_096  # values that are quicker to hand over one by one than numpy.ma is to load
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


def series_of(values: NDArray[np.generic], dtype: pl.DataType | None = None) -> pl.Series:
    """An array as a column; a short one without numpy.ma, which Polars loads for every array and which takes 60 ms.

    >>> series_of(np.array([True, False])).to_list()
    [True, False]
    """
    if values.size > FEW:
        return pl.Series(values, dtype=dtype)
    kinds: dict[type[np.generic], pl.DataType] = {
        np.bool_: pl.Boolean(),
        np.int64: pl.Int64(),
        np.float64: pl.Float64(),
    }
    return pl.Series(values.tolist(), dtype=dtype or kinds.get(values.dtype.type))


def median(values: NDArray[np.floating]) -> float:
    """The middle of some numbers, without numpy.ma.

    >>> median(np.array([3.0, 1.0, 2.0, 9.0]))
    2.5
    """
    ordered = np.sort(values)
    return float((ordered[(ordered.size - 1) // 2] + ordered[ordered.size // 2]) / 2)
