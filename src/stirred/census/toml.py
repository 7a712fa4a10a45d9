"""Read census.toml, or a dictionary of the same shape, into a Schema; all mistakes are reported at once."""

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Literal, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StrictInt,
    StrictStr,
    ValidationError,
    field_validator,
    model_validator,
)

from stirred.census.schema import (
    GEOID_WIDTHS,
    NAMED_LIMITS,
    NUTS_WIDTHS,
    Area,
    Areas,
    EditRule,
    Geography,
    Kind,
    Kinds,
    Levels,
    Missing,
    OffSpine,
    RecordSchema,
    Schema,
    ShapeFile,
    Source,
    VariableSchema,
    band_names,
    preset_spine,
)
from stirred.errors import SchemaError, did_you_mean
from stirred.roots import require_names
from stirred.text_formats import CsvTable, TomlError, parse_toml, read_plain_text

# Models of census.toml as it is written; they are parsed strictly and turned into a frozen Schema at once.

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


# Turn the parsed file into a Schema.


def load_schema(path: Path) -> Schema:
    """Return the schema in a TOML file; a folder without census.toml may have the files of a known format."""
    try:
        text = read_plain_text(path)
    except OSError as error:
        from stirred.census import bureau  # the formats load libraries that a census.toml does not need

        known = (
            bureau.recognise_folder(path.parent)
            if path.name == bureau.CENSUS_TOML and not path.exists()
            else None
        )
        if known is not None:
            return known
        raise SchemaError(
            f"cannot open {path.name}",
            why=error.strerror or "the system gives no reason",
            fix="check the path",
        ) from None
    except UnicodeDecodeError:
        raise SchemaError(
            f"{path.name} is not a text file", why="its bytes are not UTF-8", fix="save it as UTF-8"
        ) from None
    return loads(text, folder=path.parent, name=path.name)


def loads(text: str, *, folder: Path, name: str = "census.toml") -> Schema:
    """Return the schema in a text; the files that it names lie where the folder is."""
    try:
        document = parse_toml(text)
    except TomlError as error:
        raise SchemaError(
            f"{name} is not valid TOML", why=str(error), fix="correct the line that the reason names"
        ) from None
    return parse_schema(document, folder=folder)


def parse_schema(document: Mapping[str, object], *, folder: Path | None = None) -> Schema:
    """Return the schema a dictionary describes.

    >>> schema = parse_schema({"geography": {"spine": ["state"]},
    ...                 "record": {"household": {"id": "h", "variables": {"size": "1..7", "tenure": ["own", "rent"]}}}})
    >>> schema.record("household").variable("size").levels
    range(1, 8)
    >>> parse_schema({"geografy": {}})
    Traceback (most recent call last):
    ...
    stirred.errors.SchemaError: the census schema has 1 mistake
      why: geografy: unknown key, did you mean geography?
      fix: correct the keys named here
    """
    try:
        model = CensusModel.model_validate(document)
    except ValidationError as error:
        mistakes = list(_list_mistakes(error))
        number = f"{len(mistakes)} mistake" + ("s" if len(mistakes) > 1 else "")
        raise SchemaError(
            f"the census schema has {number}", why="; ".join(mistakes), fix="correct the keys named here"
        ) from None
    require_names(_named_files(model), folder)
    from stirred.census.schema import check_schema

    schema = Schema(
        name=model.name,
        label=model.label,
        geography=_parse_geography(model.geography),
        records=tuple(_parse_record(name, record, model, folder) for name, record in model.record.items()),
        rules=tuple(_parse_rule(rule) for rule in model.rule),
        largest_household=model.largest_household,
        copies=model.copies,
    )
    check_schema(schema)
    return schema


def _named_files(model: CensusModel) -> Iterator[str]:
    """Return every file that a census.toml names; tables of codes are judged when they are read."""
    geography = model.geography
    for record in model.record.values():
        yield from (*record.files, record.ddi)
    for beside in geography.off_spine.values():
        yield from beside.files
    if geography.areas is not None:
        yield from geography.areas.files
    yield geography.shapes


def _list_mistakes(error: ValidationError) -> Iterator[str]:
    for item in error.errors(include_url=False, include_context=False, include_input=False):
        path = [part for part in item["loc"] if not _is_branch(part)]
        where = ".".join(map(str, path))
        if item["type"] == "extra_forbidden":
            known = _list_known_keys(path[:-1])
            yield f"{where}: unknown key, {did_you_mean(str(path[-1]), known)}"
        else:
            yield f"{where or 'census.toml'}: {item['msg'].removeprefix('Value error, ')}"


def _is_branch(part: str | int) -> bool:
    """Return whether a step of the path is pydantic's name for a branch of a union and not a key."""
    return isinstance(part, str) and (part.endswith("Model") or part == "CodesFrom" or "[" in part)


def _list_known_keys(path: list[str | int]) -> list[str]:
    models: list[type[BaseModel]] = [CensusModel]
    for part in path:
        deeper = []
        for model in models:
            if isinstance(part, str) and part in model.model_fields:
                deeper += _models_in(model.model_fields[part].annotation)
        models = deeper or models  # a name of a record type or an index keeps the models of the container
    return sorted({key for model in models for key in model.model_fields})


def _models_in(annotation: object) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for inner in get_args(annotation) for model in _models_in(inner)]


def _parse_geography(model: GeographyModel) -> Geography:
    names = tuple(model.spine) or (preset_spine(model.preset) if model.preset else ())
    if model.preset:
        preset_spine(model.preset)
    widths = {**GEOID_WIDTHS, **NUTS_WIDTHS}
    unknown = [name for name in model.level if name not in names]
    if unknown:
        raise SchemaError(
            f"geography.level.{unknown[0]} is not a level of the spine",
            why="only levels of the spine can be described",
            fix=did_you_mean(unknown[0], names or ("(no spine)",)),
        )

    def area(name: str) -> Area:
        level = model.level.get(name)
        if level is None and model.code:
            return Area(name=name, columns=(model.code,), first=widths.get(name))
        if level is None:
            return Area(name=name)
        columns = tuple(level.columns) or ((level.column,) if level.column else ())
        return Area(name=name, columns=columns, first=level.first, label=level.label)

    return Geography(
        spine=tuple(area(name) for name in names),
        off_spine=tuple(
            OffSpine(name=name, **{**dict(m), "files": tuple(m.files)}) for name, m in model.off_spine.items()
        ),
        areas=Areas(**{**dict(model.areas), "files": tuple(model.areas.files)}) if model.areas else None,
        typed_as=model.type,
        shapes=_parse_shapes(model, names),
    )


def _parse_shapes(model: GeographyModel, spine: tuple[str, ...]) -> ShapeFile | None:
    if not model.shapes:
        return None
    level = model.shapes_level or (spine[-1] if spine else "")
    if level not in spine:
        raise SchemaError(
            f"geography.shapes_level is {level or 'not given'}",
            why="shapes are the borders of the areas of one level of the spine",
            fix=did_you_mean(level, spine or ("(no spine)",)),
        )
    return ShapeFile(file=model.shapes, level=level, key=model.shapes_key or level)


def _parse_record(name: str, model: RecordModel, census: CensusModel, folder: Path | None) -> RecordSchema:
    home = _find_flat_home(name, model, census)
    household = key_name(model.household) or (key_name(census.record[home].household_from) if home else "")
    linked_to = model.of or home or ("household" if household and "household" in census.record else "")
    if household and not linked_to:
        linked_to = next((n for n, r in census.record.items() if n != name and r.id), "")
    kinds = None
    if model.kind:
        k = model.kind
        kinds = Kinds(
            column=k.column,
            occupied=tuple(k.occupied),
            vacant=tuple(k.vacant),
            group_quarters=tuple(k.group_quarters),
            housing_units=tuple(k.housing_units),
        )
    return RecordSchema(
        name=name,
        source=_parse_source(model if model.files else _find_partner(name, home, census) or model),
        variables=tuple(_parse_variable(key, variable, folder) for key, variable in model.variables.items()),
        id=key_name(model.id) or key_name(model.household_from),
        household=household,
        linked_to=linked_to,
        household_from=key_name(model.household_from),
        keys=_parse_keys(model, *([census.record[home]] if home else [])),
        leave_out=tuple(model.leave_out),
        size=model.size,
        weight=model.weight,
        kinds=kinds,
        where=tuple((key, tuple(codes)) for key, codes in model.where.items()),
    )


def key_name(columns: str | Sequence[str]) -> str:
    """Return the name of a key: its column, or of several columns the one that is made of them.

    >>> key_name("hid"), key_name(["CODUSU", "NRO_HOGAR"])
    ('hid', 'CODUSU+NRO_HOGAR')
    """
    return columns if isinstance(columns, str) else "+".join(columns)


def _parse_keys(*models: RecordModel) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the keys of several columns; persons have also that of the households made from their file."""
    given = [key for model in models for key in (model.id, model.household, model.household_from)]
    several = {key_name(key): tuple(key) for key in given if not isinstance(key, str) and len(key) > 1}
    return tuple(several.items())


def _find_flat_home(name: str, model: RecordModel, census: CensusModel) -> str:
    """Return the household record type made from the file of these persons, or empty text."""
    for other, home in census.record.items():
        same = not model.files or not home.files or model.files == home.files
        asked = model.of in ("", other) and model.household in ("", home.household_from)
        if other != name and home.household_from and not model.household_from and same and asked:
            return other
    return ""


def _find_partner(name: str, home: str, census: CensusModel) -> RecordModel | None:
    """Return the other record type of a shared file: the households' or the persons' model, or None."""
    if home:
        return census.record[home]
    if census.record[name].household_from:
        persons = (
            r for other, r in census.record.items() if r.files and _find_flat_home(other, r, census) == name
        )
        return next(persons, None)
    return None


def _parse_source(model: RecordModel) -> Source:
    return Source(
        files=tuple(model.files),
        format=model.format,
        separator=model.separator,
        header=model.header,
        encoding=model.encoding,
        decimal=model.decimal,
        table=model.table,
        sheet=model.sheet,
        header_row=model.header_row,
        ddi=model.ddi,
        columns=tuple(model.columns),
    )


def _parse_variable(name: str, model: VariableModel, folder: Path | None) -> VariableSchema:
    labels = tuple(model.labels.items())
    levels: Levels | None = model.span()
    if model.levels is not None:
        levels = tuple(model.levels)  # type: ignore[assignment]
    elif model.codes_from is not None:
        levels, from_file = _parse_codes(name, model.codes_from, folder)
        labels = labels or from_file
    limits = NAMED_LIMITS[model.bands] if isinstance(model.bands, str) else tuple(model.bands or ())
    kind: Kind
    if limits:
        kind, levels = "category", band_names(limits)  # the number itself never goes further than its file
    elif model.type is not None:
        kind = model.type
    elif levels is None:
        kind = "text"
    else:
        kind = "integer" if isinstance(levels, range) else "category"
    given = model.missing if isinstance(model.missing, MissingModel) else MissingModel(policy=model.missing)
    codes = (
        tuple(map(str, given.codes)) if limits else tuple(given.codes)
    )  # bands are text, and so is a code beside them
    return VariableSchema(
        name=name,
        column=model.column,
        kind=kind,
        levels=levels,
        labels=labels,
        label=model.label,
        missing=Missing(policy=given.policy, codes=codes, empty_as=given.empty_as),  # type: ignore[arg-type]
        imputed=model.imputed,
        not_applicable=tuple(model.not_applicable),
        bands=limits,
        tabulate=model.tabulate,
    )


def _parse_codes(
    name: str, given: str | CodesFrom, folder: Path | None
) -> tuple[Levels, tuple[tuple[str, str], ...]]:
    source = CodesFrom(file=given) if isinstance(given, str) else given
    path = (folder or Path()) / source.file
    try:
        text = read_plain_text(path, encoding="utf-8-sig")
        sample = text.partition("\n")[0]
        lines = io.StringIO(text, newline="")
        table = CsvTable(lines, delimiter=next((c for c in "|;\t" if c in sample), ","))
        header = table.header
        code = source.code or (header[0] if header else "")
        label = source.label or (header[1] if len(header) > 1 and not source.code else "")
        rows = []
        for row in table.rows():
            if None in row or None in row.values():
                raise csv.Error  # a line with more or fewer fields than the header
            rows.append({name: row.get(name, "") for name in (code, label)})
    except (OSError, UnicodeDecodeError, csv.Error):
        raise SchemaError(
            f"cannot read the codes of {name}",
            why=f"no readable file {source.file}",
            fix="check the path, relative to census.toml, and save the file as UTF-8",
        ) from None
    for wanted in filter(None, (code, label)):
        if wanted not in header:
            raise SchemaError(
                f"the code file of {name} has no column {wanted}",
                why="census.toml names this column",
                fix=did_you_mean(wanted, header or ("(empty)",)),
            )
    codes = [row[code] for row in rows]
    if not codes or len(set(codes)) < len(codes):
        raise SchemaError(
            f"the code file of {name} lists " + ("a code twice" if codes else "no codes"),
            why="codes are the levels of a variable: at least one, each different",
            fix="list each code once",
        )
    labels = tuple((row[code], row[label] or "") for row in rows) if label else ()
    if source.type == "integer":
        try:
            return tuple(int(c) for c in codes), labels
        except ValueError:
            raise SchemaError(
                f"the code file of {name} holds codes that are not integers",
                why='the variable has type = "integer"',
                fix='correct the codes, or set type = "text"',
            ) from None
    return tuple(codes), labels


def _parse_rule(model: RuleModel) -> EditRule:
    forbid = []
    for key, value in model.forbid.items():
        levels = (parse_span(value) or range(0)) if isinstance(value, str) else tuple(value)
        forbid.append((key, levels))
    return EditRule(
        name=model.name,
        record_type=model.record,
        forbid=tuple(forbid),  # type: ignore[arg-type]
        at_most=model.at_most,
        total=model.total,
        parts=tuple(model.parts),
    )
