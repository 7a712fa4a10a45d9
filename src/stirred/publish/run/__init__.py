"""The way from a plan, or from a release, to a packet."""

from typing import TYPE_CHECKING

from stirred._support import load_on_demand

if TYPE_CHECKING:
    from stirred.publish.run.execute import run as run
    from stirred.publish.run.execute import save as save

__all__ = ["run", "save"]

__getattr__ = load_on_demand(
    __name__,
    {
        "execute": (
            "run",
            "save",
        )
    },
)
