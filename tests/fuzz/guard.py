"""Watch what a case does: it ends in time, writes only in its folder, starts nothing, and connects to nothing."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

SECONDS = 20  # of the processor, for one case; of the clock, five times as many
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_PATHS = {
    "os.mkdir": 0,
    "os.rmdir": 0,
    "os.remove": 0,
    "os.truncate": 0,
    "os.symlink": 1,
    "os.link": 1,
    "os.rename": 1,
}
_NEVER = (
    "os.system",
    "os.exec",
    "os.fork",
    "os.posix_spawn",
    "subprocess.Popen",
    "socket.connect",
)


class ForbiddenError(BaseException):
    """A case did what no file may make Stirred do."""


class HangError(BaseException):
    """A case did not end."""


class _Watch:
    """The one hook of the process: Python has no way to remove one."""

    def __init__(self) -> None:
        self.folder: str | None = None
        self.added = False

    def __call__(self, event: str, given: tuple[Any, ...]) -> None:
        if self.folder is None:
            return
        if event in _NEVER:
            raise ForbiddenError(event)
        if event == "open" and isinstance(given[2], int) and given[2] & _WRITES:
            self._inside(event, given[0])
        elif event in _PATHS and not any(isinstance(more, int) and more >= 3 for more in given[1:]):
            # a path relative to an open folder is one of its entries: shutil.rmtree removes them so
            self._inside(event, given[_PATHS[event]])

    def _inside(self, event: str, path: object) -> None:
        if isinstance(path, str | bytes | os.PathLike):
            name = Path(os.fsdecode(path))
            # to open a link is to open its target; to remove it is not
            where = (
                os.path.realpath(name) if event == "open" else f"{os.path.realpath(name.parent)}/{name.name}"
            )
            if (
                not where.startswith((self.folder or "", "/dev/null", sys.prefix))
                and "__pycache__" not in where
            ):
                raise ForbiddenError(f"{event} outside the folder")


_WATCH = _Watch()


@contextmanager
def guarded(folder: Path) -> Iterator[None]:
    """Run one case that may write only below a folder."""
    if not _WATCH.added:
        sys.addaudithook(_WATCH)
        _WATCH.added = True
    before = signal.signal(signal.SIGPROF, _hang), signal.signal(signal.SIGALRM, _hang)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    signal.setitimer(signal.ITIMER_REAL, 5 * SECONDS)
    _WATCH.folder = os.path.realpath(folder)
    try:
        yield
    finally:
        _WATCH.folder = None
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGPROF, before[0])
        signal.signal(signal.SIGALRM, before[1])


def _hang(_number: int, _frame: FrameType | None) -> None:
    raise HangError
