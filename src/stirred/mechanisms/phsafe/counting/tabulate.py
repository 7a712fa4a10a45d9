"""Count every table exactly, in memory or in parts: persons meet their household in one part, and cells come back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pyarrow as pa

from stirred.chance.words import Hasher, cast_links, combine_chunks
from stirred.engine import Engine
from stirred.engine.placing import PART_COLUMN, PlaceRows
from stirred.frames import arrow_of, frame_of, series_of
from stirred.mechanisms.phsafe.counting.tables import (
    ORIGIN,
    RACE,
    TABULATION_BY_NAME,
    Tabulation,
    origin_group,
    race_group,
)
from stirred.mechanisms.phsafe.counting.truncation import Ints, rank_persons
from stirred.mechanisms.phsafe.counting.variables import OWN_COLUMNS, STATE_COLUMN, UNIT_COLUMN, CensusColumns

if TYPE_CHECKING:
    from stirred.census import Census

TABLE, CELL, COUNT = "table", "cell", "count"
KEY_COLUMNS = (TABLE, STATE_COLUMN, CELL, RACE, ORIGIN)
HOME_COLUMN = "stirred:home"
BYTES_PER_VALUE = 24  # bytes of a value on its way, working space included


@dataclass(frozen=True, slots=True, kw_only=True)
class CountKernel:
    """Count the cells of whole households; the kernel is pure, so a part may be counted anywhere and twice."""

    columns: CensusColumns
    tau: tuple[tuple[str, int], ...]  # of the person tables that are made
    households: tuple[str, ...]  # the household tables that are made
    states: tuple[str, ...]  # as text
    hasher: Hasher

    def __call__(self, _: int, homes: pa.Table, persons: pa.Table) -> pa.Table:
        units = frame_of(homes)
        units = self.columns.homes(units.filter(pl.len().over(self.columns.unit) == 1))
        units = units.with_columns(pl.col(STATE_COLUMN).cast(pl.String)).filter(
            pl.col(STATE_COLUMN).is_in(self.states)
        )
        units = units.with_row_index(HOME_COLUMN)
        made = [_group_cells(units, TABULATION_BY_NAME[name]) for name in self.households]
        if self.tau:
            made += self._persons(units, persons)
        return arrow_of(pl.concat(made)) if made else _empty_cells()

    def _persons(self, units: pl.DataFrame, table: pa.Table) -> list[pl.DataFrame]:
        persons = self.columns.persons(frame_of(_cast_link(table, self.columns.link, units[UNIT_COLUMN])))
        joined = persons.join(units, on=UNIT_COLUMN, how="inner")
        homes = joined[HOME_COLUMN].to_numpy().astype(np.int64)
        read = [OWN_COLUMNS[name] for name, _ in self.columns.person]
        values: list[Ints] = [joined[name].cast(pl.Int64).fill_null(-1).to_numpy() for name in read]
        identifiers = combine_chunks(arrow_of(units.select(UNIT_COLUMN)).column(UNIT_COLUMN))
        ranks = rank_persons(identifiers, values, homes, min(tau for _, tau in self.tau), self.hasher)
        made = []
        for name, tau in self.tau:
            wanted = TABULATION_BY_NAME[name]
            inside = joined.select((wanted.universe & wanted.homes).fill_null(False).alias("in"))["in"]
            mask = np.broadcast_to(inside.to_numpy(), joined.height)
            kept = ranks.keep_first(np.array(mask), homes, units.height, tau)
            made.append(_group_cells(joined.filter(series_of(kept)), wanted, filtered=True))
        return made


def _cast_link(table: pa.Table, link: str, units: pl.Series) -> pa.Table:
    """Return the persons with their link in the type of the households' identifiers."""
    kind = arrow_of(units.to_frame()).schema.field(0).type
    column = cast_links(combine_chunks(table.column(link)), kind, name=link)
    return table.set_column(table.schema.get_field_index(link), link, column)


def _group_cells(frame: pl.DataFrame, wanted: Tabulation, *, filtered: bool = False) -> pl.DataFrame:
    """Return the cells of a table; a record that no cell takes is dropped without a count of these."""
    if not filtered:
        frame = frame.filter(wanted.universe & wanted.homes)
    race, hispanic = wanted.race_columns
    have = frame.columns
    none = pl.lit(None, pl.Int16)
    groups = [
        race_group(race) if race in have else none.alias(RACE),
        origin_group(race, hispanic) if {race, hispanic} <= set(have) else none.alias(ORIGIN),
    ]
    cells = frame.select(STATE_COLUMN, wanted.cell.cast(pl.Int16).alias(CELL), *groups)
    counted = cells.group_by(STATE_COLUMN, CELL, RACE, ORIGIN).agg(pl.len().cast(pl.Int64).alias(COUNT))
    named = counted.with_columns(pl.lit(wanted.name).alias(TABLE)).filter(pl.col(CELL).is_in(wanted.cells))
    return named.select(*KEY_COLUMNS, COUNT)


def _empty_cells() -> pa.Table:
    short = dict.fromkeys((CELL, RACE, ORIGIN), pl.Int16())
    types = {TABLE: pl.String(), STATE_COLUMN: pl.String(), **short, COUNT: pl.Int64()}
    return arrow_of(pl.DataFrame(schema=types))


def count_tables(census: "Census", kernel: CountKernel, engine: Engine) -> pl.DataFrame:
    """Return the exact counts by table, state, cell and groups of race and origin; confidential."""
    columns = kernel.columns
    sizes = [census.count(name) for name in ("household", "person")]
    size = BYTES_PER_VALUE * (
        sizes[0] * (len(columns.of_household) + 3)
        + sizes[1] * (len(columns.of_person) + len(columns.of_household))
    )
    if engine.fits(size):
        homes = _drop_dictionaries(census.table("household", columns.of_household))
        found = kernel(0, homes, _drop_dictionaries(census.table("person", columns.of_person)))
    else:
        found = _count_by_parts(census, kernel, engine, engine.parts_for(size))
    return frame_of(found).group_by(KEY_COLUMNS).agg(pl.col(COUNT).sum()).sort(KEY_COLUMNS, nulls_last=False)


def _count_by_parts(census: "Census", kernel: CountKernel, engine: Engine, parts: int) -> pa.Table:
    columns = kernel.columns
    flows = []
    for name, wanted, link in (
        ("household", columns.of_household, columns.unit),
        ("person", columns.of_person, columns.link),
    ):
        flow = engine.records(census, name, wanted)
        placed = PlaceByText(link, parts)
        flows.append(flow.map(placed, placed(flow.schema.empty_table()).schema))
    return engine.exchange(*flows, by=PART_COLUMN, parts=parts).map(kernel, _empty_cells().schema).gather()


@dataclass(frozen=True, slots=True)
class PlaceByText:
    """Append the part number of each row, decided by the text of an identifier, whatever its type."""

    key: str
    parts: int

    def __call__(self, table: pa.Table) -> pa.Table:
        text = pa.table({self.key: combine_chunks(table.column(self.key)).cast(pa.large_string())})
        return table.append_column(PART_COLUMN, PlaceRows((self.key,), self.parts)(text).column(PART_COLUMN))


def _drop_dictionaries(table: pa.Table) -> pa.Table:
    """Return the table without dictionaries, through polars because an Arrow cast loads more modules."""
    if not any(pa.types.is_dictionary(field.type) for field in table.schema):
        return table
    texts = pl.selectors.by_dtype(pl.Categorical, pl.Enum).cast(pl.String)
    return arrow_of(frame_of(table).with_columns(texts))


def find_regions(census: "Census", columns: CensusColumns) -> tuple[str, ...]:
    """Return the states of the public file of areas, or those that have a housing unit (an invariant)."""
    if census.schema.geography.areas is not None and columns.state in census.schema.spine:
        from stirred.census.geography import read_ancestors

        found = read_ancestors(census.schema, census.folder).select(pl.col(columns.state).cast(pl.String))
        return tuple(sorted(found.unique().drop_nulls().collect()[columns.state].to_list()))
    counts = frame_of(census.counts("household", [columns.state], housing_unit_filter(columns)))
    return tuple(sorted(counts[columns.state].drop_nulls().cast(pl.String).to_list()))


def housing_unit_filter(columns: CensusColumns) -> Mapping[str, Sequence[str]] | None:
    """Return the restriction of household records to housing units."""
    kinds = columns.kinds
    if kinds is None or not kinds.group_quarters:
        return None
    homes = (*kinds.occupied, *kinds.vacant, *kinds.housing_units)
    return {kinds.column: [str(level) for level in homes]}
