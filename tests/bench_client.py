"""Calls of the workbench's application as a server makes them, without a network."""

import asyncio
import html
import re
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

from stirred.web.server import create_app
from stirred.web.workbench import Workbench

PORT = 8642
T = TypeVar("T")


@dataclass(frozen=True)
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes
    cookies: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def words(self) -> str:
        return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", self.text)).split())


class BenchClient:
    def __init__(self, bench: Workbench) -> None:
        self.bench = bench
        self.app = create_app(bench, port=PORT)

    def get(self, path: str, **how: Any) -> Reply:
        return self.send("GET", path, **how)

    def post(self, path: str, form: Mapping[str, object] | None = None, **how: Any) -> Reply:
        body = urlencode({"csrf": self.bench.session.csrf, **(form or {})}, doseq=True).encode()
        return self.send("POST", path, body=[body], kind="application/x-www-form-urlencoded", **how)

    def send(self, method: str, path: str, **how: Any) -> Reply:
        return alone(self.asked(method, path, **how))

    def at_once(self, paths: Sequence[str]) -> list[Reply]:
        async def all_of_them() -> list[Reply]:
            return list(await asyncio.gather(*(self.asked("GET", path) for path in paths)))

        return alone(all_of_them())

    async def asked(
        self,
        method: str,
        path: str,
        *,
        body: Iterable[bytes] = (),
        kind: str = "",
        host: str = f"127.0.0.1:{PORT}",
        session: bool = True,
        headers: Sequence[tuple[str, str]] = (),
    ) -> Reply:
        place, _, query = path.partition("?")
        sent = [("host", host), *headers] if host else list(headers)
        if session:
            sent.append(("cookie", f"other=1; stirred_{PORT}={self.bench.session.cookie}"))
        if kind:
            sent.append(("content-type", kind))
        scope = {
            "type": "http",
            "method": method,
            "path": place,
            "raw_path": quote(place).encode(),
            "query_string": query.encode(),
            "headers": [(name.lower().encode(), value.encode()) for name, value in sent],
            "http_version": "1.1",
            "scheme": "http",
            "server": ("127.0.0.1", PORT),
            "client": ("127.0.0.1", 1),
        }
        pieces = iter(body)
        messages: list[Mapping[str, Any]] = []
        ahead = next(pieces, None)
        ended = False

        async def receive() -> dict[str, Any]:
            nonlocal ahead, ended
            if ended:
                await asyncio.Event().wait()  # the browser stays: nothing more comes
            now, ahead = ahead, next(pieces, None)
            ended = ahead is None
            return {"type": "http.request", "body": now or b"", "more_body": ahead is not None}

        async def send(message: Mapping[str, Any]) -> None:
            messages.append(message)

        await self.app(scope, receive, send)
        start = messages[0]
        pairs = [(name.decode().lower(), value.decode()) for name, value in start["headers"]]
        return Reply(
            start["status"],
            dict(pairs),
            b"".join(message.get("body", b"") for message in messages[1:]),
            [value for name, value in pairs if name == "set-cookie"],
        )


def alone(call: Coroutine[None, None, T]) -> T:
    """Run a call in a thread of its own: a browser of another test keeps a loop in this one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, call).result()


def form_in(page: str, action: str) -> dict[str, list[str]]:
    """The fields of a form as a browser would send them untouched."""
    found = re.search(rf'<form[^>]*action="{re.escape(action)}"[^>]*>(.*?)</form>', page, re.S)
    assert found, action
    sent: dict[str, list[str]] = {}
    for tag in re.findall(r"<input[^>]*>", found[1]):
        told = dict(re.findall(r'([\w-]+)="([^"]*)"', tag))
        if "name" in told and (told.get("type") not in ("checkbox", "radio") or " checked" in tag):
            sent.setdefault(told["name"], []).append(html.unescape(told.get("value", "")))
    for name, text in re.findall(r'<textarea[^>]*name="([^"]+)"[^>]*>(.*?)</textarea>', found[1], re.S):
        sent.setdefault(name, []).append(html.unescape(text))
    for name, inner in re.findall(r'<select[^>]*name="([^"]+)"[^>]*>(.*?)</select>', found[1], re.S):
        chosen = re.search(r"<option selected>([^<]*)", inner) or re.search(r"<option>([^<]*)", inner)
        sent.setdefault(name, []).append(html.unescape(chosen[1] if chosen else ""))
    sent.pop("csrf", None)
    return sent
