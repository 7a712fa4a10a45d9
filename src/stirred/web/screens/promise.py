"""Promise: the method and its main settings; sentence, invariants and budget change as a slider moves."""

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from stirred.errors import StirredError
from stirred.mechanisms.config import MechanismConfig
from stirred.mechanisms.registry import registered, registration
from stirred.web.forms.document import Document, text_of
from stirred.web.forms.edited import edited
from stirred.web.forms.fields import FormField, fields_of, variables_of
from stirred.web.forms.proposing import started
from stirred.web.forms.reasons import accepted, require_reasons, subject, with_reason
from stirred.web.forms.values import Form, one, settings_of
from stirred.web.jobs import commands
from stirred.web.jobs.job import Job
from stirred.web.pages import bench_of, form_of, fragment, page
from stirred.web.stating.answer import PromiseAnswer, Refusal
from stirred.web.stating.size import not_counted, size_of
from stirred.web.workbench import Workbench

BUDGETS = ("rho_squared", "epsilon", "total", "rate")
FIXED = ("name", "label", "from")  # keys of every [[mechanism]]


def routes() -> list[Route]:
    """The addresses of this screen."""
    return [
        Route("/promise", promise),
        Route("/promise", save_promise, methods=["POST"]),
        Route("/promise/start", start_plan, methods=["POST"]),
        Route("/promise/answer", answer, methods=["POST"]),
        Route("/promise/universe", universe_size),
        Route("/promise/universe", universe_of_form, methods=["POST"]),
    ]


def main_fields(config: type[MechanismConfig], settings: Mapping[str, object]) -> list[FormField]:
    """The settings that decide the promise: those that must be given, lists of variables, and budgets."""
    found = fields_of(config, settings)
    return [
        field
        for place, field in enumerate(found)
        if place == 0 or field.required or field.kind == "variables" or field.name in BUDGETS
    ]


def promise(
    request: Request,
    document: Document | None = None,
    refusal: Refusal | None = None,
    part: int | None = None,
) -> Response:
    """The form of the current plan, or the choice of a method where there is none."""
    bench = bench_of(request)
    chosen = bench.chosen()
    if document is None and not bench.history.text():
        return page(
            request,
            "promise_start.html.j2",
            title="Promise",
            step="promise",
            methods=_methods(),
            refusal=refusal,
        )
    found = bench.document() if document is None else document
    number = _part(request, found) if part is None else part
    settings = found["mechanism"][number]
    config = registration(str(settings["name"])).Config
    fields = main_fields(config, settings)
    rows = variables_of(chosen.schema)
    known = {row.name for row in rows}
    matrix = [f for f in fields if f.kind == "variables" and set(f.chosen) <= known]
    checked, looked = checked_plan(bench)
    result = bench.stating.answer(found, bench.ground(), part=number, largest=chosen.largest)
    if refusal is not None:
        result = PromiseAnswer(records=chosen.read, refusal=refusal, turning=result.turning)
    return page(
        request,
        "promise.html.j2",
        title="Promise",
        step="promise",
        shown=_shown(bench),
        document=found,
        part=number,
        parts=[str(one.get("label", one["name"])) for one in found["mechanism"]],
        settings=settings,
        summary=registration(str(settings["name"])).summary,
        fields=[field for field in fields if field not in matrix],
        matrix=matrix,
        rows=rows,
        answer=result,
        chosen=chosen,
        methods=_methods(),
        reasons=_reasons(found),
        current=bench.history.current,
        read=chosen.read,
        checked=checked,
        found=looked,
        status=422 if refusal else 200,
    )


def checked_plan(bench: Workbench) -> tuple[Job | None, dict[str, object]]:
    """The newest check of the current plan on the records, and what it found."""
    checked = bench.latest("check-plan", plan=bench.history.current)
    return checked, {} if checked is None or checked.state != "done" else checked.document()


def start_plan(request: Request) -> Response:
    """A plan for another method, proposed from the codebook; the plan before it stays in the history."""
    bench, form = bench_of(request), form_of(request)
    name = one(form, "mechanism")
    kind = registration(name).load()
    with bench.workspace.lock:
        text = started(kind, bench.chosen().file, bench.workspace.plans)
        bench.history.add(text, f"begin with {name}")
    return RedirectResponse("/promise", 303)


def save_promise(request: Request) -> Response:
    """Keep the form as a new version of the plan."""
    bench, form = bench_of(request), form_of(request)
    with bench.workspace.lock:
        before = bench.document()
        part = _part(request, before)
        try:
            found = changed(before, form, part)
            require_reasons(found)
            text = edited(bench.history.text(), found)
            bench.stating.read(found)
            refused = None
        except StirredError as error:
            refused = Refusal.of(error)
        else:
            bench.history.add(text, _words(before["mechanism"][part], found["mechanism"][part]))
    if refused is not None:
        return promise(request, _safe(before, form, part), refused, part)
    return RedirectResponse("/method" if one(form, "next") else f"/promise?part={part}", 303)


def answer(request: Request) -> Response:
    """What the form would promise; nothing is kept."""
    bench, form = bench_of(request), form_of(request)
    chosen = bench.chosen()
    try:
        now = bench.document()
        part = _part(request, now)
        result = bench.stating.answer(
            changed(now, form, part), bench.ground(), part=part, largest=chosen.largest
        )
    except StirredError as error:
        result = PromiseAnswer(records=chosen.read, refusal=Refusal.of(error))
    return fragment(request, "promise_answer.html.j2", answer=result, chosen=chosen)


def universe_size(request: Request) -> Response:
    """How many data sets agree on the invariants: it does not depend on the slider."""
    bench = bench_of(request)
    return fragment(request, "universe.html.j2", sizes=size_of(bench.plan(), bench.ground()))


def universe_of_form(request: Request) -> Response:
    """The same for the form as it is ticked; nothing is kept."""
    bench, form = bench_of(request), form_of(request)
    now = bench.document()
    try:
        asked = bench.plan_of(text_of(changed(now, form, _part(request, now))))
    except StirredError as error:
        return fragment(request, "universe.html.j2", sizes=[not_counted(error)])
    return fragment(request, "universe.html.j2", sizes=size_of(asked, bench.ground()))


def changed(document: Document, form: Form, part: int) -> Document:
    """The document after a form about one of its mechanisms."""
    settings = document["mechanism"][part]
    fixed = {key: settings[key] for key in FIXED if key in settings}
    own = {key: value for key, value in settings.items() if key not in FIXED}
    config = registration(str(settings["name"])).Config
    mechanisms = [dict(one) for one in document["mechanism"]]
    mechanisms[part] = {**fixed, **settings_of(config, form, own)}
    found = {**document, "mechanism": mechanisms}
    if "reason" in found:
        found["reason"] = [dict(one) for one in found["reason"]]
    for name, setting in accepted(found):
        text = one(form, f"why.{setting}.{name}")
        if text:
            with_reason(found, subject(name, setting), text)
    return found


def _safe(document: Document, form: Form, part: int) -> Document:
    """The form as it was sent, where it can be shown again."""
    try:
        return changed(document, form, part)
    except StirredError:
        return document


def _part(request: Request, document: Document) -> int:
    """The mechanism that the form is about."""
    text = request.query_params.get("part", "0")
    number = int(text) if text.isdecimal() and len(text) < 4 else 0
    return number if number < len(document["mechanism"]) else 0


def _methods() -> list[dict[str, str]]:
    return [{"name": item.name, "summary": item.summary} for item in registered().values()]


def _reasons(document: Document) -> list[dict[str, str]]:
    """What is accepted by name, with its reason."""
    written = {str(one.get("invariant", "")): str(one.get("text", "")) for one in document.get("reason", [])}
    return [
        {"name": name, "setting": setting, "text": written.get(subject(name, setting), "")}
        for name, setting in accepted(document)
    ]


def _shown(bench: Workbench) -> list[commands.ShownCommand]:
    number = bench.history.current
    return [commands.check_plan(f"plans/{number:04}.toml")] if number else []


def _words(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """What was changed, by the names of the settings."""
    names = [key for key in {**before, **after} if before.get(key) != after.get(key)]
    return "change " + ", ".join(names) if names else "no setting changed"
