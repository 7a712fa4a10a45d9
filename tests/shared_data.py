"""Public test data: small extracts in tests/data, and the larger files beside the repository for the slow tests."""

import os
from pathlib import Path

import pytest

EXTRACTS = Path(__file__).resolve().parent / "data"
FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data"


def extract(*parts: str) -> Path:
    """The path of an extract, which every clone has; tests/data/README.md says where it comes from."""
    return EXTRACTS.joinpath(*parts)


def shared(*parts: str) -> Path:
    """The path of a larger file, for slow tests; without the folder the test is skipped, except in CI where it fails."""
    path = FOLDER.joinpath(*parts)
    if not path.exists():
        if os.environ.get("CI"):
            pytest.fail(f"CI must have the shared data: {'/'.join(parts)} is missing")
        pytest.skip(f"the shared data folder is absent: {'/'.join(parts)}")
    return path
