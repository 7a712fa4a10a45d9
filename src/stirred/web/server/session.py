"""Who may use a workbench: whoever has its token, once in the address and then as a cookie."""

import hashlib
import hmac
import os
import secrets
from dataclasses import dataclass, field
from pathlib import Path

FILE = "secret"
BYTES = 32


@dataclass(frozen=True, slots=True)
class Session:
    """The secrets of a workbench; they lie in its folder, so that a restarted server knows the same browser."""

    token: str = field(repr=False)

    @staticmethod
    def of(folder: Path) -> "Session":
        """The secrets of a folder, drawn when they are first asked for; nobody else can read the file."""
        path = folder / FILE
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        except FileExistsError:
            known = path.read_text(encoding="ascii").strip()
            if len(known) >= BYTES:
                return Session(known)
            path.unlink()  # of a server that was killed before it had drawn one
            return Session.of(folder)
        token = secrets.token_urlsafe(BYTES)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(token + "\n")
        return Session(token)

    def _derived(self, purpose: bytes) -> str:
        return hmac.new(self.token.encode(), b"stirred workbench " + purpose, hashlib.sha256).hexdigest()

    @property
    def cookie(self) -> str:
        """The value of the cookie; the token cannot be computed from it."""
        return self._derived(b"cookie")

    @property
    def csrf(self) -> str:
        """What a form must send back: a page of another site cannot know it."""
        return self._derived(b"form")

    def is_token(self, given: str) -> bool:
        """Whether this is the token."""
        return hmac.compare_digest(given.encode(), self.token.encode())

    def is_cookie(self, given: str) -> bool:
        """Whether this is the cookie."""
        return hmac.compare_digest(given.encode(), self.cookie.encode())

    def is_form(self, given: str) -> bool:
        """Whether a form of this workbench was sent."""
        return hmac.compare_digest(given.encode(), self.csrf.encode())
