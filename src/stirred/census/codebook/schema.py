"""The schema of a census: record types, variables, geography and links, as frozen objects."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

from stirred.errors import SchemaError, did_you_mean

Kind = Literal["category", "integer", "number", "text"]
MissingPolicy = Literal["error", "level", "keep"]
Levels = tuple[str, ...] | tuple[int, ...] | range


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """The meaning of an empty field or a missing code: an error, a separate level, or not in universe (kept empty)."""

    policy: MissingPolicy = "error"
    codes: tuple[str, ...] | tuple[int, ...] = ()
    empty_as: str | int | None = None  # the level that stands for an empty field, under policy "level"


ROUND_LIMITS = (
    0,
    *(digit * 10**power for power in range(9) for digit in (1, 2, 5)),
    10**9,
)  # the bands "1-2-5"
NAMED_LIMITS: Mapping[str, tuple[int, ...]] = {
    "1-2-5": ROUND_LIMITS,
    "5-years": tuple(
        range(0, 90, 5)
    ),  # of ages, as the United Nations and Eurostat publish them: 85 and over is one
}


def band_names(limits: tuple[int, ...]) -> tuple[str, ...]:
    """Return the names of the bands between lower limits, the smallest first.

    >>> band_names((0, 1000, 5000))
    ('<0', '0-<1000', '1000-<5000', '>=5000')
    """
    inner = (f"{low}-<{high}" for low, high in pairwise(limits))
    return (f"<{limits[0]}", *inner, f">={limits[-1]}")


@dataclass(frozen=True, slots=True, kw_only=True)
class VariableSchema:
    """One column of a record type: its levels (listed, a range, or open) and what a missing value means.

    >>> VariableSchema(name="size", kind="integer", levels=range(1, 8)).level_count
    7
    """

    name: str
    column: str = ""  # its name in the file, when that differs
    kind: Kind = "text"
    levels: Levels | None = None
    labels: tuple[tuple[str, str], ...] = ()
    label: str = ""
    missing: Missing = field(default_factory=Missing)
    imputed: str = ""  # the column that says whether the value was imputed
    not_applicable: tuple[str | int, ...] = ()  # levels of records that questions about it leave out
    bands: tuple[
        int, ...
    ] = ()  # lower limits by which a number is coarsened when it is read; its levels are the bands
    tabulate: bool = field(
        default=True, repr=False
    )  # whether a plan may propose a table by it; says nothing of records

    @property
    def source(self) -> str:
        """Return the name of the column in the file."""
        return self.column or self.name

    @property
    def all_levels(self) -> Levels | None:
        """Return the levels a record may have, missing codes included where the policy makes them levels."""
        if self.levels is None or self.missing.policy != "level":
            return self.levels
        more = [code for code in self._missing_levels if code not in self.levels]
        return self.levels if not more else (*self.levels, *more)

    @property
    def level_count(self) -> int | None:
        """Return how many levels there are, or None when the variable is open."""
        levels = self.all_levels
        return None if levels is None else len(levels)

    @property
    def _missing_levels(self) -> tuple[str | int, ...]:
        empty = self.missing.empty_as
        return tuple(dict.fromkeys((*self.missing.codes, *(() if empty is None else (empty,)))))


@dataclass(frozen=True, slots=True, kw_only=True)
class Area:
    """A level of the spine: where its code comes from (columns joined, then cut to the first characters)."""

    name: str
    columns: tuple[str, ...] = ()
    first: int | None = None
    label: str = ""

    @property
    def is_derived(self) -> bool:
        """Return whether the code is composed from other columns of the file."""
        return self.first is not None or len(self.columns) > 1


@dataclass(frozen=True, slots=True, kw_only=True)
class OffSpine:
    """A geography beside the spine: places, voting districts, a 1-km grid; several may overlap.

    ``of`` is the level of the spine that determines it (a block lies in one voting district), or empty when each
    record has its own code (a grid cell may cross areas). ``nests_in`` is a level whose borders it respects.
    """

    name: str
    of: str = ""
    nests_in: str = ""
    kind: Literal["areas", "grid"] = "areas"
    cell_metres: int | None = None
    label: str = ""
    files: tuple[str, ...] = ()
    key: str = ""
    column: str = ""
    format: str = field(default="", repr=False)  # of the files, where their names do not tell it


@dataclass(frozen=True, slots=True, kw_only=True)
class Areas:
    """A file of all areas with their parents: one row per area."""

    files: tuple[str, ...]
    code: str = "code"
    parent: str = "parent"
    level: str = ""
    label: str = ""
    format: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeFile:
    """A public file of borders, for the maps of reports: the level its areas are, and the property with their code."""

    file: str
    level: str
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Geography:
    """The spine, coarsest level first, and the geographies beside it."""

    spine: tuple[Area, ...] = ()
    off_spine: tuple[OffSpine, ...] = ()
    areas: Areas | None = None
    typed_as: Literal["text", "integer", ""] = ""  # of the codes; empty: as the files have them
    shapes: ShapeFile | None = field(default=None, repr=False)  # no part of the input of a release

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the spine's levels, coarsest first."""
        return tuple(level.name for level in self.spine)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kinds:
    """Which levels of a column mark occupied homes, vacant ones and group quarters.

    ``housing_units`` are levels of homes that may be occupied or vacant; their size then decides.
    """

    column: str
    occupied: tuple[str | int, ...] = ()
    vacant: tuple[str | int, ...] = ()
    group_quarters: tuple[str | int, ...] = ()
    housing_units: tuple[str | int, ...] = ()

    @property
    def all_levels(self) -> tuple[str | int, ...]:
        """Return every level that stands for some kind."""
        return (*self.occupied, *self.vacant, *self.group_quarters, *self.housing_units)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """The files of a record type and how to read them."""

    files: tuple[str, ...] = ()
    format: str = ""
    separator: str = ""
    header: bool = True
    encoding: str = "utf8"
    decimal: Literal[".", ","] = "."  # the mark in numbers of delimited text
    table: str = ""  # of a database
    sheet: str = ""  # of a workbook; its only visible one when empty
    header_row: int = 1  # of a sheet: the row with the names of the columns
    ddi: str = ""
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordSchema:
    """One record type: its files, identifier, link to its household, and variables."""

    name: str
    source: Source = field(default_factory=Source)
    variables: tuple[VariableSchema, ...] = ()
    id: str = ""
    household: str = ""  # the column that holds the id of the linked record
    linked_to: str = ""  # the record type linked to
    household_from: str = ""  # the column of a person file whose values are the households
    # keys of several columns: the name of the column that is made of them, and the columns
    keys: tuple[tuple[str, tuple[str, ...]], ...] = ()
    leave_out: tuple[str, ...] = ()  # columns of the files that are not variables
    size: str = ""  # the variable that says how many persons live there
    weight: str = ""
    kinds: Kinds | None = None
    where: tuple[tuple[str, tuple[str | int, ...]], ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of its variables."""
        return tuple(variable.name for variable in self.variables)

    def variable(self, name: str) -> VariableSchema:
        """Return the variable of that name."""
        for variable in self.variables:
            if variable.name == name:
                return variable
        raise SchemaError(
            f"{self.name} records have no variable {name}",
            why="the schema declares none of that name",
            fix=did_you_mean(name, self.names or ("(none declared)",)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class EditRule:
    """A rule that every census keeps: a forbidden combination, a part that is at most its whole, or a sum.

    ``forbid`` lists levels by variable: no record has all of them at once. ``at_most`` is (smaller, larger).
    ``total`` equals the sum of ``parts``.
    """

    name: str
    record_type: str
    forbid: tuple[tuple[str, tuple[str | int, ...] | range], ...] = ()
    at_most: tuple[str, str] | None = None
    total: str = ""
    parts: tuple[str, ...] = ()

    @property
    def variables(self) -> tuple[str, ...]:
        """Return the variables that the rule names."""
        named = [name for name, _ in self.forbid]
        return (*named, *(self.at_most or ()), *((self.total,) if self.total else ()), *self.parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """The description of a census; nothing in it comes from the records.

    >>> schema = Schema(name="toy", geography=Geography(spine=(Area(name="state"), Area(name="county"))))
    >>> schema.spine
    ('state', 'county')
    """

    name: str
    geography: Geography = field(default_factory=Geography)
    records: tuple[RecordSchema, ...] = ()
    rules: tuple[EditRule, ...] = ()
    largest_household: int | None = None
    copies: int = 1
    label: str = ""

    @property
    def spine(self) -> tuple[str, ...]:
        """Return the names of the spine's levels, coarsest first."""
        return self.geography.names

    @property
    def record_types(self) -> tuple[str, ...]:
        """Return the names of the record types."""
        return tuple(record.name for record in self.records)

    def record(self, name: str) -> RecordSchema:
        """Return the record type of that name."""
        for record in self.records:
            if record.name == name:
                return record
        raise SchemaError(
            f"the census has no record type {name}",
            why="the schema declares none of that name",
            fix=did_you_mean(name, self.record_types or ("(none)",)),
        )
