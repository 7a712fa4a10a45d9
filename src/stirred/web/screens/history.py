"""History: every version of the plan, what changed in it, undo and redo."""

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from stirred.web.forms.values import last_text
from stirred.web.jobs import commands
from stirred.web.pages import bench_of, form_of, page
from stirred.web.workbench import Workbench


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
