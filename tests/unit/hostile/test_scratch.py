"""Records in scratch are noise to whoever finds them, and what a killed run leaves is removed by the next."""

import gc
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from stirred.engine import Local, scratch
from stirred.engine.scratch import LOCK_FILE, SCRATCH_PREFIX, ScratchFolder, SealedFiles, remove_stale
from stirred.errors import InputError

MARKER = "MARKER-7391-"
KILLED = """
import os, signal, sys
import pyarrow as pa
from stirred.engine import Local, scratch
engine = Local(scratch=sys.argv[1], workers=1)
table = pa.table({"name": ["MARKER-7391-" + str(i) for i in range(1000)], "part": pa.array([0, 1] * 500, pa.uint16())})
parts = engine.exchange(engine.stream_released(table), by="part", parts=2)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_parts_on_disk_are_noise_and_read_back(tmp_path: Path) -> None:
    table = pa.table(
        {"name": [f"{MARKER}{i}" for i in range(4000)], "part": pa.array(np.arange(4000) % 3, pa.uint16())}
    )
    engine = Local(scratch=tmp_path, workers=2)
    parts = engine.exchange(engine.stream_released(table), by="part", parts=3)
    files = list(tmp_path.rglob("*.sealed"))
    assert len(files) == 3
    for path in files:
        content = path.read_bytes()
        assert MARKER.encode() not in content
        assert b"ARROW" not in content
        assert content[:4] != b"\xff\xff\xff\xff", "the first bytes of an Arrow stream"
        assert path.stat().st_mode & 0o777 == 0o600
    assert parts.gather().sort_by("name") == table.sort_by("name")
    parts.drop()


def test_a_killed_run_leaves_noise_and_the_next_run_removes_it(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False, env=os.environ)
    assert done.returncode == -signal.SIGKILL
    (left,) = tmp_path.glob(SCRATCH_PREFIX + "*")
    assert left.stat().st_mode & 0o777 == 0o700
    assert not [path for path in left.iterdir() if MARKER.encode() in path.read_bytes()]
    folder = ScratchFolder(tmp_path)
    assert not left.exists()
    assert folder.path.exists()
    folder.remove()
    assert not list(tmp_path.iterdir())


def test_folders_in_use_and_links_are_left_alone(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / LOCK_FILE).touch()
    place = tmp_path / "scratch"
    place.mkdir()
    (place / f"{SCRATCH_PREFIX}link").symlink_to(elsewhere, target_is_directory=True)
    (place / f"{SCRATCH_PREFIX}unknown").mkdir()  # without a lock: nobody knows whose it is
    used = ScratchFolder(place)
    code = "import sys; from pathlib import Path; from stirred.engine.scratch import remove_stale;"
    code += "print(remove_stale(Path(sys.argv[1])))"
    told = subprocess.run(
        [sys.executable, "-c", code, str(place)], check=True, capture_output=True, text=True
    )
    assert told.stdout == "0\n"
    assert used.path.exists()
    assert elsewhere.exists()
    assert remove_stale(place) == 0
    used.remove()


def test_every_file_has_a_key_of_its_own(tmp_path: Path) -> None:
    files = SealedFiles()
    for name in "ab":
        with files.writer(tmp_path / name) as file:
            file.write(bytes(1000))
    a, b = ((tmp_path / name).read_bytes() for name in "ab")
    assert a != b
    assert a != bytes(1000)
    with files.reader(tmp_path / "a") as file:
        assert file.read() == bytes(1000)
    with pytest.raises(FileExistsError):
        files.writer(tmp_path / "a")


@pytest.mark.parametrize(
    ("owner", "name"), [(Path, "mkdir"), (os, "open"), (Path, "rename"), (scratch, "_take_lock")]
)
def test_a_signal_while_a_folder_is_made_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: object, name: str
) -> None:
    right, waiting = getattr(owner, name), [KeyboardInterrupt()]

    def stopped(*args: Any, **more: Any) -> Any:
        done = right(*args, **more)
        if waiting:
            raise waiting.pop()
        return done

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, stopped)
        with pytest.raises(KeyboardInterrupt):
            ScratchFolder(tmp_path)
    gc.collect()
    assert not list(tmp_path.iterdir())


def test_a_signal_while_a_folder_is_removed_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = ScratchFolder(tmp_path)
    for number in range(3):
        (folder.path / f"{number}.sealed").write_bytes(b"noise")
    right, waiting = Path.unlink, [KeyboardInterrupt()]

    def stopped(path: Path, **more: Any) -> None:
        right(path, **more)
        if waiting:
            raise waiting.pop()

    monkeypatch.setattr(Path, "unlink", stopped)
    with pytest.raises(KeyboardInterrupt):
        folder.remove()
    assert not list(tmp_path.iterdir())


def test_a_place_that_does_not_exist_is_refused_with_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no folder") as refused:
        ScratchFolder(tmp_path / "none")
    assert "make it first" in refused.value.fix
