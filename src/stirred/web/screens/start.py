"""The first page: what the workbench is for, and where to begin."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from stirred.web.pages import bench_of, page


def routes() -> list[Route]:
    """The addresses of this screen."""
    return [Route("/", start)]


def start(request: Request) -> Response:
    """The steps, the demo one click away, and the calculators."""
    bench = bench_of(request)
    return page(request, "start.html.j2", title="Workbench", has_data=bench.data.chosen() is not None)
