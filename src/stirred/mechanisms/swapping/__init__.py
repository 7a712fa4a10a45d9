"""The Permutation Swapping Algorithm: its budget, its closed forms and its variants."""

from typing import TYPE_CHECKING

from stirred.on_demand import load_on_demand

if TYPE_CHECKING:
    from stirred.mechanisms.swapping.mechanism import PermutationSwapping as PermutationSwapping
    from stirred.mechanisms.swapping.numbers.closed_forms import attenuation as attenuation
    from stirred.mechanisms.swapping.numbers.closed_forms import channel as channel
    from stirred.mechanisms.swapping.numbers.closed_forms import deshrink as deshrink
    from stirred.mechanisms.swapping.numbers.closed_forms import effective_rate as effective_rate
    from stirred.mechanisms.swapping.numbers.closed_forms import mean_table as mean_table
    from stirred.mechanisms.swapping.numbers.closed_forms import posterior as posterior
    from stirred.mechanisms.swapping.numbers.closed_forms import shrinkage as shrinkage
    from stirred.mechanisms.swapping.numbers.closed_forms import weak_strata as weak_strata
    from stirred.mechanisms.swapping.variants import ImputedStay as ImputedStay
    from stirred.mechanisms.swapping.variants import VaryingRates as VaryingRates
    from stirred.mechanisms.swapping.variants.moves import NearPlaces as NearPlaces
    from stirred.mechanisms.swapping.variants.moves import NoVacuous as NoVacuous
    from stirred.mechanisms.swapping.variants.moves import UnitMatching as UnitMatching
    from stirred.mechanisms.swapping.variants.noise import NoisyKey as NoisyKey
    from stirred.mechanisms.swapping.variants.noise import NoisyTables as NoisyTables

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

__getattr__ = load_on_demand(
    __name__,
    {
        "mechanism": ("PermutationSwapping",),
        "numbers.closed_forms": (
            "attenuation",
            "channel",
            "deshrink",
            "effective_rate",
            "mean_table",
            "posterior",
            "shrinkage",
            "weak_strata",
        ),
        "variants": ("ImputedStay", "VaryingRates"),
        "variants.moves": ("NearPlaces", "NoVacuous", "UnitMatching"),
        "variants.noise": ("NoisyKey", "NoisyTables"),
    },
)
