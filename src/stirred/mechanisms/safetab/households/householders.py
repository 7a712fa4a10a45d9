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
from stirred.engine.placing import PART_COLUMN, PlaceRows
from stirred.engine.plain import to_plain
from stirred.frames import arrow_of, collect_frame, frame_of
from stirred.mechanisms.safetab.groups import (
    BYTES_PER_RECORD,
    COUNT_SCHEMA,
    GROUP,
    SET,
    GroupCounts,
    KeySums,
    Tally,
    count_groups,
)

if TYPE_CHECKING:
    from stirred.census import Census


def count_households(
    census: "Census", tally: Tally, *, record_type: str, link: str, engine: Engine | None = None
) -> list[GroupCounts]:
    """Return the counts of every set; ``link`` names a person's household, empty where households are counted."""
    engine = engine or Local()
    if not link:
        return count_groups(census, tally, record_type=record_type, engine=engine)
    columns = list(dict.fromkeys([*tally.columns, link]))
    size = BYTES_PER_RECORD * census.count(record_type)
    if engine.fits(size):
        frame = keep_single(census.scan(record_type, columns, ordered=False), tally, link)
        found = tally.expand_groups(collect_frame(tally.group_records(frame), streaming=True))
        return [GroupCounts(keys, counts, tally.cells.number) for keys, counts in found]
    flow = engine.records(census, record_type, columns)
    chosen = flow.map(HouseholdersOfBatch(tally), flow.schema)
    parts = engine.parts_for(size)
    placed = PlaceRows((link,), parts)
    met = engine.exchange(chosen.map(placed, placed.schema(flow.schema)), by=PART_COLUMN, parts=parts)
    counted = met.map(CountPart(tally, link), COUNT_SCHEMA)
    placed = PlaceRows((SET, GROUP), parts)
    spread = engine.exchange(
        counted.flow().map(placed, placed.schema(COUNT_SCHEMA)), by=PART_COLUMN, parts=parts
    )
    rows = frame_of(spread.map(KeySums(), COUNT_SCHEMA).gather()).sort(SET, GROUP)
    result = []
    for place in range(len(tally.sets)):
        own = rows.filter(pl.col(SET) == place)
        result.append(GroupCounts(own[GROUP].to_numpy(), own["count"].to_numpy(), tally.cells.number))
    return result


def filter_householders(frame: pl.LazyFrame, tally: Tally) -> pl.LazyFrame:
    """Return the persons who are householders."""
    for name, levels in tally.where:
        frame = frame.filter(pl.col(name).cast(pl.String).is_in([str(level) for level in levels]))
    return frame


def keep_single(frame: pl.LazyFrame, tally: Tally, link: str) -> pl.LazyFrame:
    """Return the householders of households that have exactly one."""
    return filter_householders(frame, tally).filter(pl.len().over(link) == 1)


@dataclass(frozen=True, slots=True)
class HouseholdersOfBatch:
    """Select the householders of a batch."""

    tally: Tally

    def __call__(self, table: pa.Table) -> pa.Table:
        """The same columns."""
        return to_plain(
            arrow_of(collect_frame(filter_householders(frame_of(table).lazy(), self.tally)))
        ).cast(table.schema)


@dataclass(frozen=True, slots=True)
class CountPart:
    """Count the keys of a part, in which all persons of a household meet."""

    tally: Tally
    link: str

    def __call__(self, _part: int, table: pa.Table) -> pa.Table:
        """One row for each key."""
        frame = frame_of(table.drop_columns([PART_COLUMN])).lazy()
        return self.tally(arrow_of(collect_frame(keep_single(frame, self.tally, self.link))))
