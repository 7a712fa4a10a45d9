"""What a mechanism proposes without seeing a record: settings and tables that fit a schema, settings that reach goals."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from stirred.census.schema import RecordSchema, Schema, VariableSchema
from stirred.errors import InputError, PlanError

MAX_LEVELS = 40  # of a variable in a proposed table
_GOAL = re.compile(r"^\s*(mae|mape)?\s*(.+?)\s*(<=|≤)\s*([0-9.]+)\s*(%?)\s*$", re.IGNORECASE)
_CAP = re.compile(r"^\s*(.+?)\s*(<=|≤)\s*([0-9./]+)\s*$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """Settings that a schema suggests, each with its reason; no record was read for it, so it reveals nothing."""

    settings: Mapping[str, object]
    reasons: Mapping[str, str]  # by setting, and one for the tables
    tables: tuple[tuple[str, tuple[str, ...]], ...] = ()  # the record type and the variables of each
    undecided: tuple[str, ...] = ()  # what a person must decide
    files: Mapping[str, str] = field(default_factory=dict)  # texts of the files that settings name


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """Whether a new plan should begin with a mechanism, and the reason; only a schema was read for it."""

    chosen: bool
    reason: str


def find_root(schema: Schema) -> RecordSchema:
    """Return the record type that others are linked to, or the first that is linked to none."""
    homes = {record.linked_to for record in schema.records if record.linked_to}
    found = [record for record in schema.records if not record.linked_to]
    if not found:
        raise PlanError(
            "no plan can be proposed for this census",
            why="its schema has no record type",
            fix="describe its files first: stirred data describe FILE…",
        )
    return next((record for record in found if record.name in homes), found[0])


def list_areas(schema: Schema, record: RecordSchema) -> tuple[str, ...]:
    """Return the levels of the spine that records of a type have, coarsest first; raise where there are none."""
    found = list_areas_if_any(schema, record)
    if not found:
        raise PlanError(
            f"this mechanism cannot be proposed: {record.name} records have no geography",
            why="it protects where records are, and census.toml names no level of areas",
            fix='name the columns of areas, coarsest first: [geography] spine = ["region", "district"]; '
            "or publish tables, which need no areas: --mechanism gaussian-tables",
        )
    return found


def list_areas_if_any(schema: Schema, record: RecordSchema) -> tuple[str, ...]:
    """Return the levels of the spine that records of a type have, coarsest first, or none."""
    return tuple(level for level in schema.spine if level in record.names)


def list_tables(
    schema: Schema, record: RecordSchema, found: Sequence[VariableSchema]
) -> tuple[list[list[str]], str]:
    """Return tables of the coarsest area, if there is one, by each of these variables, and the reason."""
    level = list(list_areas_if_any(schema, record)[:1])
    tables = [[*level, variable.name] for variable in found] or ([level] if level else [])
    if level:
        return tables, "the coarsest level of the geography by each of the first categories"
    return tables, "each of the first categories; census.toml names no areas, and these tables need none"


def list_variables(schema: Schema, record: RecordSchema) -> Iterator[VariableSchema]:
    """Yield the variables that may be published: no identifiers, links, weights, decimals or areas."""
    beside = {off.name for off in schema.geography.off_spine}
    never = {record.id, record.household, record.household_from, record.weight, *schema.spine, *beside}
    never |= {name for name, _ in record.where}
    for variable in record.variables:
        if variable.name not in never and variable.kind != "number":
            yield variable


def choose_variables(schema: Schema, record: RecordSchema) -> list[VariableSchema]:
    """Return the variables of proposed tables: few listed levels first, then open text, then open numbers.

    Open numbers stand for the first two where there are none of these. A column with one level tells nothing apart, and an
    open one that is named like an identifier may be one.

    >>> from stirred.census.toml import parse_schema
    >>> kinds = {"year": [2021], "wave": {"tabulate": False}, "surname": {}}
    >>> kinds |= {"rent": {"bands": "1-2-5"}, "tenure": ["own", "rent"]}
    >>> schema = parse_schema({"record": {"household": {"variables": kinds}}})
    >>> [variable.name for variable in choose_variables(schema, find_root(schema))]
    ['tenure', 'rent']
    """
    kind = record.kinds.column if record.kinds else ""
    found = [
        variable
        for variable in list_variables(schema, record)
        if variable.name not in (record.size, kind)
        and (variable.level_count or 0) <= MAX_LEVELS
        and variable.level_count != 1
        and variable.tabulate
        and not (variable.levels is None and _named_like_an_identifier(variable.source))
    ]
    bands = [variable for variable in found if variable.bands]
    others = [variable for variable in found if not variable.bands]
    clear = [variable for variable in others if variable.levels is not None or variable.kind != "integer"]
    return [*sorted(clear or others, key=lambda variable: variable.levels is None), *bands]


def _named_like_an_identifier(column: str) -> bool:
    from stirred.census.describe import columns

    identifiers = (
        columns.ID_NAMES,
        columns.PERSON_ID_NAMES,
        columns.HOUSEHOLD_ID_NAMES,
        columns.PERSON_NUMBER_NAMES,
        columns.OF_PERSONS,
    )
    return any(pattern.search(column) for pattern in identifiers)


_DISTRICTS = re.compile(r"^(.+?)\s+in\s+(.+?)\s+districts(?:\s+of\s+([0-9,_]+))?$", re.IGNORECASE)
DISTRICT_PERSONS = 5_000  # of a district whose size a goal does not state


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """The mean absolute error that a table by these variables and one level of the geography may have.

    A goal for the worst-off names a ``group`` and ``districts`` instead, whose table a mechanism finds; ``areas`` is the
    number of areas that add up to one such district.
    """

    by: tuple[str, ...]
    limit: float
    group: str = ""
    districts: str = ""
    persons: int = 0
    areas: int = 1

    @staticmethod
    def parse(text: str) -> "Goal":
        """Read a goal as a person writes it.

        >>> Goal.parse("mae hispanic×county <= 2")
        Goal(by=('hispanic', 'county'), limit=2.0, group='', districts='', persons=0, areas=1)
        >>> str(Goal.parse("mae black voting age in packed districts <= 40"))
        'black voting age in packed districts of 5,000 persons'
        """
        found = _GOAL.match(text)
        if not found or float(found.group(4)) <= 0:
            raise InputError(
                "the goal cannot be read",
                why=f"{text!r}",
                fix='write for instance "mae hispanic×county <= 2", "mae total×block <= 3", or "mae black voting age in '
                'packed districts <= 40"',
            )
        metric, variables, _, number, percent = found.groups()
        if percent or (metric or "mae").lower() == "mape":
            raise InputError(
                "a goal is an absolute error",
                why="a relative one needs the counts, and shares are chosen without them",
                fix='write for instance "mae hispanic×county <= 2"',
            )
        if (worst := _DISTRICTS.match(variables.strip())) is not None:
            group, districts, persons = worst.groups()
            number_of = int(re.sub("[,_]", "", persons)) if persons else DISTRICT_PERSONS
            return Goal(
                by=(),
                limit=float(number),
                group=group.lower(),
                districts=districts.lower(),
                persons=number_of,
            )
        names = (name.strip() for name in re.split(r"[×*,]\s*|\s+x\s+|\s+by\s+", variables))
        return Goal(by=tuple(name for name in names if name and name != "total"), limit=float(number))

    def __str__(self) -> str:
        if self.group:
            return f"{self.group} in {self.districts} districts of {self.persons:,} persons"
        return " × ".join(self.by) if len(self.by) > 1 else f"total × {self.by[0]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cap:
    """The largest ε for a change of one attribute, or for a move inside an area of one level."""

    what: str
    epsilon: Fraction

    @staticmethod
    def parse(text: str) -> "Cap":
        """Read a limit as a person writes it.

        >>> Cap.parse("hispanic <= 12")
        Cap(what='hispanic', epsilon=Fraction(12, 1))
        """
        found = _CAP.match(text)
        try:
            epsilon = Fraction(found.group(3)) if found else Fraction(0)
        except (ValueError, ZeroDivisionError):
            epsilon = Fraction(0)
        if not found or epsilon <= 0:
            raise InputError(
                "the limit of ε cannot be read",
                why=f"{text!r}",
                fix='write an attribute or a level and its largest ε: "hispanic <= 12" or "county <= 14"',
            )
        return Cap(what=found.group(1), epsilon=epsilon)
