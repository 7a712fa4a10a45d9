"""FROM PLAN TO PACKET: describe a release, see its promise, run it, hand it on."""

from typing import TYPE_CHECKING

from stirred._support import load_on_demand

if TYPE_CHECKING:
    from stirred.publish.composition import promise as promise
    from stirred.publish.packet import Packet as Packet
    from stirred.publish.packet import verify as verify
    from stirred.publish.plan import Plan as Plan
    from stirred.publish.plan import load as load
    from stirred.publish.plan import parse as parse
    from stirred.publish.run import run as run
    from stirred.publish.run import save as save

__all__ = ["Packet", "Plan", "load", "parse", "promise", "run", "save", "verify"]

__getattr__ = load_on_demand(
    __name__,
    {
        "composition": ("promise",),
        "packet": (
            "Packet",
            "verify",
        ),
        "plan": (
            "Plan",
            "load",
            "parse",
        ),
        "run": (
            "run",
            "save",
        ),
    },
)
