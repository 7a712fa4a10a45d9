"""Find columns that identify records: values that hardly any two records share, and links to records left out.

The number of values that occur once is a function of the margin of a held column, which a swap keeps exactly, so
finding them before a release reveals nothing beyond the invariants.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from stirred.census.census import Census, redact_errors

LEVEL = 0.5  # share of records with a value of their own from which a column identifies them
FEWEST = 50  # in a smaller file nearly every column has values that occur once


@dataclass(frozen=True, slots=True, kw_only=True)
class Identifying:
    """A column whose values name single records."""

    record_type: str
    column: str
    unique: int  # records whose value no other record has
    records: int
    links_to: str = ""  # the record type that the column links to, if that is why

    @property
    def why(self) -> str:
        """The reason in words, with counts and no value."""
        if self.links_to:
            return f"it names the {self.links_to} of each record, and that record type is not in the release"
        return f"{self.unique:,} of {self.records:,} {self.record_type} records have a value of their own"


def identifying(
    census: Census, record_type: str, columns: Sequence[str], *, released: Sequence[str] = ()
) -> tuple[Identifying, ...]:
    """Which of these columns identify records; ``released`` are the record types that are released with them.

    >>> census = Census.of({"record": {"household": {}}}, {"household": {"hid": range(60), "rooms": [1, 2] * 30}})
    >>> [(found.column, found.unique) for found in identifying(census, "household", ["hid", "rooms"])]
    [('hid', 60)]
    """
    record = census.schema.record(record_type)
    found: list[Identifying] = []
    asked = [name for name in columns if name in census.columns(record_type)]
    records = census.count(record_type)
    for name in asked:
        if name in (record.id, record.household):
            left_out = record.linked_to if name == record.household and record.linked_to else record_type
            if name == record.id or left_out not in released:
                found.append(
                    Identifying(
                        record_type=record_type,
                        column=name,
                        unique=records,
                        records=records,
                        links_to=left_out if name == record.household else "",
                    )
                )
    if records < FEWEST:
        return tuple(found)
    known = {one.column for one in found}
    levels = {v.name: v.level_count for v in record.variables}
    suspected = [
        name
        for name in asked
        if name not in known and (levels.get(name) is None or (levels[name] or 0) > LEVEL * records)
    ]
    with redact_errors(record_type):
        frames = [
            census.scan(record_type, [name]).group_by(name).len("n").select((pl.col("n") == 1).sum())
            for name in suspected
        ]
        counts = [frame.item() for frame in pl.collect_all(frames, engine="streaming")]
    found += [
        Identifying(record_type=record_type, column=name, unique=int(count), records=records)
        for name, count in zip(suspected, counts, strict=True)
        if count > LEVEL * records
    ]
    return tuple(found)
