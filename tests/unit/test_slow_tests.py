"""Which slow tests a change asks for, and what is said where they fail or the time is up."""

import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
SWAP = "tests/unit/swapping/test_enumeration.py"
ENGINES = "tests/contract/test_engines.py"


@pytest.fixture(scope="module")
def tool() -> Iterator[ModuleType]:
    spec = importlib.util.spec_from_file_location("slow_tests", ROOT / "tools" / "slow_tests.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["slow_tests"] = module  # its dataclass asks for its module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["slow_tests"]


def test_every_room_is_named_and_every_slow_test_is_asked_for_by_one(tool: ModuleType) -> None:
    home = ROOT / "src" / "stirred"
    for path in home.rglob("*.py"):
        name = path.relative_to(home).as_posix()
        assert tool.find_room(f"src/stirred/{name}") or name in tool.WITHOUT_SLOW, f"{name} is in no room"
    places = [place for places in (tool.ROOMS | tool.OUTSIDE).values() for place in places.split()]
    assert [place for place in places if not (ROOT / place).exists()] == []
    unasked = set(tool.list_slow_files(["tests"])) - set(tool.list_slow_files(places))
    assert not unasked, "name the room that they doubt in tools/slow_tests.py"
    assert [
        room for room, own in (tool.ROOMS | tool.OUTSIDE).items() if not tool.list_slow_files(own.split())
    ] == []


def test_what_is_listed_as_slow_is_there(tool: ModuleType) -> None:
    lines = tool.SLOW_LIST.read_text(encoding="utf-8").splitlines()
    names = {line.partition("[")[0] for line in lines if not line.startswith("#")}
    gone = []
    for name in names:
        path, _, function = name.rpartition("::")
        path = path.partition("::")[0]
        file = ROOT / path
        if not file.is_file() or f"def {function}(" not in file.read_text(encoding="utf-8"):
            gone.append(name)
    assert not gone, "tests/slow.txt names tests that are not there"


def test_a_change_asks_for_the_tests_of_its_rooms(tool: ModuleType) -> None:
    rooms, files = tool.choose_tests(
        ["src/stirred/mechanisms/swap/psa.py", "README.md", "tests/gone/test_gone.py"]
    )
    assert rooms == ["mechanisms/swap"]
    assert SWAP in files
    assert not [name for name in files if "topdown" in name]
    assert tool.choose_tests(["tests/unit/topdown/test_guided.py"]) == (
        [],
        ["tests/unit/topdown/test_guided.py"],
    )
    assert tool.choose_tests(["README.md", "src/stirred/errors.py"]) == ([], [])


class History:
    """A repository whose commits have the dates that are asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.hour = folder, 0
        self.ask("init", "-q", "-b", "main")

    def ask(self, *words: str) -> str:
        who = ["-c", "user.name=n", "-c", "user.email=e@example.org"]
        when = f"{1_700_000_000 + 3600 * self.hour} +0000"
        done = subprocess.run(
            ["git", *who, *words], cwd=self.folder, capture_output=True, text=True,
            env={**os.environ, "GIT_COMMITTER_DATE": when, "GIT_CONFIG_GLOBAL": os.devnull},
        )  # fmt: skip
        return done.stdout.strip() if done.returncode == 0 else ""

    def commit(self, *hours_later: int) -> str:
        for hours in hours_later:
            self.hour += hours
            self.ask("commit", "-q", "--allow-empty", "-m", "more")
        return self.ask("rev-parse", "HEAD")


def test_a_change_is_compared_with_what_passed(
    tool: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = History(tmp_path)
    monkeypatch.setattr(tool, "ask_git", history.ask)

    def base() -> tuple[str, str, bool]:
        found = tool.find_base(history.ask)
        return found.commit, found.why, found.follows

    assert base() == ("", "", False)
    first = history.commit(1)
    day = "the last one that is a day older than HEAD"
    assert base() == ("", day, True)
    history.commit(20, 4)
    assert base() == (first, day, True)  # by dates of commits, whatever the clock says
    history.ask("tag", "v1", "HEAD~1")
    assert base() == (history.ask("rev-parse", "v1"), "the last tag, v1", True)
    last = history.commit(1)
    history.commit(25)
    assert base() == (last, day, True)  # the tag is older than a day
    tool.record_passed()
    passed = history.ask("rev-parse", "HEAD")
    landed = history.commit(30, 30)  # a landing of two commits
    assert base() == (passed, "where the slow tests last passed on main", True)
    history.ask("switch", "-q", "-c", "branch")
    history.commit(1, 1)
    assert base() == (landed, "where HEAD left main", False)
    (tmp_path / "new").write_text("not committed")
    history.ask("add", "new")
    tool.record_passed()  # what was tested is no commit
    assert history.ask("rev-parse", tool.PASSED_REF) == passed


def test_only_a_whole_change_of_main_that_ended_and_passed_is_kept(
    tool: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[bool] = []
    statuses: dict[str, int | None] = {SWAP: 0, ENGINES: 0}
    monkeypatch.setattr(tool, "choose_tests", lambda paths: (["spec"], [SWAP, ENGINES]))
    monkeypatch.setattr(tool, "run_file", lambda path, seconds: (statuses[path], ""))
    monkeypatch.setattr(tool, "record_passed", lambda: kept.append(True))
    monkeypatch.setattr(tool, "find_base", lambda: tool.Base("HEAD", "main", follows=True))
    for status in (1, None):
        statuses[SWAP] = status
        tool.main([])
    statuses[SWAP] = 0
    tool.main(["--since", "HEAD"])
    assert not kept
    assert tool.main(["--seconds=-160"]) == 0  # no time is left: said, and nothing fails
    assert not kept
    assert tool.main([]) == 0
    assert kept == [True]


def test_what_failed_fails_and_what_had_no_time_is_named(
    tool: ModuleType, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tool, "choose_tests", lambda paths: (["spec"], [SWAP, ENGINES]))
    statuses: dict[str, int | None] = {}
    monkeypatch.setattr(tool, "run_file", lambda path, seconds: (statuses[path], f"the output of {path}"))

    def told(seconds: int, **found: int | None) -> tuple[int, str]:
        statuses.update({SWAP: found["swap"], ENGINES: found["engines"]})
        return tool.main(["--since", "HEAD", f"--seconds={seconds}"]), capsys.readouterr().out

    status, words = told(60, swap=0, engines=0)
    assert status == 0
    assert "2 files passed, 0 failed, 0 did not end or begin" in words
    for wrong in (1, 2, -9):
        status, words = told(60, swap=0, engines=wrong)
        assert status == 1
        assert f"the output of {ENGINES}\n  FAILED   {ENGINES}" in words
    status, words = told(60, swap=None, engines=0)
    assert status == 0
    assert f"stopped, because 60 seconds were not enough; run make test-slow:\n  {SWAP}" in words
    status, words = told(0, swap=1, engines=1)
    assert status == 0
    assert "not begun, because 0 seconds were not enough" in words
    assert "0 files passed, 0 failed, 2 did not end or begin" in words
    status, words = told(-160, swap=1, engines=1)
    assert status == 0
    assert "no time is left" in words


def test_a_file_is_run_to_its_end_or_stopped(tool: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "test_one.py"
    head = f"import pytest, time\npytestmark = pytest.{tool.SLOW}\n"
    path.write_text(f"{head}def test_wrong(): assert 0, 'it is wrong'\n")
    status, words = tool.run_file(str(path), 600)
    assert status == 1
    assert "it is wrong" in words
    path.write_text(f"{head}def test_long(): time.sleep(3600)\n")
    assert tool.run_file(str(path), 1) == (None, "")
