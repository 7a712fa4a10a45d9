"""A real browser as the victim: a page of another port, the same site to a browser, tries to use its session."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from bench_server import RunningBench

pytestmark = pytest.mark.browser

PAGE = """<!doctype html><title>hostile</title><iframe id="frame" src="TARGET/data"></iframe>
<img src="TARGET/static/icon.svg" id="image"><script src="TARGET/static/workbench.js"></script>
<form id="form" method="post" action="TARGET/data/read" target="sent"><input name="read" value="yes"></form>
<iframe name="sent"></iframe><script>
const target = "TARGET", found = {};
async function tried(name, how) { try { found[name] = await how(); } catch (error) { found[name] = "failed"; } }
async function read(reply) { return [reply.type, reply.status, (await reply.text()).length]; }
const form = { method: "POST", credentials: "include", body: new URLSearchParams({ read: "yes", folder: "/" }) };
async function all() {
  await tried("get", async () => read(await fetch(target + "/data", { credentials: "include" })));
  await tried("get opaque", async () => read(await fetch(target + "/data", { credentials: "include", mode: "no-cors" })));
  await tried("post", async () => read(await fetch(target + "/data/read", form)));
  await tried("post opaque", async () => read(await fetch(target + "/data/read", { ...form, mode: "no-cors" })));
  await tried("demo opaque", async () => read(await fetch(target + "/data/demo", { ...form, mode: "no-cors" })));
  await tried("json", async () => read(await fetch(target + "/data/read", { ...form, body: "{}",
    headers: { "content-type": "application/json" } })));
  await tried("socket", () => new Promise((done) => {
    const line = new WebSocket(target.replace("http", "ws") + "/run/jobs");
    line.onopen = () => done("open"); line.onerror = () => done("failed"); }));
  await tried("events", () => new Promise((done) => {
    const line = new EventSource(target + "/run/jobs", { withCredentials: true });
    line.onmessage = () => done("read"); line.onerror = () => { line.close(); done("failed"); }; }));
  await tried("frame", async () => document.getElementById("frame").contentDocument ? "read" : "closed");
  await tried("image", async () => document.getElementById("image").naturalWidth);
  await tried("script", async () => typeof csrf === "undefined" ? "nothing" : "read");
  await tried("window", async () => {
    const other = window.open(target + "/data"); await new Promise((go) => setTimeout(go, 700));
    return other && !other.closed && other.document ? "read" : "closed"; });
  await tried("beacon", async () => navigator.sendBeacon(target + "/data/read", form.body));
  document.getElementById("form").submit();
  await new Promise((go) => setTimeout(go, 500));
  return found;
}
</script>"""


@pytest.fixture
def hostile(server: RunningBench) -> Iterator[tuple[str, list[dict[str, str]]]]:
    """A server at another port of the same host; it keeps the headers that browsers send it."""
    kept: list[dict[str, str]] = []

    class Hostile(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            kept.append(dict(self.headers.items()))
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(PAGE.replace("TARGET", server.origin).encode())

        def log_message(self, *_: object) -> None:
            pass

    other = ThreadingHTTPServer(("127.0.0.1", 0), Hostile)
    thread = threading.Thread(target=other.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{other.server_port}", kept
    other.shutdown()
    other.server_close()


def test_a_hostile_page_changes_nothing_and_reads_nothing(
    browser: Browser, server: RunningBench, hostile: tuple[str, list[dict[str, str]]], tmp_path: Path
) -> None:
    page, (place, kept) = browser.new_page(), hostile
    page.goto(server.address)
    page.goto(f"{server.origin}/data")
    page.get_by_label("Folder with census.toml").fill(str(tmp_path / "town"))
    page.get_by_role("button", name="Use this folder").click()
    page.wait_for_load_state()
    before = _files(server.folder)
    page.goto(place)
    found: dict[str, Any] = page.evaluate("all()")
    opaque = ["opaque", 0, 0]
    for name in ("get", "post", "json", "socket", "events"):
        assert found[name] == "failed", (name, found)
    for name in ("get opaque", "post opaque", "demo opaque"):
        assert found[name] in ("failed", opaque), (name, found)
    assert found["frame"] == found["window"] == "closed" or found["window"] == "failed", found
    assert (found["image"], found["script"]) == (0, "nothing"), found
    assert _files(server.folder) == before
    assert json.loads((server.folder / "census.json").read_text())["read"] is False
    statuses = [json.loads(line) for line in (server.folder / "serve.log").read_text().splitlines()]
    assert not [line for line in statuses if line["method"] == "POST" and line["status"] == 303][1:]
    assert sum(line["status"] == 403 for line in statuses) >= 8
    # a browser sends its cookies to every port of a host: a live cookie is known to whoever serves the page, so other
    # users of the machine are refused by who they are (tests/web/test_starts.py), and a cookie ends with its server
    assert [headers for headers in kept if f"stirred_{server.port}=" in headers.get("Cookie", "")]
    page.close()


def test_a_page_stops_to_call_a_server_that_is_gone(browser: Browser, server: RunningBench) -> None:
    page = browser.new_page()
    page.goto(server.address)
    page.goto(f"{server.origin}/calculators/curve")
    server.kill()
    called: list[str] = []
    page.on("request", lambda request: called.append(request.url) if "/calculators/" in request.url else None)
    page.locator("form[data-live] input").first.fill("1000")
    page.wait_for_selector("#gone")
    assert len(called) <= 2
    before = len(called)
    page.locator("form[data-live] input").first.fill("2000")
    page.wait_for_timeout(800)
    assert len(called) == before
    page.close()


def _files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in ("serve.log", "lock")
    }
