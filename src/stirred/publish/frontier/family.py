"""The members of a family: every [[mechanism]] of a plan as a release of its own, at several swap rates and budgets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from stirred.errors import InputError, StirredError
from stirred.mechanisms.config import write_toml
from stirred.publish.before.refusals import prepare
from stirred.publish.plan.description import Plan
from stirred.publish.plan.reading import parse
from stirred.toml_text import parse_toml

RATES, BUDGETS = ("rate", "swaprate"), ("rho_squared",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One release of a family: the method, the setting that is varied, and the plan that makes it."""

    method: str
    setting: str
    plan: Plan

    @property
    def name(self) -> str:
        """Return method and setting in words."""
        return f"{self.method}, {self.setting}" if self.setting else self.method


def build_family(plan: Plan, *, rates: Sequence[str] = (), rho_squared: Sequence[str] = ()) -> list[Member]:
    """Return all members of a plan's family; a mechanism that continues another is released with it.

    Of a chain only the tables are published.
    ``rates`` replace the swap rate of every mechanism that has one, ``rho_squared`` the total budget; a mechanism that has
    neither is one member, at the settings that the plan states.
    """
    document = parse_toml(plan.text)
    stated = document["mechanism"]
    stated = [stated] if isinstance(stated, Mapping) else stated
    found = []
    for number, step in enumerate(plan.steps):
        chain = _chain(plan, number)
        place, key = _find_varied(plan, chain)
        values = rates if key in RATES else rho_squared if key in BUDGETS else ()
        for value in values or ("",):
            settings = [dict(stated[one]) for one in chain]
            if value:
                settings[place] |= {key: value}
            now = (
                settings[place].get(key, getattr(plan.steps[chain[place]].config, key, None)) if key else None
            )
            shown = "" if now is None else f"{key} {now}"
            text = _text(document, settings, title=f"{step.label} {shown}".strip())
            found.append(Member(method=step.label, setting=shown, plan=parse(text, folder=plan.folder)))
    return found


def select_tables(member: Member, out: Path) -> Member:
    """Return the member with the tables that its release can have; refuse one without any table."""
    try:
        prepare(member.plan, out)
    except StirredError:
        kept = [
            table.name
            for table in member.plan.tables
            if _can_prepare(_keep_tables(member.plan, [table.name]), out)
        ]
        if not kept:
            raise
        return Member(method=member.method, setting=member.setting, plan=_keep_tables(member.plan, kept))
    return member


def _can_prepare(plan: Plan, out: Path) -> bool:
    try:
        prepare(plan, out)
    except StirredError:
        return False
    return True


def _keep_tables(plan: Plan, names: Sequence[str]) -> Plan:
    """Return the plan with some of its tables."""
    document = parse_toml(plan.text)
    mechanisms = document["mechanism"]
    document["table"] = [table for table in document["table"] if table["name"] in names]
    return parse(_text(document, mechanisms, title=plan.title), folder=plan.folder)


def _chain(plan: Plan, number: int) -> list[int]:
    """Return the mechanism with those before it whose releases it needs."""
    step = plan.steps[number]
    before = step.earlier if step.source is None else step.source
    return [number] if before is None else [*_chain(plan, before), number]


def _find_varied(plan: Plan, chain: Sequence[int]) -> tuple[int, str]:
    """Return the last mechanism of a chain that has a setting to vary, and that setting."""
    for place in reversed(range(len(chain))):
        fields = type(plan.steps[chain[place]].config).model_fields
        for key in (*RATES, *BUDGETS):
            if key in fields:
                return place, key
    return 0, ""


def _text(document: Mapping[str, object], mechanisms: Sequence[Mapping[str, object]], *, title: str) -> str:
    """Return the text of a plan with some mechanisms and all tables; tables count the last release."""
    lines = [f"title = {write_toml(title)}", f"census = {write_toml(document['census'])}"]
    if "invalid" in document:
        lines.append(f"invalid = {write_toml(document['invalid'])}")
    for settings in mechanisms:
        lines += ["[[mechanism]]", *(f"{key} = {write_toml(value)}" for key, value in settings.items())]
    last = mechanisms[-1]
    tables = document.get("table", [])
    for table in tables if isinstance(tables, list) else []:
        counted = dict(table) | ({"of": last.get("label", last["name"])} if len(mechanisms) > 1 else {})
        lines += ["[[table]]", *(f"{key} = {write_toml(value)}" for key, value in counted.items())]
    if (
        len(mechanisms) > 1
    ):  # a chain protects its tables: the records of its first step are not published beside them
        lines += ["[publish]", "microdata = false"]
    return "\n".join([*lines, "[assess]", "utility = false", ""])


def require_tables(plan: Plan) -> None:
    """Raise an error if no error can be measured: a family is compared by its tables."""
    if not plan.tables:
        raise InputError(
            "the plan has no [[table]]",
            why="the error of each release is measured on the plan's tables",
            fix='add [[table]] with a name and by = ["tract", "race"]',
        )
