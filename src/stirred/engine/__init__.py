"""WHERE IT RUNS: a small protocol and its bodies; knows no mechanism."""

from stirred.engine.base import Engine, Progress, silent
from stirred.engine.local import Local

__all__ = ["Engine", "Local", "Progress", "silent"]
