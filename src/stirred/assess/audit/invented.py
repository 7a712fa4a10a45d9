"""A few invented records for an audit: made from the schema, never from records, and as different as they can be."""

from dataclasses import replace

import numpy as np
import polars as pl

from stirred.assess.audit.datasets import group_variables, isolate_records
from stirred.census import Census
from stirred.census.codebook.schema import Schema, VariableSchema
from stirred.census.synthetic.like import StandInFigures, make_stand_in
from stirred.frames import collect_frame
from stirred.mechanisms.base import Mechanism
from stirred.mechanisms.contents import identifier_columns

POOL_HOUSEHOLDS = 800  # invented households from which a few are taken
TOP_LEVEL_AREAS = 6  # of the highest level
FREE_RECORDS = 2  # records of a universe without invariants


def invent_census(census: Census, *, households: int = POOL_HOUSEHOLDS, seed: int = 1) -> Census:
    """Invent a census with the schema of another one; nothing but its schema is used."""
    schema = _portable_schema(census)
    levels = {name: 12 for record in schema.records for name in _unlisted_variables(schema, record.name)}
    highest = schema.spine[:1] if schema.geography.areas is None else ()
    figures = StandInFigures(
        households=households, seed=seed, levels=levels, areas=dict.fromkeys(highest, TOP_LEVEL_AREAS)
    )
    made = make_stand_in(schema, figures, census.folder)
    return Census(
        schema=schema, files={name: frame.lazy() for name, frame in made.items()}, folder=census.folder
    )


def _portable_schema(census: Census) -> Schema:
    """Return the schema for invented records: areas have invented codes, unlisted columns are texts."""
    schema, records = census.schema, []
    for record in schema.records:
        known = {*schema.spine, record.id, record.household, record.weight, *record.names}
        more = [VariableSchema(name=name) for name in census.columns(record.name) if name not in known]
        own = [variable for variable in record.variables if variable.name not in schema.spine]
        records.append(replace(record, where=(), household_from="", variables=(*own, *more)))
    return replace(schema, records=tuple(records))


def _unlisted_variables(schema: Schema, record_type: str) -> list[str]:
    return [v.name for v in schema.record(record_type).variables if v.all_levels is None]


def choose_records(mechanism: Mechanism, pool: Census, *, records: int) -> Census:
    """Choose records of a pool that agree on every invariant and differ in all else as far as possible."""
    record_type = mechanism.record_type
    small = isolate_records(pool, record_type)
    margins = [
        margin
        for invariant in mechanism.specification(small).multiverse
        for margin in invariant.needs()
        if margin.record_type == record_type
    ]
    frame = collect_frame(small.scan(record_type, list(small.columns(record_type))))
    hidden = identifier_columns(small.schema, record_type) & {*frame.columns}
    names = [name for name in frame.columns if name not in hidden]
    common = [name for name in names if margins and all(name in margin.by for margin in margins)]
    varied = [
        block
        for block in group_variables(
            [name for name in names if name not in common], margins, small.schema.spine
        )
        if block
    ]
    largest = frame
    if common:
        top = frame.group_by(common).len().sort(["len", *common], descending=[True] + [False] * len(common))
        largest = frame.join(top.head(1).select(common), on=common, how="inner", nulls_equal=True)
    # without invariants every combination of values is a data set: two records have enough of them
    chosen = largest[_choose_apart(largest, varied, records if margins else min(records, FREE_RECORDS))]
    return Census(schema=small.schema, files={record_type: chosen.lazy()}, folder=pool.folder)


def _choose_apart(frame: pl.DataFrame, varied: list[list[str]], records: int) -> list[int]:
    """Choose row numbers one by one, so that each differs from those before in most blocks, then columns."""
    sets = [*varied, *([name] for block in varied for name in block)]
    weights = [1000] * len(varied) + [1] * (len(sets) - len(varied))
    numbers = np.stack(
        [frame.select(pl.struct(names).rank("dense")).to_series().to_numpy() for names in sets], axis=1
    )
    chosen: list[int] = []
    while len(chosen) < min(records, frame.height):
        score = np.zeros(frame.height, np.int64)
        for i, weight in enumerate(weights):
            score += weight * ~np.isin(numbers[:, i], numbers[chosen, i])
        score[chosen] = -1
        chosen.append(int(score.argmax()))
    return chosen
