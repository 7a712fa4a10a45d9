"""Tune a plan from goals where its mechanism knows its errors in closed form: no stand-in, no runs, another plan file."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from stirred.errors import InputError
from stirred.mechanisms.base import TunedSettings
from stirred.mechanisms.config import write_toml
from stirred.mechanisms.proposal import Cap, Goal
from stirred.publish.plan.description import Plan
from stirred.publish.plan.proposing import ProposedPlan

TUNED_PREFIX = "tuned-"  # begins the names of a tuned plan and of its files, where no other name is asked for


@dataclass(frozen=True, slots=True, kw_only=True)
class TunedPlan:
    """The plan with other settings, and what they buy."""

    plan: ProposedPlan
    found: TunedSettings


def tune_shares(
    plan: Plan, goals: Sequence[Goal], caps: Sequence[Cap] = (), *, stem: str | None = None
) -> TunedPlan:
    """Return the plan whose first mechanism reaches the goals at its budget, or at less if they are met.

    ``stem`` begins the names of its files, so that several tuned plans can lie beside each other.
    """
    mechanism = plan.mechanisms[0]
    found = mechanism.tune(plan.census(), goals, caps)
    if found is None:
        raise InputError(
            f"{mechanism.name} has no closed form for goals",
            why="it does not know the error of a table before it runs",
            fix='try one setting on a stand-in instead: --target "mae county <= 3"',
        )
    if stem is not None:
        found = _rename_files(found, stem)
    text = replace_settings(plan.text, found.settings)
    return TunedPlan(
        plan=ProposedPlan(text=text, files=dict(found.files), choices=(found.sentence,), undecided=()),
        found=found,
    )


def _rename_files(found: TunedSettings, stem: str) -> TunedSettings:
    names = {name: f"{stem}-{name.removeprefix(TUNED_PREFIX)}" for name in found.files}
    return replace(
        found,
        settings={key: names.get(value, value) for key, value in found.settings.items()},
        files={names[name]: text for name, text in found.files.items()},
    )


def replace_settings(text: str, settings: Mapping[str, str]) -> str:
    """Return a plan's text with other values in its first [[mechanism]].

    >>> print(replace_settings('[[mechanism]]\\nname = "a"\\nworkload = "b"\\n[assess]\\n', {"workload": "c.toml"}))
    [[mechanism]]
    name = "a"
    workload = "c.toml"
    [assess]
    <BLANKLINE>
    """
    lines = text.splitlines()
    start = next(i for i, line in enumerate(lines) if line.strip().startswith("[[mechanism]]"))
    end = next((i for i in range(start + 1, len(lines)) if lines[i].lstrip().startswith("[")), len(lines))
    for name, value in settings.items():
        line = f"{name} = {write_toml(value)}"
        place = next((i for i in range(start + 1, end) if re.match(rf"\s*{name}\s*=", lines[i])), None)
        if place is None:
            lines.insert(start + 1, line)
            end += 1
        else:
            lines[place] = line
    return "\n".join(lines) + "\n"


def choose_path(plan: Path, out: str | None) -> Path:
    """Return the path of the tuned plan: beside the plan, so that relative paths stay valid."""
    path = Path(out) if out else plan.with_name(f"{TUNED_PREFIX}{plan.name}")
    if path.parent.resolve() != plan.parent.resolve():
        raise InputError(
            "the tuned plan is written beside the plan",
            why="the paths in it start at its folder",
            fix=f"--out {plan.parent / path.name}",
        )
    return path
