"""Packets: a release on disk, its checksums and its receipt; one published number with its interval."""

from typing import TYPE_CHECKING

from stirred._support import load_on_demand

if TYPE_CHECKING:
    from stirred.publish.packet.checksums import Discrepancy as Discrepancy
    from stirred.publish.packet.checksums import seal as seal
    from stirred.publish.packet.checksums import verify as verify
    from stirred.publish.packet.folder import Packet as Packet

__all__ = ["Discrepancy", "Packet", "seal", "verify"]

__getattr__ = load_on_demand(
    __name__,
    {
        "checksums": (
            "Discrepancy",
            "seal",
            "verify",
        ),
        "folder": ("Packet",),
    },
)
