"""Make the data sets of an audit: a few invented records, and all data sets that share their invariants."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path

from stirred.census import Census
from stirred.census.schema import Schema, VariableSchema
from stirred.census.synthetic.stand_in import StandInFigures, make_stand_in
from stirred.frames import collect_frame
from stirred.mechanisms.base import Mechanism
from stirred.mechanisms.contents import Row, identifier_columns, rows_of
from stirred.spec import Margin, Specification
from stirred.spec.input_premetrics import Exchanges, Hamming

# All data sets of a small universe: other combinations of the values that a few records have, with equal invariants.

MAX_CELLS = 400  # combinations of values; more are not enumerated
MAX_RECORDS = 12  # of a data set
MAX_DATA_SETS = 720  # data sets of one universe
RECORDS_PER_EXCHANGE = 2  # that one exchange changes at most


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallUniverse:
    """The data sets of a universe, each as a histogram over cells; the first is the census it was made from."""

    counted: Hamming | Exchanges  # what the distance of two data sets counts
    census: Census
    cells: pl.DataFrame
    histograms: NDArray[np.int64]
    whole: bool  # whether all data sets over these values are here

    @property
    def record_type(self) -> str:
        """Return the type of the records."""
        return self.counted.record_type

    def __len__(self) -> int:
        return len(self.histograms)

    def rows(self, number: int) -> pl.DataFrame:
        """Return the records of one data set."""
        return self.cells[np.repeat(np.arange(self.cells.height), self.histograms[number])]

    def texts(self, number: int) -> tuple[Row, ...]:
        """Return the records of one data set as sorted texts."""
        return tuple(sorted(rows_of(self.rows(number))))

    @property
    def columns(self) -> Row:
        """Return the variables, in the order of the texts."""
        return tuple(sorted(self.cells.columns))

    def build_census(self, number: int) -> Census:
        """Return one data set as a census of its own."""
        record = self.census.schema.record(self.record_type)
        frame = self.rows(number)
        if record.id:
            frame = frame.with_columns(pl.Series(record.id, np.arange(1, frame.height + 1)))
        return Census(
            schema=self.census.schema, files={self.record_type: frame.lazy()}, folder=self.census.folder
        )

    def distances(self) -> NDArray[np.int64]:
        """Return the distances of all data sets; 0 where no exchanges lead from one to the other.

        The records that differ are half the l1 distance. Exchanges are the fewest steps inside the universe, each of which
        changes at most two records; where data sets are missing on the way they may be too many, never too few.
        """
        counts = self.histograms
        changed = np.array([np.abs(counts - one).sum(axis=1) // 2 for one in counts], np.int64)
        if isinstance(self.counted, Hamming):
            return changed
        steps = shortest_path(csr_array(changed <= RECORDS_PER_EXCHANGE), unweighted=True)
        return np.where(np.isinf(steps), 0, steps).astype(np.int64)


def isolate_records(census: Census, record_type: str) -> Census:
    """Return the records of one type as a census without linked types and without edit rules."""
    record = census.schema.record(record_type)
    schema = replace(census.schema, records=(record,), rules=())
    frame = collect_frame(census.scan(record_type, list(census.columns(record_type))))
    return Census(schema=schema, files={record_type: frame.lazy()}, folder=census.folder)


def enumerate_universe(census: Census, specification: Specification) -> SmallUniverse | None:
    """Enumerate the data sets that agree with a small census on the stated margins; None if too many."""
    premetric = specification.input_premetric
    if not isinstance(premetric, Hamming | Exchanges):
        return None
    record_type = premetric.record_type
    if record_type not in census.schema.record_types or len(census.schema.records) > 1:
        return None
    margins = [margin for invariant in specification.multiverse for margin in invariant.needs()]
    if any(margin.record_type != record_type for margin in margins):
        return None
    if census.count(record_type) > MAX_RECORDS:
        return None
    frame = collect_frame(census.scan(record_type, list(census.columns(record_type))))
    frame = frame.drop(identifier_columns(census.schema, record_type) & {*frame.columns})
    cells = _cells(frame, margins, census.schema.spine)
    if cells is None:
        return None
    start = _histogram(frame, cells)
    sums = [_margin_cells(cells, margin) for margin in (*margins, Margin(record_type))]
    found = [start]
    whole = True
    for histogram in _enumerate_histograms(start, sums):
        if (histogram != start).any():
            if len(found) == MAX_DATA_SETS:
                whole = False
                break
            found.append(histogram)
    return SmallUniverse(
        counted=premetric, census=census, cells=cells, histograms=np.array(found), whole=whole
    )


def group_variables(
    columns: Sequence[str], margins: Sequence[Margin], spine: Sequence[str]
) -> list[list[str]]:
    """Group variables that occur in the same margins; areas are one group.

    >>> group_variables(["county", "tract", "tenure"], [Margin("household", ("tenure",))], ["county", "tract"])
    [['county', 'tract'], ['tenure']]
    """
    found: dict[object, list[str]] = {}
    for name in columns:
        inside = tuple(name in {*margin.by, *margin.conditions()} for margin in margins)
        found.setdefault("spine" if name in spine else inside, []).append(name)
    return list(found.values())


def _cells(frame: pl.DataFrame, margins: Sequence[Margin], spine: Sequence[str]) -> pl.DataFrame | None:
    parts = [
        frame.select(block).unique(maintain_order=True)
        for block in group_variables(frame.columns, margins, spine)
    ]
    if np.prod([part.height for part in parts], dtype=float) > MAX_CELLS:
        return None
    places = np.array(list(product(*(range(part.height) for part in parts))), np.int64)
    return pl.concat([part[places[:, i]] for i, part in enumerate(parts)], how="horizontal").select(
        frame.columns
    )


def _histogram(frame: pl.DataFrame, cells: pl.DataFrame) -> NDArray[np.int64]:
    place = {row: i for i, row in enumerate(rows_of(cells))}
    return np.bincount([place[row] for row in rows_of(frame)], minlength=cells.height).astype(np.int64)


def _margin_cells(cells: pl.DataFrame, margin: Margin) -> NDArray[np.int64]:
    """Return the number of the margin's cell that each cell belongs to; -1 outside its restriction."""
    if not cells.height:
        return np.empty(0, np.int64)
    keys = rows_of(cells.select(margin.by)) if margin.by else [()] * cells.height
    number = {key: i for i, key in enumerate(dict.fromkeys(keys))}
    found = np.array([number[key] for key in keys], np.int64)
    for name, levels in (margin.where.as_dict() if margin.where is not None else {}).items():
        inside = cells[name].cast(pl.String).is_in([str(level) for level in levels]).fill_null(value=False)
        found[~inside.to_numpy()] = -1
    return found


def _enumerate_histograms(
    start: NDArray[np.int64], sums: Sequence[NDArray[np.int64]]
) -> Iterator[NDArray[np.int64]]:
    """Enumerate all histograms with the sums of one, by depth-first search."""
    size = len(start)
    rest = [np.bincount(place[place >= 0], start[place >= 0]).astype(np.int64) for place in sums]
    closing: list[list[tuple[int, int]]] = [[] for _ in range(size)]
    for i, place in enumerate(sums):
        for number in range(len(rest[i])):
            closing[int(np.flatnonzero(place == number)[-1])].append((i, number))
    inside = [
        [(i, int(place[cell])) for i, place in enumerate(sums) if place[cell] >= 0] for cell in range(size)
    ]
    counts = np.zeros(size, np.int64)

    def fill(cell: int) -> Iterator[NDArray[np.int64]]:
        if cell == size:
            yield counts.copy()
            return
        most = min(int(rest[i][number]) for i, number in inside[cell])
        for count in range(most + 1):
            counts[cell] = count
            for i, number in inside[cell]:
                rest[i][number] -= count
            if all(rest[i][number] == 0 for i, number in closing[cell]):
                yield from fill(cell + 1)
            for i, number in inside[cell]:
                rest[i][number] += count
        counts[cell] = 0

    yield from fill(0)


# A few invented records for an audit: made from the schema, never from records, and as different as they can be.

POOL_HOUSEHOLDS = 800  # invented households from which a few are taken
TOP_LEVEL_AREAS = 6  # of the highest level
FREE_RECORDS = 2  # records of a universe without invariants


def invent_census(census: Census, *, households: int = POOL_HOUSEHOLDS, seed: int = 1) -> Census:
    """Invent a census with the schema of another one; nothing but its schema is used."""
    schema = _portable_schema(census)
    levels = {name: 12 for record in schema.records for name in _unlisted_variables(schema, record.name)}
    highest = schema.spine[:1] if schema.geography.areas is None else ()
    figures = StandInFigures(
        households=households, seed=seed, levels=levels, areas=dict.fromkeys(highest, TOP_LEVEL_AREAS)
    )
    made = make_stand_in(schema, figures, census.folder)
    return Census(
        schema=schema, files={name: frame.lazy() for name, frame in made.items()}, folder=census.folder
    )


def _portable_schema(census: Census) -> Schema:
    """Return the schema for invented records: areas have invented codes, unlisted columns are texts."""
    schema, records = census.schema, []
    for record in schema.records:
        known = {*schema.spine, record.id, record.household, record.weight, *record.names}
        more = [VariableSchema(name=name) for name in census.columns(record.name) if name not in known]
        own = [variable for variable in record.variables if variable.name not in schema.spine]
        records.append(replace(record, where=(), household_from="", variables=(*own, *more)))
    return replace(schema, records=tuple(records))


def _unlisted_variables(schema: Schema, record_type: str) -> list[str]:
    return [v.name for v in schema.record(record_type).variables if v.all_levels is None]


def choose_records(mechanism: Mechanism, pool: Census, *, records: int) -> Census:
    """Choose records of a pool that agree on every invariant and differ in all else as far as possible."""
    record_type = mechanism.record_type
    small = isolate_records(pool, record_type)
    margins = [
        margin
        for invariant in mechanism.specification(small).multiverse
        for margin in invariant.needs()
        if margin.record_type == record_type
    ]
    frame = collect_frame(small.scan(record_type, list(small.columns(record_type))))
    hidden = identifier_columns(small.schema, record_type) & {*frame.columns}
    names = [name for name in frame.columns if name not in hidden]
    common = [name for name in names if margins and all(name in margin.by for margin in margins)]
    varied = [
        block
        for block in group_variables(
            [name for name in names if name not in common], margins, small.schema.spine
        )
        if block
    ]
    largest = frame
    if common:
        top = frame.group_by(common).len().sort(["len", *common], descending=[True] + [False] * len(common))
        largest = frame.join(top.head(1).select(common), on=common, how="inner", nulls_equal=True)
    # without invariants every combination of values is a data set: two records have enough of them
    chosen = largest[_choose_apart(largest, varied, records if margins else min(records, FREE_RECORDS))]
    return Census(schema=small.schema, files={record_type: chosen.lazy()}, folder=pool.folder)


def _choose_apart(frame: pl.DataFrame, varied: list[list[str]], records: int) -> list[int]:
    """Choose row numbers one by one, so that each differs from those before in most blocks, then columns."""
    sets = [*varied, *([name] for block in varied for name in block)]
    weights = [1000] * len(varied) + [1] * (len(sets) - len(varied))
    numbers = np.stack(
        [frame.select(pl.struct(names).rank("dense")).to_series().to_numpy() for names in sets], axis=1
    )
    chosen: list[int] = []
    while len(chosen) < min(records, frame.height):
        score = np.zeros(frame.height, np.int64)
        for i, weight in enumerate(weights):
            score += weight * ~np.isin(numbers[:, i], numbers[chosen, i])
        score[chosen] = -1
        chosen.append(int(score.argmax()))
    return chosen
