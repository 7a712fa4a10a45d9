"""Kill ``stirred run`` at random instants, take it up, and compare the packet with that of an undisturbed run.

An instant is drawn in two steps: one of the events that the undisturbed run logged, each with the same chance, then a
moment between it and the next one. So short steps are hit as often as long ones. One in five kills comes instead exactly
before an entry of a folder is made, renamed or deleted, where a run that is not careful leaves half of something.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from slow.kills import left
from slow.kills.cluster import StandaloneCluster
from slow.kills.jobs import Job
from stirred.chance import Key
from stirred.engine.scratch import UNNAMED_PREFIX

BEFORE = "check"  # before the first event: imports, validation of the census, the promise
EXACT = "SIGKILL at an operation"
OPERATIONS = 70  # a run has about that many
ENDED = ("Z", "")
QUICK = 0.004  # seconds beyond the end of an interval, so that its last instants are hit too


@dataclass(frozen=True, slots=True)
class Kill:
    """One signal: at which step, how the process ended, and what was wrong."""

    job: str
    step: str
    signal: str
    code: int
    again: int  # how often this output had been killed before
    faults: tuple[str, ...] = ()


@dataclass(slots=True)
class Starter:
    """The process that starts commands."""

    home: Path
    cluster: StandaloneCluster | None = None
    process: Any = None

    def __enter__(self) -> "Starter":
        library = self.home / "charts.js"
        make = "import sys; from pathlib import Path; from stirred.report.html import chart_library;"
        make += "Path(sys.argv[1]).write_text(chart_library())"
        subprocess.run([sys.executable, "-c", make, str(library)], check=True)
        (self.home / "scratch").mkdir(exist_ok=True)
        words = [sys.executable, "-m", "slow.kills.starter", str(library)]
        paths = [str(Path(__file__).parents[2]), *filter(None, sys.path)]
        more = {
            "PYTHONPATH": os.pathsep.join(paths),
            "TMPDIR": str(self.home / "scratch"),
            "OPENBLAS_NUM_THREADS": "1",
            **(self.cluster.environment if self.cluster else {}),
        }
        self.process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **more}
        )
        self._answer("ready")
        return self

    def __exit__(self, *_: object) -> None:
        self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()

    def start(self, folder: Path, words: Sequence[str], operation: int = 0) -> int:
        """Start a command; returns its process id. It kills itself before that operation on a folder, counted from 1."""
        asked = {
            "words": list(words),
            "folder": str(folder),
            "told": str(folder / "told"),
            "operation": operation,
        }
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        return self._answer("pid")

    def ended(self) -> int:
        """Wait for the command; returns its exit code, negative for a signal."""
        return self._answer("code")

    def _answer(self, name: str) -> int:
        return int(json.loads(self.process.stdout.readline())[name])


@dataclass(frozen=True, slots=True)
class Event:
    """A line of the log: what had begun or was done, and how long it took until the next one."""

    name: str
    seconds: float


@dataclass(slots=True, kw_only=True)
class Trial:
    """One job with its census, its undisturbed packet and the instants at which it can be killed."""

    job: Job
    folder: Path
    starter: Starter
    rng: random.Random
    events: list[Event] = field(default_factory=list)
    expected: dict[str, bytes] = field(default_factory=dict)
    kills: list[Kill] = field(default_factory=list)
    compared: int = 0

    @property
    def out(self) -> Path:
        return self.folder / "packet"

    @property
    def part(self) -> Path:
        return self.folder / "packet.part"

    @property
    def cluster(self) -> StandaloneCluster | None:
        return self.starter.cluster

    @property
    def scratch(self) -> Path:
        return self.starter.home / "scratch"

    def words(self) -> list[str]:
        """The command, the same every time."""
        flags = ["--engine", "spark", "--master", self.cluster.master] if self.cluster else []
        key = str(self.folder / "office.key")
        return [*self.job.verb, "--out", "packet", "--key", key, *self.job.flags, *flags]

    def prepare(self, households: int) -> None:
        """Write the census and run once without a kill."""
        self.job.write(self.folder, households)
        Key.for_tests(5).save(self.folder / "office.key")
        for _ in range(1 if self.cluster else 2):  # the first run compiles what is not in the cache
            shutil.rmtree(self.out, ignore_errors=True)
            self.log.unlink(missing_ok=True)
            began = time.monotonic()
            self.starter.start(self.folder, self.words())
            code = self.starter.ended()
            if code:
                raise AssertionError((self.folder / "told").read_text())
            whole = time.monotonic() - began
        lines = self._logged(0)
        times = [line["seconds"] for line in lines]
        gaps = [b - a for a, b in zip(times, [*times[1:], times[-1] + 0.1], strict=True)]
        first = Event(BEFORE, max(0.05, whole - times[-1] - 0.1))
        self.events = [first, *(Event(_name(line), gap) for line, gap in zip(lines, gaps, strict=True))]
        self.expected = contents(self.out)
        shutil.rmtree(self.out)
        self.log.unlink()

    @property
    def log(self) -> Path:
        return self.folder / "packet.log"

    def _logged(self, after: int) -> list[dict[str, Any]]:
        lines = self.log.read_bytes()[after:].splitlines() if self.log.exists() else []
        # how far a long step is depends on the clock: another run need not tell it
        return [json.loads(line) for line in lines if line.endswith(b"}") and b'"percent"' not in line]

    def chain(self, most: int) -> None:
        """Kill a run, take it up and kill it again, at most that often; then let it finish and compare."""
        for again in range(self.rng.randint(1, most)):
            if not self._killed(again):
                break
        if not self.out.exists():
            self.starter.start(self.folder, self.words())
            code = self.starter.ended()
            if code:
                self._wrong(f"taken up with exit code {code}: {(self.folder / 'told').read_text()[-400:]}")
        self._compare()

    def lose_worker(self) -> None:
        """Kill a worker of the cluster when the run is past its first stage; it goes on by itself, to the same packet."""
        assert self.cluster is not None
        target = self.rng.randrange(len(self.events) // 2, len(self.events) - 1)
        (self.folder / "told").unlink(missing_ok=True)
        process = self.starter.start(self.folder, self.words())
        self._await(process, self.events[target].name, 0)
        time.sleep(self.rng.random() * self.events[target].seconds)
        alive, logged = _state(process) not in ENDED, self._logged(0)
        self.cluster.lose(self.rng.randrange(2))
        code = self.starter.ended()
        if alive:
            found = [*self._left(), *([f"exit code {code}: {self._words()[-600:]}"] if code else [])]
            self.kills.append(Kill(self.job.name, _name(logged[-1]), "worker lost", code, 0, tuple(found)))
        self._compare()

    def _left(self) -> Iterator[str]:
        yield from left.faults(self.folder, self.out, self.scratch)
        if self.cluster is not None:
            yield from left.on_spark(self.cluster.written())

    def _words(self) -> str:
        told = self.folder / "told"
        return told.read_text(errors="replace") if told.exists() else ""

    def _killed(self, again: int) -> bool:
        """Start the command and kill it at a drawn instant; False where it ended before."""
        # on Spark there are few kills, and SIGTERM has more to end: a driver with its JVM
        weights = (3, 1, 1) if self.cluster is None else (1, 2, 1)
        number = self.rng.choices(("SIGKILL", "SIGTERM", EXACT), weights)[0]
        target = self._drawn()
        operation = self.rng.randint(1, OPERATIONS) if number == EXACT else 0
        before = self.log.stat().st_size if self.log.exists() else 0
        (self.folder / "told").unlink(missing_ok=True)
        lying = self._lying()
        process = self.starter.start(self.folder, self.words(), operation)
        if not operation:
            if target:
                self._await(process, self.events[target].name, before)
            time.sleep(self.rng.random() * (self.events[target].seconds + QUICK))
            if _state(process) not in ENDED:
                self._send(process, signal.Signals[number])
        code = self.starter.ended()
        if code == 0:
            return False
        logged = self._logged(before)
        step = _name(logged[-1]) if logged else BEFORE
        found = [*self._left(), *self._told(number, code, lying)]
        self.kills.append(Kill(self.job.name, step, number, code, again, tuple(found)))
        return not self.out.exists()

    def _send(self, process: int, number: signal.Signals) -> None:
        """Send a signal to the whole group of a command; with Spark half of the times to its Python alone."""
        try:
            if self.cluster is None or self.rng.random() < 0.5:
                os.killpg(process, number)
            else:
                os.kill(process, number)
        except ProcessLookupError:  # it has no group of its own yet
            os.kill(process, number)

    def _drawn(self) -> int:
        """The event after which the run is killed; what a mechanism has finished is not done again."""
        first = 0
        if (self.part / "public" / "data").is_dir():
            first = next((i for i, event in enumerate(self.events) if event.name.startswith("tables")), 0)
        return self.rng.choice([0, *range(max(first, 1), len(self.events))])

    def _await(self, process: int, name: str, before: int) -> None:
        """Wait until the log of this run has that event, or the run has ended."""
        seen = 0
        while _state(process) not in ENDED:
            size = self.log.stat().st_size if self.log.exists() else 0
            if size > max(seen, before):
                seen = size
                if any(_name(line) == name for line in self._logged(before)):
                    return
            time.sleep(0.001)

    def _lying(self) -> set[str]:
        """What an earlier process that was killed may have left, beside the unfinished run."""
        lock = self.out.with_name("packet.lock")
        return {path.name for path in (*self._in_scratch(), lock) if path.exists()}

    def _in_scratch(self) -> list[Path]:
        """What lies in scratch; a folder without records, not yet in use, is removed by a run an hour later."""
        return [
            path
            for path in self.scratch.iterdir()
            if not path.name.startswith(UNNAMED_PREFIX) or any(file.stat().st_size for file in path.iterdir())
        ]

    def _told(self, number: str, code: int, lying: set[str]) -> Iterator[str]:
        """What is wrong with the last words of a process, and with what it left although it could clean up."""
        told = self._words()
        if "Traceback" in told or "Exception ignored" in told:
            yield "a traceback: " + told[-1500:]
        if number == "SIGTERM" and code not in (143, -signal.SIGTERM):
            yield f"exit code {code} after SIGTERM: {told[-300:]}"
        if number == "SIGTERM" and code == 143 and self._lying() - lying:
            yield f"left after SIGTERM: {sorted(self._lying() - lying)}"

    def _wrong(self, what: str) -> None:
        last = self.kills[-1] if self.kills else Kill(self.job.name, "no kill", "", 0, 0)
        self.kills[-1:] = [
            Kill(last.job, last.step, last.signal, last.code, last.again, (*last.faults, what))
        ]

    def _compare(self) -> None:
        """The packet is the expected one, byte by byte, and nothing else is left."""
        found = contents(self.out)
        if found != self.expected:
            names = sorted(
                name
                for name in found.keys() | self.expected.keys()
                if found.get(name) != self.expected.get(name)
            )
            self._wrong(f"the packet differs: {', '.join(names)}")
            shutil.copytree(self.out, self.folder.with_name(f"{self.folder.name}-{len(self.kills)}"))
        # a kill after the packet got its name leaves scratch and lock: the next run removes them
        lingering = [path.name for path in self._in_scratch()] if not self._named_early() else []
        if lingering:
            self._wrong(f"left in scratch: {lingering}")
        if self.part.exists():
            # a kill after the packet got its name leaves the mark of its run, and nothing else
            if not self._named_early() or {path.name for path in self.part.iterdir()} - {"run"}:
                self._wrong("packet.part is left")
            shutil.rmtree(self.part)
        self.compared += 1
        shutil.rmtree(self.out, ignore_errors=True)
        self.log.unlink(missing_ok=True)
        self.out.with_name("packet.lock").unlink(missing_ok=True)

    def _named_early(self) -> bool:
        """Whether the last process was killed when the packet had its name already."""
        return bool(self.kills) and self.out.with_name("packet.lock").exists()


def contents(packet: Path) -> dict[str, bytes]:
    """Every file of a packet, public and internal."""
    return {str(p.relative_to(packet)): p.read_bytes() for p in sorted(packet.rglob("*")) if p.is_file()}


def histogram(kills: Sequence[Kill]) -> str:
    """Kills by job and step, as text."""
    lines = []
    for job in dict.fromkeys(kill.job for kill in kills):
        counts = Counter(kill.step for kill in kills if kill.job == job)
        terms = Counter(kill.step for kill in kills if kill.job == job and kill.signal == "SIGTERM")
        lines.append(f"{job}: {counts.total()} kills, {terms.total()} of them SIGTERM")
        lines += [f"  {step:28} {counts[step]:3} {'#' * counts[step]}" for step in counts]
    return "\n".join(lines)


def by_job(kills: Sequence[Kill]) -> Mapping[str, Mapping[str, int]]:
    """Kills by job and step, as numbers."""
    return {
        job: dict(Counter(kill.step for kill in kills if kill.job == job))
        for job in dict.fromkeys(kill.job for kill in kills)
    }


def _name(line: Mapping[str, Any]) -> str:
    return str(line["step"]) if line["state"] == "begun" else f"after {line['step']}"


def _state(process: int) -> str:
    """The state of a process as the system has it: Z where it has ended."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return ""
