"""SafeTab-H: types and tenure of households by detailed population group. The promise is proved in proof.md."""

from typing import TYPE_CHECKING

from stirred.on_demand import load_on_demand

if TYPE_CHECKING:
    from stirred.mechanisms.safetab.households.mechanism import SafeTabH as SafeTabH

__all__ = ["SafeTabH"]

__getattr__ = load_on_demand(__name__, {"mechanism": ("SafeTabH",)})
