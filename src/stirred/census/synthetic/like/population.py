"""Make the records of a stand-in: areas, households, and the persons who live in them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred.census.codebook.schema import EditRule, Kind, RecordSchema, Schema, VariableSchema
from stirred.census.synthetic.like.areas import make_leaf_areas
from stirred.census.synthetic.like.draws import (
    MEAN_HOUSEHOLD_PERSONS,
    PublicTable,
    draw_by_area,
    level_shares,
    list_values,
)
from stirred.errors import InputError

MAX_REDRAWS = 20  # times that records against a rule are drawn again


@dataclass(frozen=True, slots=True, kw_only=True)
class StandInFigures:
    """What a stand-in is made of beside the codebook; all of it is public or invented."""

    households: int = 10_000
    areas: Mapping[str, int] = field(default_factory=dict)  # number of areas by level of the spine
    levels: Mapping[str, int] = field(
        default_factory=dict
    )  # number of values of variables without listed levels
    tables: tuple[PublicTable, ...] = ()
    seed: int = 1

    def __post_init__(self) -> None:
        if self.households < 1:
            raise InputError(
                f"{self.households} households are too few",
                why="a stand-in has at least one",
                fix="--households 10000",
            )


def make_stand_in(
    schema: Schema, figures: StandInFigures, folder: Path | None = None
) -> dict[str, pl.DataFrame]:
    """Return records by type from schema and figures alone; ``folder`` holds a public file of areas.

    >>> from stirred.census.codebook.parse import parse_schema
    >>> schema = parse_schema({"geography": {"spine": ["region", "district"]}, "record": {
    ...     "household": {"id": "hid", "size": "size", "variables": {"size": "1..6", "roof": ["tin", "grass"]}},
    ...     "person": {"household": "hid", "variables": {"sex": ["f", "m"]}}}})
    >>> made = make_stand_in(schema, StandInFigures(households=100))
    >>> made["household"].height, made["person"].height == made["household"]["size"].sum()
    (100, True)
    """
    rng = np.random.default_rng(figures.seed)
    homes = next((record for record in schema.records if not record.linked_to), None)
    if homes is None:
        raise InputError(
            "the census has no record type of its own",
            why="every record type is linked to another one",
            fix="declare the households in census.toml",
        )
    leaves = (
        make_leaf_areas(schema, figures.areas, rng, folder or Path())
        if schema.spine
        else pl.DataFrame({"": [0]})
    )
    made: dict[str, pl.DataFrame] = {}
    for record in schema.records:
        if record.linked_to:
            continue
        weights = rng.gamma(1.5, 1.0, leaves.height) + 0.05
        area = np.sort(rng.choice(leaves.height, figures.households, p=weights / weights.sum()))
        known = leaves[area] if schema.spine else pl.DataFrame({"": area}).select([])
        made[record.name] = _draw_variables(schema, record, known, area, figures, rng)
    for record in schema.records:
        if record.linked_to:
            made[record.name] = _draw_persons(schema, record, made[record.linked_to], figures, rng)
    return made


def _draw_variables(
    schema: Schema,
    record: RecordSchema,
    known: pl.DataFrame,
    area: NDArray[np.int64],
    figures: StandInFigures,
    rng: np.random.Generator,
) -> pl.DataFrame:
    """Return the own variables of some records, beside what is known of them."""
    rows = area.size
    groups = _group_areas(known, schema.spine, area)
    variables = [v for v in _list_drawn_variables(record) if v.name not in known.columns]
    frame = known
    for variable in variables:
        frame = frame.with_columns(_draw_variable(variable, record, frame, groups, figures, rng))
    frame = _apply_rules(schema, record, frame, variables, groups, figures, rng)
    if record.id and record.id not in frame.columns:
        frame = frame.with_columns(pl.Series(record.id, np.arange(1, rows + 1)))
    if record.weight and record.weight not in frame.columns:
        frame = frame.with_columns(pl.lit(1.0).alias(record.weight))
    return frame


def _list_drawn_variables(record: RecordSchema) -> list[VariableSchema]:
    """Return the variables to draw: those declared, the size, and the kind of home; never an identifier."""
    special = {record.id, record.household, record.weight}
    found = {v.name: v for v in record.variables if v.name not in special}
    if record.size and record.size not in found:
        found[record.size] = VariableSchema(name=record.size, kind="integer", levels=range(1, 8))
    if record.kinds is not None:
        column, occupied = record.kinds.column, record.kinds.occupied or record.kinds.housing_units
        whole = all(isinstance(code, int) for code in occupied)
        kind: Kind = "integer" if whole else "text"
        if occupied:  # a stand-in has occupied homes, unless a public table says otherwise
            levels = tuple(occupied)
            found[column] = VariableSchema(name=column, kind=kind, levels=levels)  # type: ignore[arg-type]
    imputed = {v.imputed for v in record.variables if v.imputed} - set(found)
    found |= {name: VariableSchema(name=name, kind="integer", levels=(0,)) for name in imputed}
    return list(found.values())


def _draw_variable(
    variable: VariableSchema,
    record: RecordSchema,
    known: pl.DataFrame,
    groups: NDArray[np.int64],
    figures: StandInFigures,
    rng: np.random.Generator,
) -> pl.Series:
    values = list_values(variable, figures.levels.get(variable.name))
    base = level_shares(variable, values.len(), persons=variable.name == record.size)
    drawn = values[draw_by_area(base, groups, rng)]
    tables = [table for table in figures.tables if variable.name in table.variables]
    if not tables:
        return drawn
    table = max(tables, key=lambda one: len(set(one.variables) & set(known.columns)))
    given = [name for name in table.variables if name in known.columns]
    public, there = table.draw(variable.name, known, given, rng)
    return pl.select(
        pl.when(pl.Series(there))
        .then(public.cast(values.dtype, strict=False))
        .otherwise(drawn)
        .alias(variable.name)
    ).to_series()


def _draw_persons(
    schema: Schema,
    record: RecordSchema,
    homes: pl.DataFrame,
    figures: StandInFigures,
    rng: np.random.Generator,
) -> pl.DataFrame:
    """Return the persons of each household, drawn given the household's variables."""
    home = schema.record(record.linked_to)
    invented = 1 + rng.poisson(MEAN_HOUSEHOLD_PERSONS - 1, homes.height)
    sizes = homes[home.size].cast(pl.Int64).to_numpy() if home.size else invented
    place = np.repeat(np.arange(homes.height), sizes)
    own = {variable.name for variable in record.variables}
    known = homes.drop([name for name in homes.columns if name in own and name != home.id])[place]
    frame = _draw_variables(schema, record, known.drop(home.id), place, figures, rng)
    drawn = [name for name in frame.columns if name not in homes.columns or name in own or name == record.id]
    link = homes[home.id][place].alias(record.household)
    return frame.select(drawn).with_columns(link)


def _group_areas(known: pl.DataFrame, spine: Sequence[str], area: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the areas between which shares differ: those of the last level but one."""
    level = next((name for name in (*spine[-2:-1], *spine[:1]) if name in known.columns), None)
    if level is None:
        return np.zeros(area.size, np.int64)
    return known[level].rank("dense").cast(pl.Int64).to_numpy() - 1


def _apply_rules(
    schema: Schema,
    record: RecordSchema,
    frame: pl.DataFrame,
    variables: Sequence[VariableSchema],
    groups: NDArray[np.int64],
    figures: StandInFigures,
    rng: np.random.Generator,
) -> pl.DataFrame:
    """Return records that keep the edit rules: sums set, parts cut, forbidden combinations drawn again."""
    own = {variable.name: variable for variable in variables}
    rules = [
        r for r in schema.rules if r.record_type == record.name and set(r.variables) <= set(frame.columns)
    ]
    for rule in rules:
        if rule.total:
            parts = pl.sum_horizontal([pl.col(name).cast(pl.Int64) for name in rule.parts])
            frame = frame.with_columns(parts.alias(rule.total))
        elif rule.at_most is not None:
            small, large = rule.at_most
            frame = frame.with_columns(pl.min_horizontal(small, large).alias(small))
    forbidding = [rule for rule in rules if rule.forbid]
    for attempt in range(MAX_REDRAWS):
        broken = 0
        for rule in forbidding:
            against = frame.select(_breaks_rule(rule)).to_series()
            names = [name for name, _ in rule.forbid if name in own]
            if not against.any() or not names:
                continue
            broken += int(against.sum())
            variable = own[names[attempt % len(names)]]
            again = _draw_variable(variable, record, frame.drop(variable.name), groups, figures, rng)
            frame = frame.with_columns(
                pl.when(against).then(again).otherwise(variable.name).alias(variable.name)
            )
        if not broken:
            return frame
    return frame.filter(~pl.any_horizontal([_breaks_rule(rule) for rule in forbidding]))


def _breaks_rule(rule: EditRule) -> pl.Expr:
    tests = [
        pl.col(name).cast(pl.String).is_in([str(level) for level in levels]) for name, levels in rule.forbid
    ]
    return pl.all_horizontal(tests).fill_null(value=False)
