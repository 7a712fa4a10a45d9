"""Where the work runs: a small protocol and its engines, for every mechanism; ``Spark`` is loaded on first use."""

from typing import TYPE_CHECKING

from stirred.census.progress import Progress, silent
from stirred.engine.base import (
    BatchKernel,
    Engine,
    Flow,
    PartKernel,
    PartRows,
    Parts,
    PiecewiseKernel,
    Steps,
)
from stirred.engine.local import Local

if TYPE_CHECKING:
    from stirred.engine.spark import Spark

__all__ = [
    "BatchKernel",
    "Engine",
    "Flow",
    "Local",
    "PartKernel",
    "PartRows",
    "Parts",
    "PiecewiseKernel",
    "Progress",
    "Spark",
    "Steps",
    "silent",
]


def __getattr__(name: str) -> object:
    if name == "Spark":
        from stirred.engine.spark import Spark

        return Spark
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
