"""Attacks on a real server over a real socket, where no client tidies up the address or the headers."""

import http.client
import json
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from bench_server import RunningBench

SECRET = "4711-confidential"


def answered(
    server: RunningBench, method: str, path: str, *, body: object = None, **headers: str
) -> tuple[int, str]:
    """One request as it is written; the names of headers have hyphens for underscores."""
    line = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    try:
        line.putrequest(method, path, skip_host="host" in headers, skip_accept_encoding=True)
        for name, value in headers.items():
            line.putheader(name.replace("_", "-"), value)
        line.endheaders(body, encode_chunked=True)  # type: ignore[arg-type]
        reply = line.getresponse()
        return reply.status, reply.read().decode()
    finally:
        line.close()


def test_attacks_over_a_socket(server: RunningBench) -> None:
    known, csrf = server.enter()
    token = server.address.partition("token=")[2]
    assert answered(server, "GET", f"/?token={token}")[0] == 403  # it opens the workbench once
    assert answered(server, "GET", "/data", **known)[0] == 200
    # no token, a wrong one, and another name of this machine
    assert answered(server, "GET", f"/data?{SECRET}")[0] == 401
    assert answered(server, "GET", f"/?token={SECRET}")[0] == 403
    for host in ("evil.example", f"evil.example:{server.port}", "127.0.0.1"):
        assert answered(server, "GET", "/data", host=host, **known)[0] == 421
    # paths that a browser would have tidied up
    for path in ("/static/../../secret", "/static/%2e%2e/%2e%2e/secret", "/../secret", "//secret",
                 "/look/1/report/../../../secret", "/packet/../secret/download/public"):  # fmt: skip
        status, text = answered(server, "GET", path, **known)
        assert status in (404, 422), path
        assert token not in text
    # a file that does not end, sent in chunks that name no length
    sent = 0

    def endless() -> Iterator[bytes]:
        nonlocal sent
        yield (
            f"--xx\r\ncontent-disposition: form-data; name=csrf\r\n\r\n{csrf}\r\n--xx\r\n"
            f'content-disposition: form-data; name=files; filename="{SECRET}.csv"\r\n\r\n'
        ).encode()
        while sent < 2 << 30:
            sent += 1 << 16
            yield SECRET.encode() * 4096

    try:
        status, _ = answered(
            server,
            "POST",
            "/data/upload",
            body=endless(),
            content_type="multipart/form-data; boundary=xx",
            transfer_encoding="chunked",
            **known,
        )
    except ConnectionError:  # the server answered and hung up while more was sent
        status = 413
    assert status == 413
    assert sent < 64 << 20
    assert list((server.folder / "census").iterdir()) == []
    # a hundred at once
    with ThreadPoolExecutor(100) as crowd:
        replies = crowd.map(lambda _: answered(server, "GET", "/calculators", **known)[0], range(100))
        assert list(replies) == [200] * 100
    code, said = server.kill(signal.SIGTERM)
    assert code == 0
    assert said.startswith("the workbench is closed")
    log = (server.folder / "serve.log").read_text()
    assert SECRET not in log + said
    assert token not in log
    lines = [json.loads(line) for line in log.splitlines()]
    assert {"method", "handler", "status", "ms", "time"} == set().union(*lines)
    assert {413, 421, 401, 403, 200, 404} <= {line["status"] for line in lines}
