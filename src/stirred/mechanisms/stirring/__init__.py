"""Stirring: a swap by laws under which one exchange loses little. Its laws, their draw, the mechanism, and the proof."""

from typing import TYPE_CHECKING

from stirred._support import load_on_demand

if TYPE_CHECKING:
    from stirred.mechanisms.stirring.mechanism import Stirring as Stirring

__all__ = ["Stirring"]

__getattr__ = load_on_demand(__name__, {"mechanism": ("Stirring",)})
