"""Run a mechanism many times on one invented data set, and count what it shows."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from time import monotonic

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred.assess.audit.bounds import Draws
from stirred.census import Census
from stirred.chance import Key
from stirred.mechanisms.base import Mechanism
from stirred.mechanisms.contents import Content, Row, identifier_columns, make_content, read_content
from stirred.mechanisms.release import Release

MAX_COPIES_AT_ONCE = 250_000  # copies in one release
Tick = Callable[[int], None]


@dataclass(slots=True)
class Clock:
    """The time limit of an audit; what is not done by then stays unknown."""

    seconds: float | None
    began: float = field(default_factory=monotonic)

    @property
    def is_over(self) -> bool:
        """Return whether the time is up."""
        return self.seconds is not None and monotonic() - self.began > self.seconds

    def part(self, share: float) -> "Clock":
        """Return a clock that ends after this share of the time that is left."""
        if self.seconds is None:
            return Clock(None)
        return Clock(max(self.seconds - (monotonic() - self.began), 0.0) * share)


def count_draws(
    mechanism: Mechanism, census: Census, *, key: Key, runs: int, clock: Clock, tick: Tick = lambda _: None
) -> Draws:
    """Count what ``runs`` releases show; fewer where the time is up. Each run has randomness of its own."""
    found: Counter[Content] = Counter()
    done = 0
    while done < runs and not clock.is_over:
        copies = min(MAX_COPIES_AT_ONCE, runs - done)
        many = mechanism.replicate(census, copies) if copies > 1 else None
        if many is None:
            found[read_content(mechanism.release(census, key=key.bind("run", done)))] += 1
            done += 1
        else:
            inner, copied, name = many
            release = inner.release(copied, key=key.bind("copies", done))
            found += count_by_copy(release, name, copies)[0]
            done += copies
        tick(done)
    return Draws(found, done)


def count_by_copy(
    release: Release, name: str, copies: int
) -> tuple[Counter[Content], list[Content], NDArray[np.int64]]:
    """Count what the copies show: contents with their counts, all contents, and the content of each copy."""
    record_type = next(iter(release.microdata))
    frame = release.to_polars(record_type)
    frame = frame.drop(identifier_columns(release.schema, record_type) & {*frame.columns})
    if not frame.schema[name].is_integer():  # "10" would come before "2"
        frame = frame.with_columns(pl.col(name).cast(pl.String).cast(pl.Int64))
    columns = sorted(column for column in frame.columns if column != name)
    texts = frame.select(name, *(pl.col(column).cast(pl.String).fill_null("") for column in columns))
    kinds = texts.select(columns).unique().sort(columns).with_row_index("row code")
    rows: list[Row] = kinds.select(columns).rows()
    coded = texts.join(kinds, on=columns, how="left").select(name, "row code").sort(name, "row code")
    width = coded.height // copies
    codes = coded["row code"].to_numpy().reshape(copies, width).astype(np.int64)
    packed, first, place, counts = _distinct(codes, len(rows))
    del packed
    contents = [make_content({record_type: [rows[code] for code in codes[at]]}) for at in first]
    merged: Counter[Content] = Counter()
    for one, count in zip(contents, counts.tolist(), strict=True):
        merged[one] += count
    return merged, contents, place


def read_ordered_copies(
    mechanism: Mechanism, census: Census, *, key: Key, copies: int
) -> list[tuple[Row, ...]]:
    """Return the rows of each copy in the order of one release of all copies; [] if none can be made."""
    many = mechanism.replicate(census, copies)
    if many is None:
        return []
    inner, copied, name = many
    release = inner.release(copied, key=key.bind("ordered copies"))
    record_type = next(iter(release.microdata))
    frame = release.to_polars(record_type)
    columns = [
        one
        for one in frame.columns
        if one != name and one not in identifier_columns(release.schema, record_type)
    ]
    texts = frame.select(
        pl.col(name).cast(pl.String), *(pl.col(column).cast(pl.String).fill_null("") for column in columns)
    )
    found: dict[str, list[Row]] = {}
    for number, *row in texts.rows():
        found.setdefault(number, []).append(tuple(row))
    return [tuple(rows) for rows in found.values()]


def _distinct(
    codes: NDArray[np.int64], kinds: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the distinct rows of a matrix, packed into one number each where they fit."""
    width = codes.shape[1]
    if kinds**width < 2**62:
        packed = codes @ (np.int64(kinds) ** np.arange(width, dtype=np.int64))
        found = np.unique(packed, return_index=True, return_inverse=True, return_counts=True)
    else:
        found = np.unique(codes, axis=0, return_index=True, return_inverse=True, return_counts=True)
    values, first, place, counts = found
    return values, first, place.ravel(), counts


def mix_copies(
    mechanism: Mechanism, one: Census, other: Census, coins: NDArray[np.bool_]
) -> tuple[Mechanism, Census, str] | None:
    """Return copies of two data sets in one census: copy i is the second where coin i says so."""
    first, second = mechanism.replicate(one, len(coins)), mechanism.replicate(other, len(coins))
    if first is None or second is None:
        return None
    inner, census, name = first
    record_type = next(iter(census.files))
    heads = pl.Series(np.flatnonzero(coins))
    kept = census.files[record_type].filter(~pl.col(name).is_in(heads.implode()))
    changed = second[1].files[record_type].filter(pl.col(name).is_in(heads.implode()))
    rows = pl.concat([kept, changed]).sort(name)
    record = census.schema.record(record_type)
    if record.id:
        rows = rows.drop(record.id).with_row_index(record.id, offset=1)
    return inner, Census(schema=census.schema, files={record_type: rows}, folder=one.folder), name
