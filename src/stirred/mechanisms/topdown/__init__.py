"""TopDown: noisy measurements, invariants, consistent microdata. The promise is proved in proof.md."""

from stirred.mechanisms.topdown.mechanism import TopDown
from stirred.mechanisms.topdown.workload.workload import Workload, presets

__all__ = ["TopDown", "Workload", "presets"]
