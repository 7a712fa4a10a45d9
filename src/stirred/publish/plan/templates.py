"""Commented plans to start from, written from the settings of the mechanism."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeGuard

from pydantic.fields import FieldInfo

from stirred.mechanisms.config import write_toml
from stirred.publish.plan.models import PLACEHOLDERS, PlanConfig
from stirred.toml_text import parse_toml

if TYPE_CHECKING:
    from stirred.mechanisms.base import Mechanism
    from stirred.mechanisms.registry import Registration

HEAD = """# {summary}
title = {title}
census = {census}            # relative to this file; see: stirred data describe

[[mechanism]]
name = "{name}"
{settings}
[publish]
microdata = true
formats = ["parquet"]         # add "csv" for CSV beside it
{table}
# Each invariant is published exactly and is not protected: say why.
# [[reason]]
# invariant = "{invariant}"
# kind = "operation"            # law, operation or utility
# text = "{text}"
# citation = "{citation}"

[budget]
owner = ""                    # who answers for it
# limit = "16"                # exact text; the plan is refused above it

[assess]
utility = true                # the internal report compares with the truth
relations = []                # pairs of variables, such as [["county", "tenure"]]
"""

TABLE = """
[[table]]
name = "{name}"
record_type = "{record_type}"
by = {by}
"""


def questions(kind: "type[Mechanism] | Registration") -> dict[str, tuple[str, str]]:
    """Return what a new plan asks for: the title, the census, and the required settings."""
    asked = {
        key: (_question(PlanConfig.model_fields[key]), str(_example(PlanConfig.model_fields[key])))
        for key in ("title", "census")
    }
    for key, field in _find_required(kind).items():
        usual = _example(field)
        words = (
            usual if isinstance(usual, str) else " ".join(usual) if _is_words(usual) else write_toml(usual)
        )
        asked[key] = (_question(field), words)
    return asked


def new_plan(kind: "type[Mechanism] | Registration", answers: Mapping[str, str]) -> str:
    """Return a plan for a mechanism: settings that were asked for, then all others as comments."""
    needed = _find_required(kind)
    lines = []
    for key, field in kind.Config.model_fields.items():
        value = _value(field, answers[key]) if key in needed else _example(field)
        start = f"{'' if key in needed else '# '}{key} = {write_toml(value)}"
        lines.append(f"{start.ljust(28)}  # {field.description}\n")
    table = ""
    if kind.Config.example_table is not None:
        record_type, by = kind.Config.example_table
        table = TABLE.format(name="-by-".join(reversed(by)), record_type=record_type, by=write_toml(list(by)))
    return HEAD.format(
        summary=(kind.Config.__doc__ or kind.name).strip().splitlines()[0],
        title=write_toml(answers["title"]),
        census=write_toml(answers["census"]),
        name=kind.name,
        settings="".join(lines),
        table=table,
        **PLACEHOLDERS,
    )


def _find_required(kind: "type[Mechanism] | Registration") -> dict[str, FieldInfo]:
    """Return the required settings and those before the first of them; else the first setting alone."""
    fields = kind.Config.model_fields
    required = [index for index, field in enumerate(fields.values()) if field.is_required()]
    own = [key for index, key in enumerate(fields) if index in required or (required and index < required[0])]
    return {key: fields[key] for key in own or list(fields)[:1]}


def _example(field: FieldInfo) -> object:
    return field.examples[0] if field.examples else field.get_default(call_default_factory=True)


def _value(field: FieldInfo, answer: str) -> object:
    """Convert an answer to the type of the setting; a list is typed as words."""
    example = _example(field)
    if isinstance(example, str):
        return answer
    return answer.replace(",", " ").split() if _is_words(example) else parse_toml(f"v = {answer}")["v"]


def _is_words(value: object) -> TypeGuard[list[str]]:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _question(field: FieldInfo) -> str:
    text = field.description or ""
    return text[:1].upper() + text[1:] + "?"
