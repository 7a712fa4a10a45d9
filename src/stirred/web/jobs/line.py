"""The line of jobs: one runs, the others wait; jobs of a server that was killed are found again."""

import fcntl
import os
import signal
from collections.abc import Sequence
from pathlib import Path
from threading import Event, Thread

from stirred.children import Child, python_command, start_child
from stirred.errors import InputError
from stirred.roots import child_setting
from stirred.web.jobs.job import Job
from stirred.web.workspace.folder import WorkspaceLock

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
                    python_command("stirred.web.jobs.runner", str(job.folder.absolute())),
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
