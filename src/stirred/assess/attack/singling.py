"""How many records are alone with their values of the published variables: with place and without."""

from collections.abc import Sequence

import polars as pl

from stirred.assess.risk import RiskMeasure, name_measure
from stirred.census import Census, Schema
from stirred.errors import InputError
from stirred.frames import collect_frame
from stirred.mechanisms.release import Release
from stirred.mechanisms.released import join_household, join_variables, require_schema


def measure_uniques(
    source: Release | Census,
    by: Sequence[str] | None = None,
    record_type: str = "household",
    *,
    place: bool = True,
) -> RiskMeasure:
    """Measure how many records of a release or a census are unique on these variables.

    Without ``place`` no area is among the variables. The number of a release is public, that of a census is not.

    >>> census = Census.of({"geography": {"spine": ["county"]}},
    ...                    {"household": {"county": ["a", "a", "b"], "size": [1, 1, 1]}})
    >>> measure_uniques(census, ["county", "size"]).value, measure_uniques(census, ["size"]).value
    (1.0, 0.0)
    """
    table = count_uniques(source, [by], record_type, place=place)
    return RiskMeasure(
        name=name_measure("unique"),
        about=f"{record_type} records, on {table['by'][0]}",
        kind="absolute",
        value=float(table["unique"][0]),
        unit="count",
        public=isinstance(source, Release),
    )


def count_uniques(
    source: Release | Census,
    asked: Sequence[Sequence[str] | None],
    record_type: str = "household",
    *,
    place: bool = True,
) -> pl.DataFrame:
    """Return one row for each list of variables: by, records, unique, share."""
    schema = require_schema(source) if isinstance(source, Release) else source.schema
    rows = []
    for by in asked:
        names = list(by) if by is not None else _published_variables(source, schema, record_type)
        names = [name for name in names if place or name not in _areas(schema)]
        if not names:
            raise InputError(
                "no variable is left to be unique on",
                why="only areas were named, and they are left out",
                fix="name a variable that is not an area, or leave place=True",
            )
        frame = (
            join_variables(source, record_type, names)
            if isinstance(source, Release)
            else source.scan(record_type, names, ordered=False)
        )
        sizes = frame.group_by(names).agg(pl.len().alias("many"))
        found = collect_frame(
            sizes.select(pl.col("many").sum().alias("all"), (pl.col("many") == 1).sum().alias("one"))
        )
        records, alone = int(found["all"][0] or 0), int(found["one"][0] or 0)
        rows.append((", ".join(names), records, alone, alone / records if records else 0.0))
    return pl.DataFrame(rows, schema=["by", "records", "unique", "share"], orient="row")


def _published_variables(source: Release | Census, schema: Schema, record_type: str) -> list[str]:
    """Return all variables of the records, with those of their household, but no identifier."""
    record = schema.record(record_type)
    if isinstance(source, Release):
        there = join_household(source, schema, record_type).collect_schema().names()
    else:
        home = source.columns(record.linked_to) if record.linked_to else ()
        there = list(dict.fromkeys([*source.columns(record_type), *home]))
    hidden = {record.id, record.household, *(other.id for other in schema.records)}
    return [name for name in there if name not in hidden]


def _areas(schema: Schema) -> set[str]:
    return {*schema.spine, *(off.name for off in schema.geography.off_spine)}
