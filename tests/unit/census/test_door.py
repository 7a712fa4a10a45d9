"""The first things a person types: the version, and the command without its script."""

import subprocess
import sys
from importlib import metadata

import pytest

import stirred


def test_the_version_is_the_one_of_the_package() -> None:
    assert stirred.__version__ == metadata.version("stirred")
    assert "__version__" not in stirred.__all__


def test_a_tree_that_is_not_installed_has_a_version_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_name: str) -> str:
        raise metadata.PackageNotFoundError

    monkeypatch.setattr(metadata, "version", missing)
    assert stirred.__version__ == "0+unknown"


def test_the_module_runs_as_the_command_does() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "stirred", "data", "--help"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    assert "describe" in done.stdout
    assert "__main__" not in done.stdout
