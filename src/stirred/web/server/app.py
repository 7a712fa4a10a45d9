"""The application: all screens behind one gate."""

from collections.abc import Iterable

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.routing import Route

from stirred.errors import StirredError
from stirred.web.screens import calculators, compare, data, history, look, method, packet, promise, run, start
from stirred.web.server.errors import show_fault, show_not_found, show_refusal, show_turned_away
from stirred.web.server.files import static
from stirred.web.server.log import RequestLog
from stirred.web.server.security import Gate, RequestRefused
from stirred.web.workbench import Workbench

SCREENS = (start, data, promise, method, run, look, compare, packet, history, calculators)


def hosts_of(port: int, names: Iterable[str] = ()) -> frozenset[str]:
    """Return the host names by which a browser may call a workbench; those of a proxy also without a port."""
    local = {f"{name}:{port}" for name in ("127.0.0.1", "localhost", "[::1]")}
    others = {told.lower() for name in names for told in (name, f"{name}:{port}")}
    return frozenset(local | others)


def create_app(
    workbench: Workbench, *, port: int, names: Iterable[str] = (), for_owner: bool = False
) -> Gate:
    """Return the application of a workbench at a port; with ``for_owner`` refuse other users."""
    routes = [Route("/static/{name}", static)]
    for screen in SCREENS:
        routes += screen.routes()
    inner = Starlette(
        routes=routes,
        exception_handlers={
            StirredError: show_refusal,
            RequestRefused: show_turned_away,
            HTTPException: show_not_found,
            Exception: show_fault,
        },
    )
    inner.state.workbench = workbench
    return Gate(
        inner=inner,
        session=workbench.session,
        hosts=hosts_of(port, names),
        cookie=f"stirred_{port}",
        log=RequestLog.of(workbench.workspace.folder),
        roots=workbench.workspace.readable_folders,
        for_owner=for_owner,
    )
