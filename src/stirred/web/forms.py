"""Make forms from the settings of a mechanism, and read the settings of a form that was sent."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from stirred.census import Schema
from stirred.errors import InputError, did_you_mean
from stirred.mechanisms.config import MechanismConfig, read_extra, read_kind
from stirred.text_formats import TomlError, parse_toml, write_toml

# The fields of a form from the settings of a mechanism: one field a setting, its sentence as the help.

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
    label: str  # for people
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
    kind, optional = read_kind(field)
    if kind is bool:
        return "switch", optional
    if get_origin(kind) is Literal:
        return "choice", optional
    if get_origin(kind) is list:
        inner = get_args(kind)[0]
        if get_origin(inner) is list:
            return "lists", optional
        text = inner is str or (get_args(inner)[:1] == (str,) and hasattr(inner, "__metadata__"))
        levels = read_extra(field).get("levels_of")  # levels of a variable are typed, variables are ticked
        return ("variables" if text and not levels else "value"), optional
    if get_origin(kind) is dict:
        return "pairs", optional
    if kind is int:
        return "number", optional
    return ("text" if kind is str else "value"), optional


def _field(name: str, field: FieldInfo, settings: Mapping[str, object]) -> FormField | None:
    kind, optional = kind_of(field)
    choices = tuple(map(str, get_args(read_kind(field)[0]))) if kind == "choice" else ()
    if kind == "choice" and (
        len(choices) < 2 or not all(isinstance(c, str) for c in get_args(read_kind(field)[0]))
    ):
        return None  # it has one value only
    usual = None if field.is_required() else field.get_default(call_default_factory=True)
    value = settings.get(name, usual)
    told = read_extra(field)
    return FormField(
        name=name,
        label=str(told.get("label") or name.replace("_", " ")),
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


def format_value(kind: FieldKind, value: object) -> str:
    """Format a value as a person types it: a line for each inner list, an equals sign in pairs.

    >>> format_value("lists", [["county", "tenure"]]), format_value("pairs", {"rent": "1/10"})
    ('county tenure', 'rent = 1/10')
    >>> format_value("variables", ["a", "b"])
    'a b'
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


# Settings from a form that was sent: texts as the types of the mechanism's Config have them.

Form = Mapping[str, Sequence[str]]
SHOWN_FIELD = "shown"  # the names of the settings that a form has: others stay as they are
DEFAULT_SUFFIX = ".default"  # after the name of a list that has its default


def settings_of(config: type[MechanismConfig], form: Form, now: Mapping[str, object]) -> dict[str, object]:
    """Return the settings of a mechanism after a form, without defaults that were not stated."""
    found = dict(now)
    shown = set(form.get(SHOWN_FIELD, ()))
    for name, field in config.model_fields.items():
        if name not in shown:
            continue
        value = _value(name, field, form, now)
        usual = None if field.is_required() else field.get_default(call_default_factory=True)
        if value is None or (value == usual and name not in now and not field.is_required()):
            found.pop(name, None)
        else:
            found[name] = value
    return found


def last_text(form: Form, name: str, default: str = "") -> str:
    """Return the last text that was sent under a name."""
    return (form.get(name) or [default])[-1].replace("\r\n", "\n").strip()


def _value(name: str, field: FieldInfo, form: Form, now: Mapping[str, object]) -> object:
    """Return the value of one setting; None where it is left out."""
    kind, optional = kind_of(field)
    sent = form.get(NAME_PREFIX + name, ())
    if kind == "switch":
        return "on" in sent
    if kind == "variables":
        names = [word for text in sent for word in text.replace(",", " ").split()]
        if (NAME_PREFIX + name + DEFAULT_SUFFIX) in form or (optional and sent and not names):
            return None  # boxes of which none is ticked send nothing: that is an empty list, not the default
        before = now.get(name)
        same = isinstance(before, list) and sorted(map(str, before)) == sorted(names)
        return before if same else list(dict.fromkeys(names))
    text = last_text(form, NAME_PREFIX + name)
    if not text:
        return None if optional or not field.is_required() else ""
    if kind == "lists":
        lines = (line.replace("×", " ").replace(",", " ").split() for line in text.splitlines())
        return [line for line in lines if line]
    if kind == "pairs":
        return _pairs(name, text)
    if kind == "number":
        return int(text) if text.removeprefix("-").isdecimal() and len(text) < 20 else text
    return _toml(name, text) if kind == "value" else text


def _pairs(name: str, text: str) -> dict[str, object]:
    found: dict[str, object] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        key, equals, value = line.partition("=")
        if not equals:
            raise InputError(
                f"{name} takes a line for each pair", why="a line has no equals sign", fix="NAME = VALUE"
            )
        word = value.strip()
        found[key.strip()] = int(word) if word.isdecimal() and len(word) < 20 else word.strip('"')
    return found


def _toml(name: str, text: str) -> object:
    try:
        return parse_toml(f"v = {text}")["v"]
    except (TomlError, KeyError):
        raise InputError(
            f"{name} cannot be read", why="it is written as in a TOML file", fix=f"see the example of {name}"
        ) from None


# What an attacker is supposed to know and to want: asked for by assessments and frontiers.

DEFAULT_VARIABLES = (("sex", "age"), ("race", "hispanic"))  # the defaults of the command: known, and wanted


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackerForm:
    """The records that are attacked, what is known of them, and what is wanted; empty: as the command has it."""

    record: str = ""
    known: tuple[str, ...] = ()
    secret: tuple[str, ...] = ()

    @staticmethod
    def propose(schema: Schema) -> "AttackerForm":
        """Propose an attacker: empty where persons have the usual variables, else two variables of one type."""
        there = {variable.name for record in schema.records for variable in record.variables}
        if all(there & set(names) for names in DEFAULT_VARIABLES):
            return AttackerForm()
        for record in schema.records:
            own = (record.id, record.household, record.household_from, *schema.spine)
            names = [
                variable.name
                for variable in record.variables
                if variable.name not in own and variable.level_count is not None
            ]
            if len(names) > 1:
                return AttackerForm(record=record.name, known=(names[0],), secret=(names[-1],))
        return AttackerForm()

    @staticmethod
    def of(form: Form, schema: Schema) -> "AttackerForm":
        """Read the attacker of a form; refuse names that the codebook does not have."""
        record = last_text(form, "record")
        if record and record not in schema.record_types:
            raise _make_name_error(record, schema.record_types)
        names = [row.name for row in variables_of(schema) if not row.name.startswith("-")]
        found = [last_text(form, field).replace(",", " ").split() for field in ("known", "secret")]
        for name in (*found[0], *found[1]):
            if name not in names:
                raise _make_name_error(name, names)
        return AttackerForm(record=record, known=tuple(found[0]), secret=tuple(found[1]))

    @property
    def words(self) -> tuple[str, ...]:
        """Return the words of a command."""
        record = ("--record", self.record) if self.record else ()
        known = ("--known", *self.known) if self.known else ()
        return (*record, *known, *(("--secret", *self.secret) if self.secret else ()))

    @property
    def python(self) -> str:
        """Return the same in Python; empty where nothing was chosen.

        >>> AttackerForm(known=("size",)).python
        "DoubtSettings(known=('size',))"
        """
        chosen = {"record_type": self.record, "known": self.known, "secret": self.secret}
        told = ", ".join(f"{name}={value!r}" for name, value in chosen.items() if value)
        return f"DoubtSettings({told})" if told else ""


def _make_name_error(name: str, names: list[str] | tuple[str, ...]) -> InputError:
    return InputError(
        "the attacker is asked about something that the codebook does not have",
        why="records and variables are named as in the codebook",
        fix=did_you_mean(name, names),
    )
