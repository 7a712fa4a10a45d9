"""Reasons: what is accepted although a guard refuses it has a written reason in the plan, which the report prints."""

from collections.abc import Iterator, Mapping
from typing import Any

from stirred.errors import PrivacyError
from stirred.mechanisms.config import read_extra
from stirred.mechanisms.registry import find_registration, list_mechanisms
from stirred.web.forms.document import Document

MIN_REASON_CHARACTERS = 12  # characters of a reason


def list_accepted(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield every name that a setting accepts although a guard refuses it, with the setting."""
    for settings in document.get("mechanism", []):
        name = str(settings.get("name", ""))
        if name not in list_mechanisms():
            continue
        for key, field in find_registration(name).Config.model_fields.items():
            if read_extra(field).get("overrides"):
                yield from ((str(item), key) for item in settings.get(key) or ())


def subject(name: str, setting: str) -> str:
    """Return what the reason is about, as the report prints it: why … is exact.

    >>> subject("weight", "accept_reversal")
    'the column weight (accept_reversal)'
    """
    return f"the column {name} ({setting})"


def require_reasons(document: Document) -> None:
    """Refuse a plan that accepts something without a reason."""
    written = {str(one.get("invariant", "")): str(one.get("text", "")) for one in document.get("reason", [])}
    for name, setting in list_accepted(document):
        if len(written.get(subject(name, setting), "").strip()) < MIN_REASON_CHARACTERS:
            raise PrivacyError(
                f"{name} is accepted without a reason",
                why=f"{setting} publishes what a guard would refuse, and the report says why",
                fix=f"write the reason for {name}, in at least {MIN_REASON_CHARACTERS} characters; or do not accept it",
            )


def with_reason(
    document: Document, invariant: str, text: str, *, kind: str = "operation", citation: str = ""
) -> None:
    """State, change or, with an empty text, take back a reason."""
    others = [one for one in document.get("reason", []) if one.get("invariant") != invariant]
    if text.strip():
        others.append(
            {"invariant": invariant, "kind": kind, "text": text.strip()}
            | ({"citation": citation.strip()} if citation.strip() else {})
        )
    if others:
        document["reason"] = others
    else:
        document.pop("reason", None)
