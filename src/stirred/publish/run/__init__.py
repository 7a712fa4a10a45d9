"""The way from a plan, or from a release, to a packet."""

from typing import TYPE_CHECKING

from stirred.on_demand import load_on_demand

if TYPE_CHECKING:
    from stirred.publish.run.execute import run as run
    from stirred.publish.run.saving import save as save

__all__ = ["run", "save"]

__getattr__ = load_on_demand(
    __name__,
    {
        "execute": ("run",),
        "saving": ("save",),
    },
)
