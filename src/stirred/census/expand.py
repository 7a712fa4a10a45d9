"""Turn a table of counts by area into one record per household or person."""

from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl
import pyarrow as pa

from stirred.census.readers import to_lazy
from stirred.errors import DataError, InputError, did_you_mean


def expand(
    table: object,
    counts: Mapping[str, Mapping[str, str | int]],
    *,
    keep: Sequence[str] = (),
    number: str = "",
) -> pa.Table:
    """Return one record for each unit that a table counts, in the order of rows, then of count columns.

    ``counts`` says what a count column counts: ``{"hh1": {"size": 1}, "hh2": {"size": 2}}`` gives ``hh1`` records of
    size 1 and so on; ``keep`` names the columns a record takes from its row; ``number`` adds a column 1, 2, …

    >>> expand({"block": ["a", "b"], "hh1": [1, 0], "hh2": [1, 2]},
    ...        {"hh1": {"size": 1}, "hh2": {"size": 2}}, keep=["block"]).to_pydict()
    {'block': ['a', 'a', 'b', 'b'], 'size': [1, 2, 2, 2]}
    """
    lazy = to_lazy(table)
    known = lazy.collect_schema()
    for name in (*keep, *counts):
        if name not in known:
            raise InputError(
                f"the table has no column {name}",
                why="it is named in keep or counts",
                fix=did_you_mean(name, known.names()),
            )
    variables = list(next(iter(counts.values()))) if counts else []
    if any(list(values) != variables for values in counts.values()):
        raise InputError(
            "every count column must set the same variables, in the same order",
            why="the records made from all of them form one table",
            fix="give each count column the same variables, in one order",
        )
    frame = lazy.select(*keep, *(name for name in counts if name not in keep)).collect()
    matrix = _read_counts(frame, list(counts))
    times = matrix.reshape(-1)
    rows = np.repeat(np.repeat(np.arange(frame.height), len(counts)), times)
    cells = np.repeat(np.tile(np.arange(len(counts)), frame.height), times)
    columns = [frame[name].gather(rows) for name in keep]
    for variable in variables:
        levels = pl.Series(variable, [values[variable] for values in counts.values()])
        columns.append(levels.gather(cells))
    result = pl.DataFrame(columns)
    if number:
        result = result.insert_column(0, pl.Series(number, np.arange(1, len(rows) + 1, dtype=np.int64)))
    return result.to_arrow(compat_level=pl.CompatLevel.oldest())


def _read_counts(frame: pl.DataFrame, names: list[str]) -> "np.ndarray[tuple[int, int], np.dtype[np.int64]]":
    for name in names:
        column = frame[name]
        if not column.dtype.is_integer():
            raise DataError(
                f"column {name} does not hold integers",
                why="counts are whole numbers",
                fix="cast the column to an integer type",
            )
        bad = column.null_count() + int((column < 0).sum())
        if bad:
            raise DataError(
                f"column {name}: {bad} counts are empty or negative",
                why="a count is a whole number from 0 on",
                fix="replace the empty and negative counts",
            )
    return np.column_stack([frame[name].to_numpy().astype(np.int64) for name in names]).reshape(
        frame.height, len(names)
    )
