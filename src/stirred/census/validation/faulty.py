"""Find the households that break a rule: by their own record, by one of their persons, or by their identifier."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import polars as pl

from stirred.census.codebook.schema import RecordSchema
from stirred.census.codebook.typed import loosely
from stirred.census.files import CensusFiles
from stirred.census.validation.links import ID, alone, in_parts, part_of, sides, uneven
from stirred.census.validation.loose import loose
from stirred.census.validation.problems import RecordRule
from stirred.census.validation.rules import linked_columns, linked_rules
from stirred.census.validation.single import SingleRecords
from stirred.census.validation.tree import unknown_codes
from stirred.errors import DataError
from stirred.frames import collected

MOST = 20_000_000  # identifiers of faulty households that are held in memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Households:
    """One record type with the types linked to it, and the one type in which their identifiers are compared."""

    home: RecordSchema
    members: tuple[RecordSchema, ...]
    key: pl.DataType

    @staticmethod
    def of(home: RecordSchema, records: Mapping[str, SingleRecords], census: CensusFiles) -> "Households":
        """The households of a census."""
        members = tuple(
            record
            for record in census.schema.records
            if record.linked_to == home.name and record.household in records[record.name].names
        )
        columns = [(home.name, home.id), *((record.name, record.household) for record in members)]
        types = {records[name].frame.collect_schema()[column] for name, column in columns}
        return Households(home=home, members=members, key=types.pop() if len(types) == 1 else pl.String())

    def keys(self, frame: pl.LazyFrame, column: str) -> pl.LazyFrame:
        """The identifiers in a column, as they are compared; empty ones are left out."""
        return frame.select(self.compared(column, frame.collect_schema()[column])).drop_nulls()

    def compared(self, column: str, dtype: pl.DataType) -> pl.Expr:
        """A column of identifiers as they are compared."""
        value = pl.col(column) if dtype == self.key else loosely(pl.col(column), dtype, self.key)
        return value.alias(ID)


def unknown_places(records: SingleRecords, census: CensusFiles) -> SingleRecords:
    """The records with one more rule: the files of areas know their codes."""
    rules = tuple(
        RecordRule(
            column, "codes that a file of areas does not know", pl.col(column).cast(pl.String).is_in(codes)
        )
        for column, codes in unknown_codes(census, records.record.name).items()
    )
    return replace(records, rules={**records.rules, "areas": rules})


def faulty(
    census: CensusFiles, records: Mapping[str, SingleRecords], households: Households, rows: int
) -> pl.DataFrame:
    """The identifiers of the households that break a rule, each once; memory is bounded by their number."""
    found = pl.DataFrame(schema={ID: households.key})
    for some in _found(census, records, households, rows):
        found = pl.concat([found, some.rename({some.columns[0]: ID})]).unique()
        _require_few(found.height, households.home)
    return pl.concat([found, *_across(census, records, households, found)]).unique()


def _found(
    census: CensusFiles, records: Mapping[str, SingleRecords], households: Households, rows: int
) -> Iterator[pl.DataFrame]:
    home, own = households.home, records[households.home.name]
    ids = households.keys(own.frame, home.id)
    yield _all(households.keys(own.frame.filter(own.broken), home.id))
    yield from _repeated(ids, ID, rows)
    for record in households.members:
        linked = records[record.name]
        yield _all(households.keys(linked.frame.filter(linked.broken), record.household))
        if record.id in linked.names and record.id:
            for again in _repeated(linked.frame.select(record.id), record.id, rows):
                both = linked.frame.join(again.lazy(), on=record.id, how="semi")
                yield _all(households.keys(both, record.household))
        links, homes = sides(census, record)
        parts = in_parts(rows)
        for part in range(parts):
            some, there = part_of(links, ID, part, parts), part_of(homes, ID, part, parts)
            yield _all(households.keys(alone(some, there), ID))
            if home.size in own.names and home.size:
                yield _all(households.keys(uneven(some, there), ID))


def _across(
    census: CensusFiles,
    records: Mapping[str, SingleRecords],
    households: Households,
    found: pl.DataFrame,
) -> Iterator[pl.DataFrame]:
    """The households whose persons break a rule together with them; those found before are left out."""
    rest = {
        name: replace(some, frame=without(some.frame, households, column, found))
        for name, column in _columns(households)
        for some in (records[name],)
    }
    left = loose(census, {**records, **rest})
    left._linkable.add(households.home.name)
    for record in households.members:
        rules = linked_rules(left, left.schema.record(record.name))
        if rules:
            names = [record.household, *linked_columns(left, record)]
            broken = pl.any_horizontal([rule.broken.fill_null(value=False) for rule in rules])
            frame = left.scan(record.name, names).filter(broken)
            yield _all(households.keys(frame, record.household))


def without(frame: pl.LazyFrame, households: Households, column: str, found: pl.DataFrame) -> pl.LazyFrame:
    """The rows whose identifier is not among the found ones, in their order."""
    if not found.height:
        return frame
    key = households.compared(column, frame.collect_schema()[column]).alias("\x00key")
    names = frame.collect_schema().names()
    rest = frame.with_columns(key).join(
        found.lazy(), left_on="\x00key", right_on=ID, how="anti", maintain_order="left"
    )
    return rest.select(names)


def _columns(households: Households) -> list[tuple[str, str]]:
    members = ((record.name, record.household) for record in households.members)
    return [(households.home.name, households.home.id), *members]


def _repeated(ids: pl.LazyFrame, key: str, rows: int) -> Iterator[pl.DataFrame]:
    """The identifiers that occur more than once."""
    parts = in_parts(rows)
    for part in range(parts):
        times = part_of(ids, key, part, parts).group_by(key).agg(pl.len().alias("\x00n"))
        yield _all(times.filter(pl.col("\x00n") > 1).select(key))


def _all(frame: pl.LazyFrame) -> pl.DataFrame:
    return collected(frame.unique(), streaming=True)


def _require_few(number: int, home: RecordSchema) -> None:
    if number > MOST:
        raise DataError(
            f"more than {MOST:,} {home.name} records would be left out",
            why="their identifiers are held in memory, and a schema that so many records break is likely wrong",
            fix="see the problems with: stirred data check census.toml",
        )
