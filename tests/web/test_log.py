"""The log of the workbench: a plain file of its own, which follows no link and never stops an answer."""

import json
import os
from pathlib import Path

import pytest

from bench_client import BenchClient
from stirred.errors import InputError
from stirred.web import security
from stirred.web.security import RequestLog
from stirred.web.workbench import Workbench


def test_a_log_that_is_a_link_is_refused_at_the_start(bench: Workbench, tmp_path: Path) -> None:
    victim, place = tmp_path / "victim", bench.workspace.folder / "serve.log"
    victim.write_text("of somebody else\n")
    place.unlink(missing_ok=True)
    place.symlink_to(victim)
    with pytest.raises(InputError, match=r"serve\.log"):
        BenchClient(bench)
    place.unlink()
    os.link(victim, place)
    with pytest.raises(InputError, match=r"serve\.log"):
        BenchClient(bench)
    place.unlink()
    os.mkfifo(place)
    with pytest.raises(InputError, match=r"serve\.log"):
        BenchClient(bench)
    assert victim.read_text() == "of somebody else\n"


def test_a_log_that_becomes_a_link_is_not_followed(
    bench: Workbench, client: BenchClient, tmp_path: Path
) -> None:
    victim, place = tmp_path / "victim", bench.workspace.folder / "serve.log"
    victim.write_text("of somebody else\n")
    assert client.get("/calculators").status == 200
    place.unlink()
    place.symlink_to(victim)
    assert client.get("/calculators").status == 200
    assert victim.read_text() == "of somebody else\n"


def test_a_full_log_begins_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(security, "MAX_LOG_BYTES", 200)
    written = RequestLog.of(tmp_path)
    for _ in range(7):
        written.log_answer("GET", "data", 200, 0.1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["serve.log", "serve.old.log"]
    assert all(json.loads(line) for line in (tmp_path / "serve.old.log").read_text().splitlines())
    assert (tmp_path / "serve.old.log").stat().st_mode & 0o77 == 0
