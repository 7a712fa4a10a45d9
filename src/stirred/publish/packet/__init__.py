"""Packets: a release on disk, its checksums and its receipt; one published number with its interval."""

from stirred.publish.packet.checksums import Discrepancy, seal, verify
from stirred.publish.packet.folder import Packet

__all__ = ["Discrepancy", "Packet", "seal", "verify"]
