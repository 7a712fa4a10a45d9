"""The receipt: how a packet was made, with no clock, host or timing, so that the same run gives the same bytes."""

import importlib.metadata
import json
import platform
from collections.abc import Sequence
from pathlib import Path

from stirred.mechanisms.base import Release

FORMAT = 1
_PARTS = ("stirred", "numpy", "polars", "pyarrow", "numba", "cryptography", "scipy")


def versions() -> dict[str, str]:
    """The versions of all that can change a byte."""
    found = {"python": platform.python_version()}
    for name in _PARTS:
        found[name] = importlib.metadata.version(name)
    return found


def receipt(
    title: str, releases: Sequence[Release], *, plan_sha256: str = "", engine: str = "local"
) -> dict[str, object]:
    """What was run, on what, and that its invariants were verified.

    An ``input_digest`` is keyed with the key of its run: it tells the holder of the key whether the input was the same,
    and nobody else anything.
    """
    return {
        "format": FORMAT,
        "private": all(release.private for release in releases),
        "title": title,
        "plan_sha256": plan_sha256,
        "engine": engine,
        "versions": versions(),
        "mechanisms": [
            {
                "name": release.mechanism,
                "parameters": dict(release.parameters),
                "input_digest": release.input_digest,
                "invariants": [
                    {"invariant": c.invariant, "kept": c.kept, "numbers": c.numbers} for c in release.checks
                ],
                "notes": list(release.notes),
            }
            for release in releases
        ],
    }


def write_json(path: Path, document: object) -> None:
    """Sorted keys and a final newline: the same document is the same bytes."""
    path.write_text(
        json.dumps(document, ensure_ascii=False, indent=2, sort_keys=True) + "\n", encoding="utf-8"
    )
