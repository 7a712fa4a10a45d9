"""Who was swapped with whom, for the office's quality assurance: computed again from the key, never part of a release."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pyarrow as pa

from stirred.chance import Key
from stirred.engine import Engine, Local
from stirred.errors import InputError
from stirred.frames import frame_of
from stirred.mechanisms.swapping.draw.strata import OUT
from stirred.mechanisms.swapping.pipeline.frame import Frame
from stirred.mechanisms.swapping.pipeline.memory import MemoryRecords
from stirred.mechanisms.swapping.pipeline.publish import swapped_columns, table
from stirred.mechanisms.swapping.pipeline.release import opened
from stirred.mechanisms.targeted.donors import Pairing
from stirred.mechanisms.targeted.draw import moves_of
from stirred.mechanisms.targeted.pairwise import PairwiseSwapping

if TYPE_CHECKING:
    from stirred.census import Census


@dataclass(frozen=True, slots=True, kw_only=True)
class SwapLog:
    """Confidential: what a pairwise swap did to the records of the census."""

    pairs: (
        pa.Table
    )  # one row for each household that moved: its partner, the level, the rule, who was selected
    households: int  # that take part
    persons: int
    moved: int
    moved_persons: int
    rules: Mapping[str, int]  # swaps by the rule that found the partner
    levels: Mapping[str, int]  # swaps by the level that was crossed
    without_partner: int  # households that had to be swapped, and nobody was left
    tables: Mapping[str, int]  # cells of each table of level × variable that changed, counted on the output

    @property
    def exact(self) -> tuple[str, ...]:
        """The tables that stayed exact."""
        return tuple(name for name, changed in self.tables.items() if not changed)

    def summary(self) -> dict[str, object]:
        """All figures without a record; they depend on the census, so they are for the office alone."""
        share = (self.moved / max(self.households, 1), self.moved_persons / max(self.persons, 1))
        return {
            "households moved": self.moved,
            "rate of households": share[0],
            "rate of persons": share[1] if self.persons else None,
            "swaps by rule": dict(self.rules),
            "swaps by level": dict(self.levels),
            "households without a partner": self.without_partner,
            "tables that stayed exact": list(self.exact),
            "cells changed": dict(self.tables),
        }


def swap_log(
    mechanism: PairwiseSwapping, census: "Census", *, key: Key, engine: Engine | None = None
) -> SwapLog:
    """The log of the release that this key gives; the draw is made again in memory."""
    place = engine or Local()
    with opened(mechanism, census.checked(), place) as source:
        if not isinstance(source, MemoryRecords):
            raise InputError(
                "the log needs the census in memory",
                why="the draw is made again to see who was swapped",
                fix="ask for it with Local() on a machine whose memory holds the census",
            )
        run = mechanism.bound(key, source.survey(mechanism.reader(key)).digest)
        frame = source.frame
    pairing = mechanism.pairs(frame, run)
    return _logged(mechanism, frame, pairing, place)


def _logged(mechanism: PairwiseSwapping, frame: Frame, pairing: Pairing, engine: Engine) -> SwapLog:
    rows = np.flatnonzero(pairing.moved)
    begun = pairing.begun
    names = frame.columns[frame.roles.identifier] if frame.roles.identifier else None
    if names is None:
        own, other = pa.array(rows), pa.array(pairing.partner[rows])
    else:
        own = names.taken(rows.astype(np.uint32)).arrow()
        other = names.taken(pairing.partner[rows].astype(np.uint32)).arrow()
    rules, levels = mechanism.rules, mechanism.levels
    sizes = sum((np.diff(group.starts) for group in frame.members), np.zeros(frame.rows, np.int64))
    part = frame.strata.codes != OUT
    return SwapLog(
        pairs=pa.table(
            {
                "household": own,
                "partner": other,
                "level": pa.array([levels[i] for i in pairing.level[rows]], pa.string()),
                "rule": pa.array([rules[i] for i in pairing.tier[rows]], pa.string()),
                "selected": pa.array(begun[rows]),
            }
        ),
        households=int(part.sum()),
        persons=int(sizes[part].sum()),
        moved=rows.size,
        moved_persons=int(sizes[rows].sum()),
        rules={name: int((begun & (pairing.tier == i)).sum()) for i, name in enumerate(rules)},
        levels={name: int((begun & (pairing.level == i)).sum()) for i, name in enumerate(levels)},
        without_partner=int(pairing.failed.sum()),
        tables=_changed(mechanism, frame, pairing, engine),
    )


def _changed(mechanism: PairwiseSwapping, frame: Frame, pairing: Pairing, engine: Engine) -> dict[str, int]:
    """Of each table of a level by a held variable, and by what partners agree on, how many cells differ afterwards."""
    after = swapped_columns(frame, moves_of(pairing), engine)
    found = {}
    asked: list[tuple[str, ...]] = [
        (level, name) for level in mechanism.levels for name in frame.roles.held if name != level
    ]
    asked += [(level, *frame.roles.match) for level in mechanism.levels if len(frame.roles.match) > 1]
    for by in dict.fromkeys(asked):
        before, now = table(frame.columns, by), table(after, by)
        both = pa.concat_tables([before.append_column("t", pa.array(["b"] * before.num_rows)),
                                 now.append_column("t", pa.array(["n"] * now.num_rows))])  # fmt: skip
        found[" × ".join(by)] = _differing(both, by)
    return found


def _differing(both: pa.Table, by: tuple[str, ...]) -> int:
    signed = pl.when(pl.col("t") == "b").then(pl.col("count")).otherwise(-pl.col("count"))
    text = frame_of(both).with_columns(pl.selectors.by_dtype(pl.Categorical, pl.Enum).cast(pl.String))
    return int((text.group_by(list(by)).agg(signed.sum().alias("d"))["d"] != 0).sum())
