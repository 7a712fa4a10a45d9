"""One published number, its interval and a sentence, for a data user."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from stirred.assess.coverage import (
    CLASS_NAMES,
    CLASS_STARTS,
    NOMINAL_PERCENT,
    TRUE_SIZE_COVERAGE,
    find_size_class,
    lookup_coverage,
)
from stirred.errors import InputError, did_you_mean
from stirred.mechanisms.marks import SELECTED_ROWS_KEY
from stirred.publish.packet.folder import Packet
from stirred.publish.packet.quoting import explain_number

MEASURES = ("count", "weighted", "estimate", "standard_error", "variance", "low", "high", "quote")


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedCell:
    """A cell of a published table."""

    table: str
    where: Mapping[str, str]
    count: int
    weighted: float | None
    estimate: float | None
    standard_error: float | None
    low: float | None
    high: float | None
    private: bool
    variance: float | None = None  # of the noise, where the mechanism states it
    quote: str | None = None  # the column to quote; packets of earlier versions have none
    mechanism: str | None = None  # that made the packet, where it is one

    def document(self) -> dict[str, object]:
        """Return the cell as plain values for programs."""
        return {
            "table": self.table,
            "where": dict(self.where),
            **{name: getattr(self, name) for name in MEASURES},
        }

    def sentences(self) -> list[str]:
        """Return sentences for people: the cell, the number to quote, the published one, and the interval."""
        cell = ", ".join(f"{name} = {level}" for name, level in self.where.items())
        said = [f"{self.table}: {cell}" + ("" if self.private else " (NOT PRIVATE: made with a test key)")]
        if self.weighted is not None:
            said.append(f"Published: {self.weighted:,.1f}, the weights of {self.count:,} records.")
        said.append(self.explain_number())
        if self.standard_error == 0:
            said.append("It is published as it was counted: an invariant.")
        elif self.standard_error == float("inf"):
            said.append("The release says nothing certain about this cell beyond its margins.")
        elif self.low is not None:
            said.append(self.describe_coverage())
        return said

    def describe_coverage(self) -> str:
        """Describe the nominal coverage of the interval, and the measured one where there is one."""
        low, high = lookup_coverage(self.count, self.where, self.mechanism)
        fewest, most = TRUE_SIZE_COVERAGE
        few = f" of cells whose true number is 1 to 19, {fewest} to {most}."
        return (
            f"The interval is made to hold the true number of {NOMINAL_PERCENT} in 100 cells published like this one; where that "
            f"was measured, it did so for {low} to {high} of 100 cells published as {CLASS_NAMES[find_size_class(self.count)]}"
            + (f";{few}" if self.low is not None and self.low < CLASS_STARTS[3] else ".")
        )

    def explain_number(self) -> str:
        """Explain which number of the cell to quote, and why."""
        weighted = self.weighted is not None
        return explain_number(
            count=self.weighted if self.weighted is not None else self.count,
            estimate=self.estimate,
            standard_error=self.standard_error,
            low=self.low,
            high=self.high,
            measure="weighted" if weighted else "count",
            quote=self.quote,
        )


def look_up(folder: Path, where: Mapping[str, str], *, table: str | None = None) -> PublishedCell:
    """Return the cell in the one table that has just these variables, or in the table named."""
    packet = Packet(folder)
    receipt = packet.receipt()
    names = [table] if table else packet.table_names()
    makers = {str(entry.get("name")) for entry in packet.mechanisms()}
    if table and table not in packet.table_names():
        raise InputError(
            f"the packet has no table {table}",
            why="no published table has this name",
            fix=did_you_mean(table, packet.table_names()),
        )
    for name in names:
        frame = packet.frame(name)
        variables = [column for column in frame.columns if column not in MEASURES]
        if set(variables) != set(where):
            continue
        frame = frame.with_columns(pl.col(variables).cast(pl.String))
        rows = frame.filter(*[pl.col(key) == level for key, level in where.items()])
        for key, level in where.items():
            levels = frame[key].drop_nulls().unique().to_list()
            if level not in levels:
                raise InputError(
                    f"{name} has no {key} {level}",
                    why="no published cell has this level",
                    fix=did_you_mean(level, levels[:2000]),
                )
        if rows.is_empty() and packet.has_mark(name, SELECTED_ROWS_KEY):
            raise InputError(
                f"{name} does not show this cell",
                why="small or empty cells of this table are left out, so a missing row is not a count of 0",
                fix="look up a cell that is shown, or a larger area",
            )
        values = (
            dict.fromkeys(MEASURES[1:])
            if rows.is_empty()
            else {m: rows[m][0] if m in rows.columns else None for m in MEASURES[1:]}
        )
        return PublishedCell(
            table=name,
            where=where,
            count=0 if rows.is_empty() else int(rows["count"][0]),
            private=bool(receipt.get("private", False)),
            mechanism=makers.pop() if len(makers) == 1 else None,
            **values,
        )
    names = packet.table_names()
    raise InputError(
        "no published table has just these variables",
        why=f"asked for {', '.join(sorted(where))}",
        fix=f"the packet has: {', '.join(names)}"
        if names
        else "the packet has no tables: name them in the plan ([[table]]), or count the records",
    )
