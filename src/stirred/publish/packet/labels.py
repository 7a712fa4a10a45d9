"""The labels of a packet: words for the codes of its tables, so that people need no codebook."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from stirred.census.codebook.labels import collect_labels, find_code
from stirred.census.codebook.schema import Schema
from stirred.publish.packet.checksums import public_part
from stirred.toml_text import parse_json, read_plain_text

LABELS = "labels.json"


Labels = Mapping[str, Mapping[str, Mapping[str, str]]]


def write_labels(public: Path, schema: Schema, more: Sequence[Labels] = ()) -> None:
    """Write the labels of the codebook, record type → variable → code → label; nothing where it has none.

    ``more`` are those of variables that a mechanism makes; for a variable of the census its codebook decides.
    """
    found = collect_labels(schema)
    for labels in more:
        for record, variables in labels.items():
            for name, words in variables.items():
                found.setdefault(record, {}).setdefault(name, dict(words))
    if found:
        text = json.dumps(found, ensure_ascii=False, indent=1, sort_keys=True)
        (public / LABELS).write_text(text + "\n", encoding="utf-8")


def read_labels(packet: Path) -> dict[str, dict[str, str]]:
    """Return variable → code → label over all record types, without codes that are labelled differently."""
    try:
        document = parse_json(read_plain_text(public_part(packet) / LABELS))
    except (OSError, ValueError):
        return {}  # an earlier version wrote the packet, or its codebook has no labels
    found: dict[str, dict[str, str]] = {}
    apart: set[tuple[str, str]] = set()
    records = document.values() if isinstance(document, dict) else ()
    for variables in (record for record in records if isinstance(record, dict)):
        for name, labels in variables.items():
            for code, label in labels.items() if isinstance(labels, dict) else ():
                if found.setdefault(name, {}).setdefault(code, str(label)) != str(label):
                    apart.add((name, code))
    for name, code in apart:
        del found[name][code]
    return found


def encode_cell(packet: Path, where: Mapping[str, str]) -> dict[str, str]:
    """Return a cell with codes in place of labels."""
    labels = read_labels(packet)
    return {name: find_code(level, labels.get(name, {})) for name, level in where.items()}


def label_cell(packet: Path, where: Mapping[str, str]) -> dict[str, str]:
    """Return a cell with labels, where the codes have them."""
    labels = read_labels(packet)
    return {name: labels.get(name, {}).get(level, level) for name, level in where.items()}


def list_labels(packet: Path, where: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the labels that the levels of a cell's variables have."""
    labels = read_labels(packet)
    return {name: list(labels[name].values()) for name in where if name in labels}
