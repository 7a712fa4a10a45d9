"""Count households by the groups of their householder, each household once, on every engine.

Where the census has a record for each household with the householder's codes, that record is counted. Else the codes are
those of the person who is the householder; a household in which not exactly one person is, is in no group, so that a
household counts at most once whatever its records say.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa

from stirred.engine import Engine, Local
from stirred.engine.placing import PART, Placed
from stirred.engine.plain import plain
from stirred.frames import arrow_of, collected, frame_of
from stirred.mechanisms.safetab.groups import (
    BYTES,
    GROUP,
    ROWS,
    SET,
    GroupCounts,
    KeySums,
    Tally,
    group_counts,
)

if TYPE_CHECKING:
    from stirred.census import Census


def household_counts(
    census: "Census", tally: Tally, *, record_type: str, link: str, engine: Engine | None = None
) -> list[GroupCounts]:
    """The counts of every set; ``link`` names the household of a person, and is empty where households are counted."""
    engine = engine or Local()
    if not link:
        return group_counts(census, tally, record_type=record_type, engine=engine)
    columns = list(dict.fromkeys([*tally.columns, link]))
    size = BYTES * census.count(record_type)
    if engine.fits(size):
        frame = single(census.scan(record_type, columns, ordered=False), tally, link)
        found = tally.expanded(collected(tally.grouped(frame), streaming=True))
        return [GroupCounts(keys, counts, tally.cells.number) for keys, counts in found]
    flow = engine.records(census, record_type, columns)
    chosen = flow.map(HouseholdersOfBatch(tally), flow.schema)
    parts = engine.parts_for(size)
    placed = Placed((link,), parts)
    met = engine.exchange(chosen.map(placed, placed.schema(flow.schema)), by=PART, parts=parts)
    counted = met.map(CountedPart(tally, link), ROWS)
    placed = Placed((SET, GROUP), parts)
    spread = engine.exchange(counted.flow().map(placed, placed.schema(ROWS)), by=PART, parts=parts)
    rows = frame_of(spread.map(KeySums(), ROWS).gathered()).sort(SET, GROUP)
    result = []
    for place in range(len(tally.sets)):
        own = rows.filter(pl.col(SET) == place)
        result.append(GroupCounts(own[GROUP].to_numpy(), own["count"].to_numpy(), tally.cells.number))
    return result


def taking(frame: pl.LazyFrame, tally: Tally) -> pl.LazyFrame:
    """The persons who are householders."""
    for name, levels in tally.where:
        frame = frame.filter(pl.col(name).cast(pl.String).is_in([str(level) for level in levels]))
    return frame


def single(frame: pl.LazyFrame, tally: Tally, link: str) -> pl.LazyFrame:
    """The householders of households that have exactly one."""
    return taking(frame, tally).filter(pl.len().over(link) == 1)


@dataclass(frozen=True, slots=True)
class HouseholdersOfBatch:
    """The householders of a batch."""

    tally: Tally

    def __call__(self, table: pa.Table) -> pa.Table:
        """The same columns."""
        return plain(arrow_of(collected(taking(frame_of(table).lazy(), self.tally)))).cast(table.schema)


@dataclass(frozen=True, slots=True)
class CountedPart:
    """The keys and counts of a part, in which all persons of a household meet."""

    tally: Tally
    link: str

    def __call__(self, _part: int, table: pa.Table) -> pa.Table:
        """One row for each key."""
        frame = frame_of(table.drop_columns([PART])).lazy()
        return self.tally(arrow_of(collected(single(frame, self.tally, self.link))))
