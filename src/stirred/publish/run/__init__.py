"""The way from a plan, or from a release, to a packet."""

from stirred.publish.run.execute import prepare, promise, run
from stirred.publish.run.saving import save

__all__ = ["prepare", "promise", "run", "save"]
