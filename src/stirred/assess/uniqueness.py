"""How many records no other record is like, in a release and in the census that it was made from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl
import pyarrow as pa

from stirred.assess.assessment import has_variables
from stirred.assess.risk import RiskMeasure, name_measure
from stirred.census import Census, Schema
from stirred.engine import Engine
from stirred.frames import frame_of
from stirred.mechanisms.release import Release
from stirred.mechanisms.released import (
    count_records,
    filter_participants,
    join_household,
    require_schema,
    scan_records,
)

MAX_RECORDS = 20_000_000  # records of a type beyond which cells are as many as records, and are not counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Uniqueness:
    """The unique records of a type on some variables; ``place`` is the area among them, or "".

    ``before`` is how many were alone in the census, ``as_shown`` how many of those the release shows alone with the same
    values: both are confidential, and None in what is computed from a release alone.
    """

    record_type: str
    by: tuple[str, ...]
    place: str
    records: int
    alone: int
    before: int | None = None
    as_shown: int | None = None

    @property
    def share(self) -> float:
        """Return the share of records that are unique."""
        return self.alone / self.records if self.records else 0.0

    def measures(self) -> tuple[RiskMeasure, ...]:
        """Return the numbers as measures of risk; those from the release alone are public."""
        about = f"{self.record_type} records, on {', '.join(self.by)}"
        found = [
            RiskMeasure(
                name=name_measure("alone"),
                about=about,
                kind="absolute",
                value=self.share,
                unit="share",
                public=True,
            )
        ]
        if self.before is not None and self.as_shown is not None:
            value = self.as_shown / self.before if self.before else None
            found.append(
                RiskMeasure(
                    name=name_measure("alone_shown"),
                    about=f"{self.record_type} records alone in the census on {', '.join(self.by)}",
                    kind="absolute",
                    value=value,
                    unit="share",
                    reason="" if self.before else "no record is alone in the census",
                )
            )
        return tuple(found)


def measure_uniqueness(
    release: Release, engine: Engine, *, most: int | None = MAX_RECORDS
) -> tuple[Uniqueness, ...]:
    """Count, for each type of released records, those that are unique without and with their place.

    Types with more than ``most`` records are left out; None counts all of them.
    """
    schema = require_schema(release)
    found = []
    for record_type in sorted(release.microdata):  # a release that was taken up again has its own order
        for by, place in choose_questions(release, record_type, most=most):
            cells = _swappable_cells(
                schema, record_type, count_records(release, by, record_type=record_type, engine=engine)
            )
            found.append(
                Uniqueness(
                    record_type=record_type,
                    by=by,
                    place=place,
                    records=int(cells["count"].sum()),
                    alone=_select_alone(cells).height,
                )
            )
    return tuple(found)


def choose_questions(
    release: Release, record_type: str, *, most: int | None = MAX_RECORDS
) -> list[tuple[tuple[str, ...], str]]:
    """Return the variables to compare records on: their own, then these with the finest known area."""
    schema = require_schema(release)
    beyond = most is not None and _count_rows(release, record_type) > most
    if record_type not in schema.record_types or beyond:
        return []
    there = join_household(release, schema, record_type).collect_schema().names()
    record = schema.record(record_type)
    other = {record.id, record.household, *schema.spine, *(off.name for off in schema.geography.off_spine)}
    columns = scan_records(release.microdata[record_type]).collect_schema().names()
    own = tuple(name for name in columns if name not in other)
    place = next((level for level in reversed(schema.spine) if level in there), "")
    found = [(own, "")] if own else []
    return [*found, ((*own, place), place)] if place and own else found


def compare_with_census(
    found: Sequence[Uniqueness], release: Release, census: Census, engine: Engine
) -> tuple[Uniqueness, ...]:
    """Add the census to the counts: how many records were unique, and how many of them are unchanged."""
    held = []
    for one in found:
        known = [name for name in one.by if has_variables(census, one.record_type, [name])]
        if one.place not in ("", *known) or known in ([], [one.place]):
            continue  # variables of the mechanism's own
        cells = count_records(release, known, record_type=one.record_type, engine=engine)
        after = _text(_select_alone(_swappable_cells(census.schema, one.record_type, cells)), known)
        cells = frame_of(census.counts(one.record_type, known))
        before = _text(_select_alone(_swappable_cells(census.schema, one.record_type, cells)), known)
        same = before.join(after, on=known, how="semi", nulls_equal=True)
        beside = replace(one, by=tuple(known), alone=after.height)
        held.append(replace(beside, before=before.height, as_shown=same.height))
    return tuple(held)


def count_cells_of_one(tables: Mapping[str, tuple[Sequence[str], pa.Table]]) -> tuple[int, int]:
    """Return how many cells published tables have, and how many of them show a count of 1."""
    counts = [frame_of(table)["count"] for _, table in tables.values() if "count" in table.column_names]
    return sum(len(column) for column in counts), sum(int((column == 1).sum()) for column in counts)


def _swappable_cells(schema: Schema, record_type: str, cells: pl.DataFrame) -> pl.DataFrame:
    """Return the cells of records that can be swapped, where the schema says which."""
    return pl.DataFrame(filter_participants(schema, record_type, cells.lazy()).collect())


def _select_alone(cells: pl.DataFrame) -> pl.DataFrame:
    return cells.filter(pl.col("count") == 1)


def _text(cells: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    return cells.select(pl.col(name).cast(pl.String) for name in by)


def _count_rows(release: Release, record_type: str) -> int:
    data = release.microdata[record_type]
    return int(data.num_rows if isinstance(data, pa.Table) else data.count_rows())
