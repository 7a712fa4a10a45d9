"""Describe a census as frozen objects: record types, variables, geography and links; check that they agree."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

from stirred._support import FILE_NAME_RULE, is_file_name
from stirred.errors import SchemaError, did_you_mean

# Named spines that many censuses share.

SPINES: dict[str, tuple[str, ...]] = {
    "us": ("state", "county", "tract", "block_group", "block"),
    "us-national": ("nation", "state", "county", "tract", "block_group", "block"),
    "nuts": ("nuts0", "nuts1", "nuts2", "nuts3", "lau"),
}

# Characters of a US GEOID at each level: state 2, county 3, tract 6, block group 1 (the first digit of the block's 4).
GEOID_WIDTHS: dict[str, int] = {"state": 2, "county": 5, "tract": 11, "block_group": 12, "block": 15}
# Characters of a NUTS code at each level (Regulation (EC) No 1059/2003, Annex I): two letters, then one more each.
NUTS_WIDTHS: dict[str, int] = {"nuts0": 2, "nuts1": 3, "nuts2": 4, "nuts3": 5}


def preset_spine(preset: str) -> tuple[str, ...]:
    """Return the levels of a preset, coarsest first.

    >>> preset_spine("nuts")
    ('nuts0', 'nuts1', 'nuts2', 'nuts3', 'lau')
    """
    if preset not in SPINES:
        raise SchemaError(
            f"there is no geography preset {preset}",
            why="geography.preset names a spine that Stirred knows",
            fix=did_you_mean(preset, SPINES),
        )
    return SPINES[preset]


# The schema of a census: record types, variables, geography and links, as frozen objects.

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


# Labels of levels: the words of a codebook for its codes, and back.


def collect_labels(schema: Schema) -> dict[str, dict[str, dict[str, str]]]:
    """Return the labels of a codebook as record type → variable → code → label."""
    found = {
        record.name: {
            variable.name: dict(variable.labels) for variable in record.variables if variable.labels
        }
        for record in schema.records
    }
    return {name: labels for name, labels in found.items() if labels}


def find_code(word: str, labels: Mapping[str, str]) -> str:
    """Return the code that a word stands for: a code itself, or the code with this label in any case.

    >>> tenure = {"1": "owned", "3": "rented"}
    >>> find_code("Rented", tenure), find_code("1", tenure), find_code("other", tenure)
    ('3', '1', 'other')
    """
    if word in labels:
        return word
    found = [code for code, label in labels.items() if label.casefold() == word.casefold()]
    return found[0] if len(found) == 1 else word


def make_coder(schema: Schema) -> Callable[[str, str], str]:
    """Return a function from variable and level to its code; it returns the level where no one code fits."""
    records = collect_labels(schema).values()

    def code(variable: str, level: str) -> str:
        found = {find_code(level, labels[variable]) for labels in records if variable in labels} - {level}
        return found.pop() if len(found) == 1 else level

    return code


# Check that the parts of a schema fit together: names and links exist, geographies have no cycles.


def check_schema(schema: Schema) -> None:
    """Raise one error that lists everything in the schema that contradicts itself."""
    mistakes = [*_check_geography(schema), *_check_records(schema), *_check_rules(schema)]
    if mistakes:
        number = f"{len(mistakes)} mistake" + ("s" if len(mistakes) > 1 else "")
        raise SchemaError(
            f"the census schema has {number}", why="; ".join(mistakes), fix="correct the keys named here"
        )


def _check_geography(schema: Schema) -> Iterator[str]:
    names = schema.spine
    if len(set(names)) < len(names):
        yield "geography.spine: a level is named twice"
    beside = {off.name: off for off in schema.geography.off_spine}
    known = [*names, *beside]
    for off in beside.values():
        where = f"geography.off_spine.{off.name}"
        if off.name in names:
            yield f"{where}: is a level of the spine too"
        if off.of and off.of not in names:
            yield f"{where}.of: {off.of} is not a level of the spine, {did_you_mean(off.of, names or ('(no spine)',))}"
        if off.nests_in and off.nests_in not in known:
            yield f"{where}.nests_in: {off.nests_in} is unknown, {did_you_mean(off.nests_in, known)}"
        if bool(off.files) != bool(off.key):
            yield f"{where}: files and key go together"
        if off.files and not off.of:
            yield f"{where}.of: say which level the key belongs to"
        if off.kind == "grid" and off.cell_metres is None:
            yield f"{where}.cell_metres: a grid needs the length of its cells"
        seen, at = {off.name}, off.nests_in
        while at in beside:
            if at in seen:
                yield f"{where}.nests_in: the geographies nest in a cycle"
                break
            seen.add(at)
            at = beside[at].nests_in


def _check_records(schema: Schema) -> Iterator[str]:
    for record in schema.records:
        where = f"record.{record.name[:40]}"
        if not is_file_name(record.name, spaced=True):
            yield f"{where}: a record type is the name of a file too, which has {FILE_NAME_RULE}, or spaces between words"
        yield from _check_link(schema, record, where)
        yield from _check_shared(schema, record, where)
        sources = [variable.source for variable in record.variables]
        if len(set(sources)) < len(sources):
            yield f"{where}.variables: two variables read the same column"
        for variable in record.variables:
            here = f"{where}.variables.{variable.name}"
            if variable.kind in ("number", "text") and variable.levels is not None:
                yield f"{here}: {variable.kind} variables have no levels"
            if variable.kind == "category" and variable.levels is None:
                yield f"{here}: a category needs levels, a range or codes_from"
            if variable.kind == "integer" and any(
                isinstance(level, str) for level in (variable.levels or ())[:1]
            ):
                yield f"{here}: an integer variable needs integer levels"
            if not {*variable.not_applicable} <= {*(variable.all_levels or variable.not_applicable)}:
                yield f"{here}.not_applicable: lists a value that is not a level of the variable"
            if variable.missing.policy == "level" and variable.kind == "number":
                yield f"{here}.missing: a number has no levels; use the policy keep"
            if variable.levels is not None:
                text = isinstance(variable.levels[0], str)
                extra = [*variable.missing.codes, variable.missing.empty_as]
                if not text and variable.missing.policy == "keep":
                    extra = []  # NA and the like mark empty fields of numbers
                if any(isinstance(code, str) != text for code in extra if code is not None):
                    yield f"{here}.missing: codes are written as the levels are, all text or all integers"
        if record.kinds is not None:
            listed = record.kinds.all_levels
            if len(set(listed)) < len(listed):
                yield f"{where}.kind: a level stands for two kinds"
        reserved = {"count"} & {*record.names, *schema.spine}
        if reserved:
            yield f"{where}.variables: the name count is taken by tables of counts"


def _check_link(schema: Schema, record: RecordSchema, where: str) -> Iterator[str]:
    if not record.household:
        if record.linked_to:
            yield f"{where}.of: needs household, the column that holds the identifier"
        return
    if not record.linked_to:
        yield f"{where}.household: no record type with an id to link to"
    elif record.linked_to not in schema.record_types:
        yield f"{where}.of: no record type {record.linked_to}, {did_you_mean(record.linked_to, schema.record_types)}"
    elif record.linked_to == record.name:
        yield f"{where}.of: a record type cannot link to itself"
    elif not schema.record(record.linked_to).id:
        yield f"record.{record.linked_to}.id: needed, because {record.name} links to it"


def _check_shared(schema: Schema, record: RecordSchema, where: str) -> Iterator[str]:
    """Yield the contradictions of a record type that shares its file with households."""
    if record.household_from and record.household:
        yield f"{where}.household_from: these records link to another record type; keep one of the two keys"
    again = sorted({*record.leave_out} & {variable.source for variable in record.variables})
    if again:
        yield f"{where}.leave_out: {again[0]} is a variable too"
    home = next((home for home in schema.records if home.name == record.linked_to), None)
    if home is None or not home.household_from or home.source != record.source:
        return
    theirs = {variable.source for variable in home.variables}
    for variable in record.variables:
        if variable.source in theirs:
            yield f"{where}.variables.{variable.name}: is a variable of {home.name}, made from the same file"


def _check_rules(schema: Schema) -> Iterator[str]:
    for rule in schema.rules:
        where = f"rule {rule.name}"
        if rule.record_type not in schema.record_types:
            yield f"{where}: no record type {rule.record_type}, {did_you_mean(rule.record_type, schema.record_types)}"
            continue
        record = schema.record(rule.record_type)
        if not record.variables:
            continue
        own = {*record.names, record.size, record.weight, record.id, *schema.spine}
        own |= {off.name for off in schema.geography.off_spine}
        if record.linked_to in schema.record_types:
            own |= set(schema.record(record.linked_to).names)
        for name in rule.variables:
            if name not in own:
                yield f"{where}: {rule.record_type} has no variable {name}, {did_you_mean(name, own - {''})}"


# When the values of a column single out records: the one rule of describing a file and of the guards.

MAX_FEW_VALUES = 20  # a column with no more different values is a category, also where one of them is rare
MAX_SINGLE_SHARE = 0.01  # of the records with a value: those whose value no other record has
MAX_SINGLE_RECORDS = 20
MIN_RECORDS_JUDGED = 50  # in a smaller file nearly every column has values that occur once


def singles_out(*, filled: int, values: int, unique: int) -> bool:
    """Return whether too many of the records with a value have one of their own.

    >>> singles_out(filled=400, values=90, unique=5), singles_out(filled=400, values=12, unique=5)
    (True, False)
    """
    if filled < MIN_RECORDS_JUDGED or values <= MAX_FEW_VALUES:
        return False
    return unique > MAX_SINGLE_SHARE * filled or unique > MAX_SINGLE_RECORDS
