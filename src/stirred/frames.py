"""Convert between Arrow and Polars with definite types: Polars declares a union where one type always comes back."""

from typing import cast

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

MAX_VALUES_ONE_BY_ONE = 4_096  # values that are quicker to hand over one by one than numpy.ma is to load
OLDEST_ARROW = pl.CompatLevel.oldest()  # Arrow types that Spark and older readers know


def collect_frame(frame: pl.LazyFrame, *, streaming: bool = False) -> pl.DataFrame:
    """Compute all rows of a lazy frame.

    >>> collect_frame(pl.LazyFrame({"a": [1, 2]})).height
    2
    """
    return frame.collect(engine="streaming" if streaming else "auto")


def frame_of(table: pa.Table | pa.RecordBatch) -> pl.DataFrame:
    """Return the rows of an Arrow table as a polars frame.

    >>> frame_of(pa.table({"a": [1, 2]})).columns
    ['a']
    """
    return cast(pl.DataFrame, pl.from_arrow(table))


def arrow_of(frame: pl.DataFrame) -> pa.Table:
    """Return the rows of a polars frame as an Arrow table, in types that every reader knows.

    >>> arrow_of(pl.DataFrame({"a": ["x"]})).schema.field("a").type
    DataType(large_string)
    """
    return frame.to_arrow(compat_level=OLDEST_ARROW)


def series_of(values: NDArray[np.generic], dtype: pl.DataType | None = None) -> pl.Series:
    """Return an array as a column; a short one without numpy.ma, which takes 60 ms to load.

    >>> series_of(np.array([True, False])).to_list()
    [True, False]
    """
    if values.size > MAX_VALUES_ONE_BY_ONE:
        return pl.Series(values, dtype=dtype)
    kinds: dict[type[np.generic], pl.DataType] = {
        np.bool_: pl.Boolean(),
        np.int64: pl.Int64(),
        np.float64: pl.Float64(),
    }
    return pl.Series(values.tolist(), dtype=dtype or kinds.get(values.dtype.type))


def median(values: NDArray[np.floating]) -> float:
    """Return the median of some numbers, without numpy.ma.

    >>> median(np.array([3.0, 1.0, 2.0, 9.0]))
    2.5
    """
    ordered = np.sort(values)
    return float((ordered[(ordered.size - 1) // 2] + ordered[ordered.size // 2]) / 2)
