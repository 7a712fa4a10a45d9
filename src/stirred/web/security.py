"""Guard every screen: host, session, form token, size of a body, headers; log requests without any value."""

import asyncio
import hashlib
import hmac
import json
import os
import secrets
import socket
import time
import traceback
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from ipaddress import ip_address
from pathlib import Path
from threading import Lock
from typing import Any
from urllib.parse import parse_qs

from stirred.closed_files import append_closed
from stirred.errors import InputError
from stirred.roots import reading_below

# Who may use a workbench: whoever opens its one-time address, and then the browser that got the cookie.
#
# All secrets are drawn when the server starts and live in its memory alone. A cookie of an earlier start opens nothing,
# so whoever takes the port of a server that has ended, and is sent such a cookie, has nothing that can be used.

SECRET_BYTES = 32


@dataclass(slots=True, eq=False)
class Session:
    """The secrets of one start of a workbench."""

    token: str = field(repr=False)  # of the address: it opens the workbench once
    secret: bytes = field(repr=False)
    _is_spent: bool = False
    _lock: Lock = field(default_factory=Lock, repr=False)

    @staticmethod
    def fresh() -> "Session":
        """Draw the secrets of a new start."""
        return Session(token=secrets.token_urlsafe(SECRET_BYTES), secret=secrets.token_bytes(SECRET_BYTES))

    def _derive(self, purpose: bytes) -> str:
        return hmac.new(self.secret, b"stirred workbench " + purpose, hashlib.sha256).hexdigest()

    @property
    def cookie(self) -> str:
        """Return the value of the cookie; neither token nor secret can be computed from it."""
        return self._derive(b"cookie")

    @property
    def csrf(self) -> str:
        """Return the token that a form must send back; a page of another site cannot know it."""
        return self._derive(b"form")

    def spend(self, given: str) -> bool:
        """Take the token of the address; return whether it is the one of this start, and was not used before.

        >>> session = Session.fresh()
        >>> session.spend("guess"), session.spend(session.token), session.spend(session.token)
        (False, True, False)
        """
        with self._lock:
            if self._is_spent or not _are_equal(given, self.token):
                return False
            self._is_spent = True
            return True

    def is_cookie(self, given: str) -> bool:
        """Return whether this is the cookie of this start."""
        return _are_equal(given, self.cookie)

    def is_form(self, given: str) -> bool:
        """Return whether a form of this workbench was sent."""
        return _are_equal(given, self.csrf)


def _are_equal(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode("utf-8", "replace"), other.encode())


# Which user of this machine calls: a browser sends its cookies for 127.0.0.1 to every port, so another user can learn one.
#
# Linux lists the owner of every socket in ``/proc/net``. Elsewhere the owner is not known, and the cookie alone decides.

SOCKET_LISTS = {socket.AF_INET: Path("/proc/net/tcp"), socket.AF_INET6: Path("/proc/net/tcp6")}
LOCAL_COLUMN, REMOTE_COLUMN, USER_COLUMN = 1, 2, 7  # columns of the list
ADMINISTRATOR_USER = 0

Address = Sequence[object]  # host and port


def find_user(client: Address, server: Address) -> int | None:
    """Return the number of the user at the calling end of a connection on this machine, or None."""
    try:
        family = socket.AF_INET6 if ip_address(str(client[0])).version == 6 else socket.AF_INET
        lines = SOCKET_LISTS[family].read_text(encoding="ascii").splitlines()[1:]
    except (OSError, ValueError, IndexError):
        return None
    wanted = (_in_list(client, family), _in_list(server, family))
    for line in lines:
        words = line.split()
        if len(words) > USER_COLUMN and (words[LOCAL_COLUMN], words[REMOTE_COLUMN]) == wanted:
            return int(words[USER_COLUMN])
    return None


def is_another_user(client: Address, server: Address) -> bool:
    """Return whether the caller is known to be neither the user of this process nor the administrator."""
    user = find_user(client, server)
    return user is not None and user not in (os.geteuid(), ADMINISTRATOR_USER)


def _in_list(address: Address, family: int) -> str:
    """Write an address as the list has it: words of four bytes in the order of the machine, then the port.

    >>> _in_list(("127.0.0.1", 8642), socket.AF_INET)
    '0100007F:21C2'
    """
    packed = socket.inet_pton(family, str(address[0]))
    words = (int.from_bytes(packed[at : at + 4], "little") for at in range(0, len(packed), 4))
    return "".join(f"{word:08X}" for word in words) + f":{int(str(address[1])):04X}"


# The log of a workbench: one line a request with the name of its handler; no address, no value and no file name.

MAX_LOG_BYTES = 10 << 20  # then the log begins anew, and the one before it is kept


@dataclass(frozen=True, slots=True)
class RequestLog:
    """A file of JSON lines in the folder of the workbench."""

    path: Path
    lock: Lock

    @staticmethod
    def of(folder: Path) -> "RequestLog":
        """Return the log of a folder; refuse a name that is not a plain file of the user."""
        log = RequestLog(folder / "serve.log", Lock())
        os.close(append_closed(log.path))
        return log

    def log_answer(self, method: str, handler: str, status: int, seconds: float) -> None:
        """Log an answered request with the name of its handler, never with the address."""
        known = method if method in ("GET", "HEAD", "POST") else "other"
        self._write({"method": known, "handler": handler, "status": status, "ms": round(1000 * seconds, 1)})

    def log_failure(self, error: BaseException) -> None:
        """Log the type and place of a fault, without its message, which may name a value."""
        frames = traceback.extract_tb(error.__traceback__)[-6:]
        places = [f"{Path(frame.filename).name}:{frame.lineno}" for frame in frames]
        self._write({"fault": type(error).__name__, "at": places})

    def _write(self, event: dict[str, object]) -> None:
        """Append a line; where the log was replaced by a link or the disk is full, the request is answered all the same."""
        line = json.dumps({"time": time.strftime("%Y-%m-%dT%H:%M:%S%z"), **event}) + "\n"
        with self.lock, suppress(InputError, OSError):
            descriptor = append_closed(self.path)
            try:
                os.write(descriptor, line.encode())
                is_full = os.fstat(descriptor).st_size > MAX_LOG_BYTES
            finally:
                os.close(descriptor)
            if is_full:
                self.path.replace(self.path.with_suffix(".old.log"))


# What stands before every screen: the host, the session, the form's own token, the size of a body, and the headers.
#
# A page of another site can make a browser send requests here. It does not know the token of a form, its Origin is
# another one, and the cookie is SameSite=Strict; a name that is pointed at this machine (DNS rebinding) has another Host.
# Another port of this machine is the same site to a browser: such pages are told by their Origin and by Sec-Fetch-Site.

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

MAX_FORM_BYTES = 2 << 20  # bytes of a form without files
MAX_FORM_FIELDS = 20_000
MAX_SILENT_SECONDS = 30.0  # between two pieces of a body
UPLOAD_PATH = "/data/upload"  # the one handler that takes files, and asks for the token of the form itself
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; "
    "form-action 'self'; frame-src 'self'; frame-ancestors 'none'; base-uri 'none'"
)
# a report draws its charts with a script of its own: in a place without cookies, from which nothing can be called
REPORT_POLICY = (
    "sandbox allow-scripts; default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline' 'unsafe-eval'; "
    "img-src data:; frame-ancestors 'self'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}
SITES = (b"same-origin", b"none")  # of Sec-Fetch-Site


class RequestRefused(Exception):  # noqa: N818 - an answer of the server, not an error of the program
    """A refused request: a status and a sentence that repeats nothing of the request."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status = status
        self.words = words


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """The outermost application, which lets only permitted requests through."""

    inner: Application
    session: Session
    hosts: frozenset[str]  # as a browser sends them: 127.0.0.1:8642
    cookie: str  # its name
    log: RequestLog
    roots: tuple[Path, ...]  # where files may be read
    for_owner: bool = False  # whether other users of this machine are refused

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, and write one line about it."""
        if scope["type"] == "lifespan":
            await self.inner(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        began, status = time.monotonic(), 0

        async def send_answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = int(message["status"])
                named = [(name.lower(), value) for name, value in message.get("headers", [])]
                there = {name for name, _ in named}
                more = [(n.encode(), v.encode()) for n, v in HEADERS.items() if n.encode() not in there]
                if scope["method"] == "POST" and status >= 400:
                    more.append((b"connection", b"close"))  # what is still being sent is not waited for
                message = {**message, "headers": [*named, *more]}
            await send(message)

        try:
            with reading_below(self.roots):
                await self._admit(scope, _limit_silence(receive), send_answer)
        except RequestRefused as refused:
            if not status:
                await _say(send_answer, refused.status, refused.words)
        except Exception as error:
            self.log.log_failure(error)
            if not status:
                await _say(send_answer, 500, "A fault of the workbench; its log has the place.")
        finally:
            endpoint = scope.get("endpoint")
            name = str(getattr(endpoint, "__name__", "none"))
            self.log.log_answer(scope["method"], name, status, time.monotonic() - began)

    async def _admit(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers: Sequence[tuple[bytes, bytes]] = scope["headers"]
        host = self._require_host(headers)
        if scope["method"] not in ("GET", "HEAD", "POST"):
            raise RequestRefused(405, "This method is not used here.")
        _require_own_page(scope["method"], headers, host)
        token = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[-1]
        known = self._has_session(headers)
        if token and scope["method"] == "GET" and scope["path"] == "/":
            self._require_owner(scope)
            if not known and not self.session.spend(token):
                raise RequestRefused(
                    403,
                    "This token is not the one of this start of the workbench, or it was used: start stirred serve "
                    "again, and open the address that it prints.",
                )
            await _enter(send, f"{self.cookie}={self.session.cookie}; Path=/; HttpOnly; SameSite=Strict")
            return
        if not known:
            raise RequestRefused(
                401,
                "This browser has no session of this start of the workbench: open the address that stirred serve "
                "printed. It opens the workbench once; start it again for another one.",
            )
        self._require_owner(scope)
        if scope["method"] == "POST":
            receive = await self._read_form(scope, headers, receive)
        await self.inner(scope, receive, send)

    def _require_owner(self, scope: Scope) -> None:
        """Refuse other users of this machine, also with a cookie: a browser sends it to every port of 127.0.0.1."""
        client, server = scope.get("client"), scope.get("server")
        if self.for_owner and client and server and is_another_user(client, server):
            raise RequestRefused(403, "This workbench belongs to another user of this machine.")

    def _require_host(self, headers: Sequence[tuple[bytes, bytes]]) -> str:
        """Validate the Host header (DNS-rebinding guard)."""
        named = [value.decode("latin-1").lower() for name, value in headers if name == b"host"]
        if len(named) != 1 or named[0] not in self.hosts:
            raise RequestRefused(421, "This workbench is not called by this name.")
        return named[0]

    def _has_session(self, headers: Sequence[tuple[bytes, bytes]]) -> bool:
        for name, value in headers:
            if name == b"cookie":
                try:
                    found = SimpleCookie(value.decode("latin-1")).get(self.cookie)
                except CookieError:
                    continue
                if found is not None and self.session.is_cookie(found.value):
                    return True
        return False

    async def _read_form(
        self, scope: Scope, headers: Sequence[tuple[bytes, bytes]], receive: Receive
    ) -> Receive:
        """Read a form and hold it against this session; files are read by their own handler, which asks for the token."""
        kind = next((value for name, value in headers if name == b"content-type"), b"").split(b";")[0].strip()
        if kind == b"multipart/form-data" and scope["path"] == UPLOAD_PATH:
            return receive
        if kind != b"application/x-www-form-urlencoded":
            raise RequestRefused(415, "Only forms are taken here.")
        body = await _body(headers, receive)
        try:
            form = parse_qs(body.decode("utf-8"), keep_blank_values=True, max_num_fields=MAX_FORM_FIELDS)
        except ValueError:
            raise RequestRefused(400, "This form cannot be read.") from None
        if not self.session.is_form(form.pop("csrf", [""])[-1]):
            raise RequestRefused(
                403, "This form is not one of this workbench, or it is too old: load the page again."
            )
        scope.setdefault("state", {})["form"] = form
        return receive


def _require_own_page(method: str, headers: Sequence[tuple[bytes, bytes]], host: str) -> None:
    """Refuse what a page of another site or port asks for; it may only lead a person here, in a window of their own."""
    found = {name: value for name, value in headers if name == b"origin" or name.startswith(b"sec-fetch-")}
    own = (f"http://{host}", f"https://{host}")  # a proxy before it may speak TLS
    if b"origin" in found and found[b"origin"].decode("latin-1").lower() not in own:
        raise RequestRefused(403, "This was sent by a page of another site.")
    way = (method, found.get(b"sec-fetch-mode"), found.get(b"sec-fetch-dest"))
    if found.get(b"sec-fetch-site", b"none") not in SITES and way != ("GET", b"navigate", b"document"):
        raise RequestRefused(403, "This was sent by a page of another site.")


def _limit_silence(receive: Receive) -> Receive:
    """Wait a bounded time for each piece of a body; what comes after the body, the end of the connection, has none."""
    is_whole = False

    async def receive_message() -> Message:
        nonlocal is_whole
        if is_whole:
            return await receive()
        try:
            message = await asyncio.wait_for(receive(), MAX_SILENT_SECONDS)
        except TimeoutError:
            raise RequestRefused(408, "The rest of this form did not arrive in time.") from None
        is_whole = not message.get("more_body", False)
        return message

    return receive_message


async def _body(headers: Sequence[tuple[bytes, bytes]], receive: Receive) -> bytes:
    """Read a body of limited size; do not read one that declares a larger size."""
    said = next((value for name, value in headers if name == b"content-length"), b"0")
    if not said.isdigit() or int(said) > MAX_FORM_BYTES:
        raise RequestRefused(413, "This form is too large.")
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise RequestRefused(400, "The form did not arrive.")
        body += message.get("body", b"")
        if len(body) > MAX_FORM_BYTES:
            raise RequestRefused(413, "This form is too large.")
        if not message.get("more_body", False):
            return bytes(body)


async def _enter(send: Send, cookie: str) -> None:
    """Keep the token as a cookie, and take it out of the address."""
    headers = [(b"location", b"/"), (b"set-cookie", cookie.encode()), (b"content-length", b"0")]
    await send({"type": "http.response.start", "status": 303, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


async def _say(send: Send, status: int, words: str) -> None:
    """Send a plain page that needs no session, no style and no script."""
    page = (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Stirred</title><main><h1>{status}</h1>'
        f"<p>{words}</p></main></html>"
    ).encode()
    headers = [(b"content-type", b"text/html; charset=utf-8"), (b"content-length", str(len(page)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": page})
