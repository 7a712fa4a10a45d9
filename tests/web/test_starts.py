"""Starts of the workbench: secrets of its own, a Unix socket, connections that say nothing, and other users."""

import asyncio
import http.client
import os
import socket
import stat
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Thread

import pytest

from bench_client import BenchClient
from bench_server import RunningBench
from stirred.errors import InputError
from stirred.web import security
from stirred.web import server as server_module
from stirred.web.server import create_app, make_server, open_port, open_unix_socket
from stirred.web.workbench import Workbench

SILENT = 450


@pytest.mark.slow
def test_a_cookie_of_an_earlier_start_opens_nothing(server: RunningBench) -> None:
    cookie, csrf = server.enter()
    first = server.address
    assert server.ask("GET", "/data", **cookie)[0].status == 200
    server.kill()
    server.start()  # at the same port, in the same folder
    assert server.address != first
    assert server.ask("GET", "/data", **cookie)[0].status == 401
    form = "application/x-www-form-urlencoded"
    sent = server.ask("POST", "/data/read", f"csrf={csrf}&read=yes", content_type=form, **cookie)
    assert sent[0].status == 401
    assert server.ask("GET", first.removeprefix(server.origin))[0].status == 403


@contextmanager
def served(bench: Workbench, listens: socket.socket, port: int) -> Iterator[None]:
    """The server of the workbench in a thread of this process."""
    server = make_server(create_app(bench, port=port, for_owner=True))
    thread = Thread(target=lambda: asyncio.run(server.serve(sockets=[listens])))
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield
    finally:
        server.should_exit = True
        thread.join()
        listens.close()


def test_silent_connections_do_not_stop_the_workbench(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "MAX_HEAD_SECONDS", 1.5)
    listens = open_port("127.0.0.1", 0)
    port = int(listens.getsockname()[1])
    cookie = {"cookie": f"stirred_{port}={bench.session.cookie}"}
    with served(bench, listens, port), ExitStack() as crowd:
        silent = [crowd.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in range(SILENT)]
        for one in silent[::9]:  # and some that send their request letter by letter
            with suppress(ConnectionError):
                one.sendall(b"GET / HTTP/1.1\r\nx-slow: ")
        for _ in range(5):
            began = time.monotonic()
            line = http.client.HTTPConnection("127.0.0.1", port)
            line.request("GET", "/calculators", headers=cookie)
            assert line.getresponse().status == 200
            assert time.monotonic() - began < 2
            line.close()
        for one in silent[-2:]:
            one.settimeout(10)
            assert _is_closed(one)  # in time, without a request


def _is_closed(one: socket.socket) -> bool:
    try:
        return one.recv(1) == b""
    except ConnectionResetError:
        return True


def test_a_unix_socket_is_open_to_its_owner_alone(bench: Workbench, tmp_path: Path) -> None:
    path = tmp_path / "office.sock"
    with served(bench, open_unix_socket(path), 8642):
        found = path.stat().st_mode
        assert stat.S_ISSOCK(found)
        assert stat.S_IMODE(found) == 0o600
        line = http.client.HTTPConnection("localhost", 8642)
        line.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        line.sock.connect(str(path))
        line.request("GET", f"/?token={bench.session.token}")
        reply = line.getresponse()
        reply.read()
        assert (reply.status, reply.getheader("location")) == (303, "/")
        cookie = {"cookie": str(reply.getheader("set-cookie")).split(";")[0]}
        line.request("GET", "/calculators", headers=cookie)
        assert line.getresponse().status == 200
        line.close()
        with pytest.raises(InputError):  # another server does not take the place of one that listens
            open_unix_socket(path)


def test_a_socket_that_a_killed_server_left_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "office.sock"
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(path))
    left.close()
    open_unix_socket(path).close()
    path.unlink()
    path.write_text("notes of somebody")
    with pytest.raises(InputError):
        open_unix_socket(path)
    assert path.read_text() == "notes of somebody"
    with pytest.raises(InputError):
        open_unix_socket(tmp_path / ("x" * 200))


def test_another_user_is_refused_also_with_the_cookie(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A browser sends its cookies for 127.0.0.1 to every port of it: a page of another local user can learn one."""
    client = BenchClient(bench)
    client.app = create_app(bench, port=8642, for_owner=True)
    listed = tmp_path / "tcp"
    monkeypatch.setitem(security.SOCKET_LISTS, socket.AF_INET, listed)
    row = "   1: 0100007F:0001 0100007F:21C2 01 00000000:00000000 00:00000000 00000000 {} 0 1\n"
    for user, status in ((os.geteuid(), 200), (0, 200), (4711, 403)):
        listed.write_text("  sl  local_address\n" + row.format(user))
        assert client.get("/calculators").status == status
    assert client.get(f"/?token={bench.session.token}", session=False).status == 403
    listed.write_text("")  # not known: the cookie decides
    assert client.get("/calculators").status == 200


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="only Linux lists the owners of sockets")
def test_the_owner_of_a_connection_is_known() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as one,
    ):
        assert security.find_user(one.getsockname(), server.getsockname()) == os.geteuid()
