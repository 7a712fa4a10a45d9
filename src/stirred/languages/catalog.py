"""The catalog files: one TOML file per language, read once, its tables joined to dotted keys."""

import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

CODES = ("en", "de", "fr", "es")
FORMS = {"one", "other"}  # the forms of a text that counts something

Entry = str | dict[str, str]
Catalog = MappingProxyType[str, Entry]


@cache
def catalog(code: str) -> Catalog:
    """Return all texts of a language by dotted key; a text that counts has the forms ``one`` and ``other``.

    >>> catalog("de")["about.name"]
    'Deutsch'
    """
    text = (files("stirred.languages") / f"{code}.toml").read_text(encoding="utf-8")
    return MappingProxyType(dict(_flat(tomllib.loads(text), "")))


def _flat(table: dict[str, Any], prefix: str) -> Iterator[tuple[str, Entry]]:
    for name, value in table.items():
        if isinstance(value, dict) and set(value) != FORMS:
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
