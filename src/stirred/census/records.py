"""Scan, join and count the records of a census; they are never loaded as a whole."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock, RLock
from typing import Literal

import polars as pl
import pyarrow as pa

from stirred.census.geography import attach_levels
from stirred.census.readers import open_source
from stirred.census.readers.delimited import require_even
from stirred.census.readers.sources import find_format, redact_errors
from stirred.census.schema import RecordSchema, Schema
from stirred.census.variables import (
    Forms,
    add_keys,
    apply_forms,
    build_domain,
    cast_loosely,
    convert_frame,
    find_forms,
    list_sources,
    open_columns,
)
from stirred.errors import DataError, InputError, SchemaError, did_you_mean
from stirred.frames import collect_frame
from stirred.spec.domain import Domain

# Check that identifiers are unique: a join by an identifier that occurs twice would count persons twice.

IDS_PER_PART = 20_000_000  # identifiers held at once


def count_used_again(ids: pl.LazyFrame, rows: int) -> int:
    """Count the records whose identifier occurred in an earlier record; empty identifiers do not count.

    Identifiers in increasing order are found to be unique in one streaming pass; others are compared in parts by
    their hash, so that memory stays bounded in both cases.

    >>> count_used_again(pl.LazyFrame({"id": [1, 2, 5, None]}), 4), count_used_again(pl.LazyFrame({"id": [5, 2, 5, 5]}), 4)
    (0, 2)
    """
    return 0 if _is_rising(ids.drop_nulls()) else count_duplicates(ids, rows)


def count_duplicates(ids: pl.LazyFrame, rows: int) -> int:
    """Return how many identifiers repeat an earlier one, comparing them in parts by their hash."""
    named = ids.drop_nulls()
    key = pl.first()
    parts = max(1, -(-rows // IDS_PER_PART))
    found = 0
    for part in range(parts):
        some = named if parts == 1 else named.filter(key.hash() % parts == part)
        counted = collect_frame(
            some.select(pl.len().cast(pl.Int64) - key.n_unique().cast(pl.Int64)), streaming=True
        )
        found += int(counted.item())
    return found


def require_once(ids: pl.LazyFrame, rows: int, record: RecordSchema) -> None:
    """Raise an error when two records of a type share an identifier."""
    again = count_used_again(ids, rows)
    if again:
        raise DataError(
            f"{record.name}.{record.id}: {again:,} identifiers were used before by another record",
            why="records linked to them would be counted more than once",
            fix="see all problems with: stirred data check census.toml",
        )


def _is_rising(ids: pl.LazyFrame) -> bool:
    # the first record has none before it: its comparison is null, which counts as increasing
    return bool(collect_frame(ids.select((pl.first() > pl.first().shift()).all()), streaming=True).item())


# Make households from a person file: one row for each value of a column, with the columns that are constant in it.

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

    >>> people = pl.LazyFrame({"h": [7, 5, 7], "region": ["a", "b", "a"], "age": [1, 2, 3]})
    >>> homes = group_households(people, "h", ["region", "age"])
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


# The records of a census: files or tables with their schema, scanned and counted, never loaded as a whole.

MAX_HOUSEHOLDS_JOINED = (
    20_000_000  # households held in memory when persons are counted by variables of their household
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CensusFiles:
    """The record types of a census, scanned, joined and counted; nothing is read until it is needed."""

    schema: Schema
    files: Mapping[str, pl.LazyFrame] = field(default_factory=dict, repr=False)
    folder: Path = field(default_factory=Path, repr=False)
    _linkable: set[str] = field(
        default_factory=set, repr=False
    )  # record types whose identifiers are known to be unique
    _forms: dict[str, Forms] = field(default_factory=dict, repr=False)
    _homes: dict[str, FlatHouseholds] = field(
        default_factory=dict, repr=False, init=False
    )  # households made from a person file, by record type
    # by record type, made once and kept: files as they are, and with every column in its type
    _opened: dict[str, pl.LazyFrame] = field(default_factory=dict, repr=False, init=False)
    _scanned: dict[str, pl.LazyFrame] = field(default_factory=dict, repr=False, init=False)
    # Two threads that use one frame of polars can wait for each other for ever: one holds the frame and needs the
    # interpreter to plan it, the other holds the interpreter and needs the frame. So every caller gets a frame of its
    # own; the kept ones are only cloned, by the thread that holds this lock.
    _keeping: RLock = field(default_factory=RLock, repr=False, init=False)
    _checking: Lock = field(default_factory=Lock, repr=False, init=False)  # for reading identifiers once
    _domains: list[Domain] = field(
        default_factory=list, repr=False, init=False
    )  # of these files, once asked for

    @property
    def domain(self) -> Domain:
        """Return the data sets that could have been collected, as the schema describes them."""
        if not self._domains:  # the levels of all variables, listed once
            self._domains.append(build_domain(self.schema, self.layout))
        return self._domains[0]

    def file(self, record_type: str) -> pl.LazyFrame:
        """Return the columns of the files, unchanged; a person file that holds households too is split."""
        record = self.schema.record(record_type)
        if record.household_from:
            homes = self.flat_households(record)
            homes.require_even(record)
            return homes.frame.lazy()
        home = find_home(self.schema, record)
        frame = self._scan_unsplit(record)
        if home is None:
            return frame
        return drop_household_columns(record, home, frame, self.layout(home.name).names())

    def layout(self, record_type: str) -> pl.Schema:
        """Return the columns of the file with their types; no record is read where the schema declares them."""
        record = self.schema.record(record_type)
        if not record.household_from:
            return self.file(record_type).collect_schema()
        known = household_layout(self.schema, record, self._scan_unsplit(record).collect_schema())
        return self.flat_households(record).frame.schema if known is None else known

    def flat_households(self, record: RecordSchema) -> FlatHouseholds:
        """Return the households of a person file, made once and kept."""
        if record.name not in self._homes:
            with redact_errors(record.name):
                self._homes[record.name] = make_households(self.schema, record, self._scan_unsplit(record))
        return self._homes[record.name]

    def shares_file(self, record: RecordSchema) -> bool:
        """Return whether households and persons are read from one file, which is split."""
        return bool(record.household_from) or find_home(self.schema, record) is not None

    def forms(self, record_type: str) -> Forms:
        """Return the form of every column whose type the schema leaves open; found once, by reading those columns."""
        if record_type not in self._forms:
            self._forms[record_type] = self.find_column_forms(
                self.schema.record(record_type), self.source(record_type)
            )
        return self._forms[record_type]

    def find_column_forms(self, record: RecordSchema, source: pl.LazyFrame) -> Forms:
        """Return the forms of the open columns as these rows of the file have them."""
        with redact_errors(record.name):
            asked, codes = open_columns(self.schema, record, source.collect_schema())
            untyped = not self._find_table(record) and find_format(record.source, self.folder) == "csv"
            if untyped:
                require_even(record.source, self.folder)
            # validation reports a weight that is not a number
            kept = dict.fromkeys([*filter(None, [record.weight]), *record.leave_out], "kept")
            return {**find_forms(source, asked, codes, untyped=untyped), **kept}

    def _scan_unsplit(self, record: RecordSchema) -> pl.LazyFrame:
        """Return the file or table of a record type, with every value in its one form."""
        with redact_errors(record.name):
            return add_keys(
                self.schema, record, apply_forms(self.source(record.name), self.forms(record.name))
            )

    def source(self, record_type: str) -> pl.LazyFrame:
        """Return the file or table of a record type as given; households and persons may share one table."""
        record = self.schema.record(record_type)
        with self._keeping:
            if name := self._find_table(record):
                return self.files[name].clone()
            if record_type not in self._opened:
                self._opened[record_type] = open_source(record.source, self.folder)
            return self._opened[record_type].clone()

    def _find_table(self, record: RecordSchema) -> str:
        """Return the record type whose table in memory holds these records, or nothing."""
        if record.name in self.files:
            return record.name
        pairs = [(find_home(self.schema, other), other) for other in self.schema.records]
        for home, persons in pairs:
            if home is not None and record.name in (home.name, persons.name):
                partner = persons.name if record.name == home.name else home.name
                if partner in self.files:
                    return partner
        return ""

    def scan(
        self, record_type: str, columns: Sequence[str] | None = None, *, ordered: bool = True
    ) -> pl.LazyFrame:
        """Scan the records; missing columns of a person come from its household, off-spine codes from their files.

        Without ``ordered`` the rows may come in any order where a join is needed, which is faster.
        """
        record = self.schema.record(record_type)
        with redact_errors(record_type):
            with self._keeping:
                if record_type not in self._scanned:
                    self._scanned[record_type] = convert_frame(self.schema, record, self.file(record_type))
                own = self._scanned[record_type].clone()
            if columns is None:
                return own
            return self._resolve(record, own, list(dict.fromkeys(columns)), ordered=ordered)

    def columns(self, record_type: str) -> tuple[str, ...]:
        """Return the names of the record type's own columns."""
        return tuple(self.scan(record_type).collect_schema().names())

    def list_file_columns(self, record_type: str) -> tuple[str, ...]:
        """Return the columns in the order of the files, by the names that the schema gives them; reads no record."""
        names = {variable.source: variable.name for variable in self.schema.record(record_type).variables}
        return tuple(names.get(column, column) for column in self.layout(record_type).names())

    def _resolve(
        self, record: RecordSchema, own: pl.LazyFrame, columns: list[str], *, ordered: bool
    ) -> pl.LazyFrame:
        there = own.collect_schema().names()
        lacking = [name for name in columns if name not in there]
        if not lacking:
            return own.select(columns)
        frame = own
        if record.linked_to:
            other = self.schema.record(record.linked_to)
            reachable = self.columns(record.linked_to)
            wanted = [name for name in self._list_needed(lacking) if name in reachable and name not in there]
            if wanted:
                # keep only the needed columns: the join is the one step that holds columns in memory
                keep = [
                    name
                    for name in there
                    if name in {*columns, *self._list_needed(columns), record.household}
                ]
                there = [*keep, *wanted]
                keys = (record.household, other.id)
                self._require_once(other)
                frame = _join(frame.select(keep), self.scan(other.name), keys, wanted, ordered=ordered)
        frame = attach_levels(
            self.schema, frame, [name for name in columns if name not in there], self.folder
        )
        there = frame.collect_schema().names()
        for name in columns:
            if name not in there:
                raise InputError(
                    f"{record.name} records have no column {name}",
                    why="it was asked for",
                    fix=did_you_mean(name, there),
                )
        return frame.select(columns)

    def _require_once(self, record: RecordSchema) -> None:
        """Check once that the identifiers of a record type are unique, before anything is joined by them."""
        with self._checking:
            if record.name not in self._linkable:
                with redact_errors(record.name):
                    require_once(self.scan(record.name).select(record.id), self.count(record.name), record)
                self._linkable.add(record.name)

    def _list_needed(self, names: list[str]) -> list[str]:
        """Return the requested columns, and the levels of the spine by which off-spine codes are looked up."""
        keys = [off.of for off in self.schema.geography.off_spine if off.name in names and off.of]
        if self.schema.geography.areas and self.schema.spine:
            keys.append(self.schema.spine[-1])
        return list(dict.fromkeys([*names, *keys]))

    def count(self, record_type: str) -> int:
        """Return how many records there are."""
        frame = self.scan(record_type).select(pl.len())
        return int(_collect(frame, record_type).item())

    def table(self, record_type: str, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the records as an Arrow table, in the order of the files."""
        return _to_arrow(_collect(self.scan(record_type, columns), record_type))

    def batches(
        self, record_type: str, columns: Sequence[str] | None = None, *, rows: int = 1 << 20
    ) -> Iterator[pa.RecordBatch]:
        """Yield the records in batches of at most ``rows``, in the order of the files, without holding them all."""
        with redact_errors(record_type):
            frame = self.scan(record_type, columns)
            for part in frame.collect_batches(
                chunk_size=rows, maintain_order=True, lazy=True, engine="streaming"
            ):
                for start in range(0, part.height, rows):
                    yield from _to_arrow(part.slice(start, rows)).combine_chunks().to_batches()

    def counts(
        self, record_type: str, by: Sequence[str], where: Mapping[str, Sequence[str]] | None = None
    ) -> pa.Table:
        """Return the non-zero counts, sorted: columns ``by`` and ``count``; the total when ``by`` is empty."""
        return self._aggregate(record_type, by, where, pl.len().cast(pl.Int64).alias("count"), [])

    def sum_weights(
        self, record_type: str, by: Sequence[str], where: Mapping[str, Sequence[str]] | None = None
    ) -> pa.Table:
        """Return summed survey weights: columns ``by`` and ``weight``; no amplification by sampling is claimed."""
        weight = self.schema.record(record_type).weight
        if not weight:
            raise InputError(
                f"{record_type} records have no weight",
                why="their weighted counts were asked for",
                fix='name the weight column in census.toml: weight = "…"',
            )
        return self._aggregate(record_type, by, where, pl.col(weight).sum().alias("weight"), [weight])

    def _aggregate(
        self,
        record_type: str,
        by: Sequence[str],
        where: Mapping[str, Sequence[str]] | None,
        value: pl.Expr,
        extra: list[str],
    ) -> pa.Table:
        names, wanted = list_columns(by, where, extra)
        parts = [
            part._count_cells(record_type, names, wanted, where, value)
            for part in self._split_by_link(record_type, wanted)
        ]
        result = pl.concat(parts)
        total = pl.col(result.columns[-1]).sum()
        if not names:
            return _to_arrow(result.select(total))
        if len(parts) > 1 or any(isinstance(result.schema[name], pl.Categorical | pl.Enum) for name in names):
            # Files may encode the same text in several ways; cells that become equal as text are one cell.
            text = pl.selectors.by_dtype(pl.Categorical, pl.Enum)
            result = result.with_columns(text.cast(pl.String)).group_by(names).agg(total)
        return _to_arrow(result.sort(names, nulls_last=False))

    def _count_cells(
        self,
        record_type: str,
        names: list[str],
        wanted: list[str],
        where: Mapping[str, Sequence[str]] | None,
        value: pl.Expr,
    ) -> pl.DataFrame:
        frame = self.scan(record_type, wanted, ordered=False) if wanted else self.scan(record_type)
        types = frame.collect_schema()
        for name, codes in (where or {}).items():
            frame = frame.filter(pl.col(name).is_in(cast_codes(codes, types[name], name)))
        return _collect(frame.group_by(names).agg(value) if names else frame.select(value), record_type)

    def _split_by_link(self, record_type: str, wanted: list[str]) -> "Iterator[CensusFiles]":
        """Yield the census whole, or in parts by the hash of the link, so that joins stay within memory."""
        record = self.schema.record(record_type)
        if not record.linked_to or set(wanted) <= set(self.columns(record_type)):
            yield self
            return
        home = self.schema.record(record.linked_to)
        self._require_once(home)
        parts = -(-self.count(home.name) // MAX_HOUSEHOLDS_JOINED)
        if parts <= 1:
            yield self
            return
        sides = {record.name: _find_column(record, record.household), home.name: _find_column(home, home.id)}
        types = {name: self.file(name).collect_schema()[key] for name, key in sides.items()}
        # as text unless both have one type, because two files may store one identifier in two types
        text = len(set(types.values())) > 1 or any(dtype.is_float() for dtype in types.values())
        keys = {
            name: cast_loosely(pl.col(key), types[name], pl.String()) if text else pl.col(key)
            for name, key in sides.items()
        }
        hashed = {name: key.hash() for name, key in keys.items()}
        for part in range(parts):
            some = {name: self.file(name).filter(hashed[name] % parts == part) for name in sides}
            # an identifier that is unique in the whole is unique in each part
            yield CensusFiles(
                schema=settle_schema(self.schema),
                files={**self.files, **some},
                folder=self.folder,
                _linkable=self._linkable,
                _forms={**self._forms, **{name: {} for name in some}},  # these have their forms already
            )


def _collect(frame: pl.LazyFrame, record_type: str) -> pl.DataFrame:
    with redact_errors(record_type):
        return collect_frame(frame, streaming=True)


def _to_arrow(frame: pl.DataFrame) -> pa.Table:
    return frame.to_arrow(compat_level=pl.CompatLevel.oldest())


def _join(
    left: pl.LazyFrame, right: pl.LazyFrame, keys: tuple[str, str], columns: list[str], *, ordered: bool
) -> pl.LazyFrame:
    here, there = keys
    right = right.select(pl.col(there).alias("\x00id"), *columns)
    types = left.collect_schema()[here], right.collect_schema()["\x00id"]
    if types[0] != types[1]:  # the same identifiers read from two formats
        left = left.with_columns(pl.col(here).cast(pl.String))
        right = right.with_columns(pl.col("\x00id").cast(pl.String))
    order: Literal["left", "none"] = "left" if ordered else "none"
    return left.join(right, left_on=here, right_on="\x00id", how="left", maintain_order=order)


def _find_column(record: RecordSchema, name: str) -> str:
    return record.variable(name).source if name in record.names else name


def list_columns(
    by: Sequence[str], where: Mapping[str, Sequence[str]] | None, extra: Sequence[str]
) -> tuple[list[str], list[str]]:
    """Return the variables of a table, and all that must be read for it."""
    names = list(by)
    if len(set(names)) < len(names):
        raise InputError(
            "a variable is named twice in a table",
            why="a table has one column for each variable",
            fix="name each variable once",
        )
    return names, list(dict.fromkeys([*names, *(where or {}), *extra]))


def cast_codes(codes: Sequence[str], dtype: pl.DataType, name: str) -> pl.Series:
    try:
        values: list[object] = (
            [int(code) for code in codes] if dtype.is_integer() else [str(code) for code in codes]
        )
    except ValueError:
        raise InputError(
            f"{name} holds integers",
            why="the restriction names a level that is not an integer",
            fix="restrict it to integer levels",
        ) from None
    if not dtype.is_integer():
        return pl.Series(values, dtype=pl.String)
    # no record has a number that the type of the column cannot hold
    return pl.Series(values, dtype=pl.Int128).cast(dtype, strict=False).drop_nulls()
