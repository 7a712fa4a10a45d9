"""SafeTab-P: totals and sex by age of detailed population groups. The promise is proved in ../proof.md."""

from typing import TYPE_CHECKING

from stirred._support import load_on_demand

if TYPE_CHECKING:
    from stirred.mechanisms.census2020.safetab.persons.mechanism import SafeTabP as SafeTabP


__all__ = ["SafeTabP"]

__getattr__ = load_on_demand(__name__, {"mechanism": ("SafeTabP",)})
