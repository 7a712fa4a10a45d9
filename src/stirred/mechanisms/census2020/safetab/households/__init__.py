"""SafeTab-H: types and tenure of households by detailed population group. The promise is proved in proof.md."""

from typing import TYPE_CHECKING

from stirred._support import load_on_demand

if TYPE_CHECKING:
    from stirred.mechanisms.census2020.safetab.households.mechanism import SafeTabH as SafeTabH


__all__ = ["SafeTabH"]

__getattr__ = load_on_demand(__name__, {"mechanism": ("SafeTabH",)})
