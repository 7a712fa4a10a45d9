"""Thresholds and rounding for special tabulations: rules without a guarantee of their own. proof.md shows why."""

from typing import TYPE_CHECKING

from stirred.on_demand import load_on_demand

if TYPE_CHECKING:
    from stirred.mechanisms.special_tabulations.mechanism import SpecialTabulations as SpecialTabulations

__all__ = ["SpecialTabulations"]

__getattr__ = load_on_demand(__name__, {"mechanism": ("SpecialTabulations",)})
