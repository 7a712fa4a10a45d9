"""Make households from a person file: one row for each value of a column, with the columns that are constant in it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import polars as pl

from stirred.census.codebook.schema import RecordSchema, Schema
from stirred.census.codebook.typed import sources_of
from stirred.errors import DataError, SchemaError, did_you_mean
from stirred.frames import collected

ROW, PERSONS = "\x00row", "\x00persons"
DIFFERENT = "different values within one household"
MOVE = "correct the records, or make it a variable of the persons"


@dataclass(frozen=True, slots=True)
class FlatHouseholds:
    """The households of a person file, and how many of them have different values in a column."""

    frame: pl.DataFrame
    uneven: Mapping[str, int] = field(default_factory=dict)
    keys: Mapping[str, pl.Series] = field(
        default_factory=dict, repr=False
    )  # by column, of the households that differ

    @property
    def mixed(self) -> pl.Series | None:
        """The keys of the households that have different values in a column, or None where there are none."""
        found = [self.keys[column] for column in self.uneven]
        return pl.concat(found).unique() if found else None

    def require_even(self, record: RecordSchema) -> None:
        """Raise an error that names the columns that are not constant within households."""
        if self.uneven:
            named = ", ".join(f"{name} ({count:,} households)" for name, count in self.uneven.items())
            raise DataError(
                f"{record.name}: {len(self.uneven)} columns have {DIFFERENT}",
                why=f"in the persons of one {record.household_from} they differ: {named}",
                fix=MOVE,
            )


def grouped(frame: pl.LazyFrame, key: str, columns: Sequence[str]) -> FlatHouseholds:
    """One row for each value of ``key`` in the order of first appearance; memory is bounded by the households.

    Records with an empty key belong to no household.

    >>> homes = grouped(pl.LazyFrame({"h": [7, 5, 7], "region": ["a", "b", "a"], "age": [1, 2, 3]}), "h", ["region", "age"])
    >>> homes.frame.select("h", "region").rows(), homes.uneven
    ([(7, 'a'), (5, 'b')], {'age': 1})
    """
    types = frame.collect_schema()
    named = pl.col(key).is_not_null()
    if types[key] == pl.String:
        named &= pl.col(key) != ""
    some = frame.select(key, *columns).with_row_index(ROW).filter(named)
    value = {name: _comparable(name, types[name]) for name in columns}
    made = some.group_by(key).agg(
        pl.col(ROW).min(),
        pl.len().alias(PERSONS),
        *(value[name].min().alias(name) for name in columns),
        *(_differs(value[name]).alias(f"\x00{name}") for name in columns),
    )
    result = collected(made.sort(ROW), streaming=True)
    counted = result.select(pl.col(f"\x00{name}").sum() for name in columns)
    uneven = {name: int(counted[f"\x00{name}"].item()) for name in columns} if columns else {}
    kept = result.select(key, PERSONS, *columns)
    uneven = {name: count for name, count in uneven.items() if count}
    keys = {name: result.filter(pl.col(f"\x00{name}"))[key] for name in uneven}
    return FlatHouseholds(kept, uneven, keys)


def _comparable(name: str, dtype: pl.DataType) -> pl.Expr:
    """Categories compare as text: their order is that of their first use."""
    textual = isinstance(dtype, pl.Categorical | pl.Enum)
    return pl.col(name).cast(pl.String) if textual else pl.col(name)


def _differs(value: pl.Expr) -> pl.Expr:
    empty = value.null_count()
    return (value.min() != value.max()).fill_null(value=False) | ((empty > 0) & (empty < pl.len()))


def households(schema: Schema, record: RecordSchema, persons: pl.LazyFrame) -> FlatHouseholds:
    """The households of a person file: the declared columns, or without any all columns constant within households."""
    types = persons.collect_schema()
    columns = _columns(schema, record, types)
    made = grouped(persons, record.household_from, columns)
    size = _counted(record, types)
    frame = made.frame.rename({PERSONS: size}) if size else made.frame.drop(PERSONS)
    if record.variables:
        return FlatHouseholds(frame, made.uneven, made.keys)
    needed = {column for column in made.uneven if column in _named(schema, record)}
    frame = frame.drop([column for column in made.uneven if column not in needed])
    uneven = {column: made.uneven[column] for column in made.uneven if column in needed}
    return FlatHouseholds(frame, uneven, made.keys)


def layout(schema: Schema, record: RecordSchema, types: pl.Schema) -> pl.Schema | None:
    """The columns of the households without reading a record; None when the records decide which columns they are."""
    if not record.variables:
        return None
    size = _counted(record, types)
    counted = {size: pl.UInt32()} if size else {}
    columns = [record.household_from, *_columns(schema, record, types)]
    return pl.Schema({**{name: types[name] for name in columns}, **counted})


def _columns(schema: Schema, record: RecordSchema, types: pl.Schema) -> list[str]:
    key = record.household_from
    if key not in types:
        raise SchemaError(
            f"the {record.name} file lacks {key}",
            why="household_from names it",
            fix=f"{key}: {did_you_mean(key, types.names())}",
        )
    columns = [name for name in sources_of(schema, record, types) if name != key]
    return [name for name in columns if not types[name].is_nested() and name not in record.leave_out]


def _counted(record: RecordSchema, types: pl.Schema) -> str:
    """The column of the size when the file does not have it, so that the persons are counted; otherwise empty."""
    column = record.variable(record.size).source if record.size in record.names else record.size
    return "" if column in types else column


def _named(schema: Schema, record: RecordSchema) -> set[str]:
    """The columns that the schema names for the households, which must therefore be constant within them."""
    spine = [column for level in schema.geography.spine for column in level.columns or (level.name,)]
    kinds = [record.kinds.column] if record.kinds else []
    return {*spine, *kinds, record.id, record.size, record.weight, *(name for name, _ in record.where)}


def home_of(schema: Schema, record: RecordSchema) -> RecordSchema | None:
    """The households that are made from the same file as these persons, or None."""
    if not record.linked_to or record.linked_to not in schema.record_types:
        return None
    home = schema.record(record.linked_to)
    return home if home.household_from and home.source == record.source else None


def persons_only(
    record: RecordSchema, home: RecordSchema, persons: pl.LazyFrame, taken: Collection[str]
) -> pl.LazyFrame:
    """The person file without the columns of the households, so that no person repeats the place of its household."""
    kept = {record.id, record.household, record.weight, *(name for name, _ in record.where)}
    if record.kinds is not None:
        kept.add(record.kinds.column)
    away = [name for name in (*taken, *home.leave_out) if name not in kept and name != home.household_from]
    return persons.drop(away, strict=False)


def settled(schema: Schema) -> Schema:
    """The same schema for households that have been made."""
    return replace(schema, records=tuple(replace(record, household_from="") for record in schema.records))
