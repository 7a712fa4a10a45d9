"""The flags of a command from the settings of a mechanism: one flag a field, its sentence as the help."""

import argparse
from collections.abc import Mapping
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from stirred.errors import InputError
from stirred.mechanisms.config import MechanismConfig, parse_settings, read_extra, write_toml

DEST_PREFIX = "setting "  # no flag of the command itself can be called so


def add_flags(parser: argparse.ArgumentParser, config: type[MechanismConfig]) -> None:
    """Add one flag for each setting; a setting that is not typed has the default of its model."""
    group = parser.add_argument_group("settings (the keys of a [[mechanism]] in plan.toml)")
    for name, field in config.model_fields.items():
        options = _options(name, field)
        if options is not None:
            group.add_argument(
                _flag(name, field), dest=DEST_PREFIX + name, default=argparse.SUPPRESS, **options
            )


def settings(arguments: argparse.Namespace, config: type[MechanismConfig]) -> MechanismConfig:
    """Return the settings that were typed, checked as those of a plan."""
    values: dict[str, object] = {}
    for dest, value in vars(arguments).items():
        if dest.startswith(DEST_PREFIX):
            name = dest.removeprefix(DEST_PREFIX)
            values[name] = _pairs(name, value) if _is(config.model_fields[name], dict) else value
    return parse_settings(config, values, what="the command")


def _flag(name: str, field: FieldInfo) -> str:
    """Return ``--name``, or ``--no-name`` for a setting that is on by default."""
    own = read_extra(field).get("flag")
    return str(own) if own else f"--{'no-' if field.default is True else ''}{name.replace('_', '-')}"


def _options(name: str, field: FieldInfo) -> dict[str, Any] | None:
    """Return the options of argparse, or None for a setting that has one value only."""
    told, kind = read_extra(field), _kind(field)
    usual = told.get("flag_default_words", field.default)
    known = not field.is_required() and usual not in (None, [], {}, "") and not isinstance(usual, bool)
    text = str(told.get("flag_help", field.description)) + (f" (default: {usual})" if known else "")
    options: dict[str, Any] = {"help": text.replace("%", "%%")}
    if field.is_required():
        options["required"] = True
    if kind is bool:
        return options | {"action": "store_const", "const": field.default is not True}
    if get_origin(kind) is Literal:
        choices = get_args(kind)
        return options | {"choices": choices} if all(isinstance(c, str) for c in choices) else None
    metavar = name.upper() if kind in (str, int) else "VARIABLE"
    if get_origin(kind) is list:
        nested = get_origin(get_args(kind)[0]) is list
        return options | {
            "nargs": told.get("nargs", "+"),
            "action": "append" if nested else "extend",
            "metavar": metavar,
        }
    if get_origin(kind) is dict:
        return options | {"nargs": "+", "action": "extend", "metavar": "NAME=VALUE"}
    return options | {"type": int if kind is int else str, "metavar": metavar}


def _kind(field: FieldInfo) -> Any:
    """Return the type of a setting, without None and without its checks."""
    kind: Any = field.annotation
    if get_origin(kind) in (Union, UnionType):
        kind = next(inner for inner in get_args(kind) if inner is not type(None))
    return get_args(kind)[0] if hasattr(kind, "__metadata__") else kind


def _is(field: FieldInfo, kind: type) -> bool:
    return get_origin(_kind(field)) is kind


def _pairs(name: str, words: list[str]) -> Mapping[str, str]:
    found = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            raise InputError(
                f"--{name.replace('_', '-')} takes pairs",
                why=f"{write_toml(word)} has no equals sign",
                fix=f"--{name.replace('_', '-')} NAME=VALUE",
            )
        found[key] = value
    return found
