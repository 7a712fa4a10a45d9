"""Swapping as for the 2010 census, after what is public of it. What it promises is in proof.md."""

from typing import TYPE_CHECKING

from stirred.on_demand import load_on_demand

if TYPE_CHECKING:
    from stirred.mechanisms.swapping_2010.mechanism import Swapping2010 as Swapping2010

__all__ = ["Swapping2010"]

__getattr__ = load_on_demand(__name__, {"mechanism": ("Swapping2010",)})
