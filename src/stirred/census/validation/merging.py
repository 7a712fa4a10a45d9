"""Compare links with identifiers when both files are in the order of the identifier: one pass, two batches in memory."""

from collections.abc import Iterator

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred.frames import series_of

ROWS_PER_BATCH = 1 << 20


def merge_sorted(links: pl.LazyFrame, homes: pl.LazyFrame) -> tuple[int, int]:
    """Return how many links no household has, and how many households have another size than persons.

    Both are in rising order, no household occurs twice, and no identifier is empty; a size may be.

    >>> homes = pl.LazyFrame({"id": [1, 2, 4], "size": [1, 2, None]})
    >>> merge_sorted(pl.LazyFrame({"id": [1, 2, 3, 3]}), homes)
    (2, 1)
    """
    persons = _read_batches(links)
    waiting = next(persons, None)
    orphans = wrong = 0
    for some in _read_batches(homes):
        ids, sizes = some["id"].to_numpy(), some["size"]
        counts = np.zeros(ids.size, np.int64)
        while waiting is not None:
            values = waiting["id"].to_numpy()
            here = int(np.searchsorted(values, ids[-1], side="right"))
            orphans += _add_counts(values[:here], ids, counts)
            if here < values.size:
                waiting = waiting[here:]
                break
            waiting = next(persons, None)
        wrong += int((sizes != series_of(counts)).sum())
    while waiting is not None:
        orphans += waiting.height
        waiting = next(persons, None)
    return orphans, wrong


def _add_counts(values: NDArray[np.generic], ids: NDArray[np.generic], counts: NDArray[np.int64]) -> int:
    """Add how often each identifier occurs in rising values; returns how many values are not identifiers."""
    if not values.size:
        return 0
    starts = np.append(0, np.flatnonzero(values[1:] != values[:-1]) + 1)
    times = np.diff(starts, append=values.size)
    found = values[starts]
    first = int(np.searchsorted(ids, found[0]))  # every value is at most the last identifier
    if np.array_equal(ids[first : first + found.size], found):  # every household has its persons, as usual
        counts[first : first + found.size] += times
        return 0
    at = np.searchsorted(ids, found)
    known = ids[at] == found
    counts[at[known]] += times[known]
    return int(times[~known].sum())


def _read_batches(frame: pl.LazyFrame) -> Iterator[pl.DataFrame]:
    for batch in frame.collect_batches(
        chunk_size=ROWS_PER_BATCH, maintain_order=True, lazy=True, engine="streaming"
    ):
        if batch.height:
            yield batch
