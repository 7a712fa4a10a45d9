"""Who may use a workbench: whoever opens its one-time address, and then the browser that got the cookie.

All secrets are drawn when the server starts and live in its memory alone. A cookie of an earlier start opens nothing, so
whoever takes the port of a server that has ended, and is sent such a cookie, has nothing that can be used.
"""

import hashlib
import hmac
import secrets
from dataclasses import dataclass, field
from threading import Lock

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
