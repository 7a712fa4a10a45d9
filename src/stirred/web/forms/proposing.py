"""A first plan for a census: proposed by the method from the codebook; the files that it names lie beside the plans."""

from pathlib import Path

from stirred.closed_files import write_closed_text
from stirred.mechanisms.base import Mechanism
from stirred.publish.plan.proposing import propose_plan


def propose_text(kind: type[Mechanism], census: Path, plans: Path) -> str:
    """Return the text of a proposed plan; write its files, under another name where one exists."""
    found = propose_plan(kind, census, plans / "new.toml")
    text = found.text
    for name, content in found.files.items():
        place, number = plans / name, 1
        while place.exists() and place.read_text(encoding="utf-8") != content:
            number += 1
            place = plans / f"{Path(name).stem}-{number}{Path(name).suffix}"
        if not place.exists():
            write_closed_text(place, content)
        if place.name != name:
            text = text.replace(f'"{name}"', f'"{place.name}"')
    return text
