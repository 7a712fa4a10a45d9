"""The records of a census: files or tables with their schema, scanned and counted, never loaded as a whole."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock, RLock
from typing import Literal

import polars as pl
import pyarrow as pa

from stirred.census.canonical import Forms, add_keys, apply_forms, find_forms, open_columns
from stirred.census.codebook.domain import build_domain
from stirred.census.codebook.schema import RecordSchema, Schema
from stirred.census.codebook.typed import cast_loosely, convert_frame, select_raw
from stirred.census.failures import redact_errors
from stirred.census.flat import (
    FlatHouseholds,
    drop_household_columns,
    find_home,
    household_layout,
    make_households,
    settle_schema,
)
from stirred.census.geography import attach_levels
from stirred.census.once import require_once
from stirred.census.readers import open_source
from stirred.census.readers.delimited import require_even
from stirred.census.readers.dispatch import find_format
from stirred.errors import InputError, did_you_mean
from stirred.frames import collect_frame
from stirred.spec.domain import Domain

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

    def scan_raw(self, record_type: str) -> pl.LazyFrame:
        """Return the variables under their names, with the types of the file; used by validation."""
        return select_raw(self.schema, self.schema.record(record_type), self.file(record_type))

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
