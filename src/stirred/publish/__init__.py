"""FROM PLAN TO PACKET: describe a release, see its promise, run it, hand it on."""

from stirred.publish.before.promise import promise
from stirred.publish.packet import Packet, verify
from stirred.publish.plan import Plan, load, parse
from stirred.publish.run import run, save

__all__ = ["Packet", "Plan", "load", "parse", "promise", "run", "save", "verify"]
