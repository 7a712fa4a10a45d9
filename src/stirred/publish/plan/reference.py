"""The JSON schema and the reference pages of plan.toml, made from its models."""

from typing import Any

from stirred.mechanisms.base import Mechanism
from stirred.mechanisms.config import write_toml
from stirred.mechanisms.registry import OWN_REGISTRATIONS, find_mechanism, list_mechanisms
from stirred.publish.plan.models import PlanConfig


def build_schema() -> dict[str, Any]:
    """Return the JSON schema of a plan, with the settings of every installed mechanism.

    >>> "mechanism" in build_schema()["properties"]
    True
    """
    whole: dict[str, Any] = PlanConfig.model_json_schema()
    known = []
    for name in list_mechanisms():
        own: dict[str, Any] = find_mechanism(name).Config.model_json_schema()
        label = {
            "type": "string",
            "description": "what a later [[mechanism]] calls this one (default: its name)",
        }
        source = {
            "type": "string",
            "description": "the label of an earlier [[mechanism]] whose released records take the place of the census",
        }
        fixed = {"name": {"const": name}, "label": label, "from": source}
        own["properties"] = {**fixed, **own.get("properties", {})}
        own["required"] = ["name", *own.get("required", [])]
        own["title"] = name
        known.append(own)
    whole["properties"]["mechanism"]["items"] = {"oneOf": known}
    return whole


def write_pages() -> str:
    """Return the sections of all mechanisms in docs/reference/plan-toml.md."""
    return "\n".join(write_page(find_mechanism(item.name)) for item in OWN_REGISTRATIONS)


def write_page(kind: type[Mechanism]) -> str:
    """Return the section of one mechanism: its sentence and settings, without inherited ones."""
    above = [other for other in kind.__mro__[1:] if issubclass(other, Mechanism) and "Config" in vars(other)]
    # one that derives from another mechanism and not its settings has settings of its own
    base = above[0] if above and issubclass(kind.Config, above[0].Config) else None
    inherited = base.Config.model_fields if base is not None else {}
    lines = [f'## `name = "{kind.name}"`', "", (kind.Config.__doc__ or "").strip().splitlines()[0], ""]
    rows = []
    for key, field in kind.Config.model_fields.items():
        if key in inherited and inherited[key].description == field.description:
            continue
        usual = "required" if field.is_required() else _usual(field.get_default(call_default_factory=True))
        rows.append(f"| `{key}` | {usual} | {field.description} |")
    if base is not None:
        lines += [f"All settings of `{base.name}`" + (", and:" if rows else "."), ""]
    if rows:
        lines += ["| key | default | meaning |", "|---|---|---|", *rows, ""]
    return "\n".join(lines)


def _usual(value: object) -> str:
    return "none" if value is None else f"`{write_toml(value)}`"
