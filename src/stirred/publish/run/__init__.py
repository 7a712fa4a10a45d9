"""The way from a plan, or from a release, to a packet."""

from stirred.publish.run.execute import run
from stirred.publish.run.saving import save

__all__ = ["run", "save"]
