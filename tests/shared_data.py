"""Where the public test data lies: beside the repository, never inside it."""

import os
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data"


def shared(*parts: str) -> Path:
    """The path of a shared file; without the folder the test is skipped, except in CI where that is a failure."""
    path = FOLDER.joinpath(*parts)
    if not path.exists():
        if os.environ.get("CI"):
            pytest.fail(f"CI must have the shared data: {'/'.join(parts)} is missing")
        pytest.skip(f"the shared data folder is absent: {'/'.join(parts)}")
    return path
