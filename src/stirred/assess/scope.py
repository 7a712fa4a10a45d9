"""The records that a question is about: occupied households, persons, those to which the variables apply.

A vacant home has no race and no tenure; the code that stands for this in a file is not a group of people. Which records a
question is about follows from the schema alone, so it is the same for the census and for every release:

1. Questions about households take the occupied ones: not those whose kind is vacant or group quarters, nor housing units
   of size 0; where the schema lists no kinds, those of size 0 are left out. A question about persons does the same if it
   asks for a variable of their household. A question that names the column of kinds takes all records.
2. A variable with ``not_applicable`` levels decides by itself: records with such a level are left out. So are records
   in which a variable with ``missing = "keep"`` (not in universe) is empty.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import polars as pl

from stirred.census.codebook.schema import RecordSchema, Schema, VariableSchema

PLURALS = {"household": "households", "person": "persons"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The records that a question is about, in words and as a condition."""

    words: str
    condition: pl.Expr
    columns: tuple[str, ...]  # that the condition reads

    def keep_cells(self, cells: pl.DataFrame, asked: Sequence[str]) -> pl.DataFrame:
        """Return the cells of the variables asked that count these records alone."""
        inside = cells.filter(self.condition)
        return inside.group_by(list(asked), maintain_order=True).agg(pl.col("count").sum())


def choose_scope(schema: Schema, record_type: str, asked: Sequence[str], there: Collection[str]) -> Scope:
    """Return the scope of a question; ``there`` are the columns that both census and release have.

    >>> from stirred.census.codebook.schema import Kinds
    >>> home = RecordSchema(name="household", kinds=Kinds(column="kind", occupied=(1,), vacant=(2,)))
    >>> choose_scope(Schema(name="toy", records=(home,)), "household", ["race"], ["race", "kind"]).words
    'occupied households'
    """
    record = schema.record(record_type)
    home = schema.record(record.linked_to) if record.linked_to in schema.record_types else record
    areas = {*schema.spine, *(off.name for off in schema.geography.off_spine)}
    conditions: list[pl.Expr] = []
    columns: list[str] = []
    applying = []
    for name in asked:
        variable = None if name in areas else find_variable(schema, record_type, name)
        if variable is not None and variable.not_applicable:
            conditions.append(~_is_in(name, variable.not_applicable))
            applying.append(name)
        elif variable is not None and variable.missing.policy == "keep":
            conditions.append(pl.col(name).is_not_null())
            applying.append(name)
    undecided = [name for name in asked if name not in areas and name not in applying]
    if record is home:
        asks_homes = bool(undecided) or not applying
    else:
        asks_homes = any(name in home.names and name not in record.names for name in undecided)
    words = PLURALS.get(record_type, f"{record_type} records")
    if asks_homes and not _asks_kind(home, asked):
        found = _occupied_condition(home, there)
        if found is not None:
            condition, needed = found
            conditions.append(condition)
            columns += needed
            words = f"occupied {words}" if record is home else f"{words} in occupied households"
        elif home.kinds is not None or home.size:
            words = f"{words}, vacant units included"
    if applying:
        words += f" to which {' and '.join(applying)} appl{'ies' if len(applying) == 1 else 'y'}"
    return Scope(
        words=words,
        condition=pl.all_horizontal(pl.lit(value=True), *conditions),
        columns=tuple(dict.fromkeys(columns)),
    )


def is_nominal(schema: Schema, record_type: str, name: str) -> bool | None:
    """Return whether the values of a variable have no order; None where the schema does not say."""
    if name in (*schema.spine, *(off.name for off in schema.geography.off_spine)):
        return True
    variable = find_variable(schema, record_type, name)
    return None if variable is None else variable.kind in ("category", "text")


def find_variable(schema: Schema, record_type: str, name: str) -> VariableSchema | None:
    """Return the variable of a record type, or of the record it is linked to, from the schema."""
    record = schema.record(record_type)
    found = _variable(record, name)
    if found is None and record.linked_to in schema.record_types:
        found = _variable(schema.record(record.linked_to), name)
    return found


def _variable(record: RecordSchema, name: str) -> VariableSchema | None:
    return next((variable for variable in record.variables if variable.name == name), None)


def _asks_kind(home: RecordSchema, asked: Sequence[str]) -> bool:
    return home.kinds is not None and home.kinds.column in asked


def _occupied_condition(home: RecordSchema, there: Collection[str]) -> tuple[pl.Expr, list[str]] | None:
    """Return the condition that a home is occupied and its columns; None where they are not released."""
    kinds, inhabited = home.kinds, pl.col(home.size) > 0
    if kinds is None:
        return (inhabited, [home.size]) if home.size and home.size in there else None
    if kinds.column not in there:
        return None
    condition = ~_is_in(kinds.column, (*kinds.vacant, *kinds.group_quarters))
    if not kinds.housing_units or home.size not in there:
        return condition, [kinds.column]
    return condition & (~_is_in(kinds.column, kinds.housing_units) | inhabited), [kinds.column, home.size]


def _is_in(name: str, levels: Sequence[str | int]) -> pl.Expr:
    return pl.col(name).cast(pl.String).is_in([str(level) for level in levels]).fill_null(value=False)
