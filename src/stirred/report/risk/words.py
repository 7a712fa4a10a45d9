"""Names of record types and variables in the chapter on risk."""

from collections.abc import Mapping, Sequence

from stirred.languages import Phrase
from stirred.report.texts import relabel


def kind_of(record_type: str) -> str:
    """Return the records of a type in words."""
    name = record_type if record_type in ("household", "person") else "other"
    return Phrase(f"risk.kind.{name}", name=record_type)


def join_labels(names: Sequence[str], labels: Mapping[str, str]) -> str:
    """Join variables by their labels, with commas."""
    return ", ".join(relabel(labels.get(name, name), {}) for name in names)
