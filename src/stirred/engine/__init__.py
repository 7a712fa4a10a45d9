"""WHERE IT RUNS: a small protocol and its bodies; knows no mechanism."""

from stirred.engine.base import BatchKernel, Engine, Flow, PartKernel, Parts, Progress, Steps, silent
from stirred.engine.local import Local

__all__ = ["BatchKernel", "Engine", "Flow", "Local", "PartKernel", "Parts", "Progress", "Steps", "silent"]
