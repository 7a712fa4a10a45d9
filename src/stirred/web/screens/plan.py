"""Show and change the plan: promise and main settings, all other settings, and the history of versions."""

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from stirred._support import make_file_name
from stirred.errors import StirredError
from stirred.languages.phrase import CODES
from stirred.mechanisms.config import MechanismConfig, list_varied
from stirred.mechanisms.registry import find_registration, list_mechanisms
from stirred.publish.check import same_invariant
from stirred.web import commands
from stirred.web.document import (
    Document,
    document_of,
    edit_text,
    label_setting,
    list_accepted,
    propose_text,
    require_reasons,
    subject,
    text_of,
    with_reason,
)
from stirred.web.forms import Form, FormField, fields_of, last_text, settings_of, variables_of
from stirred.web.jobs import Job
from stirred.web.pages import bench_of, form_of, fragment, name_method, page
from stirred.web.promise import PromiseAnswer, Refusal, make_not_counted, measure_universe
from stirred.web.workbench import Workbench

# Method: the method, its promise and its main settings; sentence, invariants and budget change as a slider moves.

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
    """Return the settings that decide the promise: required ones, lists of variables, rates and budgets."""
    found, varied = fields_of(config, settings), list_varied(config)
    return [
        field
        for place, field in enumerate(found)
        if place == 0 or field.required or field.kind == "variables" or field.name in varied
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
            title="Method",
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
        result = PromiseAnswer(records=chosen.read, refusal=refusal, sliders=result.sliders)
    return page(
        request,
        "promise.html.j2",
        title="Method",
        step="promise",
        shown=_list_promise_commands(bench),
        document=found,
        part=number,
        parts=[str(one.get("label", name_method(str(one["name"])))) for one in found["mechanism"]],
        settings=settings,
        slider_labels={field.name: field.label for field in fields_of(config, settings)},
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
        bench.history.add(text, f"begin with {name_method(name)}")
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
    onwards = {"": f"/promise?part={part}", "run": "/run"}  # a visit goes to the run at once
    return RedirectResponse(onwards.get(last_text(form, "next"), "/method"), 303)


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


def _methods() -> list[dict[str, object]]:
    """Return all methods with their labels; those that are ways to swap stand behind the others."""
    found = [
        {"name": one.name, "label": one.title, "summary": one.summary, "more": one.family == "swap"}
        for one in list_mechanisms().values()
    ]
    found[0]["more"] = False  # the swap itself
    return found


def _reasons(document: Document) -> list[dict[str, str]]:
    """Return what is accepted by name, with its reason."""
    written = {str(one.get("invariant", "")): str(one.get("text", "")) for one in document.get("reason", [])}
    return [
        {
            "name": name,
            "setting": setting,
            "label": label_setting(document, setting),
            "text": written.get(subject(name, setting), ""),
        }
        for name, setting in list_accepted(document)
    ]


def _list_promise_commands(bench: Workbench) -> list[commands.ShownCommand]:
    number = bench.history.current
    return [commands.check_plan(f"plans/{number:04}.toml")] if number else []


def _describe_promise_change(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Describe what was changed, by the names of the settings."""
    names = [key for key in {**before, **after} if before.get(key) != after.get(key)]
    return "change " + ", ".join(names) if names else "no setting changed"


# Publication: all other settings, the tables, the reasons, and who answers for the budget.

KINDS = ("law", "operation", "utility")
EMPTY_ROWS = 2  # tables that can be added at once


def method_routes() -> list[Route]:
    """Return the addresses of this screen."""
    return [
        Route("/method", method),
        Route("/method", save_method, methods=["POST"]),
        Route("/method/text", save_text, methods=["POST"]),
    ]


def method(
    request: Request, document: Document | None = None, refusal: Refusal | None = None, text: str = ""
) -> Response:
    """Show the form of everything that the promise screen does not ask."""
    bench = bench_of(request)
    found = bench.document() if document is None else document
    chosen = bench.require_data()
    result = bench.stating.answer(found, bench.ground(), largest=chosen.largest)
    mechanisms = []
    for settings in found["mechanism"]:
        config = find_registration(str(settings["name"])).Config
        before = {field.name for field in main_fields(config, settings)}
        mechanisms.append(
            {
                "label": str(settings.get("label", name_method(str(settings["name"])))),
                "fields": [field for field in fields_of(config, settings) if field.name not in before],
            }
        )
    number = bench.history.current
    return page(
        request,
        "method.html.j2",
        title="Publication",
        step="method",
        shown=[commands.check_plan(f"plans/{number:04}.toml")],
        document=found,
        mechanisms=mechanisms,
        tables=[*_tables(found), *({"name": "", "by": "", "record_type": ""} for _ in range(EMPTY_ROWS))],
        record_types=list(chosen.schema.record_types),
        kept=[{"words": one.words, **_reason(found, one.words)} for one in result.kept],
        accepted=[
            {
                "name": name,
                "label": label_setting(found, setting),
                **_reason(found, subject(name, setting)),
            }
            for name, setting in list_accepted(found)
        ],
        kinds=KINDS,
        languages=list(CODES),
        answer=result,
        refusal=refusal,
        text=text or bench.history.text(),
        status=422 if refusal else 200,
    )


def save_method(request: Request) -> Response:
    """Keep the form as a new version of the plan."""
    bench, form = bench_of(request), form_of(request)
    with bench.workspace.lock:
        before = bench.document()
        found, refused = before, None
        try:
            for part in range(len(before["mechanism"])):
                found = apply_form(found, _of_part(form, part), part)
            found = _apply_description(found, form)
            require_reasons(found)
            bench.stating.read(found)
        except StirredError as error:
            refused = Refusal.of(error)
        else:
            bench.history.add(edit_text(bench.history.text(), found), _describe_method_change(before, found))
    if refused is not None:
        return method(request, before, refused)
    return RedirectResponse("/run" if last_text(form, "next") else "/method", 303)


def save_text(request: Request) -> Response:
    """Keep a plan that was written by hand."""
    bench, form = bench_of(request), form_of(request)
    text = last_text(form, "text") + "\n"
    try:
        found = document_of(text)
        require_reasons(found)
        bench.plan_of(text)
    except StirredError as error:
        return method(request, None, Refusal.of(error), text)
    except ValueError:
        refused = Refusal(what="the plan is not valid TOML", why="it cannot be read", fix="correct its text")
        return method(request, None, refused, text)
    bench.history.add(text, "written by hand")
    return RedirectResponse("/method", 303)


def _of_part(form: Form, part: int) -> Form:
    """Return the fields of one mechanism, whose names have its number before them in this form."""
    mark = f"{part}:"
    return {name.removeprefix(mark): sent for name, sent in form.items() if name.startswith(mark)}


def _apply_description(document: Document, form: Form) -> Document:
    """Return the document with title, tables, formats, reasons, owner, limit and language of a form."""
    found = {**document, "title": last_text(form, "title") or document.get("title", "")}
    found["reason"] = [dict(reason) for reason in document.get("reason", [])]
    tables = [
        table
        for number in range(len(form.get("table.name", ())))
        if (table := _table(form, number, document))
    ]
    if tables:
        found["table"] = tables
    else:
        found.pop("table", None)
    publish = {**document.get("publish", {}), "microdata": "on" in form.get("microdata", ())}
    found["publish"] = {**publish, "formats": ["parquet", *(["csv"] if "on" in form.get("csv", ()) else [])]}
    budget = {**document.get("budget", {}), "owner": last_text(form, "owner")}
    budget.pop("limit", None)
    found["budget"] = budget | ({"limit": last_text(form, "limit")} if last_text(form, "limit") else {})
    found["assess"] = {**document.get("assess", {}), "utility": "on" in form.get("utility", ())}
    found.pop("language", None)
    if last_text(form, "language", "en") != "en":
        found["language"] = last_text(form, "language")
    for number, invariant in enumerate(form.get("reason.invariant", ())):
        kind = _at(form, "reason.kind", number) or "operation"
        citation = _at(form, "reason.citation", number)
        with_reason(found, invariant, _at(form, "reason.text", number), kind=kind, citation=citation)
    if not found.get("reason"):
        found.pop("reason", None)
    return found


def _table(form: Form, number: int, document: Document) -> dict[str, object] | None:
    """Return one table of the form, or None for a row without variables."""
    by = _at(form, "table.by", number).replace("×", " ").replace(",", " ").split()
    if not by:
        return None
    name = _at(form, "table.name", number) or make_file_name("-by-".join(reversed(by)))
    before: dict[str, object] = next(
        (dict(t) for t in document.get("table", []) if t.get("name") == name), {}
    )
    table: dict[str, object] = {**before, "name": name, "by": by}
    record_type = _at(form, "table.record_type", number)
    return table | ({"record_type": record_type} if record_type else {})


def _at(form: Form, name: str, number: int) -> str:
    sent = form.get(name, ())
    return sent[number].strip() if number < len(sent) else ""


def _tables(document: Mapping[str, Any]) -> list[dict[str, str]]:
    return [
        {
            "name": str(table.get("name", "")),
            "by": " ".join(table.get("by", [])),
            "record_type": str(table.get("record_type", "household")),
        }
        for table in document.get("table", [])
    ]


def _reason(document: Mapping[str, Any], words: str) -> dict[str, str]:
    """Return the reason that the plan states for an invariant, in any order of its variables."""
    for reason in document.get("reason", []):
        if same_invariant(str(reason.get("invariant", "")), words):
            return {key: str(reason.get(key, "")) for key in ("invariant", "kind", "text", "citation")}
    return {"invariant": words, "kind": "operation", "text": "", "citation": ""}


def _describe_method_change(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    names = [key for key in {**before, **after} if before.get(key) != after.get(key)]
    return "change " + ", ".join(names) if names else "no setting changed"


# History: every version of the plan, what changed in it, undo and redo.


def history_routes() -> list[Route]:
    """Return the addresses of this screen."""
    return [Route("/history", history), Route("/history/restore", restore, methods=["POST"])]


def history(request: Request) -> Response:
    """Show all versions, the newest first, each with the lines that it changed."""
    bench = bench_of(request)
    versions = list(reversed(bench.history.versions()))
    return page(
        request,
        "history.html.j2",
        title="History",
        shown=_list_history_commands(bench),
        versions=[{"version": v, "lines": bench.history.difference(v.parent, v.number)} for v in versions],
        current=bench.history.current,
        undo=bench.history.undo(),
        redo=bench.history.redo(),
    )


def _list_history_commands(bench: Workbench) -> list[commands.ShownCommand]:
    """Return the last change as a diff, and the check of the current plan."""
    current, parent = bench.history.current, bench.history.undo()
    if not current:
        return [commands.serve(".")]
    plan = f"plans/{current:04}.toml"
    changed = [commands.difference(f"plans/{parent:04}.toml", plan)] if parent else []
    return [*changed, commands.check_plan(plan)]


def restore(request: Request) -> Response:
    """Make a version current again."""
    bench, form = bench_of(request), form_of(request)
    text = last_text(form, "number")
    bench.history.restore(int(text) if text.isdecimal() and len(text) < 8 else 0)
    return RedirectResponse("/history" if last_text(form, "back") == "history" else "/promise", 303)
