"""Region types and their regions, which come from the public geography and never from a confidential record.

Where a census has no public file of areas, its regions are those of the records with a home: whether an area holds such a
record is then shown, and is an invariant of the specification (``topdown.tree.leaves``).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import polars as pl

from stirred.census.geography import area_record_types, attach_levels, read_ancestors
from stirred.engine import Engine
from stirred.errors import InputError
from stirred.frames import collect_frame, frame_of

if TYPE_CHECKING:
    from stirred.census import Census

NATION_ID = "1"  # the id of the only region of a type without a column
ISLAND_PREFIX = "PR-"


@dataclass(frozen=True, slots=True)
class RegionType:
    """A kind of region: its name in the products, the census column with the code, and which lists it tabulates.

    ``fine`` regions (nation, states) have the fine lists of groups and are never suppressed. Codes that end with ``outside``
    stand for no region, and so does 0 where there is such an ending. Types of Puerto Rico hold the records of its state code
    alone, all others hold the rest.

    >>> RegionType("PLACE", "place", outside="99999").match_nowhere(["0199999", "0122800", "0"])
    [True, False, True]
    """

    name: str
    column: str
    fine: bool = False
    outside: str = ""

    @property
    def island(self) -> bool:
        """Return whether it is a type of Puerto Rico, a program of its own with its own records."""
        return self.name.startswith(ISLAND_PREFIX)

    def match_nowhere(self, codes: Sequence[str]) -> list[bool]:
        """Return which codes stand for no region."""
        return [
            not code or bool(self.outside and (code == "0" or code.endswith(self.outside))) for code in codes
        ]


UNITED_STATES = (
    RegionType("USA", "", fine=True),
    RegionType("STATE", "state", fine=True),
    RegionType("COUNTY", "county"),
    RegionType("TRACT", "tract"),
    RegionType("PLACE", "place", outside="99999"),
    RegionType("AIANNH", "aiannh", outside="9999"),
)
PUERTO_RICO = (
    RegionType("PR-STATE", "state", fine=True),
    RegionType("PR-COUNTY", "county"),
    RegionType("PR-TRACT", "tract"),
    RegionType("PR-PLACE", "place", outside="99999"),
)
REGION_TYPES = {kind.name: kind for kind in (*UNITED_STATES, *PUERTO_RICO)}


def set_columns(own: Mapping[str, str]) -> dict[str, RegionType]:
    """Return the region types with the given columns in the place of their own."""
    for name in own:
        if name not in REGION_TYPES:
            raise InputError(
                f"there is no region type {name!r}",
                why="a column was given for it",
                fix=f"region types are {', '.join(REGION_TYPES)}",
            )
    return {name: replace(kind, column=own.get(name, kind.column)) for name, kind in REGION_TYPES.items()}


@dataclass(frozen=True, slots=True)
class Regions:
    """The regions of every type that a census has, sorted, and the column and code that set Puerto Rico apart."""

    ids: Mapping[str, tuple[str, ...]]
    state: str = ""  # the column of the state, empty where the census has none
    island: str = "72"

    def of(self, kind: RegionType) -> tuple[str, ...]:
        """Return the ids of a type's regions."""
        return self.ids.get(kind.name, ())


def geographic_columns(census: "Census") -> tuple[str, ...]:
    """Return the columns of geography: the levels of the spine, and the areas beside it that a level decides."""
    beside = [off.name for off in census.schema.geography.off_spine if off.of]
    return (*census.schema.spine, *beside)


def choose_region_types(
    census: "Census", kinds: Sequence[RegionType], *, state: str = "state"
) -> tuple[RegionType, ...]:
    """Return the region types that a census has a column for, from its schema alone."""
    known = geographic_columns(census)
    return tuple(
        kind
        for kind in kinds
        if (not kind.column or kind.column in known) and (not kind.island or state in known)
    )


def find_regions(
    census: "Census",
    kinds: Sequence[RegionType],
    *,
    state: str = "state",
    island: str = "72",
    engine: Engine | None = None,
) -> Regions:
    """Return the regions of each type, from the public geography or, without one, from the records.

    >>> from stirred.census import Census
    >>> toy = Census.of({"geography": {"spine": ["state", "county"]}},
    ...                 {"household": {"state": ["01", "72"], "county": ["01003", "72001"]}})
    >>> dict(find_regions(toy, tuple(REGION_TYPES.values())).ids)
    {'USA': ('1',), 'STATE': ('01',), 'COUNTY': ('01003',), 'PR-STATE': ('72',), 'PR-COUNTY': ('72001',)}
    """
    kinds = choose_region_types(census, kinds, state=state)
    apart = state if state in geographic_columns(census) else ""
    columns = list(dict.fromkeys([*filter(None, [apart]), *(kind.column for kind in kinds if kind.column)]))
    table = _list_combinations(census, columns, engine)
    there = table[apart] == island if apart else pl.repeat(False, table.height, eager=True)
    found: dict[str, tuple[str, ...]] = {}
    for kind in kinds:
        rows = table.filter(there if kind.island else ~there)
        if not kind.column:
            found[kind.name] = (NATION_ID,) if rows.height or not columns else ()
            continue
        codes = rows[kind.column].drop_nulls().unique().sort().to_list()
        lost = kind.match_nowhere(codes)
        found[kind.name] = tuple(code for code, out in zip(codes, lost, strict=True) if not out)
    return Regions({name: ids for name, ids in found.items() if ids}, apart, island)


def _list_combinations(census: "Census", columns: list[str], engine: Engine | None) -> pl.DataFrame:
    """Return the public combinations of these areas, as text."""
    if not columns:
        return pl.DataFrame()
    text = [pl.col(name).cast(pl.String) for name in columns]
    schema = census.schema
    if schema.geography.areas is None:
        counting = engine.census(census) if engine else census
        owners = area_record_types(census.schema)
        frames = [frame_of(counting.counts(record, columns)).select(text) for record in owners]
        return pl.concat(frames).unique()
    without = [off.name for off in schema.geography.off_spine if off.name in columns and not off.files]
    if without:
        raise InputError(
            f"the areas of {without[0]} are not listed",
            why="a region is shown whether or not somebody lives there, so regions must come from a public file",
            fix=f"give [geography.off_spine.{without[0]}] its files, or give its region type a budget of 0",
        )
    areas = read_ancestors(schema, census.folder)
    beside = [name for name in columns if name not in schema.spine]
    frame = collect_frame(attach_levels(schema, areas, beside, census.folder).select(text).unique())
    return _cast_as_records(census, frame)


def _cast_as_records(census: "Census", frame: pl.DataFrame) -> pl.DataFrame:
    """Return codes as the records write them: where their column holds integers, "01" is 1."""
    record = next(record.name for record in census.schema.records if not record.linked_to)
    types = census.scan(record, frame.columns).collect_schema()
    whole = [name for name in frame.columns if types[name].is_integer()]
    return frame.with_columns(pl.col(whole).cast(pl.Int64, strict=False).cast(pl.String)) if whole else frame
