"""The plan of a mechanism that was chosen without one: on the command line, or in Python."""

import os
from collections.abc import Mapping
from pathlib import Path

from stirred.census import DROPPED_NOTE, Invalid
from stirred.errors import InputError, StirredError
from stirred.mechanisms.base import Mechanism, Release
from stirred.mechanisms.config import parse_settings, write_toml
from stirred.mechanisms.registry import find_mechanism
from stirred.publish.plan.description import Plan
from stirred.publish.plan.reading import parse, with_invalid, with_language, with_small_effect

CENSUS = "census.toml"
_TEXT = """title = {title}
census = {census}

[[mechanism]]
name = {name}
{settings}
[assess]
utility = false
"""


def plan_of(
    mechanism: Mechanism,
    folder: Path,
    *,
    census: str = CENSUS,
    title: str = "",
    invalid: Invalid = "refuse",
    language: str | None = None,
    accept_small_effect: str = "",
) -> Plan:
    """Return the plan that runs one mechanism on the census in ``folder``, where its paths start."""
    config = parse_settings(type(mechanism).Config, mechanism.settings(), what=f"mechanism {mechanism.name}")
    paths = {name: os.path.relpath(str(getattr(config, name)), folder) for name in config.paths()}
    values = {name: value for name, value in (mechanism.settings() | paths).items() if value is not None}
    text = _TEXT.format(
        title=write_toml(title or f"Released by {mechanism.name}"),
        census=write_toml(census),
        name=write_toml(mechanism.name),
        settings="".join(f"{name} = {write_toml(value)}\n" for name, value in values.items()),
    )
    plan = with_language(with_invalid(parse(text, folder=folder), invalid), language)
    return with_small_effect(plan, accept_small_effect)


def plan_of_release(
    release: Release, folder: Path, *, census: str = CENSUS, title: str = "", accept_small_effect: str = ""
) -> Plan:
    """Return the plan that makes a release again; refuse settings that no plan can state."""
    kind = find_mechanism(release.mechanism)
    settings = release.settings or {
        name: value for name, value in release.parameters.items() if name in kind.Config.model_fields
    }
    try:
        invalid: Invalid = "drop" if DROPPED_NOTE in release.specification.notes else "refuse"
        made = kind.of(parse_settings(kind.Config, settings))
        plan = plan_of(
            made,
            folder,
            census=census,
            title=title,
            invalid=invalid,
            accept_small_effect=accept_small_effect,
        )
        same = _plain(plan.mechanisms[0].parameters()) == _plain(release.parameters)
    except StirredError:
        same = False
    if not same:
        raise InputError(
            f"no plan describes this release of {release.mechanism}",
            why="a setting of its mechanism was made in Python, or a file that a setting names has changed",
            fix="use settings that plan.toml can state, such as the name of a file, and make the release again",
        )
    return plan


def _plain(parameters: Mapping[str, object]) -> str:
    return repr(sorted(parameters.items()))
