"""The receipt: how a packet was made, with no clock, host or timing, so that the same run gives the same bytes."""

import importlib.metadata
import json
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path

from stirred.mechanisms.base import Guard, Release
from stirred.publish.plan.description import Plan
from stirred.spec import Ledger

FORMAT = 1
_PARTS = ("stirred", "numpy", "polars", "pyarrow", "numba", "cryptography", "scipy")


def list_versions() -> dict[str, str]:
    """Return the versions of all packages that can change a byte."""
    found = {"python": platform.python_version()}
    for name in _PARTS:
        found[name] = importlib.metadata.version(name)
    return found


def build_receipt(
    plan: Plan,
    releases: Sequence[Release],
    *,
    tables: Mapping[str, str],
    engine: str,
    account: Ledger | None = None,
) -> dict[str, object]:
    """Return what was run, with which settings, what it spent, and that its invariants were verified.

    ``tables`` are the published tables with the record type that each counts. An ``input_digest`` is keyed with the key
    of its run: only the holder of the key learns from it whether the input was the same. ``account`` is what all
    mechanisms of a plan spend together, each in the unit of the whole.
    """
    return {
        "format": FORMAT,
        "private": all(release.private for release in releases),
        "title": plan.title,
        "plan_sha256": plan.digest,
        **({} if plan.invalid == "refuse" else {"invalid": plan.invalid}),
        "engine": engine,
        "versions": list_versions(),
        "tables": dict(tables),
        **({} if account is None else {"ledger": ledger_entries(account)}),
        "mechanisms": [
            {
                "name": release.mechanism,
                **({} if step.source is None else {"from": plan.steps[step.source].label}),
                "settings": step.settings(),
                "parameters": dict(release.parameters),
                "ledger": ledger_entries(release.ledger),
                "input_digest": release.input_digest,
                "invariants": [
                    {"invariant": c.invariant, "kept": c.kept, "numbers": c.numbers} for c in release.checks
                ],
                "notes": list(release.notes),
                "guards": guard_lines(release.guards),
            }
            for step, release in zip(plan.steps, releases, strict=True)
        ],
    }


def guard_lines(guards: Sequence[Guard]) -> list[dict[str, object]]:
    """Return what each guard found, whether it was accepted by name, and what it measured."""
    return [
        {
            "name": guard.name,
            "finding": guard.finding,
            "accepted": guard.accepted,
            "rows": [list(row) for row in guard.rows],
        }
        for guard in guards
    ]


def ledger_entries(ledger: Ledger | None) -> list[dict[str, object]]:
    """Return the lines of an account: who spent what on what, exactly."""
    lines: list[dict[str, object]] = []
    for entry in () if ledger is None else ledger.entries:
        delta = {} if entry.delta is None else {"delta": str(entry.delta)}
        lines.append({"by": entry.by, "on": entry.on, "budget": entry.budget.exact, **delta})
    return lines


def write_json(path: Path, document: object) -> None:
    """Write a document with sorted keys and a final newline: the same document is the same bytes."""
    path.write_bytes(json_bytes(document))


def json_bytes(document: object) -> bytes:
    """Return a document as bytes in one canonical form."""
    return (json.dumps(document, ensure_ascii=False, indent=2, sort_keys=True) + "\n").encode()
