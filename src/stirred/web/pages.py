"""Render pages from templates, with the line of steps, the equivalent commands and the sentences of a first visit."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from typing import Literal

from jinja2 import ChoiceLoader, Environment, PackageLoader
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse

from stirred.census.schema import collect_labels
from stirred.errors import StirredError
from stirred.languages import Language, Phrase
from stirred.mechanisms.registry import list_mechanisms
from stirred.report.document import CHAPTERS, Levels, Report, label_codes, relabel
from stirred.report.html import environment as report_environment
from stirred.spec.card.card import write_fragment as card_fragment
from stirred.spec.card.template_cache import TemplateCache
from stirred.web.commands import ShownCommand
from stirred.web.forms import Form
from stirred.web.workbench import Workbench
from stirred.web.workspace import CODEBOOK, read_document, write_document

VISIT_HOUSEHOLDS = 2_000  # of the demo census of a visit: made and swapped in seconds
ADDRESSES = ("/data", "/promise", "/promise", "/run", "/look")
TITLES = ("Data", "Method", "Promise", "Run", "Look")
SENTENCES = (
    "These households are invented; the codebook below says what a record looks like, and nothing else is read.",
    "A method decides how a number may differ from the truth: the one that is ticked lets households exchange places.",
    "Move the slider: the more households change places, the less anyone can learn, and the further counts are off.",
    "A run draws the swap with a fresh key, checks that every exact number stayed the same, and writes a packet here.",
    "This is what a reader gets: who is protected and how well, what is exact, and how far each table may be off.",
)
STEPS = {"data": (0,), "promise": (1, 2), "run": (3,), "look": (4,)}  # screen → stops of the visit on it
Action = Literal["", "wait", "link", "method", "promise", "run", "end"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """One stop of the visit: its number, its sentence, and what its button does."""

    number: int
    title: str
    sentence: str
    action: Action
    button: str = ""
    address: str = ""
    plan: int = 0
    total: int = len(TITLES)


def can_visit(bench: Workbench) -> bool:
    """Return whether this workbench has no data of its own, or those of a visit."""
    return bench.data.read_choice() is None or _is_census_of_visit(bench)


def _is_census_of_visit(bench: Workbench) -> bool:
    made = bench.latest("synth")
    chosen = bench.data.read_choice()
    own = bench.workspace.own_census / CODEBOOK
    return made is not None and chosen is not None and chosen.file == own


def set_visit(bench: Workbench, *, on: bool) -> None:
    """Begin or end the visit; the choice stands in a file, so that it outlives the server."""
    write_document(bench.workspace.folder / "visit.json", {"on": on})


def is_visited(bench: Workbench) -> bool:
    """Return whether a visit is under way."""
    return read_document(bench.workspace.folder / "visit.json").get("on") is True


def find_stop(bench: Workbench, screen: str) -> Stop | None:
    """Return the stop of the visit that a screen is; None where no visit is under way."""
    if not is_visited(bench):
        return None
    next_one = _find_next(bench)
    here = [number for number in STEPS.get(screen, ()) if number <= next_one]
    if not here:
        return Stop(
            number=next_one + 1,
            title=TITLES[next_one],
            sentence="The visit goes on where you left it.",
            action="link",
            button=f"Go on with step {next_one + 1}: {TITLES[next_one]}",
            address=_address(bench, next_one),
        )
    number = here[-1]
    action, button = _choose_button(bench, number)
    return Stop(
        number=number + 1,
        title=TITLES[number],
        sentence=SENTENCES[number],
        action=action,
        button=button,
        address=_address(bench, min(number + 1, len(TITLES) - 1)),
        plan=bench.history.current,
    )


def _find_next(bench: Workbench) -> int:
    """Return the first stop that is not done yet, from the files of the workbench."""
    if bench.data.read_choice() is None:
        return 0
    if not bench.history.text():
        return 1
    run = bench.latest("run", plan=bench.history.current)
    if run is None:
        return 3
    return 4 if run.state == "done" else 3


def _address(bench: Workbench, number: int) -> str:
    packets = bench.packets()
    return f"/look/{packets[0]}" if number == 4 and packets else ADDRESSES[number]


def _choose_button(bench: Workbench, number: int) -> tuple[Action, str]:
    if number == 0:
        made = bench.latest("synth")
        if made is not None and made.state in ("failed", "cancelled", "interrupted"):
            return "", f"the demo census is {made.state}: see below"
        ready = bench.data.read_choice() is not None and (made is None or made.ended)
        return ("link", "Next: choose a method") if ready else ("wait", "the demo census is being made …")
    if number == 1:
        return "method", "Next: propose a plan with this method"
    if number == 2:
        return "promise", "Next: keep this promise"
    if number == 3:
        run = bench.latest("run", plan=bench.history.current)
        if run is None:
            return "run", f"Next: run plan {bench.history.current}"
        if run.state == "done":
            return "link", "Next: look at the packet"
        if run.state in ("failed", "cancelled", "interrupted"):
            return "", f"the run is {run.state}: see below"
        return "wait", "the run is under way …"
    return "end", "End the visit"


# The line of steps: what was chosen so far, and what is missing for the next one.


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step: its address, what was chosen in it, and why it cannot be done yet."""

    name: str
    title: str
    address: str
    chosen: str = ""
    missing: str = ""


def steps_of(bench: Workbench, shown_packet: int | None = None) -> list[Step]:
    """Return the seven steps, from the files of the workbench alone; read no record.

    The line names the packet that the page shows; on other pages the newest one.
    """
    data = bench.data.read_choice()
    text = bench.history.text()
    packets = bench.packets()
    packet = shown_packet if shown_packet in packets else packets[0] if packets else 0
    no_data = "" if data else "choose data first"
    no_plan = no_data or ("" if text else "choose a method first")
    no_packet = "" if packets else (no_plan or "run the plan first")
    return [
        Step(name="data", title="Data", address="/data", chosen=_data(bench)),
        Step(name="promise", title="Method", address="/promise", chosen=_promise(bench), missing=no_data),
        Step(name="method", title="Publication", address="/method", chosen=_method(bench), missing=no_plan),
        Step(name="run", title="Run", address="/run", chosen=_runs(bench), missing=no_plan),
        Step(
            name="look",
            title="Look",
            address=f"/look/{packet}" if packets else "/run",
            chosen=f"packet {packet}" if packets else "",
            missing=no_packet,
        ),
        Step(
            name="compare",
            title="Compare",
            address="/compare",
            chosen=_count_noun(len(packets), "packet") if packets else "",
            missing=no_packet,
        ),
        Step(
            name="packet",
            title="Packet",
            address=f"/packet/{packet}" if packets else "/run",
            chosen=f"packet {packet}: ready to download" if packets else "",
            missing=no_packet,
        ),
    ]


def _data(bench: Workbench) -> str:
    data = bench.data.read_choice()
    if data is None:
        return ""
    try:
        schema = data.schema
    except StirredError:
        return "the codebook has a mistake"
    return f"{schema.label or schema.name}, {'records read' if data.read else 'codebook only'}"


def _promise(bench: Workbench) -> str:
    if not bench.history.text():
        return ""
    try:
        names = [name_method(str(one.get("name", ""))) for one in bench.document()["mechanism"]]
    except StirredError:
        return "the plan has a mistake"
    return f"{', '.join(names)} (plan {bench.history.current})"


def _method(bench: Workbench) -> str:
    if not bench.history.text():
        return ""
    try:
        tables = len(bench.document().get("table", []))
    except StirredError:
        return ""
    return _count_noun(tables, "table")


def _runs(bench: Workbench) -> str:
    runs = [job for job in bench.line.all() if job.kind == "run"]
    if not runs:
        return ""
    return f"run {runs[-1].number}: {runs[-1].state}"


def _count_noun(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


# Pages from templates: those of the workbench, and those of the report with the report's own words.

VERSION = "3"
MAX_DIGITS = 8  # of a number in an address


@lru_cache(maxsize=1)
def environment() -> Environment:
    """Return the template environment: templates of the workbench, then those of the report."""
    own, report = PackageLoader("stirred.web", "templates"), PackageLoader("stirred.report", "templates")
    return report_environment().overlay(
        loader=ChoiceLoader([own, report]), bytecode_cache=TemplateCache(__file__)
    )


def prepare_templates(bench: Workbench) -> None:
    """Compile every template and render the first page once, so that it is served as fast as others."""
    for name in environment().list_templates(filter_func=lambda name: name.endswith(".html.j2")):
        environment().get_template(name)
    _render(bench, "start.html.j2", title="", step="", shown=(), has_data=False, can_visit=False)


def bench_of(request: Request) -> Workbench:
    """Return the workbench of a request."""
    found: Workbench = request.app.state.workbench
    return found


def number_of(request: Request) -> int:
    """Return the number in the address of a request; an address with a longer one is no page."""
    text = str(request.path_params["number"])
    if not text.isdecimal() or len(text) > MAX_DIGITS:
        raise HTTPException(404)
    return int(text)


def form_of(request: Request) -> Form:
    """Return the form that was sent; the gate has read it and checked its token."""
    found: Form = request.scope.get("state", {}).get("form", {})
    return found


def page(
    request: Request,
    template: str,
    *,
    title: str,
    step: str = "",
    shown: Sequence[ShownCommand] = (),
    status: int = 200,
    **values: object,
) -> HTMLResponse:
    """Render a whole page with the line of steps and the equivalent commands."""
    bench = bench_of(request)
    return HTMLResponse(_render(bench, template, title=title, step=step, shown=shown, **values), status)


def _render(bench: Workbench, template: str, **values: object) -> str:
    return (
        environment()
        .get_template(template)
        .render(
            steps=steps_of(bench, number if isinstance(number := values.get("number"), int) else None),
            folder=str(bench.workspace.folder),
            visit=find_stop(bench, str(values.get("step", ""))),
            **_words(bench),
            **values,
        )
    )


def fragment(request: Request, template: str, **values: object) -> HTMLResponse:
    """Render a part of a page, for a script that replaces it."""
    return HTMLResponse(environment().get_template(template).render(**_words(bench_of(request)), **values))


def name_method(name: str) -> str:
    """Return the label of a method; the name where it is unknown."""
    found = list_mechanisms().get(name)
    return name if found is None else found.title


def levels_of(bench: Workbench) -> Callable[[], Levels]:
    """Return a function that reads the labels of the chosen codebook once: variable → code → label."""

    @cache
    def read() -> Levels:
        chosen = bench.data.read_choice()
        try:
            records = {} if chosen is None else collect_labels(chosen.schema)
        except StirredError:
            return {}
        return {variable: labels for of_record in records.values() for variable, labels in of_record.items()}

    return read


def name_levels(levels: Callable[[], Levels], text: object, own: Levels | None = None) -> str:
    """Return a text with labels in place of the codes of its conditions, where the codebook has them.

    >>> name_levels(lambda: {"kind": {"2": "vacant", "3": "group quarters"}}, "homes (kind = 2 or 3)")
    'homes (vacant or group quarters)'
    """
    told = Language.of("en").translate(str(text))
    return label_codes(told, levels() if own is None else own) if " = " in told else told


def _words(bench: Workbench) -> dict[str, object]:
    """Return what every template may use: the report's words in English, the card, the form token."""
    language, named = Language.of("en"), partial(name_levels, levels_of(bench))
    return {
        "csrf": bench.session.csrf,
        "version": VERSION,
        "language": language,
        "said": named,
        "say": language.say,
        "names": {name: Phrase(f"report.chapter.{name}") for name in CHAPTERS},
        "card": lambda card: card_fragment(card, level=3),
        "named": lambda text, own=None: relabel(named(text, own), {}),  # block group, not block_group
        "method_label": name_method,
        "report": Report(title="", subtitle="", audience="internal", sections=()),
    }
