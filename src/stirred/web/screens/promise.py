"""Promise: the method and its main settings; sentence, invariants and budget change as a slider moves."""

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from stirred.errors import StirredError
from stirred.mechanisms.config import MechanismConfig
from stirred.mechanisms.registry import find_registration, list_mechanisms
from stirred.web.forms.document import Document, text_of
from stirred.web.forms.edited import edit_text
from stirred.web.forms.fields import FormField, fields_of, variables_of
from stirred.web.forms.proposing import propose_text
from stirred.web.forms.reasons import list_accepted, require_reasons, subject, with_reason
from stirred.web.forms.values import Form, last_text, settings_of
from stirred.web.jobs import commands
from stirred.web.jobs.job import Job
from stirred.web.pages import bench_of, form_of, fragment, page
from stirred.web.stating.answer import PromiseAnswer, Refusal
from stirred.web.stating.size import make_not_counted, measure_universe
from stirred.web.workbench import Workbench

BUDGETS = ("rho_squared", "epsilon", "total", "rate")
FIXED = ("name", "label", "from")  # keys of every [[mechanism]]


def promise_routes() -> list[Route]:
    """Return the addresses of this screen."""
    return [
        Route("/promise", promise),
        Route("/promise", save_promise, methods=["POST"]),
        Route("/promise/start", start_plan, methods=["POST"]),
        Route("/promise/answer", answer, methods=["POST"]),
        Route("/promise/universe", universe_size),
        Route("/promise/universe", universe_of_form, methods=["POST"]),
    ]


def main_fields(config: type[MechanismConfig], settings: Mapping[str, object]) -> list[FormField]:
    """Return the settings that decide the promise: required ones, lists of variables, and budgets."""
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
    """Show the form of the current plan, or the choice of a method where there is none."""
    bench = bench_of(request)
    chosen = bench.require_data()
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
    config = find_registration(str(settings["name"])).Config
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
        shown=_list_promise_commands(bench),
        document=found,
        part=number,
        parts=[str(one.get("label", one["name"])) for one in found["mechanism"]],
        settings=settings,
        summary=find_registration(str(settings["name"])).summary,
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
    """Return the newest check of the current plan on the records, and what it found."""
    checked = bench.latest("check-plan", plan=bench.history.current)
    return checked, {} if checked is None or checked.state != "done" else checked.document()


def start_plan(request: Request) -> Response:
    """Start a plan for another method, proposed from the codebook; keep the old plan in the history."""
    bench, form = bench_of(request), form_of(request)
    name = last_text(form, "mechanism")
    kind = find_registration(name).load()
    with bench.workspace.lock:
        text = propose_text(kind, bench.require_data().file, bench.workspace.plans)
        bench.history.add(text, f"begin with {name}")
    return RedirectResponse("/promise", 303)


def save_promise(request: Request) -> Response:
    """Keep the form as a new version of the plan."""
    bench, form = bench_of(request), form_of(request)
    with bench.workspace.lock:
        before = bench.document()
        part = _part(request, before)
        try:
            found = apply_form(before, form, part)
            require_reasons(found)
            text = edit_text(bench.history.text(), found)
            bench.stating.read(found)
            refused = None
        except StirredError as error:
            refused = Refusal.of(error)
        else:
            bench.history.add(
                text, _describe_promise_change(before["mechanism"][part], found["mechanism"][part])
            )
    if refused is not None:
        return promise(request, _safe(before, form, part), refused, part)
    return RedirectResponse("/method" if last_text(form, "next") else f"/promise?part={part}", 303)


def answer(request: Request) -> Response:
    """Show what the form would promise; keep nothing."""
    bench, form = bench_of(request), form_of(request)
    chosen = bench.require_data()
    try:
        now = bench.document()
        part = _part(request, now)
        result = bench.stating.answer(
            apply_form(now, form, part), bench.ground(), part=part, largest=chosen.largest
        )
    except StirredError as error:
        result = PromiseAnswer(records=chosen.read, refusal=Refusal.of(error))
    return fragment(request, "promise_answer.html.j2", answer=result, chosen=chosen)


def universe_size(request: Request) -> Response:
    """Show how many data sets agree on the invariants; it does not depend on the slider."""
    bench = bench_of(request)
    return fragment(request, "universe.html.j2", sizes=measure_universe(bench.plan(), bench.ground()))


def universe_of_form(request: Request) -> Response:
    """Show the size of the universe for the form as it is ticked; keep nothing."""
    bench, form = bench_of(request), form_of(request)
    now = bench.document()
    try:
        asked = bench.plan_of(text_of(apply_form(now, form, _part(request, now))))
    except StirredError as error:
        return fragment(request, "universe.html.j2", sizes=[make_not_counted(error)])
    return fragment(request, "universe.html.j2", sizes=measure_universe(asked, bench.ground()))


def apply_form(document: Document, form: Form, part: int) -> Document:
    """Return the document after a form about one of its mechanisms."""
    settings = document["mechanism"][part]
    fixed = {key: settings[key] for key in FIXED if key in settings}
    own = {key: value for key, value in settings.items() if key not in FIXED}
    config = find_registration(str(settings["name"])).Config
    mechanisms = [dict(one) for one in document["mechanism"]]
    mechanisms[part] = {**fixed, **settings_of(config, form, own)}
    found = {**document, "mechanism": mechanisms}
    if "reason" in found:
        found["reason"] = [dict(one) for one in found["reason"]]
    for name, setting in list_accepted(found):
        text = last_text(form, f"why.{setting}.{name}")
        if text:
            with_reason(found, subject(name, setting), text)
    return found


def _safe(document: Document, form: Form, part: int) -> Document:
    """Return the document after the form where the form can be shown again, else the document as it was."""
    try:
        return apply_form(document, form, part)
    except StirredError:
        return document


def _part(request: Request, document: Document) -> int:
    """Return the number of the mechanism that the form is about."""
    text = request.query_params.get("part", "0")
    number = int(text) if text.isdecimal() and len(text) < 4 else 0
    return number if number < len(document["mechanism"]) else 0


def _methods() -> list[dict[str, str]]:
    return [{"name": item.name, "summary": item.summary} for item in list_mechanisms().values()]


def _reasons(document: Document) -> list[dict[str, str]]:
    """Return what is accepted by name, with its reason."""
    written = {str(one.get("invariant", "")): str(one.get("text", "")) for one in document.get("reason", [])}
    return [
        {"name": name, "setting": setting, "text": written.get(subject(name, setting), "")}
        for name, setting in list_accepted(document)
    ]


def _list_promise_commands(bench: Workbench) -> list[commands.ShownCommand]:
    number = bench.history.current
    return [commands.check_plan(f"plans/{number:04}.toml")] if number else []


def _describe_promise_change(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Describe what was changed, by the names of the settings."""
    names = [key for key in {**before, **after} if before.get(key) != after.get(key)]
    return "change " + ", ".join(names) if names else "no setting changed"
