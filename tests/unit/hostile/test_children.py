"""Files in a working folder are never executed: modules of ten names are planted wherever a child process starts."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from small_census import CENSUS, households
from stirred.chance import Key
from stirred.child_processes import PIPE, ask_program, child_environment, python_command, start_child
from stirred.errors import InputError
from stirred.publish.demo import SecondProcess
from stirred.web.jobs import JobQueue

NAMES = (
    "stirred",
    "json",
    "polars",
    "pyarrow",
    "numpy",
    "signal",
    "pathlib",
    "sitecustomize",
    "usercustomize",
    "numba",
)
PLAN = """title = "t"
census = "census.toml"
[[mechanism]]
name = "gaussian-tables"
record = "household"
tables = [["county", "tenure"]]
rho_squared = "1/2"
"""


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of somebody's data, with modules that leave a trace; the process works in it."""
    folder = tmp_path / "downloads"
    folder.mkdir()
    plant(folder, tmp_path)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(("", ".", "downloads")))
    monkeypatch.setenv("PYTHONSTARTUP", str(folder / "json.py"))
    return folder


def plant(folder: Path, traces: Path) -> None:
    for name in NAMES:
        (folder / f"{name}.py").write_text(f"open({str(traces / name)!r} + '.executed', 'w').close()\n")


def executed(tmp_path: Path) -> list[str]:
    return sorted(path.name for path in tmp_path.glob("*.executed"))


def test_the_plants_would_be_found(planted: Path, tmp_path: Path) -> None:
    """Without the safe path they are executed: the test can fail."""
    subprocess.run([sys.executable, "-m", "stirred", "--version"], cwd=planted, check=False)
    assert "stirred.executed" in executed(tmp_path)


def test_a_job_of_the_workbench_executes_nothing_of_the_folder(planted: Path, tmp_path: Path) -> None:
    bench = tmp_path / "bench"
    (bench / "jobs").mkdir(parents=True)
    plant(bench, tmp_path)  # where the command itself works
    line = JobQueue(bench / "jobs")
    line.start()
    try:
        line.add("version", ["--version"])
        for _ in range(600):
            if line.job(1).ended:
                break
            time.sleep(0.1)
        assert line.job(1).state == "done"
        assert line.job(1).output()
    finally:
        line.close()
    assert executed(tmp_path) == []


def test_what_the_second_process_imports_is_not_of_the_folder(planted: Path, tmp_path: Path) -> None:
    child = start_child(python_command("stirred.publish.demo"), folder=planted, stderr=PIPE)
    assert (
        b"not enough values to unpack" in child.communicate()[1]
    )  # all is imported, then it misses its words
    assert executed(tmp_path) == []


@pytest.mark.slow
def test_the_second_process_of_the_demo_executes_nothing_of_the_folder(planted: Path, tmp_path: Path) -> None:
    (planted / "census.toml").write_text(CENSUS)
    (planted / "household.csv").write_text(households(40))
    (planted / "plan.toml").write_text(PLAN)
    Key.for_tests(1).save(planted / "demo.key")
    with SecondProcess(Path("plan.toml"), Path("out"), Path("demo.key"), lambda *_: None) as process:
        process.go()
        assert process.wait()
    assert (planted / "out" / "public" / "checksums.txt").is_file()
    assert executed(tmp_path) == []


def test_a_program_is_named_by_its_whole_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "java").write_text("#!/bin/sh\ntouch executed\n")
    (tmp_path / "java").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f".{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(InputError, match="whole path"):
        start_child(["java"], folder=tmp_path)
    assert ask_program(["java"], seconds=10) == ""
    assert not (tmp_path / "executed").exists()


def test_a_child_knows_only_what_is_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LD_PRELOAD", "PYTHONINSPECT", "JAVA_TOOL_OPTIONS", "PYTHONHOME", "AWS_SECRET_ACCESS_KEY"):
        assert name not in child_environment({name: "x"})
    monkeypatch.setenv("STIRRED_MARK", "kept")
    monkeypatch.setenv("SOME_TOKEN", "secret")
    command = [*python_command("platform")[:2], "-c", "import os, sys; print(dict(os.environ), sys.path[:1])"]
    told = ask_program(command, seconds=60)
    assert "STIRRED_MARK" in told
    assert "SOME_TOKEN" not in told
    assert "['']" not in told
