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
from stirred.frames import collected, frame_of
from stirred.mechanisms.participation import takes_part
from stirred.mechanisms.released import lazy
from stirred.mechanisms.swapping.guards.reversal import Reversal, reversals
from stirred.mechanisms.swapping.roles import Roles

SAMPLE = 1 << 14  # records that are measured; a smaller file is measured as a whole
ENOUGH = SAMPLE // 8
UNIT = "__unit"


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What was measured on the records of one type, or on one table."""

    record_type: str
    reversal: Reversal
    part: bool  # whether only a part of the file was measured

    @property
    def columns(self) -> tuple[str, ...]:
        """The held columns."""
        return self.reversal.columns


@dataclass(frozen=True, slots=True)
class _Question:
    """The columns that make strata and places in a released file, and the swap rate."""

    match: Sequence[str]
    swap: Sequence[str]
    rate: float

    def answer(
        self, record_type: str, rows: pl.DataFrame, held: Sequence[str], *, part: bool, unit: str = ""
    ) -> list[Found]:
        """What the held columns predict."""
        found = reversals(rows, match=self.match, swap=self.swap, held=held, rate=self.rate, unit=unit)
        return [Found(record_type=record_type, reversal=one, part=part) for one in found]


def on_records(
    microdata: Mapping[str, "pa.Table | pads.Dataset"], roles: Roles, schema: Schema, rate: float
) -> tuple[Found, ...]:
    """Measure the released records, and the records that travel along with the places of their household."""
    record = schema.record(roles.record_type)
    data = lazy(microdata[roles.record_type])
    there = data.collect_schema().names()
    homes = data.filter(takes_part(record.kinds, there))
    number = int(collected(homes.select(pl.len())).item())
    hold = [name for name in roles.hold if name in there]
    asked = _Question(
        [name for name in roles.match if name in there],
        [name for name in roles.moving if name in there],
        rate,
    )
    known = [*asked.match, *asked.swap]
    chosen, whole_places = _chosen(homes, asked.swap, number, SAMPLE, [*known, *hold])
    part = chosen.height < number
    found = asked.answer(roles.record_type, chosen, hold, part=part)
    if part and not whole_places:
        for name in hold:
            some, _ = _chosen(homes, [name], number, SAMPLE, [*known, name])
            found += asked.answer(roles.record_type, some, [name], part=True)
    for other, names in roles.members:
        found += _members(microdata, other, names, homes, roles, schema, asked, number)
    return tuple(found)


def _members(
    microdata: Mapping[str, "pa.Table | pads.Dataset"],
    record_type: str,
    names: Sequence[str],
    homes: pl.LazyFrame,
    roles: Roles,
    schema: Schema,
    asked: _Question,
    number: int,
) -> list[Found]:
    """Measure the columns of linked records: which place their household has."""
    record, people = schema.record(record_type), lazy(microdata[record_type])
    own = set(people.collect_schema().names())
    held = [name for name in names if name in own and name not in (*roles.match, *roles.moving)]
    if not held or not roles.identifier:
        return []
    most = int(collected(people.select(pl.len())).item())
    wanted = SAMPLE if most <= SAMPLE else max(ENOUGH, SAMPLE * number // most)
    known = [roles.identifier, *asked.match, *asked.swap]
    units, _ = _chosen(homes, asked.swap, number, wanted, known)
    units = units.rename({roles.identifier: UNIT})
    if not units.height:
        return []
    # numbers are given in the published order, so the files of persons are read only as far as they are needed
    numbers, link = units[UNIT].to_numpy(), pl.col(record.household)
    near = people.filter(link.is_between(int(numbers.min()), int(numbers.max()))).select(
        link.alias(UNIT), *held
    )
    rows = collected(near.join(units.lazy(), on=UNIT, how="inner", maintain_order="left"))
    return asked.answer(record_type, rows, held, part=units.height < number, unit=UNIT)


def on_tables(tables: Mapping[str, pa.Table], roles: Roles, rate: float) -> tuple[Found, ...]:
    """Measure tables of counts that are released without records: each cell stands for as many records."""
    found: list[Found] = []
    for table in tables.values():
        frame = frame_of(table).filter(pl.col("count") > 0)
        names = [name for name in frame.columns if name != "count"]
        asked = _Question(
            [name for name in roles.match if name in names],
            [name for name in roles.moving if name in names],
            rate,
        )
        held = [name for name in roles.hold if name in names]
        if not asked.swap or not held:
            continue
        number = int(frame["count"].sum())
        if number > SAMPLE:
            some = collected(_hashed(frame.lazy(), asked.swap, SAMPLE / number))
            if SAMPLE // 8 <= int(some["count"].sum()) <= 4 * SAMPLE:
                frame = some
            else:  # places are too large: all cells, thinned
                frame = frame.with_columns((pl.col("count") * (SAMPLE / number)).round().cast(pl.Int64))
        rows = frame.select(names)[np.repeat(np.arange(frame.height), frame["count"].to_numpy())]
        found += asked.answer(roles.record_type, rows, held, part=rows.height < number)
    return tuple(found)


def _chosen(
    homes: pl.LazyFrame, by: Sequence[str], number: int, wanted: int, columns: Sequence[str]
) -> tuple[pl.DataFrame, bool]:
    """Some columns of about ``wanted`` records: whole groups of equal values; if these are too large, the first records."""
    names = list(dict.fromkeys(columns))
    if number <= wanted:
        return collected(homes.select(names)), True
    some = collected(_hashed(homes, by, wanted / number).select(names).head(4 * wanted))
    if some.height >= wanted // 8:
        return some, True
    return collected(homes.select(names).head(wanted)), False


def _hashed(frame: pl.LazyFrame, by: Sequence[str], share: float) -> pl.LazyFrame:
    """The rows whose values have a small hash: about this share of all combinations of values."""
    kinds = frame.collect_schema()
    plain = [pl.col(name).cast(pl.Int64 if kinds[name].is_integer() else pl.String) for name in by]
    words = [values.hash(seed=number) for number, values in enumerate(plain)]
    return frame.filter(reduce(operator.xor, words) <= int(share * (2**64 - 1)))
