"""The fields of a form from the settings of a mechanism: one field a setting, its sentence as the help."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from stirred.census import Schema
from stirred.mechanisms.config import MechanismConfig, read_extra, write_toml

FieldKind = Literal["switch", "choice", "variables", "lists", "pairs", "number", "text", "value"]
NAME_PREFIX = "s."  # before the name of a setting in a form


@dataclass(frozen=True, slots=True, kw_only=True)
class VariableRow:
    """A variable that settings may name: an area, or a variable of a record type."""

    name: str
    label: str
    about: str  # its record type, and its levels


@dataclass(frozen=True, slots=True, kw_only=True)
class FormField:
    """One setting: how it is asked for, what it is now, and what it means."""

    name: str
    kind: FieldKind
    sentence: str
    required: bool
    optional: bool  # may be left out, and then has no value
    overrides: bool  # accepts what a guard would refuse: needs a written reason
    default: str  # in words
    value: object = None
    text: str = ""  # the value as it is typed
    choices: tuple[str, ...] = ()
    example: str = ""

    @property
    def field(self) -> str:
        """Return its name in a form."""
        return NAME_PREFIX + self.name

    @property
    def chosen(self) -> tuple[str, ...]:
        """Return the variables that are ticked."""
        return tuple(map(str, self.value)) if isinstance(self.value, list | tuple) else ()


def fields_of(config: type[MechanismConfig], settings: Mapping[str, object]) -> list[FormField]:
    """Return the fields of a mechanism with their current values, from its Config alone."""
    return [made for name, field in config.model_fields.items() if (made := _field(name, field, settings))]


def variables_of(schema: Schema) -> list[VariableRow]:
    """Return all variables of a codebook: areas first, coarsest first, then those of each record type."""
    rows: dict[str, VariableRow] = {}
    for area in schema.geography.spine:
        rows[area.name] = VariableRow(name=area.name, label=area.label, about="area")
    for off in schema.geography.off_spine:
        rows.setdefault(off.name, VariableRow(name=off.name, label=off.label, about="area beside the spine"))
    for record in schema.records:
        for variable in record.variables:
            if variable.name in (record.id, record.household, record.household_from):
                continue
            levels = variable.level_count
            told = f"{record.name}, {levels:,} levels" if levels is not None else f"{record.name}, open"
            if variable.name in rows:
                if not rows[variable.name].about.startswith("area"):
                    row = rows[variable.name]
                    rows[variable.name] = VariableRow(
                        name=row.name, label=row.label, about=f"{row.about}; {told}"
                    )
                continue
            rows[variable.name] = VariableRow(name=variable.name, label=variable.label, about=told)
    return list(rows.values())


def kind_of(field: FieldInfo) -> tuple[FieldKind, bool]:
    """Return how a setting is asked for, and whether it may have no value."""
    kind, optional = _type(field)
    if kind is bool:
        return "switch", optional
    if get_origin(kind) is Literal:
        return "choice", optional
    if get_origin(kind) is list:
        inner = get_args(kind)[0]
        if get_origin(inner) is list:
            return "lists", optional
        text = inner is str or (get_args(inner)[:1] == (str,) and hasattr(inner, "__metadata__"))
        return ("variables" if text else "value"), optional
    if get_origin(kind) is dict:
        return "pairs", optional
    if kind is int:
        return "number", optional
    return ("text" if kind is str else "value"), optional


def _field(name: str, field: FieldInfo, settings: Mapping[str, object]) -> FormField | None:
    kind, optional = kind_of(field)
    choices = tuple(map(str, get_args(_type(field)[0]))) if kind == "choice" else ()
    if kind == "choice" and (
        len(choices) < 2 or not all(isinstance(c, str) for c in get_args(_type(field)[0]))
    ):
        return None  # it has one value only
    usual = None if field.is_required() else field.get_default(call_default_factory=True)
    value = settings.get(name, usual)
    told = read_extra(field)
    return FormField(
        name=name,
        kind=kind,
        sentence=str(field.description),
        required=field.is_required(),
        optional=optional,
        overrides=bool(told.get("overrides")),
        default="" if field.is_required() or usual in (None, [], {}, "") else write_toml(usual).strip('"'),
        value=value,
        text=format_value(kind, value),
        choices=choices,
        example=format_value(kind, field.examples[0]) if field.examples else "",
    )


def _type(field: FieldInfo) -> tuple[Any, bool]:
    """Return the type of a setting without None and without its checks."""
    kind: Any = field.annotation
    optional = False
    if get_origin(kind) in (Union, UnionType):
        optional = type(None) in get_args(kind)
        kind = next(inner for inner in get_args(kind) if inner is not type(None))
    return (get_args(kind)[0] if hasattr(kind, "__metadata__") else kind), optional


def format_value(kind: FieldKind, value: object) -> str:
    """Format a value as a person types it: a line for each inner list, an equals sign in pairs.

    >>> format_value("lists", [["county", "tenure"]]), format_value("pairs", {"rent": "1/10"}), format_value("variables", ["a", "b"])
    ('county tenure', 'rent = 1/10', 'a b')
    """
    if value is None:
        return ""
    if kind == "lists" and isinstance(value, Sequence):
        return "\n".join(" ".join(map(str, line)) for line in value)
    if kind == "pairs" and isinstance(value, Mapping):
        return "\n".join(
            f"{key} = {inner if isinstance(inner, str) else write_toml(inner)}"
            for key, inner in value.items()
        )
    if kind == "variables" and isinstance(value, list | tuple):
        return " ".join(map(str, value))
    if kind == "value":
        return write_toml(value)
    return str(value)
