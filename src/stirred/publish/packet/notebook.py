"""A packet in a notebook: its title, its promise and its tables, from the public part alone."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from stirred.errors import StirredError
from stirred.spec.files import load
from stirred.spec.notebook import write_html_table

NOT_PRIVATE = "NOT PRIVATE: made with a test key"


def render_packet(public: Path, receipt: Mapping[str, object], tables: Sequence[str]) -> str:
    """Return what a reader needs first, as HTML."""
    try:
        promise = str(load(public / "spec.json"))
    except StirredError as error:
        promise = error.what
    stated = receipt.get("mechanisms")
    names = (
        [str(made.get("name", "")) for made in stated if isinstance(made, Mapping)]
        if isinstance(stated, list)
        else []
    )
    rows = [
        ("promise", promise),
        ("mechanism", ", ".join(names)),
        ("tables", ", ".join(tables) or "none"),
        ("report", str(public / "report.html")),
    ]
    notes = [] if receipt.get("private") else [NOT_PRIVATE]
    return write_html_table(f"Packet: {receipt.get('title', '')}", rows, notes=notes)
