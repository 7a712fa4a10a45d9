"""Read the release of a packet from its public files."""

from dataclasses import replace

from stirred.arrow import pads
from stirred.census import Census
from stirred.mechanisms.base import Release
from stirred.publish.packet.folder import Packet
from stirred.publish.plan.description import Plan
from stirred.spec.files import load


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
