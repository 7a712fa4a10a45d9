"""Attacks on the workbench: refused or harmless, and logged without values."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.routing import Route

from bench_client import PORT, BenchClient
from stirred.web.jobs import Job
from stirred.web.workbench import Workbench

MULTIPART = "multipart/form-data; boundary=xx"
SECRET = "4711-confidential"


def part(name: str, text: str, file: str = "") -> bytes:
    named = f'; filename="{file}"' if file else ""
    return f'--xx\r\ncontent-disposition: form-data; name="{name}"{named}\r\n\r\n{text}\r\n'.encode()


def log_of(bench: Workbench) -> str:
    return (bench.workspace.folder / "serve.log").read_text()


def addresses(client: BenchClient) -> list[tuple[str, str]]:
    return [
        (method, route.path)
        for route in client.app.inner.routes  # type: ignore[attr-defined]
        if isinstance(route, Route)
        for method in sorted((route.methods or set()) - {"HEAD"})
    ]


def test_without_the_token_nothing_is_shown(client: BenchClient, bench: Workbench) -> None:
    for method, path in addresses(client):
        filled = path.replace("{number}", "1").replace("{part}", "public").replace("{name}", "workbench.js")
        reply = client.send(method, filled, session=False)
        assert reply.status == 401, path
        assert str(bench.workspace.folder) not in reply.text
        assert "set-cookie" not in reply.headers
    assert client.get("/?token=guess", session=False).status == 403
    forged = ("cookie", f"stirred_{PORT}={'0' * 64}")
    assert client.get("/data", session=False, headers=[forged]).status == 401


def test_the_token_leaves_the_address_and_becomes_a_cookie(client: BenchClient, bench: Workbench) -> None:
    reply = client.get(f"/?token={bench.session.token}", session=False)
    assert (reply.status, reply.headers["location"]) == (303, "/")
    assert "HttpOnly" in reply.cookies[0]
    assert "SameSite=Strict" in reply.cookies[0]
    assert bench.session.token not in reply.cookies[0]
    assert bench.session.token not in log_of(bench)
    assert bench.workspace.folder.stat().st_mode & 0o77 == 0
    # the address opens the workbench once; the browser that has the cookie is led on
    assert client.get(f"/?token={bench.session.token}", session=False).status == 403
    assert client.get(f"/?token={bench.session.token}").status == 303


def test_every_start_has_secrets_of_its_own(client: BenchClient, bench: Workbench) -> None:
    folder = bench.workspace.folder
    (folder / "secret").write_text("of a version that kept one for all starts\n")
    again = Workbench.of(folder, roots=bench.workspace.roots)
    assert not (folder / "secret").exists()
    old, new = bench.session, again.session
    assert len({old.token, old.cookie, old.csrf, new.token, new.cookie, new.csrf}) == 6
    restarted = BenchClient(again)
    earlier = ("cookie", f"stirred_{PORT}={old.cookie}")
    assert restarted.get("/data", session=False, headers=[earlier]).status == 401
    assert restarted.get(f"/?token={old.token}", session=False).status == 403
    assert restarted.post("/data/read", {"csrf": old.csrf, "read": "yes"}).status == 403
    written = [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
    assert not any(word.encode() in text for word in (new.token, new.cookie, new.csrf) for text in written)


@pytest.mark.parametrize(
    "host", ["evil.example:8642", "127.0.0.1", "127.0.0.1:80", "", "localhost:8642.evil.example"]
)
def test_another_host_is_refused(client: BenchClient, bench: Workbench, host: str) -> None:
    """DNS rebinding: the name of another site that points at this machine."""
    assert client.get("/data", host=host).status == 421
    assert client.get(f"/?token={bench.session.token}", host=host, session=False).status == 421
    assert client.get("/data", headers=[("host", "evil.example")]).status == 421


def test_a_form_of_another_site_is_refused(client: BenchClient, bench: Workbench) -> None:
    own = ("origin", f"http://127.0.0.1:{PORT}")
    other, null = ("origin", "http://evil.example"), ("origin", "null")
    cross = ("sec-fetch-site", "cross-site")
    kind = "application/x-www-form-urlencoded"
    assert client.post("/data/read", {"read": "no"}, headers=[own]).status == 303
    assert client.send("POST", "/data/read", body=[b"read=yes"], kind=kind, headers=[own]).status == 403
    assert client.post("/data/read", {"csrf": "0" * 64, "read": "yes"}).status == 403
    for header in (other, null, cross):
        assert client.post("/data/read", {"read": "yes"}, headers=[header]).status == 403
    csrf = bench.session.csrf
    assert client.send("POST", "/data/read", body=[b'{"read": "yes"}'], kind="application/json").status == 415
    assert (
        client.send("POST", "/data/read", body=[f"csrf={csrf}&read=yes".encode()], kind="text/plain").status
        == 415
    )
    for path in ("/data/read", "/run/start", "/data/demo"):
        assert client.send("POST", path, body=[b"--xx--\r\n"], kind=MULTIPART).status == 415
    assert client.send("DELETE", "/data").status == 405
    assert not bench.require_data().read


@pytest.mark.parametrize(
    "word",
    [
        "../../secret",
        "..%2f..%2fsecret",
        "%2e%2e/secret",
        "....//secret",
        "/etc/passwd",
        "..\\secret",
        "\x00",
    ],
)
def test_no_path_leaves_the_workbench(client: BenchClient, bench: Workbench, word: str) -> None:
    for method, path in addresses(client):
        if "{" not in path:
            continue
        filled = path.replace("{number}", word).replace("{part}", word).replace("{name}", word)
        reply = client.get(filled) if method == "GET" else client.post(filled)
        assert reply.status in (404, 405, 422), path
        assert bench.session.token not in reply.text
        assert "root:" not in reply.text
    for part_name in (word, "secret"):
        assert client.get(f"/packet/1/download/{part_name}").status in (404, 422)


def test_only_named_folders_are_opened(client: BenchClient, bench: Workbench, tmp_path: Path) -> None:
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    outside.mkdir()
    (outside / "census.toml").write_text('name = "x"\n')
    (tmp_path / "link").symlink_to(outside)
    for place in ("/etc", str(outside), f"{tmp_path}/../{outside.name}", str(tmp_path / "link"), "", "~"):
        reply = client.post("/data/folder", {"folder": place})
        assert reply.status == 422, place
    assert bench.require_data().file == tmp_path / "town" / "census.toml"
    assert client.post("/data/folder", {"folder": str(tmp_path / "town")}).status == 303


def test_a_large_upload_is_refused_before_it_is_read(client: BenchClient, bench: Workbench) -> None:
    read = 0

    def endless() -> Iterator[bytes]:
        nonlocal read
        yield part("csrf", bench.session.csrf)
        yield part("files", "a,b\r\n", "big.csv")[:-2]
        while True:
            read += 1 << 16
            yield b"x" * (1 << 16)

    said = ("content-length", str(2 << 30))
    reply = client.send("POST", "/data/upload", body=endless(), kind=MULTIPART, headers=[said])
    assert (reply.status, read) == (413, 0)
    reply = client.send("POST", "/data/upload", body=endless(), kind=MULTIPART)
    assert reply.status == 413
    assert read < 4 * bench.most_upload
    assert list(bench.workspace.own_census.iterdir()) == []
    form = client.send("POST", "/data/read", body=endless(), kind="application/x-www-form-urlencoded")
    assert form.status in (400, 413)


def test_uploaded_files_stay_in_their_folder(client: BenchClient, bench: Workbench) -> None:
    csrf = part("csrf", bench.session.csrf)
    names = {"../../evil.csv": "evil.csv", "C:\\data\\home.csv": "home.csv"}
    for given, kept in names.items():
        body = [csrf + part("files", SECRET, given) + b"--xx--\r\n"]
        assert client.send("POST", "/data/upload", body=body, kind=MULTIPART).status == 303
        assert (bench.workspace.own_census / kept).read_text() == SECRET
    for bad in ("x.exe", "..csv", ".csv", "a b;.csv", "-rf.csv"):
        body = [csrf + part("files", SECRET, bad) + b"--xx--\r\n"]
        assert client.send("POST", "/data/upload", body=body, kind=MULTIPART).status == 400, bad
    early = [part("files", SECRET, "early.csv") + csrf + b"--xx--\r\n"]
    assert client.send("POST", "/data/upload", body=early, kind=MULTIPART).status == 403
    assert sorted(path.name for path in bench.workspace.own_census.iterdir()) == ["evil.csv", "home.csv"]
    assert SECRET not in log_of(bench)
    assert "evil" not in log_of(bench)


def test_a_script_in_a_variable_name_is_text(client: BenchClient, bench: Workbench) -> None:
    nasty = "</td><script>alert(1)</script>"
    file = bench.require_data().file
    text = file.read_text().replace(
        "tenure = {levels", f'"{nasty}" = {{levels = ["a"]}}\ntenure = {{label = "<img src=x>", levels'
    )
    file.write_text(text)
    reply = client.get("/data")
    assert reply.status == 200
    assert "<script>alert" not in reply.text
    assert "<img src=x>" not in reply.text
    assert "&lt;script&gt;" in reply.text


def test_a_hundred_requests_at_once(client: BenchClient, bench: Workbench) -> None:
    replies = client.at_once(["/data"] * 50 + ["/history"] * 25 + ["/nothing"] * 25)
    assert [reply.status for reply in replies] == [200] * 75 + [404] * 25
    lines = [json.loads(line) for line in log_of(bench).splitlines()]
    assert len(lines) == 100
    assert {line["handler"] for line in lines} <= {"data", "history", "none"}


def test_every_page_says_what_browsers_may_do(client: BenchClient, bench: Workbench) -> None:
    for path in ("/", "/data", "/promise", "/history", "/nothing", "/packet/1", "/look/1"):
        headers = client.get(path).headers
        policy = headers["content-security-policy"]
        assert headers["cache-control"] == "no-store"
        assert "unsafe" not in policy
        assert "script-src 'self'" in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
    folder = bench.workspace.packets / "0001" / "public"
    folder.mkdir(parents=True)
    (folder / "report.html").write_text("<script>1</script>")
    Job.new(bench.workspace.jobs, kind="run", words=["run"], plan=1, title="t", number=1)
    framed = client.get("/look/1/report/public").headers
    assert framed["content-security-policy"].startswith("sandbox allow-scripts;")
    assert framed["cache-control"] == "no-store"


def test_a_fault_tells_nothing(
    client: BenchClient, bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: object) -> object:
        raise ValueError(SECRET)

    monkeypatch.setattr(type(bench.history), "versions", broken)
    reply = client.get("/history")
    assert reply.status == 500
    assert SECRET not in reply.text
    assert SECRET not in log_of(bench)
    assert "ValueError" in log_of(bench)
