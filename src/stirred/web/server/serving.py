"""Start the server: on the loopback interface, with a token, and without a log of addresses."""

import asyncio
import socket
from collections.abc import Callable, Iterable
from threading import Thread

import uvicorn

from stirred.errors import InputError
from stirred.web.pages import prepare_templates
from stirred.web.server.app import create_app
from stirred.web.workbench import Workbench

LOOPBACK = ("127.0.0.1", "localhost", "::1")
MOST_AT_ONCE = 400  # connections; more are told to come again


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens; port 0 takes a free one."""
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


def address(host: str, port: int, token: str) -> str:
    """The address to open once: the token is kept as a cookie and then disappears from it."""
    named = "127.0.0.1" if host in ("", "0.0.0.0", "::") else f"[{host}]" if ":" in host else host
    return f"http://{named}:{port}/?token={token}"


def serve(
    workbench: Workbench,
    *,
    host: str,
    port: int,
    names: Iterable[str] = (),
    told: Callable[[str], None] | None = None,
) -> None:
    """Serve until the process is asked to end; a job that runs goes on."""
    place = listening(host, port)
    port = int(place.getsockname()[1])
    app = create_app(workbench, port=port, names=names if host in LOOPBACK else (*names, host))
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        http="h11",
        ws="none",
        loop="asyncio",
        lifespan="off",
        limit_concurrency=MOST_AT_ONCE,
        timeout_keep_alive=15,
        timeout_graceful_shutdown=3,
    )
    server = uvicorn.Server(config)
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
