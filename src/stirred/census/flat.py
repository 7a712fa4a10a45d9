"""Make households from a person file: one row for each value of a column, with the columns that are constant in it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import polars as pl

from stirred.census.codebook.schema import RecordSchema, Schema
from stirred.census.codebook.typed import list_sources
from stirred.errors import DataError, SchemaError, did_you_mean
from stirred.frames import collect_frame

ROW, PERSONS = "\x00row", "\x00persons"
DIFFERENT_VALUES_RULE = "different values within one household"
DIFFERENT_VALUES_FIX = "correct the records, or make it a variable of the persons"


@dataclass(frozen=True, slots=True)
class FlatHouseholds:
    """The households of a person file, and how many of them have different values in a column."""

    frame: pl.DataFrame
    uneven: Mapping[str, int] = field(default_factory=dict)
    keys: Mapping[str, pl.Series] = field(
        default_factory=dict, repr=False
    )  # by column, of the households that differ

    @property
    def mixed_keys(self) -> pl.Series | None:
        """Return the keys of the households that have different values in a column, or None where there are none."""
        found = [self.keys[column] for column in self.uneven]
        return pl.concat(found).unique() if found else None

    def require_even(self, record: RecordSchema) -> None:
        """Raise an error that names the columns that are not constant within households."""
        if self.uneven:
            named = ", ".join(f"{name} ({count:,} households)" for name, count in self.uneven.items())
            raise DataError(
                f"{record.name}: {len(self.uneven)} columns have {DIFFERENT_VALUES_RULE}",
                why=f"in the persons of one {record.household_from} they differ: {named}",
                fix=DIFFERENT_VALUES_FIX,
            )


def group_households(frame: pl.LazyFrame, key: str, columns: Sequence[str]) -> FlatHouseholds:
    """Return one row per value of ``key`` in order of appearance; memory is bounded by the households.

    Records with an empty key belong to no household.

    >>> homes = group_households(pl.LazyFrame({"h": [7, 5, 7], "region": ["a", "b", "a"], "age": [1, 2, 3]}), "h", ["region", "age"])
    >>> homes.frame.select("h", "region").rows(), homes.uneven
    ([(7, 'a'), (5, 'b')], {'age': 1})
    """
    types = frame.collect_schema()
    named = pl.col(key).is_not_null()
    if types[key] == pl.String:
        named &= pl.col(key) != ""
    some = frame.select(key, *columns).with_row_index(ROW).filter(named)
    value = {name: _as_comparable(name, types[name]) for name in columns}
    made = some.group_by(key).agg(
        pl.col(ROW).min(),
        pl.len().alias(PERSONS),
        *(value[name].min().alias(name) for name in columns),
        *(_has_two_values(value[name]).alias(f"\x00{name}") for name in columns),
    )
    result = collect_frame(made.sort(ROW), streaming=True)
    counted = result.select(pl.col(f"\x00{name}").sum() for name in columns)
    uneven = {name: int(counted[f"\x00{name}"].item()) for name in columns} if columns else {}
    kept = result.select(key, PERSONS, *columns)
    uneven = {name: count for name, count in uneven.items() if count}
    keys = {name: result.filter(pl.col(f"\x00{name}"))[key] for name in uneven}
    return FlatHouseholds(kept, uneven, keys)


def _as_comparable(name: str, dtype: pl.DataType) -> pl.Expr:
    """Return a column for comparisons; categories are compared as text, not by their first use."""
    textual = isinstance(dtype, pl.Categorical | pl.Enum)
    return pl.col(name).cast(pl.String) if textual else pl.col(name)


def _has_two_values(value: pl.Expr) -> pl.Expr:
    empty = value.null_count()
    return (value.min() != value.max()).fill_null(value=False) | ((empty > 0) & (empty < pl.len()))


def make_households(schema: Schema, record: RecordSchema, persons: pl.LazyFrame) -> FlatHouseholds:
    """Return the households of a person file, with declared columns or all that are constant within them."""
    types = persons.collect_schema()
    columns = _list_household_columns(schema, record, types)
    made = group_households(persons, record.household_from, columns)
    size = _size_column(record, types)
    frame = made.frame.rename({PERSONS: size}) if size else made.frame.drop(PERSONS)
    if record.variables:
        return FlatHouseholds(frame, made.uneven, made.keys)
    needed = {column for column in made.uneven if column in _list_named(schema, record)}
    frame = frame.drop([column for column in made.uneven if column not in needed])
    uneven = {column: made.uneven[column] for column in made.uneven if column in needed}
    return FlatHouseholds(frame, uneven, made.keys)


def household_layout(schema: Schema, record: RecordSchema, types: pl.Schema) -> pl.Schema | None:
    """Return the columns of the households without reading a record, or None when records decide them."""
    if not record.variables:
        return None
    size = _size_column(record, types)
    counted = {size: pl.UInt32()} if size else {}
    columns = [record.household_from, *_list_household_columns(schema, record, types)]
    return pl.Schema({**{name: types[name] for name in columns}, **counted})


def _list_household_columns(schema: Schema, record: RecordSchema, types: pl.Schema) -> list[str]:
    key = record.household_from
    if key not in types:
        raise SchemaError(
            f"the {record.name} file lacks {key}",
            why="household_from names it",
            fix=f"{key}: {did_you_mean(key, types.names())}",
        )
    columns = [name for name in list_sources(schema, record, types) if name != key]
    return [name for name in columns if not types[name].is_nested() and name not in record.leave_out]


def _size_column(record: RecordSchema, types: pl.Schema) -> str:
    """Return the size column when the file lacks it, so that persons are counted; otherwise empty text."""
    column = record.variable(record.size).source if record.size in record.names else record.size
    return "" if column in types else column


def _list_named(schema: Schema, record: RecordSchema) -> set[str]:
    """Return the columns that the schema names for households, which must be constant within them."""
    spine = [column for level in schema.geography.spine for column in level.columns or (level.name,)]
    kinds = [record.kinds.column] if record.kinds else []
    return {*spine, *kinds, record.id, record.size, record.weight, *(name for name, _ in record.where)}


def find_home(schema: Schema, record: RecordSchema) -> RecordSchema | None:
    """Return the households that are made from the same file as these persons, or None."""
    if not record.linked_to or record.linked_to not in schema.record_types:
        return None
    home = schema.record(record.linked_to)
    return home if home.household_from and home.source == record.source else None


def drop_household_columns(
    record: RecordSchema, home: RecordSchema, persons: pl.LazyFrame, taken: Collection[str]
) -> pl.LazyFrame:
    """Return the person file without the columns of the households."""
    kept = {record.id, record.household, record.weight, *(name for name, _ in record.where)}
    if record.kinds is not None:
        kept.add(record.kinds.column)
    away = [name for name in (*taken, *home.leave_out) if name not in kept and name != home.household_from]
    return persons.drop(away, strict=False)


def settle_schema(schema: Schema) -> Schema:
    """Return the schema as it is after the households were made from person files."""
    return replace(schema, records=tuple(replace(record, household_from="") for record in schema.records))
