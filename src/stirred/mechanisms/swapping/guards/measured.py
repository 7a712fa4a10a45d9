"""Take from a release what the measure of reversal needs: all of a small file, whole places of a large one.

Which places are taken is decided by a fixed hash of released values, without a key. Where places are so large that
this leaves too few of them, the first records are taken, because the published order is random, and each held column is
measured again on whole groups of its equal values.
"""

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import polars as pl
import pyarrow as pa

from stirred.arrow import pads
from stirred.census import Schema
from stirred.frames import collect_frame, frame_of
from stirred.mechanisms.participation import takes_part
from stirred.mechanisms.released import scan_records
from stirred.mechanisms.swapping.guards.reversal import Reversal, measure_reversals
from stirred.mechanisms.swapping.roles import Roles

RECORDS_SAMPLED = 1 << 14  # records that are measured; a smaller file is measured as a whole
MIN_UNITS_SAMPLED = RECORDS_SAMPLED // 8
UNIT_COLUMN = "__unit"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReversalFinding:
    """A measured reversal, with the record type or table it was measured on."""

    record_type: str
    reversal: Reversal
    part: bool  # whether only a part of the file was measured

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the held columns."""
        return self.reversal.columns


@dataclass(frozen=True, slots=True)
class _Question:
    """The columns that make strata and places in a released file, and the swap rate."""

    match: Sequence[str]
    swap: Sequence[str]
    rate: float

    def answer(
        self, record_type: str, rows: pl.DataFrame, held: Sequence[str], *, part: bool, unit: str = ""
    ) -> list[ReversalFinding]:
        """Measure what the held columns predict; return one finding for each set of columns."""
        found = measure_reversals(
            rows, match=self.match, swap=self.swap, held=held, rate=self.rate, unit=unit
        )
        return [ReversalFinding(record_type=record_type, reversal=one, part=part) for one in found]


def measure_records(
    microdata: Mapping[str, "pa.Table | pads.Dataset"], roles: Roles, schema: Schema, rate: float
) -> tuple[ReversalFinding, ...]:
    """Measure the released records, and the records that travel along with the places of their household."""
    record = schema.record(roles.record_type)
    data = scan_records(microdata[roles.record_type])
    there = data.collect_schema().names()
    homes = data.filter(takes_part(record.kinds, there))
    number = int(collect_frame(homes.select(pl.len())).item())
    hold = [name for name in roles.hold if name in there]
    asked = _Question(
        [name for name in roles.match if name in there],
        [name for name in roles.moving_variables if name in there],
        rate,
    )
    known = [*asked.match, *asked.swap]
    chosen, whole_places = _sample_places(homes, asked.swap, number, RECORDS_SAMPLED, [*known, *hold])
    part = chosen.height < number
    found = asked.answer(roles.record_type, chosen, hold, part=part)
    if part and not whole_places:
        for name in hold:
            some, _ = _sample_places(homes, [name], number, RECORDS_SAMPLED, [*known, name])
            found += asked.answer(roles.record_type, some, [name], part=True)
    for other, names in roles.members:
        found += _measure_members(microdata, other, names, homes, roles, schema, asked, number)
    return tuple(found)


def _measure_members(
    microdata: Mapping[str, "pa.Table | pads.Dataset"],
    record_type: str,
    names: Sequence[str],
    homes: pl.LazyFrame,
    roles: Roles,
    schema: Schema,
    asked: _Question,
    number: int,
) -> list[ReversalFinding]:
    """Measure the columns of linked records: which place their household has."""
    record, people = schema.record(record_type), scan_records(microdata[record_type])
    own = set(people.collect_schema().names())
    held = [name for name in names if name in own and name not in (*roles.match, *roles.moving_variables)]
    if not held or not roles.identifier:
        return []
    most = int(collect_frame(people.select(pl.len())).item())
    wanted = (
        RECORDS_SAMPLED
        if most <= RECORDS_SAMPLED
        else max(MIN_UNITS_SAMPLED, RECORDS_SAMPLED * number // most)
    )
    known = [roles.identifier, *asked.match, *asked.swap]
    units, _ = _sample_places(homes, asked.swap, number, wanted, known)
    units = units.rename({roles.identifier: UNIT_COLUMN})
    if not units.height:
        return []
    # numbers are given in the published order, so the files of persons are read only as far as they are needed
    numbers, link = units[UNIT_COLUMN].to_numpy(), pl.col(record.household)
    near = people.filter(link.is_between(int(numbers.min()), int(numbers.max()))).select(
        link.alias(UNIT_COLUMN), *held
    )
    rows = collect_frame(near.join(units.lazy(), on=UNIT_COLUMN, how="inner", maintain_order="left"))
    return asked.answer(record_type, rows, held, part=units.height < number, unit=UNIT_COLUMN)


def measure_tables(tables: Mapping[str, pa.Table], roles: Roles, rate: float) -> tuple[ReversalFinding, ...]:
    """Measure tables of counts that are released without records: each cell stands for as many records."""
    found: list[ReversalFinding] = []
    for table in tables.values():
        frame = frame_of(table).filter(pl.col("count") > 0)
        names = [name for name in frame.columns if name != "count"]
        asked = _Question(
            [name for name in roles.match if name in names],
            [name for name in roles.moving_variables if name in names],
            rate,
        )
        held = [name for name in roles.hold if name in names]
        if not asked.swap or not held:
            continue
        number = int(frame["count"].sum())
        if number > RECORDS_SAMPLED:
            some = collect_frame(_filter_by_hash(frame.lazy(), asked.swap, RECORDS_SAMPLED / number))
            if RECORDS_SAMPLED // 8 <= int(some["count"].sum()) <= 4 * RECORDS_SAMPLED:
                frame = some
            else:  # places are too large: all cells, thinned
                frame = frame.with_columns(
                    (pl.col("count") * (RECORDS_SAMPLED / number)).round().cast(pl.Int64)
                )
        rows = frame.select(names)[np.repeat(np.arange(frame.height), frame["count"].to_numpy())]
        found += asked.answer(roles.record_type, rows, held, part=rows.height < number)
    return tuple(found)


def _sample_places(
    homes: pl.LazyFrame, by: Sequence[str], number: int, wanted: int, columns: Sequence[str]
) -> tuple[pl.DataFrame, bool]:
    """Take whole groups of equal values, about ``wanted`` records, or the first ones if groups are too large."""
    names = list(dict.fromkeys(columns))
    if number <= wanted:
        return collect_frame(homes.select(names)), True
    some = collect_frame(_filter_by_hash(homes, by, wanted / number).select(names).head(4 * wanted))
    if some.height >= wanted // 8:
        return some, True
    return collect_frame(homes.select(names).head(wanted)), False


def _filter_by_hash(frame: pl.LazyFrame, by: Sequence[str], share: float) -> pl.LazyFrame:
    """Keep the rows whose values have a small hash, about this share of all combinations of values."""
    kinds = frame.collect_schema()
    plain = [pl.col(name).cast(pl.Int64 if kinds[name].is_integer() else pl.String) for name in by]
    words = [values.hash(seed=number) for number, values in enumerate(plain)]
    return frame.filter(reduce(operator.xor, words) <= int(share * (2**64 - 1)))
