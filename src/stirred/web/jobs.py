"""Run one command at a time in a process of its own: the jobs, their queue and their progress."""

import fcntl
import json
import os
import re
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Event, Thread
from typing import Literal

from stirred.census.progress import write_left
from stirred.child_processes import Child, python_command, start_child
from stirred.closed_files import make_closed_folder
from stirred.errors import InputError
from stirred.roots import child_setting
from stirred.web.workspace import WorkspaceLock, read_document, write_document

# A job: one command that is waiting, running or ended; everything about it lies in its folder.

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


# The line of jobs: one runs, the others wait; jobs of a server that was killed are found again.

POLL_SECONDS = 0.2  # seconds between looks at the running job


class JobQueue:
    """Queue of all jobs of a workbench, with the thread that starts the next one."""

    def __init__(
        self, folder: Path, *, lock: WorkspaceLock | None = None, roots: Sequence[Path] = ()
    ) -> None:
        self.folder = folder
        self.lock = lock or WorkspaceLock(folder.parent / "lock")
        self.roots = roots  # below which the commands read files
        self._wake = Event()
        self._closed = Event()
        self._children: list[Child] = []
        self._thread: Thread | None = None

    def start(self) -> None:
        """Start to work; a job that still runs since an earlier server is waited for first."""
        self._thread = Thread(target=self._work, name="jobs", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Start no more jobs; the one that runs goes on."""
        self._closed.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join(5)
        for child in self._children:
            if child.poll() is None:
                child.returncode = 0  # it is left to itself on purpose: Python need not warn about it

    def all(self) -> list[Job]:
        """Return all jobs, oldest first."""
        found = (Job.of(path) for path in sorted(self.folder.iterdir()) if path.is_dir())
        return [job for job in found if job is not None]

    def job(self, number: int) -> Job:
        """Return one job; refuse an unknown number."""
        found = Job.of(self.folder / f"{number:04}")
        if found is None:
            raise InputError(
                "there is no such run",
                why="the workbench has none of this number",
                fix="choose one of the list",
            )
        return found

    def next_number(self) -> int:
        """Return the number of the next job."""
        return 1 + max((int(p.name) for p in self.folder.iterdir() if p.name.isdecimal()), default=0)

    def add(self, kind: str, words: Sequence[str], *, plan: int = 0, title: str = "", number: int = 0) -> Job:
        """Let a command wait for its turn."""
        with self.lock:
            made = Job.new(
                self.folder,
                kind=kind,
                words=words,
                plan=plan,
                title=title,
                number=number or self.next_number(),
            )
        self._wake.set()
        return made

    def cancel(self, number: int) -> None:
        """Ask a job to end; what a run has finished is kept."""
        with self.lock:
            job = self.job(number)
            if job.state == "waiting":
                job.withdraw()
                return
            if job.state != "running":
                return
            (job.folder / "cancel").touch()  # for a process that has not told its number yet
            process = job.process()
            if process is not None:
                os.kill(process, signal.SIGTERM)

    def resume(self, number: int) -> None:
        """Let a job that was cancelled, interrupted or refused wait again."""
        with self.lock:
            job = self.job(number)
            if job.state in ("cancelled", "interrupted", "failed"):
                job.again()
        self._wake.set()

    def _work(self) -> None:
        while not self._closed.is_set():
            self._children = [child for child in self._children if child.poll() is None]
            with self.lock:
                states = [(job, job.state) for job in self.all()]
                waiting = [job for job, state in states if state == "waiting"]
                if waiting and not any(state == "running" for _, state in states):
                    self._begin(waiting[0])
            self._wake.wait(POLL_SECONDS if waiting or self._children else 2.0)
            self._wake.clear()

    def _begin(self, job: Job) -> None:
        """Start the process of a job; it holds the lock from here on."""
        lock = os.open(job.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            (job.folder / "started").touch()
            self._children.append(
                start_child(
                    python_command("stirred.web.runner", str(job.folder.absolute())),
                    folder=job.folder,
                    pass_fds=(lock,),
                    start_new_session=True,  # a server that is stopped does not stop it
                    settings=child_setting(self.roots),
                )
            )
        except BlockingIOError:
            pass
        finally:
            os.close(lock)


# How far a job is, from the lines that its command writes: names of steps and percentages, no value of a record.

MAX_LINES = 2000
STEP_PATTERN = re.compile(
    r" *[\d.]+ s  (?P<step>[^\d%]+?)(?: (?P<percent>\d+) %(?:, (?P<left>about [^%]+ left))?)?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStep:
    """One step of a job: whether it has ended, and how far it is and how long it will take where that is known."""

    name: str
    done: bool
    percent: int | None = None
    left: str = ""


def steps_of_job(job: Job, packets: Path, *, running: bool) -> list[JobStep]:
    """Return the steps in the order in which they were last reported; the last one may be under way."""
    found = _read_log(packets / f"{job.number:04}.log") if job.kind == "run" else _read_messages(job)
    last = next(reversed(found), "")
    return [
        replace(step, done=True, percent=None, left="")
        if not running or step.name != last or step.percent == 100
        else replace(step, done=False)
        for step in found.values()
    ]


def _read_log(path: Path) -> dict[str, JobStep]:
    """Return the steps of a run from the log beside its packet."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()[-MAX_LINES:]
    except OSError:
        return {}
    found: dict[str, JobStep] = {}
    for line in lines:
        try:
            event = json.loads(line)
            name, state, percent = str(event["step"]), event["state"], event.get("percent")
            left = event.get("seconds_left")
        except (ValueError, KeyError, TypeError, AttributeError):
            continue  # a line that is being written
        found.pop(name, None)
        found[name] = JobStep(
            name=name,
            done=state == "done",
            percent=100 if state == "done" else percent if isinstance(percent, int) else None,
            left=write_left(left) if isinstance(left, int) and left > 0 else "",
        )
    return found


def _read_messages(job: Job) -> dict[str, JobStep]:
    """Return the steps of another command from what it prints on standard error."""
    found: dict[str, JobStep] = {}
    for line in job.messages().splitlines()[-MAX_LINES:]:
        told = STEP_PATTERN.fullmatch(line)
        if told:
            name, percent = told["step"], int(told["percent"]) if told["percent"] else None
            found.pop(name, None)
            found[name] = JobStep(name=name, done=False, percent=percent, left=told["left"] or "")
    return found
