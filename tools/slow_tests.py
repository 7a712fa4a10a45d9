"""Run the slow tests of the rooms that a change touched, and say what ran, what did not and why.

    python tools/slow_tests.py                  the change of this branch, on main since they last passed; 30 minutes at most
    python tools/slow_tests.py --since COMMIT   the change since a commit, with what is not committed yet
    python tools/slow_tests.py --seconds 600    ten minutes at most
    python tools/slow_tests.py --list           name rooms and tests, run nothing

A failure fails; a file for which no time is left does not, and is named. ``make test-slow`` runs all of them.
On main the commit at which all of them ended and passed is kept (refs/stirred/slow-tests-passed): a landing of several
commits, or one for which no time was left, is tested as a whole.
"""

import argparse
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SLOW, SPARK = "mark.slow", "mark.spark"  # how a file of tests marks what is slow and what runs on Spark
SLOW_LIST = ROOT / "tests" / "slow.txt"  # slow tests without a mark, as pytest names them
NOTHING_COLLECTED = 5  # pytest's own number
PASSED_REF = "refs/stirred/slow-tests-passed"
SECONDS_PER_DAY = 86_400

# room of src/stirred → folders and files whose slow tests doubt it; a longer name comes before a shorter one
PACKETS = "tests/golden/packets"
ROOMS = {
    "mechanisms/swap": (
        "tests/unit/swapping tests/slow/test_traditional_real_data.py "
        "tests/unit/targeted tests/unit/swapping_2010 tests/statistical/swapping tests/golden/test_1940.py "
        f"tests/golden/test_stirring_note.py tests/unit/audit tests/contract {PACKETS}"
    ),
    "mechanisms/stirring": (
        "tests/unit/stirring tests/golden/test_stirring_note.py tests/unit/swapping/test_parts.py tests/unit/audit "
        f"tests/contract {PACKETS}"
    ),
    "mechanisms/topdown": (
        "tests/unit/topdown tests/statistical/topdown tests/unit/publish/test_das2020.py "
        f"tests/spark/test_spark_das2020.py tests/contract {PACKETS}"
    ),
    "mechanisms/tables": (
        f"tests/slow/test_cell_key_vectors.py tests/unit/cell_key tests/unit/audit tests/contract {PACKETS}"
    ),
    "mechanisms/census2020": f"tests/unit/safetab tests/unit/safetab_h tests/unit/bureau tests/contract {PACKETS}",
    "mechanisms": f"tests/contract tests/unit/audit {PACKETS}",
    "spec": "tests/unit/spec tests/unit/swapping/test_swap_promises.py tests/unit/formal",
    "chance": (
        "tests/statistical/chance tests/unit/chance tests/unit/swapping tests/unit/formal "
        "tests/slow/test_cell_key_vectors.py"
    ),
    "census": (
        "tests/golden/test_reading.py tests/statistical/synthetic tests/unit/bureau tests/unit/census tests/unit/synthetic "
        "tests/fuzz tests/unit/topdown/test_mdf.py"
    ),
    "engine": (
        "tests/spark tests/contract/test_engines.py tests/unit/swapping/test_parts.py "
        "tests/slow/test_cluster_operator.py tests/slow/test_cluster_trials.py tests/slow/test_memory_bound.py "
        "tests/unit/engine "
        "tests/unit/topdown/test_topdown_shards.py"
    ),
    "catalog": "tests/unit/publish/test_das2020.py",
    "assess": "tests/unit/assess tests/unit/audit",
    "report": "tests/e2e/test_documents.py",
    "publish": f"tests/unit/publish tests/unit/hostile tests/slow/kills tests/e2e tests/spark/test_spark_plan.py {PACKETS}",
    "web": "tests/web",
    "cli": "tests/e2e tests/unit/cli tests/unit/hostile",
    "paper": "tests/golden/test_1940.py tests/unit/paper",
    "languages": "tests/unit/publish/test_plan_language.py",
    "kernels.py": "tests/unit/topdown/test_topdown_machines.py",
    "child_processes.py": "tests/unit/hostile tests/web tests/slow/kills",
    "closed_files.py": "tests/slow/kills tests/e2e/test_faults.py",
    "text_formats.py": "tests/fuzz",
    "frames.py": "tests/golden/test_reading.py",
    "_support.py": "tests/unit/test_extras.py",
}
# files of no room, and files of the house that are nobody's alone: their quick tests are in make test
OUTSIDE = {
    "docs": "tests/e2e/test_documents.py",
    "examples": "tests/e2e",
    "formal": "tests/unit/formal",
    "r": "tests/e2e/test_r_package.py",
    "tools": "tests/unit/test_slow_tests.py",
}
WITHOUT_SLOW = ("__init__.py", "__main__.py", "errors.py", "roots.py", "py.typed")


# ---- what changed ------------------------------------------------------------------------------------------------------


def ask_git(*words: str) -> str:
    """Return what git answers, or nothing where it refuses."""
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


@dataclass(frozen=True)
class Base:
    """The commit that a change is compared with, why, and whether HEAD itself passes where the change since does."""

    commit: str
    why: str
    follows: bool = False


def find_base(ask: Callable[..., str] = ask_git) -> Base:
    """Return where the branch left main, or on main the commit that passed last, or the latest of tag and day before.

    The day is one of commit dates, counted back from HEAD's: the same commit is compared with the same one at any time.
    """
    head = ask("rev-parse", "HEAD")
    for main in ("origin/main", "main"):
        found = ask("merge-base", "HEAD", main)
        if found and found != head:
            return Base(found, f"where HEAD left {main}")
    passed = ask("rev-parse", "--verify", "--quiet", PASSED_REF)
    if passed and ask("merge-base", "HEAD", passed) == passed:
        return Base(passed, "where the slow tests last passed on main", follows=True)
    if not head:
        return Base("", "")
    day = int(ask("show", "--no-patch", "--format=%ct", "HEAD")) - SECONDS_PER_DAY
    before = ask("rev-list", "--max-count=1", "--first-parent", f"--before={day}", "HEAD")
    tag = ask("describe", "--tags", "--abbrev=0", "HEAD")
    tagged = ask("rev-parse", f"{tag}^{{commit}}") if tag else ""
    if tagged and (not before or ask("merge-base", before, tagged) == before):
        return Base(tagged, f"the last tag, {tag}", follows=True)
    return Base(before, "the last one that is a day older than HEAD", follows=True)


def record_passed() -> None:
    """Keep HEAD as the commit that passed, unless what was tested is not what is committed."""
    if not ask_git("status", "--porcelain", "--untracked-files=no"):
        ask_git("update-ref", PASSED_REF, "HEAD")


def find_room(path: str) -> str | None:
    """Return the room that a file belongs to; None for a file of no room.

    >>> find_room("src/stirred/mechanisms/swap/psa.py"), find_room("src/stirred/mechanisms/base.py")
    ('mechanisms/swap', 'mechanisms')
    """
    name = path.removeprefix("src/stirred/")
    if name == path:
        name = path.partition("/")[0]
        return name if name in OUTSIDE else None
    return next((room for room in ROOMS if name == room or name.startswith(f"{room}/")), None)


def list_slow_files(places: Iterable[str]) -> list[str]:
    """Return the files with slow tests in folders and files, each once."""
    listed = {line.partition("::")[0] for line in SLOW_LIST.read_text(encoding="utf-8").splitlines()}
    found: dict[str, None] = {}
    for place in places:
        at = ROOT / place
        for path in sorted(at.rglob("test_*.py")) if at.is_dir() else [at]:
            name = path.relative_to(ROOT).as_posix()
            if name in listed or SLOW in path.read_text(encoding="utf-8"):
                found[name] = None
    return list(found)


def choose_tests(paths: Iterable[str]) -> tuple[list[str], list[str]]:
    """Return the rooms that changed and the files of slow tests that doubt them; changed tests doubt themselves."""
    paths = list(paths)
    rooms = list(dict.fromkeys(room for path in paths if (room := find_room(path))))
    places = [place for room in rooms for place in (ROOMS | OUTSIDE)[room].split()]
    changed = [path for path in paths if path.startswith("tests/") and (ROOT / path).is_file()]
    places += [path for path in changed if Path(path).name.startswith("test_") and path.endswith(".py")]
    return rooms, list_slow_files(places)


# ---- running -----------------------------------------------------------------------------------------------------------


@dataclass
class Outcome:
    """What became of every file: passed, failed, stopped when the time was up, or never begun."""

    passed: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    stopped: list[str] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)


def run_file(path: str, seconds: float) -> tuple[int | None, str]:
    """Run the slow tests of a file; return pytest's status (None: stopped when the time was up) and its output."""
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-m", "slow", path]
    started = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    try:
        told, _ = started.communicate(timeout=seconds)
        return started.returncode, told
    except subprocess.TimeoutExpired:
        os.killpg(started.pid, signal.SIGKILL)  # with the servers and clusters that tests have started
        started.communicate()
        return None, ""


def run_files(files: Sequence[str], seconds: float) -> Outcome:
    """Run files two at a time until all are done or the time is up; those on Spark one after the other."""
    deadline = time.monotonic() + seconds
    outcome, lock = Outcome(), threading.Lock()
    on_spark = [path for path in files if SPARK in (ROOT / path).read_text(encoding="utf-8")]
    others = [path for path in files if path not in on_spark]

    def work(*queues: list[str]) -> None:
        for queue in queues:
            while True:
                with lock:
                    if not queue:
                        break
                    path = queue.pop(0)
                began = time.monotonic()
                if deadline - began <= 0:
                    outcome.waiting.append(path)
                    continue
                status, told = run_file(path, deadline - began)
                with lock:
                    note_result(outcome, path, status, told, time.monotonic() - began)

    lanes = [threading.Thread(target=work, args=queues) for queues in ((on_spark, others), (others,))]
    for lane in lanes:
        lane.start()
    for lane in lanes:
        lane.join()
    return outcome


def note_result(outcome: Outcome, path: str, status: int | None, told: str, seconds: float) -> None:
    """Keep and print what became of a file; the whole output where it failed."""
    if status is None:
        outcome.stopped.append(path)
        print(f"  stopped  {path}: the time was up after {seconds:.0f} seconds", flush=True)
    elif status in (0, NOTHING_COLLECTED):
        outcome.passed.append(path)
        print(
            f"  passed   {path}: {told.strip().splitlines()[-1].strip('= ') if told.strip() else ''}",
            flush=True,
        )
    else:
        outcome.failed.append(path)
        print(f"{told}\n  FAILED   {path}", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Choose, run, report and keep what passed; return 1 where a test failed, not where time was short."""
    began = time.monotonic()
    parser = argparse.ArgumentParser(description="Run the slow tests of the rooms that a change touched.")
    parser.add_argument("--since", help="the commit to compare with")
    parser.add_argument("--seconds", type=float, default=1800, help="how long tests may run in all")
    parser.add_argument("--list", action="store_true", help="name rooms and tests, run nothing")
    options = parser.parse_args(arguments)
    base = Base(options.since, "as asked") if options.since else find_base()
    if base.commit:
        rooms, files = choose_tests(ask_git("diff", "--name-only", base.commit).splitlines())
        touched = ", ".join(rooms) or "no room"
        print(f"slow tests: the change since {base.commit[:12]} ({base.why}) touches {touched}", flush=True)
    else:
        rooms, files = [*ROOMS], list_slow_files(["tests"])
        print("slow tests: no earlier commit is known here, so every room counts as touched", flush=True)
    if options.list or not files:
        print(*(f"  {path}" for path in files or ["no slow test doubts what changed"]), sep="\n")
        return 0
    if options.seconds <= 0:
        print("slow tests: no time is left, so none of them is begun")
    elif any(path.startswith("tests/e2e/") for path in files):
        with suppress(subprocess.TimeoutExpired):  # then no test is begun
            subprocess.run(["bash", "tools/r"], cwd=ROOT, check=True, timeout=options.seconds)
    outcome = run_files(files, options.seconds - (time.monotonic() - began))
    for what, names in (("stopped", outcome.stopped), ("not begun", outcome.waiting)):
        if names:
            print(
                f"{what}, because {max(options.seconds, 0):.0f} seconds were not enough; run make test-slow:",
                *names,
                sep="\n  ",
            )
    print(
        f"slow tests: {len(outcome.passed)} files passed, {len(outcome.failed)} failed, "
        f"{len(outcome.stopped) + len(outcome.waiting)} did not end or begin"
    )
    if base.follows and len(outcome.passed) == len(files):
        record_passed()
    return 1 if outcome.failed else 0


if __name__ == "__main__":
    sys.exit(main())
