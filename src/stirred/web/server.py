"""Serve the workbench: static files, error pages, the application of all screens, and the server on loopback."""

import asyncio
import json
import os
import socket
import stat
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from importlib.resources import files
from pathlib import Path
from threading import Thread

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from stirred.errors import InputError, MissingExtraError, StirredError
from stirred.web.pages import page, prepare_templates
from stirred.web.screens import calculators, compare, data, packet, plan, run
from stirred.web.security import Gate, RequestLog, RequestRefused
from stirred.web.workbench import Workbench

# Scripts and styles: a fixed list of files of the program.

KINDS = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
OWN = {
    "workbench.css": ("stirred.web", "static/workbench.css"),
    "icon.svg": ("stirred.web", "static/icon.svg"),
    "workbench.js": ("stirred.web", "static/workbench.js"),
    "calculators.js": ("stirred.web", "static/calculators.js"),
    "report.css": ("stirred.report", "templates/report.css"),
    "report.js": ("stirred.report", "templates/report.js"),
    "card.css": ("stirred.spec.card", "templates/card.css"),
}
LOCALE = {
    "decimal": ".",
    "thousands": ",",
    "grouping": [3],
    "currency": ["", ""],
    "percent": "%",
    "minus": "−",
}


def static(request: Request) -> Response:
    """Return one of the listed files; look up no other name."""
    name = str(request.path_params["name"])
    if name not in OWN:
        raise HTTPException(404)
    kind = KINDS["." + name.rpartition(".")[2]]
    return Response(_content(name), media_type=kind, headers={"cache-control": "private, max-age=3600"})


@cache
def _content(name: str) -> bytes:
    package, place = OWN[name]
    content = files(package).joinpath(place).read_bytes()
    if name == "report.js":
        content = f"const locale = {json.dumps(LOCALE)};\n".encode() + content
    return content


# Pages for what cannot be done: what, why and the way out; a fault shows nothing but that it happened.


def show_refusal(request: Request, error: Exception) -> Response:
    """Show an error of Stirred; its message names no value of a record."""
    if not isinstance(error, StirredError):
        return show_fault(request, error)
    status = 501 if isinstance(error, MissingExtraError) else 422
    return page(request, "refused.html.j2", title="This cannot be done", error=error, status=status)


def show_not_found(request: Request, error: Exception) -> Response:
    """Show that the workbench has no such address."""
    status = error.status_code if isinstance(error, HTTPException) else 404
    told = StirredError(
        "There is no such page",
        why="the workbench has no page of this address",
        fix="start at the first page",
    )
    return page(request, "refused.html.j2", title="There is no such page", error=told, status=status)


def show_turned_away(request: Request, error: Exception) -> Response:
    """Show that the server refuses a request: too large, or not a form of this workbench."""
    status, words = (error.status, error.words) if isinstance(error, RequestRefused) else (400, "")
    told = StirredError("This was not taken", why=words, fix="go back, and change what is sent")
    return page(request, "refused.html.j2", title="This was not taken", error=told, status=status)


def show_fault(request: Request, error: Exception) -> Response:
    """Show that the program failed, without the message, which may name a value."""
    told = StirredError(
        "A fault of the workbench",
        why=f"it is of the kind {type(error).__name__}; nothing was changed",
        fix="go back and try again; serve.log in the folder of the workbench names the place in the program",
    )
    return page(request, "refused.html.j2", title="A fault", error=told, status=500)


# The application: all screens behind one gate.

SCREENS = (
    data.start_routes,
    data.data_routes,
    plan.promise_routes,
    plan.method_routes,
    run.run_routes,
    packet.look_routes,
    compare.compare_routes,
    packet.packet_routes,
    plan.history_routes,
    calculators.calculator_routes,
)


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
    for list_routes in SCREENS:
        routes += list_routes()
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


# Connections to the workbench: one that says nothing is closed, and many of them do not keep a browser out.

MAX_OPEN_CONNECTIONS = 200  # connections; with another one the oldest that waits for a request is closed
MAX_HEAD_SECONDS = 5.0  # from the first moment of a connection until its request has all its headers


class BoundedProtocol(H11Protocol):
    """A connection with a bounded time for the head of a request; it makes room for others while it has none."""

    head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request; close the connection that has waited longest where there are too many."""
        super().connection_made(transport)
        self._await_head()
        if len(self.connections) > MAX_OPEN_CONNECTIONS:
            self._make_room()

    def data_received(self, data: bytes) -> None:
        """Read what was sent; the time for the head of a request ends when all of it is there."""
        if self.head_timer is None and not self.is_busy:  # the next request of a connection that is kept
            self._await_head()
        super().data_received(data)
        if self.is_busy:
            self._stop_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._stop_timer()
        super().connection_lost(exc)

    @property
    def is_busy(self) -> bool:
        """Return whether a request was taken and is not answered yet."""
        return self.cycle is not None and not self.cycle.response_complete

    def _await_head(self) -> None:
        self._stop_timer()
        self.head_timer = self.loop.call_later(MAX_HEAD_SECONDS, self._close_silent)

    def _stop_timer(self) -> None:
        if self.head_timer is not None:
            self.head_timer.cancel()
            self.head_timer = None

    def _close_silent(self) -> None:
        self.head_timer = None
        if not self.is_busy and not self.transport.is_closing():
            self.transport.abort()

    def _make_room(self) -> None:
        """Close the connection without a request that was opened first; the set of connections has no order."""
        waiting = [one for one in self.connections if isinstance(one, BoundedProtocol) and one is not self]
        silent = [one for one in waiting if not one.is_busy and not one.transport.is_closing()]
        if silent:
            oldest = min(silent, key=lambda one: one.patience)
            self.connections.discard(oldest)
            oldest.transport.abort()

    @property
    def patience(self) -> tuple[bool, float]:
        """Return the sort key for closing: connections without any request first, then the longest wait."""
        return self.cycle is not None, 0.0 if self.head_timer is None else self.head_timer.when()


# Start the server: on the loopback interface or a Unix socket, with a token, and without a log of addresses.

LOOPBACK = ("127.0.0.1", "localhost", "::1")
MAX_REQUESTS = 400  # requests that are being answered; more are told to come again
SOCKET_MODE = 0o600


def open_port(host: str, port: int) -> socket.socket:
    """Return a socket that listens; port 0 takes a free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen(128)  # a browser that is quicker than the server waits
    except OSError as error:
        made.close()
        raise InputError(
            f"cannot listen at port {port}",
            why=error.strerror or "the system gives no reason",
            fix="choose another one: stirred serve --port 0 takes any that is free",
        ) from None
    return made


def open_unix_socket(path: Path) -> socket.socket:
    """Return a Unix socket that listens for its owner alone; replace one that a killed server left."""
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    mask = os.umask(0o777 & ~SOCKET_MODE)
    try:
        if os.path.lexists(path) and _is_abandoned(path):
            path.unlink()
        made.bind(str(path))
        made.listen(128)
    except (OSError, ValueError) as error:
        made.close()
        raise InputError(
            f"cannot listen at {path.name}",
            why=getattr(error, "strerror", None) or "the path is in use, or too long for a socket",
            fix="choose another --socket, in a folder that you may write to; about 100 characters at most",
        ) from None
    finally:
        os.umask(mask)
    return made


def _is_abandoned(path: Path) -> bool:
    """Return whether a path is a socket of this user at which nobody listens."""
    found = path.lstat()
    if not stat.S_ISSOCK(found.st_mode) or found.st_uid != os.geteuid():
        return False
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            return True
        except OSError:
            return False
    return False


def address(host: str, port: int, token: str) -> str:
    """Return the address to open, which works once: the browser gets a cookie in place of the token."""
    named = "127.0.0.1" if host in ("", "0.0.0.0", "::") else f"[{host}]" if ":" in host else host
    return f"http://{named}:{port}/?token={token}"


def make_server(app: Gate) -> uvicorn.Server:
    """Return a server that writes no log of its own and bounds what a connection may wait for."""
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        http=BoundedProtocol,
        ws="none",
        loop="asyncio",
        lifespan="off",
        limit_concurrency=MAX_REQUESTS,
        timeout_keep_alive=15,
        timeout_graceful_shutdown=3,
    )
    return uvicorn.Server(config)


def serve(
    workbench: Workbench,
    *,
    host: str,
    port: int,
    names: Iterable[str] = (),
    at: Path | None = None,
    told: Callable[[str], None] | None = None,
) -> None:
    """Serve until the process is asked to end, at a port or at the Unix socket ``at``; running jobs go on.

    Other users of this machine are refused where only this machine can call and no other name is given, as a proxy needs.
    """
    if at is None:
        place = open_port(host, port)
        port = int(place.getsockname()[1])
    else:
        place = open_unix_socket(at)
    names = tuple(names) if host in LOOPBACK else (*names, host)
    server = make_server(create_app(workbench, port=port, names=names, for_owner=not names))
    workbench.workspace.remove_abandoned()
    workbench.line.start()
    prepare_templates(workbench)
    Thread(target=workbench.warm, daemon=True).start()
    if told is not None:
        told(address(host, port, workbench.session.token))
    try:
        asyncio.run(server.serve(sockets=[place]))
    finally:
        workbench.line.close()
        place.close()
        if at is not None:
            with suppress(OSError):
                at.unlink()
