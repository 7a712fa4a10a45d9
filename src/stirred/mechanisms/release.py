"""Define the release, and count its records by variables, in memory or in parts."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import ArrayLike, NDArray

from stirred._support import import_optional, pads
from stirred.census import Schema
from stirred.census.geography import attach_levels
from stirred.census.schema import Kinds
from stirred.engine import Engine, Flow, Parts
from stirred.engine.tables import PART_COLUMN, PlaceRows
from stirred.errors import InputError, did_you_mean
from stirred.frames import frame_of
from stirred.mechanisms.effect import ExpectedEffect
from stirred.spec import Ledger, Specification
from stirred.spec.notebook import write_html_table

if TYPE_CHECKING:
    import pandas as pd


# What a mechanism hands over: records and tables that may be published, with their specification.


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One invariant held against the output: its name in words, whether it is kept, how many numbers it fixes.

    Words of releases are plain text, as the files of an interrupted run keep them; reports recognise the catalog's.
    """

    invariant: str
    kept: bool
    numbers: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "invariant", str(self.invariant))


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """What a guard found before a release: a sentence with counts and no value, and whether a setting accepts it by name.

    ``rows`` are what it measured: columns, what they predict, share guessed, share by chance.
    """

    name: str
    finding: str
    accepted: bool = False
    rows: tuple[tuple[str, ...], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", str(self.name))
        object.__setattr__(self, "finding", str(self.finding))
        object.__setattr__(self, "rows", tuple(tuple(map(str, row)) for row in self.rows))


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """What may be published, with its specification and the record of how it was made.

    ``tables`` are small (an Arrow table each); ``microdata`` may be larger than memory (an Arrow table, or a Parquet
    dataset on disk), by record type. Rows stand in an order that does not depend on the confidential file, and neither do
    notes, names, checks and guards, except through invariants and what the records and tables show. ``schema``
    says what the variables are, and ``folder`` where the files of areas beside the spine lie: tables need both.
    ``internal`` is not part of what may be published: tables about the confidential records, for the office alone, which
    a run writes to the internal part of its packet and nowhere else.
    """

    mechanism: str
    parameters: Mapping[str, object]
    specification: Specification
    microdata: Mapping[str, "pa.Table | pads.Dataset"] = field(default_factory=dict)
    tables: Mapping[str, pa.Table] = field(default_factory=dict)
    files: tuple[
        Path, ...
    ] = ()  # of the mechanism's own in the folder that it wrote to, such as noisy measurements
    checks: tuple[Check, ...] = ()
    ledger: Ledger | None = None
    notes: tuple[str, ...] = ()
    guards: tuple[Guard, ...] = ()
    settings: Mapping[str, object] = field(
        default_factory=dict
    )  # of the mechanism, as a plan states them, where they are not its parameters
    input_digest: str = ""  # keyed with the run's own key: equal only for the same run on the same input
    private: bool = True  # False when made with Key.for_tests
    effect: ExpectedEffect | None = None  # stated before the run; None where the mechanism states none
    internal: Mapping[str, pa.Table] = field(default_factory=dict, compare=False, repr=False)
    schema: "Schema | None" = field(default=None, compare=False, repr=False)
    folder: Path | None = field(default=None, compare=False, repr=False)
    labels: Mapping[str, Mapping[str, Mapping[str, str]]] = field(
        default_factory=dict, compare=False, repr=False
    )  # words for codes that the codebook of the census does not have: record type → variable → code → label

    def __post_init__(self) -> None:
        object.__setattr__(self, "notes", tuple(map(str, self.notes)))

    def __repr__(self) -> str:
        held = ", ".join([*self.microdata, *(f"table {name}" for name in self.tables)]) or "nothing"
        mark = "" if self.private else ", NOT PRIVATE"
        return f"Release({self.mechanism}: {held}; {self.specification.shown_budget}{mark})"

    def _repr_html_(self) -> str:
        """Return an HTML summary: what may be published, under which promise, and what is exact."""
        rows = [("promise", str(self.specification))]
        rows += [(name, f"{_count_rows(data):,} released records") for name, data in self.microdata.items()]
        rows += [(f"table {name}", f"{table.num_rows:,} rows") for name, table in self.tables.items()]
        rows += [
            ("exact", f"{check.invariant} ({check.numbers:,} numbers)") for check in self.checks if check.kept
        ]
        mark = () if self.private else ("NOT PRIVATE: made with a test key",)
        return write_html_table(f"Release: {self.mechanism}", rows, notes=(*mark, *self.notes))

    def to_arrow(self, record_type: str = "") -> pa.Table:
        """Return the released records of a type as an Arrow table; by default of the only or first type."""
        name = record_type or next(iter(self.microdata), "")
        if name not in self.microdata:
            raise InputError(
                f"the release has no {name or 'records'}",
                why="it holds " + (", ".join(self.microdata) or "tables alone"),
                fix=did_you_mean(name, self.microdata) if self.microdata else "see release.tables",
            )
        data = self.microdata[name]
        return data if isinstance(data, pa.Table) else data.to_table()

    def to_polars(self, record_type: str = "") -> pl.DataFrame:
        """Return the released records of a type as a polars frame."""
        return frame_of(self.to_arrow(record_type))

    def to_pandas(self, record_type: str = "") -> "pd.DataFrame":
        """Return the released records of a type as a pandas frame."""
        import_optional("pandas", "pandas", why="the frame is one of pandas")
        return self.to_arrow(record_type).to_pandas()


def _count_rows(data: "pa.Table | pads.Dataset") -> int:
    return int(data.num_rows if isinstance(data, pa.Table) else data.count_rows())


# Who takes part in a swap, as the schema lists them, and the public law by which these records changed places.


def list_staying_levels(kinds: Kinds | None) -> tuple[str, ...]:
    """Return the kinds of records that never take part: vacant units and group quarters."""
    return () if kinds is None else tuple(str(level) for level in (*kinds.vacant, *kinds.group_quarters))


def takes_part(kinds: Kinds | None, there: Sequence[str]) -> pl.Expr:
    """Return the expression that says whether a record takes part; one with an empty kind does."""
    if kinds is None or kinds.column not in there:
        return pl.lit(True)
    return ~pl.col(kinds.column).cast(pl.String).is_in(list_staying_levels(kinds)).fill_null(False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    r"""Records of a stratum exchange the values of some variables; rate, strata and variables are public.

    In a stratum of n records each is selected with chance ``selected(n)`` $= q$, and a selected record takes the value t
    with chance $n_t / (n - 1)$ if its own is another one. ``moved`` returns q for each of some records that take part, where
    it is not the same for all records of a stratum.
    """

    record_type: str
    match: tuple[str, ...]
    moving: tuple[str, ...]
    selected: Callable[[ArrayLike], NDArray[np.float64]]
    moved: Callable[[pl.DataFrame], NDArray[np.float64]] | None = None

    def find_moved(self, units: pl.DataFrame) -> NDArray[np.float64]:
        """Return q of each record that takes part."""
        if self.moved is not None:
            return self.moved(units)
        sizes = np.full(units.height, units.height, np.int64)
        if self.match:
            sizes = units.select(pl.len().over(list(self.match))).to_series().to_numpy()
        number, places = np.unique(sizes, return_inverse=True)
        return self.selected(number)[places]


# Released records that do not fit in memory: counted where they lie, in parts, to the same numbers.
#
# A table of linked records first meets its households (one exchange by household). What comes back are cells, never
# records.

UNIT, TAKES, KIND = "unit", "__takes", "__kind"
BYTES_PER_VALUE = 16  # bytes a value takes on its way, on average


def as_frame(table: pa.Table) -> pl.DataFrame:
    """Return an Arrow table as a polars frame."""
    return pl.DataFrame(pl.from_arrow(table))


def as_arrow(frame: pl.DataFrame) -> pa.Table:
    """Return a polars frame as an Arrow table."""
    return frame.to_arrow(compat_level=pl.CompatLevel.oldest())


def _place_rows(frame: pl.DataFrame, columns: Sequence[str], parts: int) -> pa.Table:
    """Append the part number of each row, equal for equal values, and return the table."""
    return PlaceRows(tuple(columns), parts)(as_arrow(frame))


def cells_schema(schema: pa.Schema, keys: Sequence[str], numbers: Sequence[str]) -> pa.Schema:
    """Return the columns of a table of cells: its keys, then whole numbers."""
    return pa.schema([schema.field(name) for name in keys] + [(name, pa.int64()) for name in numbers])


@dataclass(frozen=True, slots=True)
class ChooseColumns:
    """Select columns of released records: the identifier as ``unit``, off-spine areas, and who takes part."""

    columns: tuple[str, ...]
    unit: str
    kinds: Kinds | None  # of records that never take part
    areas: tuple[Schema, tuple[str, ...], Path] | None
    part_by: tuple[str, ...]
    parts: int

    def __call__(self, table: pa.Table) -> pa.Table:
        frame = as_frame(table)
        if self.areas is not None:
            schema, names, folder = self.areas
            frame = pl.DataFrame(attach_levels(schema, frame.lazy(), list(names), folder).collect())
        takes = takes_part(self.kinds, frame.columns)
        unit = [pl.col(self.unit).alias(UNIT)] if self.unit else []
        return _place_rows(frame.select(*unit, *self.columns, takes.alias(TAKES)), self.part_by, self.parts)


def count_cells(frame: pl.LazyFrame, keys: Sequence[str]) -> pl.LazyFrame:
    """Return how many rows each cell has."""
    return frame.group_by(list(keys)).agg(pl.len().cast(pl.Int64).alias("count"))


@dataclass(frozen=True, slots=True)
class CountCells:
    """Count the cells of some rows."""

    keys: tuple[str, ...]
    parts: int

    def __call__(self, table: pa.Table) -> pa.Table:
        found = count_cells(as_frame(table).lazy(), self.keys).collect()
        return _place_rows(pl.DataFrame(found), self.keys, self.parts)


@dataclass(frozen=True, slots=True)
class AddCells:
    """Add up the cells of one part."""

    keys: tuple[str, ...]

    def __call__(self, _: int, table: pa.Table) -> pa.Table:
        return as_arrow(as_frame(table).group_by(list(self.keys)).agg(pl.col("count").sum()))


@dataclass(frozen=True, slots=True)
class JoinHouseholds:
    """Join linked records to the columns of their household, and put the households first."""

    columns: tuple[str, ...]  # of the household
    own: tuple[str, ...]
    part_by: tuple[str, ...]
    parts: int

    def __call__(self, _: int, homes: pa.Table, records: pa.Table) -> pa.Table:
        home, own = as_frame(homes).select(UNIT, *self.columns, TAKES), as_frame(records)
        joined = own.select(UNIT, *self.own).join(home, on=UNIT, how="left")
        names = [UNIT, *dict.fromkeys([*self.columns, *self.own]), TAKES]
        first = home.with_columns(
            pl.lit(None, joined.schema[name]).alias(name) for name in self.own if name not in self.columns
        )
        both = pl.concat(
            [
                first.select(names).with_columns(pl.lit(0, pl.Int8).alias(KIND)),
                joined.select(names).with_columns(pl.lit(1, pl.Int8).alias(KIND)),
            ]
        )
        return _place_rows(both, self.part_by, self.parts)


@dataclass(frozen=True, slots=True)
class StratumKernel(ABC):
    """Make rows of whole strata from the records that take part and from those that a table counts."""

    by: tuple[str, ...]
    match: tuple[str, ...]
    swap: tuple[str, ...]

    @property
    def read_columns(self) -> tuple[str, ...]:
        """Return the columns to read of the records that a table counts; here the variables of the table."""
        return self.by

    @property
    def strata(self) -> tuple[str, ...]:
        """Return the variables that make strata and places."""
        return tuple(dict.fromkeys([*self.match, *self.swap]))

    @property
    def columns(self) -> list[str]:
        """Return the columns of the records that take part; without a table and strata, only whether they do."""
        return [*([UNIT] if self.by else []), *self.strata] or [TAKES]

    @abstractmethod
    def of(self, units: pl.DataFrame, counted: pl.DataFrame) -> pl.DataFrame:
        """Return the rows; ``units`` and ``counted`` have the column ``unit``, which names the swapped record."""

    @abstractmethod
    def schema(self, kinds: pa.Schema) -> pa.Schema:
        """Return the columns of the rows."""

    def __call__(self, _: int, table: pa.Table) -> pa.Table:
        frame = as_frame(table)
        units, counted = frame.filter(TAKES), frame
        if KIND in frame.columns:
            units, counted = units.filter(pl.col(KIND) == 0), frame.filter(pl.col(KIND) == 1)
        return as_arrow(
            self.of(
                units.select(self.columns), counted.select(UNIT, *self.read_columns) if self.by else counted
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasedRecords:
    """Released records of a type, with what a table asks of them, and of their households where they are linked."""

    engine: Engine
    release: Release
    schema: Schema
    record_type: str
    folder: Path | None

    def _size(self, columns: int) -> int:
        """Return about how many bytes so many columns of the records take."""
        data = self.release.microdata[self.record_type]
        rows = int(data.num_rows if isinstance(data, pa.Table) else data.count_rows())
        return rows * columns * BYTES_PER_VALUE

    def fits_memory(self, columns: int) -> bool:
        """Return whether so many columns of the records fit in memory."""
        return self.engine.fits(self._size(columns))

    def parts(self, columns: int) -> int:
        """Return into how many parts the records are divided."""
        return self.engine.parts_for(self._size(columns))

    @property
    def home(self) -> str:
        """Return the record type they are linked to in the release, or an empty text."""
        record = self.schema.record(self.record_type)
        linked = record.linked_to or ""
        there = self.release.microdata[self.record_type].schema.names
        return linked if linked in self.release.microdata and record.household in there else ""

    def choose_columns(
        self, record_type: str, columns: Sequence[str], part_by: Sequence[str], parts: int
    ) -> Flow:
        """Return the flow of some columns of a record type, off-spine areas included."""
        data = self.release.microdata[record_type]
        record = self.schema.record(record_type)
        there = data.schema.names
        lacking = tuple(name for name in columns if name not in there)
        unit = record.id if record_type != self.record_type or not self.home else record.household
        areas = (self.schema, lacking, self.folder) if lacking and self.folder is not None else None
        kernel = ChooseColumns(
            tuple(columns), unit if unit in there else "", record.kinds, areas, tuple(part_by), parts
        )
        flow = self.engine.stream_released(data)
        sample = kernel(flow.schema.empty_table())
        return flow.map(kernel, sample.schema)

    def join_households(
        self, asked: Sequence[str], strata: Sequence[str], part_by: Sequence[str], parts: int
    ) -> Flow:
        """Return the flow of linked records with the columns of their household (one exchange).

        A variable that both have is the record's own, unless it makes strata or places, which are the household's.
        """
        if not self.home:
            return self.choose_columns(
                self.record_type, list(dict.fromkeys([*strata, *asked])), part_by, parts
            )
        own = self.release.microdata[self.record_type].schema.names
        mine = [name for name in asked if name in own and name not in strata]
        of_home = list(dict.fromkeys([*strata, *(name for name in asked if name not in mine)]))
        homes = self.choose_columns(self.home, of_home, (UNIT,), parts)
        records = self.choose_columns(self.record_type, mine, (UNIT,), parts)
        kernel = JoinHouseholds(tuple(of_home), tuple(mine), tuple(part_by), parts)
        sample = kernel(0, homes.schema.empty_table(), records.schema.empty_table())
        return (
            self.engine.exchange(homes, records, by=PART_COLUMN, parts=parts)
            .map(kernel, sample.schema)
            .flow()
        )

    def map_strata(self, kernel: StratumKernel) -> pl.DataFrame:
        """Return the rows that a kernel makes of parts that hold whole strata (one exchange)."""
        parts = self.parts(len(kernel.strata) + len(kernel.read_columns) + 3)
        if kernel.by:
            flow = self.join_households(kernel.read_columns, kernel.strata, kernel.match, parts)
        else:
            flow = self.choose_columns(self.record_type, kernel.strata, kernel.match, parts)
        met = self.engine.exchange(flow, by=PART_COLUMN, parts=parts)
        return as_frame(met.map(kernel, kernel.schema(flow.schema)).gather())


def choose_keys(records: ReleasedRecords, keys: tuple[str, ...], parts: int) -> Flow:
    """Return the flow of records with the variables of a table; those of the household need one exchange."""
    own = records.release.microdata[records.record_type].schema.names
    plain = all(name in own for name in keys) or not records.home
    flow = (
        records.choose_columns(records.record_type, keys, (), parts)
        if plain
        else records.join_households(keys, (), (), parts)
    )
    return flow if plain else flow.map(_keep_records, flow.schema)


def make_cells(records: ReleasedRecords, by: Sequence[str]) -> Parts:
    """Return the counts of records in parts, each cell whole in one of them."""
    keys = tuple(by)
    parts = records.parts(len(keys) + 2)
    flow = choose_keys(records, keys, parts)
    schema = cells_schema(flow.schema, keys, ("count",))
    cells = flow.map(CountCells(keys, parts), schema.append(pa.field(PART_COLUMN, pa.int32())))
    return records.engine.exchange(cells, by=PART_COLUMN, parts=parts).map(AddCells(keys), schema)


def count_in_parts(records: ReleasedRecords, by: Sequence[str]) -> pl.DataFrame:
    """Return the table of counts of records that are counted in parts, sorted."""
    return as_frame(make_cells(records, by).gather()).sort(list(by), nulls_last=False)


def _keep_records(table: pa.Table) -> pa.Table:
    return as_arrow(as_frame(table).filter(pl.col(KIND) == 1))


# Tables of what was released: records scanned where they lie, joined with their household, counted by variables.

PULL_KEY = b"stirred.pull"  # in a table's metadata: the chance that a record moved, where that alone pulled its counts
MEASURE_COLUMNS = ("count", "weighted", "estimate", "standard_error", "variance", "low", "high", "quote")


def scan_records(data: "pa.Table | pads.Dataset") -> pl.LazyFrame:
    """Scan released records where they lie and return a lazy frame."""
    if isinstance(data, pa.Table):
        return as_frame(data).lazy()
    files: list[str] = data.files
    return pl.scan_parquet(files)


def require_schema(release: Release) -> Schema:
    """Return the schema of a release, or raise an error where it has none."""
    if release.schema is None:
        raise InputError(
            "the release does not say what its variables are",
            why="the mechanism made it without the schema of the census",
            fix="Release(…, schema=census.schema, folder=census.folder)",
        )
    return release.schema


def join_household(release: Release, schema: Schema, record_type: str) -> pl.LazyFrame:
    """Return released records of a type, with the household's variables where they are linked to one."""
    if record_type not in release.microdata:
        raise InputError(
            f"the release has no {record_type} records",
            why="its mechanism did not publish them",
            fix=did_you_mean(record_type, release.microdata),
        )
    own = scan_records(release.microdata[record_type])
    record = schema.record(record_type)
    if not record.linked_to or record.linked_to not in release.microdata:
        return own
    other = schema.record(record.linked_to)
    there = set(own.collect_schema().names())
    if record.household not in there:  # persons and units that are two tables without a link
        return own
    home = scan_records(release.microdata[record.linked_to])
    wanted = [name for name in home.collect_schema().names() if name not in there or name == other.id]
    return own.join(home.select(wanted), left_on=record.household, right_on=other.id, how="left")


def filter_participants(schema: Schema, record_type: str, records: pl.LazyFrame) -> pl.LazyFrame:
    """Return the records that take part in a swap."""
    kinds = schema.record(record_type).kinds
    return records.filter(takes_part(kinds, records.collect_schema().names()))


def join_variables(release: Release, record_type: str, by: Sequence[str]) -> pl.LazyFrame:
    """Return the released records with every variable of a table, off-spine areas included."""
    schema = require_schema(release)
    frame = join_household(release, schema, record_type)
    there = frame.collect_schema().names()
    lacking = [name for name in by if name not in there]
    if lacking and release.folder is not None:
        frame = attach_levels(schema, frame, lacking, release.folder)
        there = frame.collect_schema().names()
    for name in by:
        if name not in there:
            raise InputError(
                f"a table of {record_type} records needs {name}",
                why=f"the mechanism does not release it for {record_type} records",
                fix=did_you_mean(name, there),
            )
    return frame


def open_records(release: Release, record_type: str, engine: Engine) -> ReleasedRecords:
    """Return the released records of a type, to be counted in memory or in parts."""
    return ReleasedRecords(
        engine=engine,
        release=release,
        schema=require_schema(release),
        record_type=record_type,
        folder=release.folder,
    )


def count_records(release: Release, by: Sequence[str], *, record_type: str, engine: Engine) -> pl.DataFrame:
    """Return how many records each cell has, sorted."""
    frame = join_variables(release, record_type, by)
    records = open_records(release, record_type, engine)
    if not records.fits_memory(len(frame.collect_schema())):
        return count_in_parts(records, by)
    return count_cells(frame, by).sort(list(by), nulls_last=False).collect()


@dataclass(frozen=True, slots=True)
class FindValues:
    """Find the combinations of values of some rows."""

    keys: tuple[str, ...]

    def __call__(self, _: int, table: pa.Table) -> pa.Table:
        return as_arrow(as_frame(table).select(self.keys).unique())


@dataclass(frozen=True, slots=True)
class PlaceValues:
    """Find the combinations of values of a batch, and place them in parts."""

    keys: tuple[str, ...]
    parts: int

    def __call__(self, table: pa.Table) -> pa.Table:
        return _place_rows(as_frame(table).select(self.keys).unique(), self.keys, self.parts)


ROWS_SCHEMA = pa.schema([("rows", pa.int64())])


def count_rows(_: int, table: pa.Table) -> pa.Table:
    """Return how many rows a part has."""
    return pa.table({"rows": [table.num_rows]}, schema=ROWS_SCHEMA)


def find_values(
    data: "pa.Table | pads.Dataset", by: Sequence[str], *, engine: Engine, most: int
) -> pl.DataFrame | None:
    """Return the combinations of values that released records have, sorted; None where there are more than ``most``."""
    keys = tuple(by)
    size = _count_rows(data) * (len(keys) + 1) * BYTES_PER_VALUE
    if engine.fits(size):
        found = pl.DataFrame(scan_records(data).select(keys).unique().collect())
    else:
        parts = engine.parts_for(size)
        flow = engine.stream_released(data)
        schema = pa.schema([flow.schema.field(name) for name in keys])
        placed = flow.map(PlaceValues(keys, parts), schema.append(pa.field(PART_COLUMN, pa.int32())))
        met = engine.exchange(placed, by=PART_COLUMN, parts=parts).map(FindValues(keys), schema).keep()
        try:
            if int(as_frame(met.map(count_rows, ROWS_SCHEMA).gather())["rows"].sum()) > most:
                return None
            found = as_frame(met.gather())
        finally:
            met.drop()
    return None if found.height > most else found.sort(list(keys), nulls_last=False)


def map_strata(
    release: Release,
    kernel: StratumKernel,
    *,
    record_type: str,
    resolution: str,
    areas: Sequence[str],
    engine: Engine,
) -> pl.DataFrame:
    """Return the rows that a kernel makes of whole strata, in memory or part by part.

    ``resolution`` is the record type whose records make the strata, ``areas`` are codes beside the spine that they need.
    """
    schema, by = require_schema(release), kernel.read_columns
    home = schema.record(resolution)
    records = open_records(release, record_type, engine)
    frame = join_variables(release, record_type, by)
    columns = len(frame.collect_schema()) if by else len(kernel.strata) + 1
    # members that are swapped by themselves have no household to meet, so their tables are made in memory
    if not records.fits_memory(columns) and not (by and home.linked_to):
        return records.map_strata(kernel)
    units = scan_records(release.microdata[resolution])
    if areas and release.folder is not None:
        units = attach_levels(schema, units, list(areas), release.folder)
    unit = (
        pl.col(home.id) if home.id else pl.int_range(pl.len())
    )  # without identifiers, their place tells records apart
    link = unit if record_type == resolution else pl.col(schema.record(record_type).household)
    own = frame.select(link.alias(UNIT), *by) if by else pl.LazyFrame()
    if by:
        units = units.with_columns(unit.alias(UNIT))
    taking = filter_participants(schema, resolution, units).with_columns(pl.lit(True).alias(TAKES))
    return kernel.of(_collect(taking.select(kernel.columns)), _collect(own))


def _collect(frame: pl.LazyFrame) -> pl.DataFrame:
    return pl.DataFrame(frame.collect())


def format_table(frame: pl.DataFrame, by: Sequence[str]) -> pa.Table:
    """Return a table as it is published: sorted, with dictionaries as plain text."""
    text = frame.with_columns(pl.selectors.by_dtype(pl.Categorical, pl.Enum).cast(pl.String))
    return text.sort(list(by), nulls_last=False).to_arrow(compat_level=pl.CompatLevel.oldest())


def weigh(release: Release, by: Sequence[str], *, weight: str, record_type: str, engine: Engine) -> pa.Table:
    """Return counts and weighted totals of released records, without an interval."""
    found = count_records(release, [*by, weight], record_type=record_type, engine=engine)
    added = (pl.col("count") * pl.col(weight)).sum().alias("weighted")
    return format_table(found.group_by(list(by), maintain_order=True).agg(pl.col("count").sum(), added), by)


def find_own_table(release: Release, by: Sequence[str]) -> pl.DataFrame | None:
    """Return the mechanism's own table of exactly these variables, or None."""
    for table in release.tables.values():
        if {name for name in table.column_names if name not in MEASURE_COLUMNS} == set(by):
            names = [*by, *(name for name in MEASURE_COLUMNS if name in table.column_names)]
            return pl.DataFrame(pl.from_arrow(table.select(names)))
    return None


def count(release: Release, by: Sequence[str], *, record_type: str, engine: Engine) -> pa.Table:
    """Return counts of released records by variables, or the mechanism's own table of these variables."""
    if record_type not in release.microdata:
        found = find_own_table(release, by)
        if found is not None:
            return format_table(found, by)
    return format_table(count_records(release, by, record_type=record_type, engine=engine), by)
