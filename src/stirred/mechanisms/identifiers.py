"""Find released columns that identify records: identifiers, open texts and numbers, places that hold one record.

A released column is one of four things: a variable whose levels the codebook lists (bands of a number are listed levels), an
open column whose few values are shared by many records, a place of the spine that is an area, or a column that the settings
release on purpose. Everything else is refused.

How many values a held column or a place has, how many of them occur once, and how many look like a telephone number, are
functions of its margin, which a swap keeps exactly: finding them before a release reveals nothing beyond the invariants. In
a large file they are estimated from the values whose fixed hash is small, which is a function of the same margin.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from stirred.census.census import Census
from stirred.census.describe.columns import OF_PERSONS
from stirred.census.readers.sources import redact_errors
from stirred.census.schema import MAX_FEW_VALUES, MIN_RECORDS_JUDGED, VariableSchema, singles_out
from stirred.chance.words import Hasher, combine_chunks, is_text
from stirred.engine import Engine, Flow, Local
from stirred.engine.tables import PART_COLUMN, PlaceRows
from stirred.errors import PrivacyError
from stirred.frames import arrow_of, frame_of
from stirred.languages import Phrase, unit

MAX_RANGE_LEVELS = 200  # a range with more levels is a number that was not coarsened, such as an income
MAX_OPEN_VALUES = 200  # that a column without listed levels may have
MIN_AREAS_JUDGED = 10
MAX_LONE_AREAS_SHARE = 0.5  # areas that hold one record, from which a level is no area but an identifier
MAX_VALUES_COUNTED = 1 << 17  # of a larger file only the values with a small hash are counted
MIN_LOOKALIKES = 3  # values that look like a telephone number, from which a column is said to hold them
MIN_NAMES_SHARE = 0.6  # of the values of a column of names that look like one
MIN_NAMES = 20

# what a text looks like; each is searched in the whole text, so that a note with a number in it is found
PATTERNS: Mapping[str, str] = {
    "mail": r"[^@\s]+@[^@\s]+\.[A-Za-z]{2,}",
    "iban": r"\b[A-Z]{2}[0-9]{2}( ?[A-Z0-9]{4}){3,7}( ?[A-Z0-9]{1,4})?\b",
    "number": r"\b([0-9]{3}-[0-9]{2}-[0-9]{4}|[0-9]{3}\.[0-9]{3}\.[0-9]{3}-[0-9]{2}|[0-9]{6,8}[-+][0-9]{4}"
    r"|[XYZ]?[0-9]{7,8}-?[A-Z]|[A-Z]{6}[0-9]{2}[A-Z][0-9]{2}[A-Z][0-9]{3}[A-Z]|[A-Z]{4}[0-9]{6}[HM][A-Z]{5}[A-Z0-9][0-9]|[12][0-9]{12,14})\b",
    "phone": r"(\+|\b00)[0-9]{1,3}[ 0-9/().-]{6,}[0-9]|\b0[0-9]{2,4}[ /.-][0-9][ 0-9/.-]{3,}[0-9]"
    r"|\(?\b[0-9]{3}\)?[ .-][0-9]{3}[ .-][0-9]{4}\b",
}
# a name is one to five words. Letters of all alphabets take milliseconds to compile, so a text is tried with them only if
# its words have the shape in ASCII: none begins with a lower-case letter, none has a digit
NAME_SHAPE = r"^[^\x00-@a-z][^ ,0-9]+([ ,]+[^\x00-@a-z][^ ,0-9]*){0,4}$"
NAME_PATTERN = r"^\p{Lu}[\p{L}\p{M}'’.-]+([ ,]+\p{Lu}[\p{L}\p{M}'’.-]*)*$"
LOOKALIKE_KINDS = (*PATTERNS, "names")
VALUE, FILLED, FIRST_PATTERN = 0, 1, 2  # what a row of a batch's counts is about

COUNT_SCHEMA = pa.schema(
    [("column", pa.int32()), ("about", pa.int32()), ("word", pa.uint64()), ("n", pa.int64())]
)
# of a part: for values how many there are and how many of them one record has, for the rest the sum
SUM_SCHEMA = pa.schema(
    [("column", pa.int32()), ("about", pa.int32()), ("n", pa.int64()), ("unique", pa.int64())]
)
BYTES_PER_COUNT = 64  # bytes of a row of counts, working space included


@dataclass(frozen=True, slots=True, kw_only=True)
class IdentifyingColumn:
    """Name a column whose values tell who a record is, with the rule that it breaks and counts."""

    record_type: str
    column: str
    rule: str  # link, lookalike, single, open, decimals, area
    unique: int = 0  # records (of places: areas) whose value no other record has
    records: int = 0  # with a value
    values: int = 0
    links_to: str = ""  # the record type that the column names
    looks_like: str = ""  # what its values look like

    @property
    def why(self) -> Phrase:
        """Return the reason in words, with counts and no value."""
        records = unit(self.record_type, "records")
        if self.rule == "link":
            return Phrase("guard.names_linked", linked=self.links_to or self.record_type)
        if self.rule == "lookalike":
            kind = Phrase(f"guard.looks_like.{self.looks_like}")
            return Phrase("guard.lookalike", number=self.unique, kind=kind)
        if self.rule == "area":
            return Phrase("guard.lone_areas", number=self.unique, all=self.values, records=records)
        if self.rule == "single":
            return Phrase("guard.unique", number=self.unique, all=self.records, records=records)
        return Phrase("guard.open_values", values=self.values)

    @property
    def sentence(self) -> Phrase:
        """Return the column and the reason."""
        return Phrase("guard.column_why", column=self.column, why=self.why)

    @property
    def fix(self) -> str:
        """Return what makes the column releasable; empty where nothing does."""
        if self.rule in ("link", "lookalike"):
            return ""
        if self.rule == "area":
            return f"take {self.column} out of the spine, or name a coarser level"
        return (
            f"list the levels of {self.column} in census.toml, or coarsen a number there: "
            f'{self.column} = {{ bands = [0, 1000, 5000] }} or {{ bands = "1-2-5" }}'
        )


@dataclass(frozen=True, slots=True)
class ColumnCounts:
    """Hold what was counted of one column: records with a value, different values, values of one record, lookalikes."""

    filled: int
    values: int
    unique: int
    lookalikes: Mapping[str, int]


def find_identifying(
    census: Census, record_type: str, columns: Sequence[str], *, engine: Engine | None = None
) -> tuple[IdentifyingColumn, ...]:
    """Return which of these columns identify records, by the schema or by counts; places are judged by ``find_lone_areas``.

    >>> homes = {"hid": range(60), "rooms": [1, 2] * 30}
    >>> census = Census.of({"record": {"household": {}}}, {"household": homes})
    >>> [(found.column, found.rule, found.unique) for found in find_identifying(census, "household", ["hid", "rooms"])]
    [('hid', 'single', 60)]
    """
    engine_used = engine or Local()
    record = census.schema.record(record_type)
    kinds = census.scan(record_type).collect_schema()
    asked = [name for name in dict.fromkeys(columns) if name in kinds]
    names = {other.id: other.name for other in census.schema.records if other.id}
    links = {record.household: record.linked_to or record_type} if record.household else {}
    found = [
        IdentifyingColumn(
            record_type=record_type,
            column=name,
            rule="link",
            links_to=links.get(name) or (names[name] if name != record.id else ""),
        )
        for name in asked
        if name in names or name in links or name == record.id
    ]
    known = {column.column for column in found}
    declared = {variable.name: variable for variable in record.variables}
    open_ones = [name for name in asked if name not in known and _is_open(declared.get(name), kinds[name])]
    counted = count_values(census, record_type, open_ones, engine_used)
    for name in open_ones:
        found += _judge_column(record_type, name, counted[name], decimals=kinds[name].is_float())
    return tuple(found)


def find_lone_areas(
    census: Census, record_type: str, levels: Sequence[str], *, engine: Engine | None = None
) -> tuple[IdentifyingColumn, ...]:
    """Return the levels of places most of whose areas hold a single record: these name records, not areas.

    >>> homes = {"unit": range(60), "county": ["a", "b"] * 30}
    >>> census = Census.of({"geography": {"spine": ["county", "unit"]}}, {"household": homes})
    >>> [(found.column, found.unique) for found in find_lone_areas(census, "household", ["county", "unit"])]
    [('unit', 60)]
    """
    kinds = census.scan(record_type).collect_schema()
    asked = [name for name in dict.fromkeys(levels) if name in kinds]
    counted = count_values(census, record_type, asked, engine or Local(), lookalikes=False)
    return tuple(
        IdentifyingColumn(
            record_type=record_type,
            column=name,
            rule="area",
            unique=counts.unique,
            records=counts.filled,
            values=counts.values,
        )
        for name, counts in counted.items()
        if counts.filled >= MIN_RECORDS_JUDGED
        and counts.values >= MIN_AREAS_JUDGED
        and counts.unique > MAX_LONE_AREAS_SHARE * counts.values
    )


def require_unidentifying(
    census: Census, record_type: str, columns: Sequence[str], *, engine: Engine | None = None
) -> None:
    """Refuse tables by columns that identify records; a column of the household is judged among households.

    Codes of areas that a public file lists are known to everybody and are not judged. A refusal is seen by the office alone,
    as that of records which break the schema is.

    >>> homes = {"hid": range(60), "rooms": [1, 2] * 30}
    >>> census = Census.of({"record": {"household": {}}}, {"household": homes})
    >>> require_unidentifying(census, "household", ["rooms"])
    """
    kinds = (record_type, census.schema.record(record_type).linked_to)
    places = {*census.schema.spine, *(off.name for off in census.schema.geography.off_spine)}
    public = census.schema.geography.areas is not None
    found: list[IdentifyingColumn] = []
    left = list(dict.fromkeys(columns))
    for kind in filter(None, kinds):
        own = [name for name in left if name in census.scan(kind).collect_schema()]
        left = [name for name in left if name not in own]
        found += find_identifying(census, kind, [name for name in own if name not in places], engine=engine)
        if not public:
            found += find_lone_areas(census, kind, [name for name in own if name in places], engine=engine)
    if found:
        raise refusal(found, leave_out="count by other variables")


def refusal(found: Sequence[IdentifyingColumn], *, leave_out: str, accept: str = "") -> PrivacyError:
    """Return the error for columns that identify records: why, and each way out."""
    columns = ", ".join(sorted({one.column for one in found}))
    ways = (leave_out, next((one.fix for one in found if one.fix), ""), accept)
    return PrivacyError(
        f"{columns} would identify records in the release",
        why="; ".join(one.sentence for one in found[:3]),
        fix="; or ".join(way for way in ways if way),
    )


def _is_open(variable: VariableSchema | None, kind: pl.DataType) -> bool:
    """Return whether a column has no listed levels; a wide range of whole numbers lists nothing."""
    if kind == pl.Boolean:
        return False
    levels = None if variable is None else variable.levels
    return levels is None or (isinstance(levels, range) and len(levels) > MAX_RANGE_LEVELS)


def _judge_column(
    record_type: str, name: str, counts: ColumnCounts, *, decimals: bool
) -> Iterator[IdentifyingColumn]:
    """Yield the rule that an open column breaks, if any."""
    rule = ""
    alike = next((kind for kind in PATTERNS if counts.lookalikes.get(kind, 0) >= MIN_LOOKALIKES), "")
    names = counts.lookalikes.get("names", 0) >= MIN_NAMES_SHARE * max(counts.filled, 1)
    if not alike and names and OF_PERSONS.search(name):
        alike = "names"
    if alike:
        yield IdentifyingColumn(
            record_type=record_type,
            column=name,
            rule="lookalike",
            unique=counts.lookalikes[alike],
            looks_like=alike,
        )
        return
    if counts.filled < MIN_RECORDS_JUDGED or counts.values <= MAX_FEW_VALUES:
        return
    if singles_out(filled=counts.filled, values=counts.values, unique=counts.unique):
        rule = "single"
    elif decimals or counts.values > MAX_OPEN_VALUES:
        rule = "open"
    if rule and names and counts.values >= MIN_NAMES:
        yield IdentifyingColumn(
            record_type=record_type,
            column=name,
            rule="lookalike",
            unique=counts.lookalikes["names"],
            looks_like="names",
        )
    elif rule:
        yield IdentifyingColumn(
            record_type=record_type,
            column=name,
            rule=rule,
            unique=counts.unique,
            records=counts.filled,
            values=counts.values,
        )


def count_values(
    census: Census, record_type: str, columns: Sequence[str], engine: Engine, *, lookalikes: bool = True
) -> dict[str, ColumnCounts]:
    """Count values, values of one record and, if asked, lookalikes of columns, in one pass over their records."""
    if not columns:
        return {}
    records = engine.census(census).count(record_type)
    share = min(1.0, MAX_VALUES_COUNTED / max(records, 1))
    kernel = CountValues(tuple(columns), np.uint64(min(share * 2.0**64, 2**64 - 1)), lookalikes)
    with redact_errors(record_type):
        flow = engine.records(census, record_type, list(columns)).map(kernel, COUNT_SCHEMA)
        summed = frame_of(_sum_counts(flow, engine, min(records, MAX_VALUES_COUNTED) * len(columns)))
    sums = {
        (column, about): (n, unique)
        for column, about, n, unique in summed.group_by("column", "about").agg(pl.all().sum()).iter_rows()
    }
    others = {place: n for place, (n, _) in sums.items()}
    found = {}
    for place, name in enumerate(columns):
        filled = others.get((place, FILLED), 0)
        number, unique = sums.get((place, VALUE), (0, 0))
        found[name] = ColumnCounts(
            filled=filled,
            values=min(filled, round(number / share)),
            unique=min(filled, round(unique / share)),
            lookalikes={
                kind: n
                for i, kind in enumerate(LOOKALIKE_KINDS)
                if (n := others.get((place, FIRST_PATTERN + i), 0))
            },
        )
    return found


def _sum_counts(flow: Flow, engine: Engine, values: int) -> pa.Table:
    """Add up the counts of batches: here, or where they are too many, in parts that hold every count of a value."""
    if engine.fits(BYTES_PER_COUNT * values):
        return add_counts(0, flow.gather())
    parts = engine.parts_for(BYTES_PER_COUNT * values)
    placed = PlaceRows(("column", "about", "word"), parts)
    met = engine.exchange(flow.map(placed, placed.schema(COUNT_SCHEMA)), by=PART_COLUMN, parts=parts)
    return met.map(add_counts, SUM_SCHEMA).gather()


def add_counts(_: int, table: pa.Table) -> pa.Table:
    """Return for each column how many values there are and how many of them one record has, and the other sums.

    >>> counts = [("column", [0, 0, 0]), ("about", [VALUE] * 3), ("word", [5, 5, 7]), ("n", [1, 1, 1])]
    >>> add_counts(0, pa.table(dict(counts), schema=COUNT_SCHEMA)).to_pylist()
    [{'column': 0, 'about': 0, 'n': 2, 'unique': 1}]
    """
    summed = frame_of(table).group_by("column", "about", "word").agg(pl.col("n").sum())
    is_value, n = pl.col("about") == VALUE, pl.col("n")
    number = pl.when(is_value).then(1).otherwise(n).sum().cast(pl.Int64).alias("n")
    unique = (is_value & (n == 1)).sum().cast(pl.Int64).alias("unique")
    sums = (
        summed.group_by("column", "about").agg(number, unique).sort("column", "about")
    )  # a part made again is the same
    return arrow_of(sums).cast(SUM_SCHEMA)


@dataclass(frozen=True, slots=True)
class CountValues:
    """Count how often each value with a small hash occurs in a batch, and how many texts look like what names a person.

    The hash is fixed and has no key.
    """

    names: tuple[str, ...]
    below: np.uint64
    lookalikes: bool

    def __call__(self, table: pa.Table) -> pa.Table:
        parts: list[tuple[NDArray[np.integer], ...]] = []  # column, what about, word, how many
        for place, name in enumerate(self.names):
            array = combine_chunks(table.column(name))
            values, counts = _count_batch(array)
            words = _mix_words(values)
            kept = words <= self.below
            others = [(FILLED, len(array) - array.null_count)]
            if self.lookalikes and is_text(array.type):
                others += _count_lookalikes(array)
            about, n = np.array(others, np.int64).T
            number = int(kept.sum())
            parts += [
                (np.full(number, place), np.full(number, VALUE), words[kept], counts[kept]),
                (np.full(len(about), place), about, np.zeros(len(about), np.uint64), n),
            ]
        columns = zip(*parts, COUNT_SCHEMA.types, strict=True)
        arrays = [pa.array(np.concatenate(pieces), type=kind) for *pieces, kind in columns]
        return pa.table(arrays, schema=COUNT_SCHEMA)


def _count_lookalikes(array: pa.Array) -> list[tuple[int, int]]:
    """Return how many texts match each pattern; every different text of a batch is tried once."""
    if pa.types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    cells = pc.value_counts(array.cast(pa.large_string()).drop_null())
    texts = cells.field("values")
    counts = cells.field("counts").to_numpy(zero_copy_only=False)
    found = [int(counts[_match(texts, pattern)].sum()) for pattern in PATTERNS.values()]
    shaped = _match(texts, NAME_SHAPE)
    names = counts[shaped][_match(texts.filter(shaped), NAME_PATTERN)] if shaped.any() else counts[:0]
    return [(FIRST_PATTERN + i, n) for i, n in enumerate((*found, int(names.sum())))]


def _match(texts: pa.Array, pattern: str) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = pc.match_substring_regex(texts, pattern).to_numpy(zero_copy_only=False)
    return found.astype(bool)


def _count_batch(array: pa.Array) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Return the values of a batch as words, and how often each occurs; whole numbers in a small range by position."""
    array = array.drop_null()
    if pa.types.is_integer(array.type) and len(array):
        numbers = array.to_numpy(zero_copy_only=False)
        low = int(numbers.min())
        if int(numbers.max()) - low < 4 * len(array) and low < 2**62:
            counts = np.bincount(numbers.astype(np.int64, copy=False) - low)
            there = np.flatnonzero(counts)
            return (there + low).astype(np.int64).view(np.uint64), counts[there].astype(np.int64)
    cells = pc.value_counts(array)
    counts = cells.field("counts").to_numpy(zero_copy_only=False)
    return Hasher().words(cells.field("values")), counts.astype(np.int64)


def _mix_words(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return the words mixed by the SplitMix64 finaliser, which is one-to-one."""
    u = np.uint64
    with np.errstate(over="ignore"):
        words = (words ^ (words >> u(30))) * u(0xBF58476D1CE4E5B9)
        words = (words ^ (words >> u(27))) * u(0x94D049BB133111EB)
    return words ^ (words >> u(31))
