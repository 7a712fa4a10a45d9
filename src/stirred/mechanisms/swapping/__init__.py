"""The Permutation Swapping Algorithm: its budget, its closed forms and its variants."""

from stirred.mechanisms.swapping.mechanism import PermutationSwapping
from stirred.mechanisms.swapping.numbers.closed_forms import (
    attenuation,
    channel,
    deshrink,
    effective_rate,
    mean_table,
    posterior,
    shrinkage,
    weak_strata,
)
from stirred.mechanisms.swapping.variants import ImputedStay, VaryingRates
from stirred.mechanisms.swapping.variants.moves import NearPlaces, NoVacuous, UnitMatching
from stirred.mechanisms.swapping.variants.noise import NoisyKey, NoisyTables

__all__ = [
    "ImputedStay",
    "NearPlaces",
    "NoVacuous",
    "NoisyKey",
    "NoisyTables",
    "PermutationSwapping",
    "UnitMatching",
    "VaryingRates",
    "attenuation",
    "channel",
    "deshrink",
    "effective_rate",
    "mean_table",
    "posterior",
    "shrinkage",
    "weak_strata",
]
