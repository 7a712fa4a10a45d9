"""Start the server: on the loopback interface or a Unix socket, with a token, and without a log of addresses."""

import asyncio
import os
import socket
import stat
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from threading import Thread

import uvicorn

from stirred.errors import InputError
from stirred.web.pages import prepare_templates
from stirred.web.server.app import create_app
from stirred.web.server.connections import BoundedProtocol
from stirred.web.server.security import Gate
from stirred.web.workbench import Workbench

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
