"""Who was swapped with whom, for the office's quality assurance: it goes to the internal part of a packet, or nowhere."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from stirred.mechanisms.swapping.draw.strata import NO_STRATUM
from stirred.mechanisms.swapping.pipeline.frame import Frame
from stirred.mechanisms.targeted.donors import Ints, Pairing
from stirred.mechanisms.targeted.risk import number_combinations


@dataclass(frozen=True, slots=True, kw_only=True)
class SwapLog:
    """The confidential log of what a pairwise swap did to the records of the census."""

    pairs: (
        pa.Table
    )  # one row for each household that moved: whose place it took, level, rule, who was selected
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
        """Return the tables that stayed exact."""
        return tuple(name for name, changed in self.tables.items() if not changed)

    def summary(self) -> dict[str, object]:
        """Return all figures without a record; they depend on the census, so they are for the office alone."""
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

    def internal(self) -> dict[str, pa.Table]:
        """Return the log as two tables: ``swaps``, a row for each moved household, and ``figures``."""
        rows = [
            ("households that take part", "", self.households),
            ("households moved", "", self.moved),
            ("persons of households that take part", "", self.persons),
            ("persons moved", "", self.moved_persons),
            ("households without a partner", "", self.without_partner),
            *(("swaps by rule", name, number) for name, number in self.rules.items()),
            *(("swaps by level", name, number) for name, number in self.levels.items()),
            *(("cells changed", name, number) for name, number in self.tables.items()),
        ]
        figure, of, number = zip(*rows, strict=True)
        figures = pa.table({"figure": list(figure), "of": list(of), "number": pa.array(number, pa.int64())})
        return {"swaps": self.pairs, "figures": figures}


def make_log(frame: Frame, pairing: Pairing, *, rules: Sequence[str], levels: Sequence[str]) -> SwapLog:
    """Make the log of one draw, with rows in the order of the identifiers."""
    rows = np.flatnonzero(pairing.moved_mask)
    rows = rows[np.argsort(frame.ids[rows], kind="stable")]
    begun, partner = pairing.begun, pairing.partner[rows]
    names = frame.columns[frame.roles.identifier] if frame.roles.identifier else None
    if names is None:
        own, other = pa.array(rows), pa.array(partner)
    else:
        own, other = (names.take_rows(some.astype(np.uint32)).arrow() for some in (rows, partner))
    sizes = sum((np.diff(group.starts) for group in frame.members), np.zeros(frame.rows, np.int64))
    part = frame.strata.codes != NO_STRATUM
    return SwapLog(
        pairs=pa.table(
            {
                "household": own,
                "partner": other,
                "level": pa.array(np.array(levels, object)[pairing.level[rows]], pa.string()),
                "rule": pa.array(np.array(rules, object)[pairing.tier[rows]], pa.string()),
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
        tables=_count_changed(frame, rows, partner, levels),
    )


def _count_changed(frame: Frame, rows: Ints, givers: Ints, levels: Sequence[str]) -> dict[str, int]:
    """Count the changed cells of tables of a level by a held variable, and by what partners agree on.

    Only records that moved change a cell: they are counted where they were and where they are.
    """
    roles = frame.roles
    asked: list[tuple[str, ...]] = [
        (level, name) for level in levels for name in roles.held_variables if name != level
    ]
    asked += [(level, *roles.match) for level in levels if len(roles.match) > 1]
    found = {}
    for by in dict.fromkeys(asked):
        columns = []
        for name in by:
            codes = frame.columns[name].codes
            now = givers if name in roles.moving_variables else rows
            both = np.concatenate([codes[rows], codes[now]])
            columns.append(replace(frame.columns[name], codes=both, reach=None))
        cells = number_combinations(columns, 2 * rows.size)
        number = int(cells.max(initial=-1)) + 1
        before, after = (np.bincount(some, minlength=number) for some in np.split(cells, 2))
        found[" × ".join(by)] = int((before != after).sum())
    return found
