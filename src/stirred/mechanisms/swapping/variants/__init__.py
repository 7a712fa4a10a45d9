"""Variants of the Permutation Swapping Algorithm: each is a mechanism with its own law and budget."""

from stirred.mechanisms.swapping.variants.moves import NearPlaces, NoVacuous, UnitMatching
from stirred.mechanisms.swapping.variants.noise import NoisyKey, NoisyTables
from stirred.mechanisms.swapping.variants.rates import ImputedStay, VaryingRates

__all__ = [
    "ImputedStay",
    "NearPlaces",
    "NoVacuous",
    "NoisyKey",
    "NoisyTables",
    "UnitMatching",
    "VaryingRates",
]
