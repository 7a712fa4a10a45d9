"""The members of a family: every [[mechanism]] of a plan as a release of its own, at several swap rates and budgets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from stirred.errors import InputError, StirredError
from stirred.mechanisms.config import toml
from stirred.publish.before.refusals import prepare
from stirred.publish.plan.description import Plan
from stirred.publish.plan.reading import parse
from stirred.toml_text import toml_of

RATES, BUDGETS = ("rate", "swaprate"), ("rho_squared",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One release of a family: the method, the setting that is varied, and the plan that makes it."""

    method: str
    setting: str
    plan: Plan

    @property
    def name(self) -> str:
        """Method and setting in words."""
        return f"{self.method}, {self.setting}" if self.setting else self.method


def family(plan: Plan, *, rates: Sequence[str] = (), rho_squared: Sequence[str] = ()) -> list[Member]:
    """All members of a plan's family; a mechanism that continues another one is released with it, as a chain.

    Of a chain only the tables are published.
    ``rates`` replace the swap rate of every mechanism that has one, ``rho_squared`` the total budget; a mechanism that has
    neither is one member, at the settings that the plan states.
    """
    document = toml_of(plan.text)
    stated = document["mechanism"]
    stated = [stated] if isinstance(stated, Mapping) else stated
    found = []
    for number, step in enumerate(plan.steps):
        chain = _chain(plan, number)
        place, key = _varied(plan, chain)
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


def fitting(member: Member, out: Path) -> Member:
    """The member with those of the plan's tables that its release can have; refused where none is left."""
    try:
        prepare(member.plan, out)
    except StirredError:
        kept = [table.name for table in member.plan.tables if _fits(_only(member.plan, [table.name]), out)]
        if not kept:
            raise
        return Member(method=member.method, setting=member.setting, plan=_only(member.plan, kept))
    return member


def _fits(plan: Plan, out: Path) -> bool:
    try:
        prepare(plan, out)
    except StirredError:
        return False
    return True


def _only(plan: Plan, names: Sequence[str]) -> Plan:
    """The plan with some of its tables."""
    document = toml_of(plan.text)
    mechanisms = document["mechanism"]
    document["table"] = [table for table in document["table"] if table["name"] in names]
    return parse(_text(document, mechanisms, title=plan.title), folder=plan.folder)


def _chain(plan: Plan, number: int) -> list[int]:
    """The mechanism with those before it whose releases it needs."""
    step = plan.steps[number]
    before = step.earlier if step.source is None else step.source
    return [number] if before is None else [*_chain(plan, before), number]


def _varied(plan: Plan, chain: Sequence[int]) -> tuple[int, str]:
    """Which mechanism of a chain is varied, and by which setting: the last that has one."""
    for place in reversed(range(len(chain))):
        fields = type(plan.steps[chain[place]].config).model_fields
        for key in (*RATES, *BUDGETS):
            if key in fields:
                return place, key
    return 0, ""


def _text(document: Mapping[str, object], mechanisms: Sequence[Mapping[str, object]], *, title: str) -> str:
    """A plan with some mechanisms and the tables of another plan; its tables count the last release."""
    lines = [f"title = {toml(title)}", f"census = {toml(document['census'])}"]
    if "invalid" in document:
        lines.append(f"invalid = {toml(document['invalid'])}")
    for settings in mechanisms:
        lines += ["[[mechanism]]", *(f"{key} = {toml(value)}" for key, value in settings.items())]
    last = mechanisms[-1]
    tables = document.get("table", [])
    for table in tables if isinstance(tables, list) else []:
        counted = dict(table) | ({"of": last.get("label", last["name"])} if len(mechanisms) > 1 else {})
        lines += ["[[table]]", *(f"{key} = {toml(value)}" for key, value in counted.items())]
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
