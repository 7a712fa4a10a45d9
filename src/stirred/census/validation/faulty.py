"""Find the households that break a rule: by their own record, by one of their persons, or by their identifier."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import polars as pl

from stirred.census.codebook.schema import RecordSchema
from stirred.census.codebook.typed import cast_loosely
from stirred.census.files import CensusFiles
from stirred.census.validation.links import (
    ID,
    count_parts,
    find_orphans,
    find_wrong_sizes,
    scan_sides,
    select_part,
)
from stirred.census.validation.loose import loosen_census
from stirred.census.validation.problems import RecordRule
from stirred.census.validation.rules import linked_rules, list_linked_columns
from stirred.census.validation.single import SingleRecords
from stirred.census.validation.tree import find_unknown_codes
from stirred.errors import DataError
from stirred.frames import collect_frame

MAX_IDS_HELD = 20_000_000  # identifiers of faulty households that are held in memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Households:
    """One record type with the types linked to it, and the one type in which their identifiers are compared."""

    home: RecordSchema
    members: tuple[RecordSchema, ...]
    key: pl.DataType

    @staticmethod
    def of(home: RecordSchema, records: Mapping[str, SingleRecords], census: CensusFiles) -> "Households":
        """Return the households of a census."""
        members = tuple(
            record
            for record in census.schema.records
            if record.linked_to == home.name and record.household in records[record.name].names
        )
        columns = [(home.name, home.id), *((record.name, record.household) for record in members)]
        types = {records[name].frame.collect_schema()[column] for name, column in columns}
        return Households(home=home, members=members, key=types.pop() if len(types) == 1 else pl.String())

    def keys(self, frame: pl.LazyFrame, column: str) -> pl.LazyFrame:
        """Return the identifiers in a column, as they are compared; empty ones are left out."""
        return frame.select(self.cast_ids(column, frame.collect_schema()[column])).drop_nulls()

    def cast_ids(self, column: str, dtype: pl.DataType) -> pl.Expr:
        """Return a column of identifiers as they are compared."""
        value = pl.col(column) if dtype == self.key else cast_loosely(pl.col(column), dtype, self.key)
        return value.alias(ID)


def add_place_rules(records: SingleRecords, census: CensusFiles) -> SingleRecords:
    """Return the records with one more rule: the files of areas know their codes."""
    rules = tuple(
        RecordRule(
            column, "codes that a file of areas does not know", pl.col(column).cast(pl.String).is_in(codes)
        )
        for column, codes in find_unknown_codes(census, records.record.name).items()
    )
    return replace(records, rules={**records.rules, "areas": rules})


def find_faulty(
    census: CensusFiles, records: Mapping[str, SingleRecords], households: Households, rows: int
) -> pl.DataFrame:
    """Return the identifiers of the households that break a rule, each once; memory is bounded by their number."""
    found = pl.DataFrame(schema={ID: households.key})
    for some in _find_by_record(census, records, households, rows):
        found = pl.concat([found, some.rename({some.columns[0]: ID})]).unique()
        _require_few(found.height, households.home)
    return pl.concat([found, *_find_by_link(census, records, households, found)]).unique()


def _find_by_record(
    census: CensusFiles, records: Mapping[str, SingleRecords], households: Households, rows: int
) -> Iterator[pl.DataFrame]:
    home, own = households.home, records[households.home.name]
    ids = households.keys(own.frame, home.id)
    yield _collect_unique(households.keys(own.frame.filter(own.breaks_rule), home.id))
    yield from _find_repeated(ids, ID, rows)
    for record in households.members:
        linked = records[record.name]
        yield _collect_unique(households.keys(linked.frame.filter(linked.breaks_rule), record.household))
        if record.id in linked.names and record.id:
            for again in _find_repeated(linked.frame.select(record.id), record.id, rows):
                both = linked.frame.join(again.lazy(), on=record.id, how="semi")
                yield _collect_unique(households.keys(both, record.household))
        links, homes = scan_sides(census, record)
        parts = count_parts(rows)
        for part in range(parts):
            some, there = select_part(links, ID, part, parts), select_part(homes, ID, part, parts)
            yield _collect_unique(households.keys(find_orphans(some, there), ID))
            if home.size in own.names and home.size:
                yield _collect_unique(households.keys(find_wrong_sizes(some, there), ID))


def _find_by_link(
    census: CensusFiles,
    records: Mapping[str, SingleRecords],
    households: Households,
    found: pl.DataFrame,
) -> Iterator[pl.DataFrame]:
    """Yield the households whose persons break a rule together with them; those found before are left out."""
    rest = {
        name: replace(some, frame=drop_found(some.frame, households, column, found))
        for name, column in _id_columns(households)
        for some in (records[name],)
    }
    left = loosen_census(census, {**records, **rest})
    left._linkable.add(households.home.name)
    for record in households.members:
        rules = linked_rules(left, left.schema.record(record.name))
        if rules:
            names = [record.household, *list_linked_columns(left, record)]
            broken = pl.any_horizontal([rule.broken.fill_null(value=False) for rule in rules])
            frame = left.scan(record.name, names).filter(broken)
            yield _collect_unique(households.keys(frame, record.household))


def drop_found(frame: pl.LazyFrame, households: Households, column: str, found: pl.DataFrame) -> pl.LazyFrame:
    """Return the rows whose identifier is not among the found ones, in their order."""
    if not found.height:
        return frame
    key = households.cast_ids(column, frame.collect_schema()[column]).alias("\x00key")
    names = frame.collect_schema().names()
    rest = frame.with_columns(key).join(
        found.lazy(), left_on="\x00key", right_on=ID, how="anti", maintain_order="left"
    )
    return rest.select(names)


def _id_columns(households: Households) -> list[tuple[str, str]]:
    members = ((record.name, record.household) for record in households.members)
    return [(households.home.name, households.home.id), *members]


def _find_repeated(ids: pl.LazyFrame, key: str, rows: int) -> Iterator[pl.DataFrame]:
    """Yield the identifiers that occur more than once."""
    parts = count_parts(rows)
    for part in range(parts):
        times = select_part(ids, key, part, parts).group_by(key).agg(pl.len().alias("\x00n"))
        yield _collect_unique(times.filter(pl.col("\x00n") > 1).select(key))


def _collect_unique(frame: pl.LazyFrame) -> pl.DataFrame:
    return collect_frame(frame.unique(), streaming=True)


def _require_few(number: int, home: RecordSchema) -> None:
    if number > MAX_IDS_HELD:
        raise DataError(
            f"more than {MAX_IDS_HELD:,} {home.name} records would be left out",
            why="their identifiers are held in memory, and a schema that so many records break is likely wrong",
            fix="see the problems with: stirred data check census.toml",
        )
