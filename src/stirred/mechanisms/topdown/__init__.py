"""TopDown: noisy measurements, invariants, consistent microdata. The promise is proved in proof.md."""

from typing import TYPE_CHECKING

from stirred.on_demand import load_on_demand

if TYPE_CHECKING:
    from stirred.mechanisms.topdown.mechanism import TopDown as TopDown
    from stirred.mechanisms.topdown.workload.shipped import presets as presets
    from stirred.mechanisms.topdown.workload.workload import Workload as Workload

__all__ = ["TopDown", "Workload", "presets"]

__getattr__ = load_on_demand(
    __name__,
    {
        "mechanism": ("TopDown",),
        "workload.workload": ("Workload",),
        "workload.shipped": ("presets",),
    },
)
