"""Pages from templates: those of the workbench, and those of the report with the report's own words."""

from collections.abc import Sequence
from functools import lru_cache

from jinja2 import ChoiceLoader, Environment, PackageLoader
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse

from stirred.languages import Language, Phrase
from stirred.report.document import CHAPTERS, Report
from stirred.report.html import environment as report_environment
from stirred.spec.card.compiling import TemplateCache
from stirred.spec.card.formats import write_fragment as card_fragment
from stirred.web.forms.values import Form
from stirred.web.jobs.commands import ShownCommand
from stirred.web.steps import steps_of
from stirred.web.workbench import Workbench

VERSION = "2"
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
    _render(bench, "start.html.j2", title="", step="", shown=(), has_data=False)


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
        .render(steps=steps_of(bench), folder=str(bench.workspace.folder), **_words(bench), **values)
    )


def fragment(request: Request, template: str, **values: object) -> HTMLResponse:
    """Render a part of a page, for a script that replaces it."""
    return HTMLResponse(environment().get_template(template).render(**_words(bench_of(request)), **values))


def _words(bench: Workbench) -> dict[str, object]:
    """Return what every template may use: the report's words in English, the card, the form token."""
    language = Language.of("en")
    return {
        "csrf": bench.session.csrf,
        "version": VERSION,
        "language": language,
        "said": language.translate,
        "say": language.say,
        "names": {name: Phrase(f"report.chapter.{name}") for name in CHAPTERS},
        "card": lambda card: card_fragment(card, level=3),
        "report": Report(title="", subtitle="", audience="internal", sections=()),
    }
