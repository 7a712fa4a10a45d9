"""Kernels over parts with complete strata: the shapes of the strata, and the swap itself."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from stirred.chance import Key
from stirred.chance.words import one
from stirred.engine import Engine, Local
from stirred.engine.plain import plain
from stirred.mechanisms.swapping import statement
from stirred.mechanisms.swapping.pipeline.frame import Frame, framed
from stirred.mechanisms.swapping.pipeline.part_batches import PART, first_words, part_of
from stirred.mechanisms.swapping.pipeline.part_checks import Looker
from stirred.mechanisms.swapping.records.columns import Codes, Column, of_table
from stirred.mechanisms.swapping.records.columns import plain as one_zero
from stirred.mechanisms.swapping.roles import Roles
from stirred.mechanisms.swapping.values import one

if TYPE_CHECKING:
    from stirred.census.codebook.schema import Kinds
    from stirred.mechanisms.swapping.mechanism import PermutationSwapping

SHAPE = ("n", "hold_types", "swap_types", "hold_larger", "swap_larger", "strata")
SHAPED = pa.schema(
    [
        *((name, pa.list_(pa.int64())) for name in (*SHAPE, "stays", "cells")),
        ("margins", pa.list_(pa.string())),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What every kernel of one release needs."""

    mechanism: "PermutationSwapping"
    roles: Roles
    kinds: "Kinds | None"  # None too where the records that may not move were left out before
    read: tuple[str, ...]
    levels: tuple[tuple[str, pa.Array], ...] = ()  # of the whole census

    def frame(self, records: pa.Table) -> Frame:
        """Some records as a frame of the mechanism; identifiers are already words."""
        columns = of_table(records, [self.roles.identifier, *self.read])
        known: list[tuple[str, Codes]] = []
        for name, values in self.levels:
            columns[name], codes = recoded(columns[name], values)
            known.append((name, codes))
        frame = self.mechanism.adapted(framed(columns, self.roles, self.kinds, untouched="publish"))
        return replace(frame, levels=tuple(known))


def recoded(column: Column, levels: pa.Array) -> tuple[Column, Codes]:
    """A column in codes of all levels that occur anywhere, and these codes; an empty level is the last."""
    if column.values is None and not levels.null_count:
        return column, levels.to_numpy(zero_copy_only=False)
    values = levels.cast(column.type) if levels.type != column.type else levels
    array = column.arrow()
    array = array.cast(array.type.value_type) if pa.types.is_dictionary(array.type) else array
    codes = pc.index_in(array, value_set=values).to_numpy(zero_copy_only=False).astype(np.int32)
    return replace(column, codes=codes, values=values, reach=None).measured(), np.arange(len(values))


@dataclass(frozen=True, slots=True)
class Shaped:
    """The shapes of the strata of a part, the records that stay, and the cells that do not change, in one row."""

    job: Job
    looker: Looker

    def __call__(self, part: int, records: pa.Table) -> pa.Table:
        del part
        if not records.num_rows:
            return SHAPED.empty_table()
        frame = self.job.frame(records)
        found = statement.shapes(frame)
        row = {name: [getattr(found, name)] for name in SHAPE}
        row["stays"] = [np.array([stay.records for stay in frame.stays], np.int64)]
        row["cells"] = [np.array(self.looker.cells(records), np.int64)]
        row["margins"] = [found.margins.tolist()]
        return pa.table({name: pa.array(row[name], SHAPED.field(name).type) for name in row}, schema=SHAPED)


@dataclass(frozen=True, slots=True)
class Drawn:
    """The records of a part after the swap, each with its part of the published order."""

    job: Job
    run: Key
    parts: int

    def __call__(self, part: int, records: pa.Table) -> pa.Table:
        del part
        identifier, names = self.job.roles.identifier, self.job.read
        if not records.num_rows:
            return records
        frame = self.job.frame(records)
        columns = self.job.mechanism.swapped(frame, self.run, cast(Engine, Local(workers=1)))
        moved = {
            name: columns[name].arrow()
            if columns[name] is not frame.columns[name]
            else one_zero(one(records[name]))
            for name in names
        }
        place = part_of(first_words(self.run, frame.ids), self.parts)
        return plain(pa.table({identifier: pa.array(frame.ids), **moved, PART: place}))


@dataclass(frozen=True, slots=True)
class Cells:
    """The cells of one contingency table in a part."""

    names: tuple[str, ...]

    def __call__(self, part: int, records: pa.Table, *others: pa.Table) -> pa.Table:
        del part, others
        frame = pl.from_arrow(records.select(list(self.names)))
        assert isinstance(frame, pl.DataFrame)
        found = frame.group_by(self.names).agg(pl.len().cast(pl.Int64).alias("count"))
        return plain(found.to_arrow(compat_level=pl.CompatLevel.oldest()))
