"""Leave out records that break a rule of the schema, by whole households."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import polars as pl

from stirred.census.records import CensusFiles, find_home
from stirred.census.schema import RecordSchema
from stirred.census.validation.check import split_person_files
from stirred.census.validation.rules import (
    Problems,
    RecordRule,
    SingleRecords,
    linked_rules,
    list_linked_columns,
    loosen_census,
    rule_file,
    rule_records,
)
from stirred.census.validation.structure import (
    ID,
    count_parts,
    find_orphans,
    find_unknown_codes,
    find_wrong_sizes,
    scan_sides,
    select_part,
)
from stirred.census.variables import Forms, add_keys, apply_forms, cast_loosely
from stirred.errors import DataError
from stirred.frames import collect_frame

# Find the households that break a rule: by their own record, by one of their persons, or by their identifier.

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


# Leave records out that break a rule of the schema, by whole households.
#
# A household goes out with all its persons when its record or the record of one of its persons breaks a rule, when its
# identifier or that of one of its persons occurs twice, or when its size is not the number of its persons. Persons without
# a household go out. Only the identifiers of what goes out are held in memory; the files are filtered while they stream.

RAW_PREFIX = "\x00raw "


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanFiles:
    """What is left of the files of a census, with the forms of their columns."""

    files: Mapping[str, pl.LazyFrame]
    forms: Mapping[str, Forms]


def drop_invalid(census: CensusFiles, problems: Problems) -> CleanFiles:
    """Return the files without invalid records; refuse where more than single records is at fault."""
    _require_single(census, problems)
    whole = split_person_files(census, [])
    records = {record.name: rule_records(whole, record) for record in whole.schema.records}
    lenient = loosen_census(whole, records)
    records = {name: add_place_rules(some, lenient) for name, some in records.items()}
    rows = max(problems.checked.values(), default=0)
    files: dict[str, pl.LazyFrame] = {}
    for home in whole.schema.records:
        if home.linked_to:
            continue
        if not home.id:
            files[home.name] = _drop_from_file(census, home, records[home.name])
            continue
        households = Households.of(home, records, whole)
        found = find_faulty(lenient, records, households, rows)
        mixed = _list_mixed(census, home, households)
        found = found if mixed is None else pl.concat([found, mixed]).unique()
        for record, key in [(home, home.id), *((m, m.household) for m in households.members)]:
            declared = census.schema.record(record.name)
            if census.shares_file(declared):
                files[record.name] = _drop_from_person_file(census, declared, households, found)
            else:
                files[record.name] = _drop_from_file(
                    census, declared, records[record.name], households, key, found
                )
    forms = {
        name: census.find_column_forms(census.schema.record(name), frame) for name, frame in files.items()
    }
    return CleanFiles(files=files, forms=forms)


def require_mended(before: Problems, after: Problems) -> dict[str, int]:
    """Return how many records of each type were left out; raise where rules are still broken."""
    if after:
        raise DataError(
            "the records break rules that remain after households are left out",
            why="; ".join(map(str, after.worst())),
            fix="see all problems with: stirred data check census.toml",
        )
    return {name: count - after.checked.get(name, 0) for name, count in before.checked.items()}


def _require_single(census: CensusFiles, problems: Problems) -> None:
    unread = [problem for problem in problems.worst(len(problems)) if problem.of in ("files", "columns")]
    if unread:
        raise DataError(
            "the files break the schema, and leaving households out does not help",
            why="; ".join(map(str, unread[:3])),
            fix="see all problems with: stirred data check census.toml",
        )
    for record in census.schema.records:
        if record.linked_to and census.schema.record(record.linked_to).linked_to:
            raise DataError(
                "households cannot be left out of this census",
                why=f"{record.name} records are linked to {record.linked_to} records, which are linked to others",
                fix='correct the records, and keep invalid = "refuse"',
            )


def _drop_from_file(
    census: CensusFiles,
    record: RecordSchema,
    rules: SingleRecords,
    households: Households | None = None,
    key: str = "",
    found: pl.DataFrame | None = None,
) -> pl.LazyFrame:
    """Return the file as given, without invalid records and without the records of faulty households."""
    source = census.source(record.name)
    names = source.collect_schema().names()
    frame, beside = _add_raw_columns(census, record, source)
    some = rule_file(census.schema, record, frame, beside)
    rest = some.frame.filter(~rules.breaks_rule)
    if households is not None and found is not None:
        rest = drop_found(rest, households, key, found)
    return rest.select(pl.col(RAW_PREFIX + name).alias(name) for name in names)


def _drop_from_person_file(
    census: CensusFiles, record: RecordSchema, households: Households, found: pl.DataFrame
) -> pl.LazyFrame:
    """Return the person file without the persons of faulty households or of none."""
    source = census.source(record.name)
    names = source.collect_schema().names()
    frame, _ = _add_raw_columns(census, record, source)
    key = _find_home_record(census, record).household_from
    there = pl.col(key).is_not_null()
    if frame.collect_schema()[key] == pl.String:
        there &= pl.col(key) != ""
    rest = drop_found(frame.filter(there), households, key, found)
    return rest.select(pl.col(RAW_PREFIX + name).alias(name) for name in names)


def _find_home_record(census: CensusFiles, record: RecordSchema) -> RecordSchema:
    return record if record.household_from else find_home(census.schema, record) or record


def _add_raw_columns(
    census: CensusFiles, record: RecordSchema, source: pl.LazyFrame
) -> tuple[pl.LazyFrame, list[str]]:
    """Return the file with every value in its one form, and beside it the columns as they are given."""
    names = source.collect_schema().names()
    beside = [RAW_PREFIX + name for name in names]
    twice = source.with_columns(pl.col(name).alias(RAW_PREFIX + name) for name in names)
    frame = apply_forms(twice, {**census.forms(record.name), **dict.fromkeys(beside, "kept")})
    return add_keys(census.schema, record, frame), beside


def _list_mixed(census: CensusFiles, home: RecordSchema, households: Households) -> pl.DataFrame | None:
    """Return the households of a person file whose persons differ in a column of the household."""
    declared = census.schema.record(home.name)
    if not declared.household_from:
        return None
    mixed = census.flat_households(declared).mixed_keys
    if mixed is None:
        return None
    return collect_frame(households.keys(mixed.to_frame().lazy(), mixed.name))
