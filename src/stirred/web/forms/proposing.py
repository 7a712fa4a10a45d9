"""A first plan for a census: proposed by the method from the codebook; the files that it names lie beside the plans."""

from pathlib import Path

from stirred.closed_files import write_closed_text
from stirred.mechanisms.base import Mechanism
from stirred.publish.plan.proposing import proposed


def started(kind: type[Mechanism], census: Path, plans: Path) -> str:
    """The text of the plan; a file that it names and that exists with another content gets another name."""
    found = proposed(kind, census, plans / "new.toml")
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
