"""Models of census.toml as it is written; they are parsed strictly and turned into a frozen Schema at once."""

import re
from itertools import pairwise
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr, field_validator, model_validator

Code = StrictStr | StrictInt
Codes = list[StrictStr] | list[StrictInt]
Name = Annotated[str, Field(min_length=1, pattern=r"^[^\x00-\x1f]+$")]
Key = str | Annotated[list[Name], Field(min_length=1)]  # several columns are one key together
Span = range  # the model below has a field of that name
SPAN_PATTERN = re.compile(r"^(-?\d+)\.\.(-?\d+)$")


def parse_span(text: str) -> range | None:
    """Return a range of integers written with two dots, both ends included.

    >>> parse_span("0..115")
    range(0, 116)
    """
    found = SPAN_PATTERN.match(text.strip())
    return range(int(found[1]), int(found[2]) + 1) if found else None


class Strict(BaseModel):
    """A model that refuses unknown keys and shows no input in its errors."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True, frozen=True, defer_build=True)


class MissingModel(Strict):
    """``missing = {policy = "level", codes = [9], empty_as = 9}``."""

    policy: Literal["error", "level", "keep"] = "error"
    codes: Codes = []
    empty_as: Code | None = None

    @model_validator(mode="after")
    def _check_policy(self) -> "MissingModel":
        if self.empty_as is not None and self.policy != "level":
            raise ValueError('empty_as needs policy = "level"')
        return self


class CodesFrom(Strict):
    """``codes_from = {file = "race.csv", code = "code", label = "label"}``."""

    file: str
    code: str = ""  # the first column when not named
    label: str = ""
    type: Literal["text", "integer"] = "text"


class VariableModel(Strict):
    """A variable written in full, or in short: a list of levels, a range "0..115", or "integer", "number", "text"."""

    type: Literal["category", "integer", "number", "text"] | None = None
    column: str = ""
    label: str = ""
    levels: Codes | None = None
    range: str | tuple[StrictInt, StrictInt] | None = None
    codes_from: str | CodesFrom | None = None
    labels: dict[str, str] = {}
    missing: Literal["error", "level", "keep"] | MissingModel = "error"
    imputed: str = ""
    not_applicable: Codes = []
    bands: Literal["1-2-5", "5-years"] | list[StrictInt] | None = None
    tabulate: bool = True

    @model_validator(mode="before")
    @classmethod
    def _expand_short(cls, given: object) -> object:
        if isinstance(given, list):
            return {"levels": given}
        if isinstance(given, str):
            return {"range": given} if parse_span(given) is not None else {"type": given}
        return given

    @field_validator("range")
    @classmethod
    def _parse_levels(cls, given: object) -> object:
        if isinstance(given, str) and parse_span(given) is None:
            raise ValueError('write a range as "0..115" or [0, 115]')
        found = _parse_range(given)
        if not found:
            raise ValueError("the range is empty: write the smaller end first")
        if max(abs(found[0]), abs(found[-1])) >= 1 << 62:
            raise ValueError("the range has numbers of more than 62 bits")
        return given

    @model_validator(mode="after")
    def _check_source(self) -> "VariableModel":
        sources = ("levels", "range", "codes_from", "bands")
        given = [name for name in sources if getattr(self, name) is not None]
        if len(given) > 1:
            raise ValueError(
                "levels come from one of levels, range, codes_from and bands, not from " + " and ".join(given)
            )
        limits = self.bands
        if isinstance(limits, list) and (not limits or any(b <= a for a, b in pairwise(limits))):
            raise ValueError("bands are lower limits that rise: [0, 1000, 5000]")
        if self.levels is not None and len(set(self.levels)) < len(self.levels):
            raise ValueError("a level is listed twice")
        if self.levels == []:
            raise ValueError("the list of levels is empty; leave it out for an open variable")
        return self

    def span(self) -> Span | None:
        """Return the range of integers, when the levels are one."""
        return None if self.range is None else _parse_range(self.range)


def _parse_range(given: object) -> range:
    if isinstance(given, str):
        return parse_span(given) or range(0)
    if isinstance(given, tuple):
        return range(given[0], given[1] + 1)
    return range(1)


class LevelModel(Strict):
    """A level of the spine: ``county = {column = "geoid", first = 5}``."""

    column: str = ""
    columns: list[str] = []
    first: Annotated[int, Field(ge=1)] | None = None
    label: str = ""


class OffSpineModel(Strict):
    """A geography beside the spine; with ``files`` and ``key`` it is looked up by the code of the level ``of``."""

    label: str = ""
    of: str = ""
    nests_in: str = ""
    kind: Literal["areas", "grid"] = "areas"
    cell_metres: Annotated[int, Field(ge=1)] | None = None
    files: list[str] = []
    key: str = ""
    column: str = ""


class AreasModel(Strict):
    """A file with one row per area: its code and its parent's."""

    files: Annotated[list[str], Field(min_length=1)]
    code: str = "code"
    parent: str = "parent"
    level: str = ""
    label: str = ""


class GeographyModel(Strict):
    """The spine by preset or by names, coarsest first."""

    preset: str = ""
    spine: list[Name] = []
    code: str = ""  # one column that holds the whole code; the preset gives the length of each level
    type: Literal["text", "integer", ""] = ""
    level: dict[str, LevelModel] = {}
    off_spine: dict[str, OffSpineModel] = {}
    areas: AreasModel | None = None
    shapes: str = ""  # a file of borders for maps, GeoJSON or GeoPackage
    shapes_level: str = ""  # the level that its areas are; the finest when left out
    shapes_key: str = ""  # the property that holds their code; the level's name when left out

    @model_validator(mode="after")
    def _check_shape(self) -> "GeographyModel":
        if not self.shapes and (self.shapes_level or self.shapes_key):
            raise ValueError("shapes_level and shapes_key need shapes, a file of borders")
        return self


class KindModel(Strict):
    """``kind = {column = "kind", occupied = ["occupied"], vacant = ["vacant"], group_quarters = ["gq"]}``."""

    column: str
    occupied: list[Code] = []
    vacant: list[Code] = []
    group_quarters: list[Code] = []
    housing_units: list[Code] = []


class RecordModel(Strict):
    """A record type: files, how to read them, identifiers, links and variables."""

    files: list[str] = []
    format: str = ""
    separator: str = ""
    header: bool = True
    encoding: Literal["utf8", "latin1"] = "utf8"
    decimal: Literal[".", ","] = "."
    table: str = ""
    sheet: str = ""
    header_row: Annotated[int, Field(ge=1)] = 1
    ddi: str = ""
    columns: list[str] = []
    id: Key = ""
    household: Key = ""
    household_from: Key = ""
    of: str = ""
    leave_out: list[str] = []
    size: str = ""
    weight: str = ""
    kind: KindModel | None = None
    where: dict[str, Codes] = {}
    variables: dict[Name, VariableModel] = {}


class RuleModel(Strict):
    """``forbid = {relationship = ["householder"], age = "0..14"}``, ``at_most = ["vap", "pop"]``, or total and parts."""

    name: Name
    record: str
    forbid: dict[str, str | Codes] = {}
    at_most: tuple[str, str] | None = None
    total: str = ""
    parts: list[str] = []

    @model_validator(mode="after")
    def _check_form(self) -> "RuleModel":
        forms = [bool(self.forbid), self.at_most is not None, bool(self.total)]
        if sum(forms) != 1:
            raise ValueError("a rule has exactly one of forbid, at_most, and total with parts")
        if bool(self.total) != bool(self.parts):
            raise ValueError("total and parts go together")
        if any(isinstance(v, str) and parse_span(v) is None for v in self.forbid.values()):
            raise ValueError('forbid takes a list of levels or a range as "0..14"')
        return self


class CensusModel(Strict):
    """The whole file."""

    format: Literal[1] = 1
    name: str = "census"
    label: str = ""
    largest_household: Annotated[int, Field(ge=1)] | None = None
    copies: Annotated[int, Field(ge=1)] = 1
    geography: GeographyModel = GeographyModel()
    record: dict[Name, RecordModel] = {}
    rule: list[RuleModel] = []
