"""Release a family of plans of one census, assess each, and draw risk against error. Internal."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from stirred._support import make_file_names, require_extra
from stirred.assess.assessment import Assessment, TableAssessment
from stirred.assess.risk import RiskMeasure
from stirred.census import Census
from stirred.chance import Key
from stirred.closed_files import make_closed_folder
from stirred.engine import Progress, silent
from stirred.errors import InputError, StirredError
from stirred.mechanisms.config import MechanismConfig, Varied, list_varied
from stirred.publish.assessment import (
    HEADLINES,
    AssessedPacket,
    Doubt,
    DoubtSettings,
    assess_packet,
    choose_common_headline,
    list_guesses,
    tabulate_risks,
)
from stirred.publish.check import prepare
from stirred.publish.packet.folder import Packet
from stirred.publish.plan.description import Plan, parse
from stirred.publish.run.execute import run
from stirred.publish.run.inputs import input_identity
from stirred.publish.run.part import PartFolder
from stirred.report import Report, Section, charts, render
from stirred.report.document import Note, make_table
from stirred.report.risk import write_number
from stirred.spec import Specification
from stirred.spec.invariants import abbreviate
from stirred.text_formats import parse_toml, write_toml

# The members of a family: every [[mechanism]] of a plan as a release of its own, at several swap rates and budgets.


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


def build_family(
    plan: Plan,
    *,
    rates: Sequence[str] = (),
    rho_squared: Sequence[str] = (),
    epsilon: Sequence[str] = (),
) -> list[Member]:
    """Return all members of a plan's family; a mechanism that continues another is released with it.

    Of a chain only the tables are published.
    ``rates`` replace the rate of every mechanism that moves records, ``rho_squared`` and ``epsilon`` a total budget or the
    largest loss in that unit: its Config marks such a setting with ``Varied``. A mechanism to which no value applies is one
    member, at the settings that the plan states.
    """
    values = {"rate": rates, "rho_squared": rho_squared, "epsilon": epsilon}
    document = parse_toml(plan.text)
    stated = document["mechanism"]
    stated = [stated] if isinstance(stated, Mapping) else stated
    found = []
    for number, step in enumerate(plan.steps):
        chain = _chain(plan, number)
        place, varied = _find_varied(plan, chain)
        config = plan.steps[chain[place]].config
        tried: list[tuple[str, Varied | None, object]]
        tried = [(key, mark, value) for key, mark in varied for value in values[mark.unit]]
        for key, mark, value in tried or [_choose_shown(config, varied)]:
            settings = [dict(stated[one]) for one in chain]
            if mark is not None:
                left = {name: own for name, own in settings[place].items() if name not in mark.instead_of}
                settings[place] = left | {key: value}
            shown = f"{key} {value}".strip()
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


def _find_varied(plan: Plan, chain: Sequence[int]) -> tuple[int, list[tuple[str, Varied]]]:
    """Return the last mechanism of a chain that has a setting to vary, and its settings in the unit that they have."""
    for place in reversed(range(len(chain))):
        config = plan.steps[chain[place]].config
        found = [
            (key, mark)
            for key, marks in list_varied(type(config)).items()
            for mark in marks
            if mark.where is None or getattr(config, mark.where[0]) == mark.where[1]
        ]
        if found:
            return place, found
    return 0, []


def _choose_shown(
    config: MechanismConfig, varied: Sequence[tuple[str, Varied]]
) -> tuple[str, Varied | None, object]:
    """Return the first setting of these that has a value, which names the member; nothing is changed."""
    own = ((key, getattr(config, key)) for key, _ in varied)
    key, value = next(((key, value) for key, value in own if value is not None), ("", ""))
    return key, None, value


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


# Release every member of a family, hold it against the truth, and draw risk against error. Internal.

PACKETS_FOLDER = "packets"
DEFAULT_DOUBTS: tuple[Doubt, ...] = ("utility", "attack")


def draw_frontier(
    members: Sequence[Member],
    truth: Census,
    out: Path,
    *,
    key: Key,
    only: Sequence[Doubt] = DEFAULT_DOUBTS,
    settings: DoubtSettings | None = None,
    progress: Progress | None = None,
) -> list[AssessedPacket]:
    """Release and assess all members into ``out``; what an interrupted run finished is taken up from ``out.part``."""
    require_extra("report", why="the frontier is a chart")
    say, unfinished = progress or silent, PartFolder(out)
    asked = [f"{member.name} {member.plan.digest}".encode() for member in members]
    unfinished.begin(key.digest(b"frontier", input_identity(truth, key, []), *asked).hex())
    unfinished.clear(PACKETS_FOLDER)
    part = unfinished.path
    make_closed_folder(part / PACKETS_FOLDER)
    folders = make_file_names([member.name for member in members])
    found = []
    for number, member in enumerate(members):
        say("releases", number, len(members))
        folder = part / PACKETS_FOLDER / folders[member.name]
        packet = Packet(folder)
        if not folder.exists():
            packet = run(select_tables(member, folder).plan, folder, key=key, internal=False)
        found.append(assess_packet(packet, truth, only=only, settings=settings, name=member.name))
    say("releases", len(members), len(members))
    report = frontier_report(members, found, private=key.private)
    (part / "report.html").write_text(render(report), encoding="utf-8")
    tabulate_risks(found).write_csv(part / "risk.csv")
    text = json.dumps(list_points(members, found), indent=1, ensure_ascii=False)
    (part / "frontier.json").write_text(text + "\n", encoding="utf-8")
    unfinished.complete(closed=True)
    return found


def list_points(members: Sequence[Member], found: Sequence[AssessedPacket]) -> dict[str, object]:
    """Return the points as plain values: specification, invariants, guarantee, error and risk."""
    chosen, errors = choose_common_headline(found), common_errors(found)
    return {
        "internal": True,
        "points": [
            {
                "method": member.method,
                "setting": member.setting,
                "specification": str(one.specification),
                "invariants": [invariant.words() for invariant in one.specification.multiverse],
                "guarantee": write_guarantee(one.specification),
                "error": error,
                "risk": None if risk is None else risk.as_json(),
                "measures": [measure.as_json() for measure in one.measures.get("attack", ())],
            }
            for member, one, risk, error in zip(members, found, chosen, errors, strict=True)
        ],
    }


def write_guarantee(specification: Specification) -> str:
    """Return the budget, or that none is finite, and whether it is proved."""
    budget = specification.shown_budget if specification.budget.is_finite else "no finite budget"
    return f"{budget} ({specification.evidence.status})"


def common_errors(found: Sequence[AssessedPacket]) -> list[float | None]:
    """Return the absolute error of each release on the tables that all have, per cell with a record.

    Tables that are exact in every release are left out: they would only make all errors smaller.
    """
    names = (
        set.intersection(*({item.name for item in one.assessment.tables} for one in found))
        if found
        else set()
    )
    names -= {name for name in names if all(_find_table(one.assessment, name).exact for one in found)}
    totals: list[float | None] = []
    for one in found:
        pairs = [_find_table(one.assessment, name).pair.arrays() for name in sorted(names)]
        cells = sum(int((before > 0).sum()) for before, _ in pairs)
        total = sum(float(abs(after - before).sum()) for before, after in pairs)
        totals.append(total / cells if cells else None if not names else 0.0)
    return totals


def _find_table(assessment: Assessment, name: str) -> TableAssessment:
    return next(item for item in assessment.tables if item.name == name)


def frontier_report(members: Sequence[Member], found: Sequence[AssessedPacket], *, private: bool) -> Report:
    """Return the report: the chart of the measure that all releases have, other charts, all measures."""
    errors, common = common_errors(found), choose_common_headline(found)
    parts: list[Section] = []
    name = next((one.name for one in common if one is not None), "")
    if name:
        parts.append(_section("frontier", members, found, errors, common))
    for number, (other, about) in enumerate(HEADLINES[:-1]):
        of = [_find_measure(one, _match_measure(other, about)) for one in found]
        if other != name and sum(one is not None for one in of) > 1:
            parts.append(_section(f"frontier-{number}", members, found, errors, of))
    return Report(
        title="Risk against error",
        subtitle="Releases of one census, held against the confidential data",
        audience="internal",
        private=private,
        sections=(*parts, _all_points(members, found, errors, common)),
    )


def _all_points(
    members: Sequence[Member],
    found: Sequence[AssessedPacket],
    errors: Sequence[float | None],
    chosen: Sequence[RiskMeasure | None],
) -> Section:
    """Return the section with invariants, guarantee, error and risk of every release."""
    heads = ["method", "setting", "exact", "guarantee", "mean absolute error", "risk"]
    rows = [
        [
            member.method,
            member.setting or "–",
            "; ".join(abbreviate(kept, one.specification.domain) for kept in one.specification.multiverse)
            or "nothing",
            write_guarantee(one.specification),
            error,
            "–" if risk is None or risk.value is None else write_number(risk.value, risk.unit),
        ]
        for member, one, error, risk in zip(members, found, errors, chosen, strict=True)
    ]
    return Section(
        title="All releases",
        lead="What each keeps exact, what it guarantees, its error on the tables that all have, and its risk.",
        blocks=(
            make_table("Releases", heads, rows, numeric=heads[4:], digits=2),
            *(
                Note(text=one, tone="plain")
                for one in sorted({risk.sentence for risk in chosen if risk is not None})
            ),
        ),
        chapter="risk",
    )


def _match_measure(name: str, about: str) -> Callable[[RiskMeasure], bool]:
    return lambda measure: measure.name == name and about in ("", measure.about)


def _find_measure(found: AssessedPacket, fits: Callable[[RiskMeasure], bool]) -> RiskMeasure | None:
    return next(
        (one for one in found.measures.get("attack", ()) if fits(one) and one.value is not None), None
    )


def _section(
    name: str,
    members: Sequence[Member],
    found: Sequence[AssessedPacket],
    errors: Sequence[float | None],
    chosen: Sequence[RiskMeasure | None],
) -> Section:
    """Return the section with one chart: the releases that have the measure, and guesses as lines."""
    points, known = [], []
    for member, one, error, risk in zip(members, found, errors, chosen, strict=True):
        if risk is None or risk.value is None or error is None:
            continue
        known.append(risk)
        points.append(
            charts.FrontierPoint(
                method=member.method,
                setting=member.setting,
                specification=str(one.specification),
                error=error,
                risk=risk.value,
                low=risk.low,
                high=risk.high,
            )
        )
    if not points:
        raise InputError(
            "no release of this family has both a risk and an error",
            why="the attack or the tables found nothing to measure on a census this small or this uniform",
            fix="take a larger census, name other tables in [assess], or try more --rates, --rho or --epsilon",
        )
    best = min(points, key=lambda point: (point.risk, point.error))
    least = min(points, key=lambda point: (point.error, point.risk))
    lead = (
        f"The {known[0].name} goes from {write_number(best.risk, known[0].unit)} ({best.method} {best.setting}) to "
        f"{write_number(max(point.risk for point in points), known[0].unit)}; the error is smallest for {least.method} "
        f"{least.setting}."
    )
    chart = charts.frontier(
        name,
        f"{known[0].name[:1].upper()}{known[0].name[1:]}.",
        f"About {known[0].about}. Each point is one release: its specification shows when it is pointed at. "
        "Lower and further left is better; dashed lines are what guesses find.",
        points,
        risk=known[0].name,
        guesses=list_guesses(known),
        methods=list(dict.fromkeys(member.method for member in members)),
    )
    return Section(title=f"Risk against error: {known[0].name}", lead=lead, blocks=(chart,), chapter="risk")
