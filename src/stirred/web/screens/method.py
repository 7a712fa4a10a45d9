"""Method: all other settings, the tables, the reasons, and who answers for the budget."""

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from stirred.errors import StirredError
from stirred.file_names import make_file_name
from stirred.languages.catalog import CODES
from stirred.mechanisms.registry import find_registration
from stirred.publish.before.check import same_invariant
from stirred.web.forms.document import Document, document_of
from stirred.web.forms.edited import edit_text
from stirred.web.forms.fields import fields_of
from stirred.web.forms.reasons import list_accepted, require_reasons, subject, with_reason
from stirred.web.forms.values import Form, last_text
from stirred.web.jobs import commands
from stirred.web.pages import bench_of, form_of, page
from stirred.web.screens.promise import apply_form, main_fields
from stirred.web.stating.answer import Refusal

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
                "label": str(settings.get("label", settings["name"])),
                "fields": [field for field in fields_of(config, settings) if field.name not in before],
            }
        )
    number = bench.history.current
    return page(
        request,
        "method.html.j2",
        title="Method",
        step="method",
        shown=[commands.check_plan(f"plans/{number:04}.toml")],
        document=found,
        mechanisms=mechanisms,
        tables=[*_tables(found), *({"name": "", "by": "", "record_type": ""} for _ in range(EMPTY_ROWS))],
        record_types=list(chosen.schema.record_types),
        kept=[{"words": one.words, **_reason(found, one.words)} for one in result.kept],
        accepted=[
            {"name": name, "setting": setting, **_reason(found, subject(name, setting))}
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
