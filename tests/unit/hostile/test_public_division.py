"""Whether a census fits in the memory of a machine is not public: no public byte shows it."""

from pathlib import Path

import pytest

from stirred.cli.main import main
from stirred.engine import Local

SWAP = ["--match", "state", "size", "--swap", "county", "tract", "block_group", "block", "--rate", "1/20"]
RUNS = {
    "swap": [*SWAP, "--table", "county", "tenure"],
    "topdown": ["--workload", "small", "--replicates", "2", "--keep-nmf"],
    "phsafe": [],
}


@pytest.fixture(scope="module")
def census(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A census of 600 households, written once."""
    folder = tmp_path_factory.mktemp("census")
    assert main(["data", "synth", "demo", "--households", "600", "--out", str(folder / "c")]) == 0
    return folder / "c" / "census.toml"


def public(out: Path) -> dict[str, bytes]:
    paths = (path for path in sorted((out / "public").rglob("*")) if path.is_file())
    return {path.relative_to(out).as_posix(): path.read_bytes() for path in paths}


@pytest.mark.parametrize("verb", RUNS)
def test_a_machine_with_little_memory_writes_the_same_bytes(
    verb: str, census: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for parts in (0, 3):
        if parts:
            monkeypatch.setattr(Local, "fits", lambda self, size: False)
            monkeypatch.setattr(Local, "parts_for", lambda self, size: 3)
        out = tmp_path / f"in-{parts}"
        assert main([verb, str(census), *RUNS[verb], "--out", str(out), "--key", str(tmp_path / "key")]) == 0
        found.append(public(out))
    assert found[0].keys() == found[1].keys()
    assert [name for name in found[0] if found[0][name] != found[1][name]] == []
