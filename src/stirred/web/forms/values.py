"""Settings from a form that was sent: texts as the types of the mechanism's Config have them."""

from collections.abc import Mapping, Sequence

from pydantic.fields import FieldInfo

from stirred.errors import InputError
from stirred.mechanisms.config import MechanismConfig
from stirred.toml_text import TomlError, parse_toml
from stirred.web.forms.fields import NAME_PREFIX, kind_of

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
