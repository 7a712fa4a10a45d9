"""A job: one command that is waiting, running or ended; everything about it lies in its folder."""

import fcntl
import json
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from stirred.closed_files import make_closed_folder
from stirred.web.workspace.folder import read_document, write_document

State = Literal["waiting", "running", "done", "failed", "cancelled", "interrupted"]
STOPPED_CODES = (130, 143, -2, -15)  # exit codes of a command that was asked to end
LAST_LINES = 8
MAX_TEXT_CHARACTERS = 200_000  # characters of an output that a page shows


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A command in its folder; its lock is held by the process that runs it."""

    folder: Path
    number: int
    kind: str
    words: tuple[str, ...]  # of the command, after stirred
    plan: int = 0  # the version of the plan; 0: none
    title: str = ""

    @staticmethod
    def of(folder: Path) -> "Job | None":
        """Read the job in a folder; None where there is none."""
        told = read_document(folder / "job.json")
        if not told or not folder.name.isdecimal():
            return None
        words, plan = told.get("words", []), told.get("plan", 0)
        return Job(
            folder=folder,
            number=int(folder.name),
            kind=str(told.get("kind", "")),
            words=tuple(map(str, words)) if isinstance(words, list) else (),
            plan=plan if isinstance(plan, int) else 0,
            title=str(told.get("title", "")),
        )

    @staticmethod
    def new(jobs: Path, *, kind: str, words: Sequence[str], plan: int, title: str, number: int) -> "Job":
        """Keep a new job; it waits."""
        folder = jobs / f"{number:04}"
        make_closed_folder(folder)
        job = Job(folder=folder, number=number, kind=kind, words=tuple(words), plan=plan, title=title)
        write_document(
            folder / "job.json", {"kind": kind, "words": list(words), "plan": plan, "title": title}
        )
        return job

    @property
    def state(self) -> State:
        """Return the state of the job, from the files of its folder alone."""
        result = read_document(self.folder / "result.json")
        if "code" in result:
            code = result["code"]
            if code == 0:
                return "done"
            return "cancelled" if code in STOPPED_CODES else "failed"
        if not (self.folder / "started").exists():
            return "waiting"
        return "running" if self.is_held() else "interrupted"

    @property
    def ended(self) -> bool:
        """Return whether nothing more will happen without a request."""
        return self.state not in ("waiting", "running")

    @property
    def seconds(self) -> float:
        """Return how long it took, or has taken so far."""
        result = read_document(self.folder / "result.json").get("seconds")
        if isinstance(result, int | float):
            return float(result)
        started = self.folder / "started"
        return max(0.0, time.time() - started.stat().st_mtime) if started.exists() else 0.0

    def is_held(self) -> bool:
        """Return whether a process holds the lock."""
        lock = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)  # two that look do not see each other
        except BlockingIOError:
            return True
        finally:
            os.close(lock)
        return False

    def process(self) -> int | None:
        """Return the process that runs it, or None."""
        try:
            number = int((self.folder / "pid").read_text(encoding="ascii"))
        except (OSError, ValueError):
            return None
        return number if self.is_held() else None

    def output(self) -> str:
        """Return what the command printed."""
        return self._text("stdout")

    def messages(self) -> str:
        """Return its progress and its errors."""
        return self._text("stderr")

    def last_words(self) -> str:
        """Return the end of its messages: what, why and fix of a refusal."""
        lines = [line for line in self.messages().splitlines() if line.strip()]
        return "\n".join(lines[-LAST_LINES:])

    def document(self) -> dict[str, object]:
        """Return the JSON document that it printed, or an empty one."""
        try:
            found = json.loads((self.folder / "stdout").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def again(self) -> None:
        """Let it wait again; a run goes on from what is finished."""
        for name in ("result.json", "started", "pid", "cancel"):
            (self.folder / name).unlink(missing_ok=True)

    def withdraw(self) -> None:
        """End the job before it began."""
        write_document(self.folder / "result.json", {"code": STOPPED_CODES[1], "seconds": 0.0})

    def _text(self, name: str) -> str:
        try:
            return (self.folder / name).read_text(encoding="utf-8", errors="replace")[-MAX_TEXT_CHARACTERS:]
        except OSError:
            return ""
