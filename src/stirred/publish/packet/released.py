"""Read the release of a packet from its public files."""

from stirred.arrow import pads
from stirred.mechanisms.base import Release
from stirred.publish.packet.folder import Packet
from stirred.publish.plan.description import Plan
from stirred.spec.files import load


def release_of(packet: Packet, plan: Plan) -> Release:
    """The release of a plan's only mechanism: records, checks and specification as the packet states them."""
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
