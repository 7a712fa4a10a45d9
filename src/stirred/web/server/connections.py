"""Connections to the workbench: one that says nothing is closed, and many of them do not keep a browser out."""

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

MAX_OPEN_CONNECTIONS = 200  # connections; with another one the oldest that waits for a request is closed
MAX_HEAD_SECONDS = 5.0  # from the first moment of a connection until its request has all its headers


class BoundedProtocol(H11Protocol):
    """A connection with a bounded time for the head of a request; it makes room for others while it has none."""

    head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request; close the connection that has waited longest where there are too many."""
        super().connection_made(transport)
        self._await_head()
        if len(self.connections) > MAX_OPEN_CONNECTIONS:
            self._make_room()

    def data_received(self, data: bytes) -> None:
        """Read what was sent; the time for the head of a request ends when all of it is there."""
        if self.head_timer is None and not self.is_busy:  # the next request of a connection that is kept
            self._await_head()
        super().data_received(data)
        if self.is_busy:
            self._stop_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._stop_timer()
        super().connection_lost(exc)

    @property
    def is_busy(self) -> bool:
        """Return whether a request was taken and is not answered yet."""
        return self.cycle is not None and not self.cycle.response_complete

    def _await_head(self) -> None:
        self._stop_timer()
        self.head_timer = self.loop.call_later(MAX_HEAD_SECONDS, self._close_silent)

    def _stop_timer(self) -> None:
        if self.head_timer is not None:
            self.head_timer.cancel()
            self.head_timer = None

    def _close_silent(self) -> None:
        self.head_timer = None
        if not self.is_busy and not self.transport.is_closing():
            self.transport.abort()

    def _make_room(self) -> None:
        """Close the connection without a request that was opened first; the set of connections has no order."""
        waiting = [one for one in self.connections if isinstance(one, BoundedProtocol) and one is not self]
        silent = [one for one in waiting if not one.is_busy and not one.transport.is_closing()]
        if silent:
            oldest = min(silent, key=lambda one: one.patience)
            self.connections.discard(oldest)
            oldest.transport.abort()

    @property
    def patience(self) -> tuple[bool, float]:
        """Return the sort key for closing: connections without any request first, then the longest wait."""
        return self.cycle is not None, 0.0 if self.head_timer is None else self.head_timer.when()
