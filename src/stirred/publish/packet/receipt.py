"""Write the receipt of a packet, and read the releases of a packet back from its public files."""

import importlib.metadata
import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from stirred._support import pads
from stirred.census import Census
from stirred.mechanisms.release import Guard, Release
from stirred.publish.packet.folder import Packet
from stirred.publish.plan.description import Plan
from stirred.spec import Ledger
from stirred.spec.files import load

# The receipt: how a packet was made, with no clock, host or timing, so that the same run gives the same bytes.

FORMAT = 1
_PARTS = ("stirred", "numpy", "polars", "pyarrow", "numba", "cryptography", "scipy")


_find_version = cache(importlib.metadata.version)  # reads a whole file of metadata


def list_versions() -> dict[str, str]:
    """Return the versions of all packages that can change a byte."""
    return {"python": platform.python_version()} | {name: _find_version(name) for name in _PARTS}


def build_receipt(
    plan: Plan,
    releases: Sequence[Release],
    *,
    tables: Mapping[str, str],
    engine: str,
    open_network: str = "",
    account: Ledger | None = None,
) -> dict[str, object]:
    """Return what was run, with which settings, what it spent, and that its invariants were verified.

    ``tables`` are the published tables with the record type that each counts. An ``input_digest`` is keyed with the key
    of its run: only the holder of the key learns from it whether the input was the same. ``open_network`` is the reason for
    which a cluster with an open network was used. ``account`` is what all
    mechanisms of a plan spend together, each in the unit of the whole.
    """
    return {
        "format": FORMAT,
        "private": all(release.private for release in releases),
        "title": plan.title,
        "plan_sha256": plan.digest,
        **({} if plan.invalid == "refuse" else {"invalid": plan.invalid}),
        "engine": engine,
        **({"open_network_accepted": open_network} if open_network else {}),
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


# Read the release of a packet from its public files.


def read_release(packet: Packet, plan: Plan) -> Release:
    """Read the release of a plan's only mechanism: records, checks and specification."""
    first = packet.mechanisms()[0]
    records = {path.stem: pads.dataset(path) for path in sorted((packet.public / "data").glob("*.parquet"))}
    return Release(
        mechanism=str(first["name"]),
        parameters=plan.mechanisms[0].parameters(),
        specification=load(packet.public / "spec.json"),
        microdata=records,
        checks=packet.checks(),
        notes=packet.notes(),
        input_digest=str(first["input_digest"]),
        private=bool(packet.receipt()["private"]),
    )


def read_releases(packet: Packet, census: Census) -> list[Release]:
    """Read the releases of all mechanisms; tables go with the first that has no records.

    ``census`` says what the variables are and where files of areas lie; none of its records is read.
    """
    specification, checks = load(packet.public / "spec.json"), packet.checks()
    stated = packet.mechanisms()
    found = []
    for number, entry in enumerate(stated):
        folder = packet.public / ("data" if len(stated) == 1 else f"data-{number + 1}")
        records = {path.stem: pads.dataset(path) for path in sorted(folder.glob("*.parquet"))}
        found.append(
            Release(
                mechanism=str(entry["name"]),
                parameters=dict(entry["parameters"]),
                specification=specification,
                microdata=records,
                checks=checks,
                private=bool(packet.receipt()["private"]),
                schema=census.schema,
                folder=census.folder,
            )
        )
    place = next((number for number, one in enumerate(found) if not one.microdata), 0)
    found[place] = replace(found[place], tables=packet.read_tables())
    return found
