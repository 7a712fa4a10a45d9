"""TopDown: noisy measurements, invariants, consistent microdata. The promise is proved in proof.md."""

from typing import TYPE_CHECKING

from stirred._support import load_on_demand

if TYPE_CHECKING:
    from stirred.mechanisms.topdown.mechanism import TopDown as TopDown
    from stirred.mechanisms.topdown.workload import Workload as Workload
    from stirred.mechanisms.topdown.workload import presets as presets

__all__ = ["TopDown", "Workload", "presets"]

__getattr__ = load_on_demand(
    __name__,
    {
        "mechanism": ("TopDown",),
        "workload": (
            "Workload",
            "presets",
        ),
    },
)
