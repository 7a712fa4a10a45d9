"""Which slow tests a change asks for, and what is said where they fail or the time is up."""

import importlib.util
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


@pytest.mark.parametrize(
    ("answers", "base"),
    [
        ({"rev-parse HEAD": "b", "merge-base HEAD origin/main": "a"}, "a"),
        ({"rev-parse HEAD": "b", "merge-base HEAD main": "a"}, "a"),
        ({"rev-parse HEAD": "b", "merge-base HEAD main": "b", "rev-parse --verify --quiet HEAD^1": "p"}, "p"),
        ({"rev-parse HEAD": "b"}, ""),
    ],
    ids=["a branch", "a branch of a local main", "main itself", "a single commit"],
)
def test_the_last_landed_commit(tool: ModuleType, answers: dict[str, str], base: str) -> None:
    assert tool.find_base(lambda *words: answers.get(" ".join(words), "")) == base


def test_what_failed_fails_and_what_had_no_time_is_named(
    tool: ModuleType, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tool, "choose_tests", lambda paths: (["spec"], [SWAP, ENGINES]))
    statuses: dict[str, int | None] = {}
    monkeypatch.setattr(tool, "run_file", lambda path, seconds: (statuses[path], f"the output of {path}"))

    def told(seconds: int, **found: int | None) -> tuple[int, str]:
        statuses.update({SWAP: found["swap"], ENGINES: found["engines"]})
        return tool.main(["--since", "HEAD", "--seconds", str(seconds)]), capsys.readouterr().out

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


def test_a_file_is_run_to_its_end_or_stopped(tool: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "test_one.py"
    head = f"import pytest, time\npytestmark = pytest.{tool.SLOW}\n"
    path.write_text(f"{head}def test_wrong(): assert 0, 'it is wrong'\n")
    status, words = tool.run_file(str(path), 600)
    assert status == 1
    assert "it is wrong" in words
    path.write_text(f"{head}def test_long(): time.sleep(3600)\n")
    assert tool.run_file(str(path), 1) == (None, "")
