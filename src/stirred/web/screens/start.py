"""The first page: what the workbench is for, and where to begin."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from stirred.web.jobs import commands
from stirred.web.pages import bench_of, page


def start_routes() -> list[Route]:
    """Return the addresses of this screen."""
    return [Route("/", start)]


def start(request: Request) -> Response:
    """Show the steps, the demo and the calculators."""
    bench = bench_of(request)
    has_data = bench.data.read_choice() is not None
    shown = [commands.serve(".")] if has_data else [commands.serve("."), commands.synth()]
    return page(request, "start.html.j2", title="Workbench", shown=shown, has_data=has_data)
