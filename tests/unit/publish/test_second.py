"""A second process waits for its line, says what it does, and ends when it is not needed."""

import io
import json
import sys
from pathlib import Path

import pytest

from stirred.publish import demo
from stirred.publish.demo import SecondProcess


class Fake(SecondProcess):
    """The same with a program of the test's own."""

    def __init__(
        self, program: str, told: list[tuple[str, int, int]], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(
            demo, "python_command", lambda *_: [str(Path(sys.executable).absolute()), "-c", program]
        )
        super().__init__(Path("a"), Path("b"), Path("c"), lambda *event: told.append(event))


def test_steps_are_forwarded_and_the_end_is_awaited(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[str, int, int]] = []
    program = "import sys; assert sys.stdin.readline() == 'go\\n'; print('[\"read\", 0, 1]')"
    with Fake(program, told, monkeypatch) as process:
        process.go()
        assert process.wait()
    assert told == [("read", 0, 1)]


def test_a_process_that_fails_is_no_packet(monkeypatch: pytest.MonkeyPatch) -> None:
    with Fake("raise SystemExit(2)", [], monkeypatch) as process:
        process.go()
        assert not process.wait()


def test_leaving_early_stops_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    process = Fake("import time; time.sleep(600)", [], monkeypatch)
    with pytest.raises(KeyboardInterrupt), process:
        raise KeyboardInterrupt
    assert not process.wait()


def test_nothing_runs_before_the_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran: list[Path] = []
    monkeypatch.setattr(demo, "compile_slowest", lambda: None)
    monkeypatch.setattr(demo.signal, "signal", lambda *_: None)
    monkeypatch.setattr(demo, "load", lambda plan: plan)
    monkeypatch.setattr(demo.Key, "load", lambda path: path)

    def run(plan: Path, out: Path, **options: object) -> None:
        ran.append(out)
        options["progress"]("tables", 1, 3)  # type: ignore[operator]

    monkeypatch.setattr(demo, "run", run)
    words = [str(tmp_path / "topdown.toml"), str(tmp_path / "out"), str(tmp_path / "demo.key")]
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert demo.main(words) == 1
    assert not ran
    monkeypatch.setattr("sys.stdin", io.StringIO("go\n"))
    assert demo.main(words) == 0
    assert ran == [tmp_path / "out"]
    assert json.loads(capsys.readouterr().out) == ["topdown: tables", 1, 3]
