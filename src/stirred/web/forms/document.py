"""A plan as a document that forms change: read from its text, and written again as TOML."""

from collections.abc import Mapping
from typing import Any

from stirred.mechanisms.config import write_toml
from stirred.publish.plan.models import PlanConfig
from stirred.toml_text import parse_toml

Document = dict[str, Any]
ORDER = tuple(PlanConfig.model_fields)


def document_of(text: str) -> Document:
    """Return the document of a plan, with its mechanisms as a list."""
    found = dict(parse_toml(text))
    stated = found.get("mechanism", [])
    found["mechanism"] = [dict(stated)] if isinstance(stated, Mapping) else [dict(one) for one in stated]
    return found


def text_of(document: Mapping[str, Any]) -> str:
    """Return the plan as TOML: simple keys first, then tables in the order of the reference.

    >>> print(text_of({"title": "t", "mechanism": [{"name": "x", "rate": "1/2"}], "budget": {"owner": "o"}}), end="")
    title = "t"
    <BLANKLINE>
    [[mechanism]]
    name = "x"
    rate = "1/2"
    <BLANKLINE>
    [budget]
    owner = "o"
    """
    keys = [*(key for key in ORDER if key in document), *(key for key in document if key not in ORDER)]
    lines = [f"{key} = {write_toml(document[key])}" for key in keys if not _is_table(document[key])]
    for key in keys:
        if _is_table(document[key]):
            lines += _tables(key, document[key])
    return "\n".join(lines) + "\n"


def _is_table(value: object) -> bool:
    if isinstance(value, Mapping):
        return True
    return isinstance(value, list) and bool(value) and all(isinstance(item, Mapping) for item in value)


def _tables(name: str, value: object) -> list[str]:
    """Write a table or an array of tables; nested values of a [[mechanism]] stand in one line."""
    lines: list[str] = []
    several = isinstance(value, list)
    tables: list[Mapping[str, Any]] = value if isinstance(value, list) else [value]  # type: ignore[list-item]
    for table in tables:
        lines += ["", f"[[{name}]]" if several else f"[{name}]"]
        inline = name == "mechanism"
        lines += [
            f"{key} = {write_toml(inner)}" for key, inner in table.items() if inline or not _is_table(inner)
        ]
        for key, inner in table.items():
            if not inline and _is_table(inner):
                lines += _tables(f"{name}.{key}", inner)
    return lines
