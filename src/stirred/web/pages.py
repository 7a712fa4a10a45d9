"""Pages from templates: those of the workbench, and those of the report with the report's own words."""

from collections.abc import Sequence
from functools import lru_cache

from jinja2 import ChoiceLoader, Environment, PackageLoader
from starlette.requests import Request
from starlette.responses import HTMLResponse

from stirred.languages import Language, Phrase
from stirred.report.document import CHAPTERS, Report
from stirred.report.html import environment as report_environment
from stirred.spec.card.compiling import CompiledTemplates
from stirred.spec.card.formats import fragment as card_fragment
from stirred.web.forms.values import Form
from stirred.web.jobs.commands import ShownCommand
from stirred.web.steps import steps_of
from stirred.web.workbench import Workbench

VERSION = "1"


@lru_cache(maxsize=1)
def environment() -> Environment:
    """The templates of the workbench before those of the report."""
    own, report = PackageLoader("stirred.web", "templates"), PackageLoader("stirred.report", "templates")
    return report_environment().overlay(
        loader=ChoiceLoader([own, report]), bytecode_cache=CompiledTemplates(__file__)
    )


def prepare_templates() -> None:
    """Compile every template of the workbench, so that the first page comes as fast as the others."""
    for name in environment().list_templates(filter_func=lambda name: name.endswith(".html.j2")):
        environment().get_template(name)


def bench_of(request: Request) -> Workbench:
    """The workbench of a request."""
    found: Workbench = request.app.state.workbench
    return found


def form_of(request: Request) -> Form:
    """The form that was sent; the gate has read it and held it against the session."""
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
    """A whole page with the line of steps and the equivalent commands."""
    bench = bench_of(request)
    text = (
        environment()
        .get_template(template)
        .render(
            title=title,
            step=step,
            steps=steps_of(bench),
            shown=shown,
            folder=str(bench.workspace.folder),
            **_words(request),
            **values,
        )
    )
    return HTMLResponse(text, status)


def fragment(request: Request, template: str, **values: object) -> HTMLResponse:
    """A part of a page, for a script that replaces it."""
    return HTMLResponse(environment().get_template(template).render(**_words(request), **values))


def _words(request: Request) -> dict[str, object]:
    """What every template may say: the words of the report in English, the card, and the token of forms."""
    language = Language.of("en")
    return {
        "csrf": bench_of(request).session.csrf,
        "version": VERSION,
        "language": language,
        "said": language.translated,
        "say": language.say,
        "names": {name: Phrase(f"report.chapter.{name}") for name in CHAPTERS},
        "card": lambda card: card_fragment(card, level=3),
        "report": Report(title="", subtitle="", audience="internal", sections=()),
    }
