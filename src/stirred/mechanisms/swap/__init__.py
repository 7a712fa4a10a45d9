"""Swapping: the pipeline, the Permutation Swapping Algorithm and its variants, and pairwise swaps without a guarantee."""

from typing import TYPE_CHECKING

from stirred._support import load_on_demand

if TYPE_CHECKING:
    from stirred.mechanisms.swap.estimates import attenuation as attenuation
    from stirred.mechanisms.swap.estimates import channel as channel
    from stirred.mechanisms.swap.estimates import deshrink as deshrink
    from stirred.mechanisms.swap.estimates import effective_rate as effective_rate
    from stirred.mechanisms.swap.estimates import mean_table as mean_table
    from stirred.mechanisms.swap.estimates import posterior as posterior
    from stirred.mechanisms.swap.estimates import shrinkage as shrinkage
    from stirred.mechanisms.swap.estimates import weak_strata as weak_strata
    from stirred.mechanisms.swap.pairwise import SwapLog as SwapLog
    from stirred.mechanisms.swap.pairwise import swap_log as swap_log
    from stirred.mechanisms.swap.psa import PermutationSwapping as PermutationSwapping
    from stirred.mechanisms.swap.swapping_2010 import Swapping2010 as Swapping2010
    from stirred.mechanisms.swap.targeted import TargetedSwapping as TargetedSwapping
    from stirred.mechanisms.swap.targeted import flat_census as flat_census
    from stirred.mechanisms.swap.targeted import record_swap as record_swap
    from stirred.mechanisms.swap.variants import ImputedStay as ImputedStay
    from stirred.mechanisms.swap.variants import NearPlaces as NearPlaces
    from stirred.mechanisms.swap.variants import NoisyKey as NoisyKey
    from stirred.mechanisms.swap.variants import NoisyTables as NoisyTables
    from stirred.mechanisms.swap.variants import NoVacuous as NoVacuous
    from stirred.mechanisms.swap.variants import UnitMatching as UnitMatching
    from stirred.mechanisms.swap.variants import VaryingRates as VaryingRates

__all__ = [
    "ImputedStay",
    "NearPlaces",
    "NoVacuous",
    "NoisyKey",
    "NoisyTables",
    "PermutationSwapping",
    "SwapLog",
    "Swapping2010",
    "TargetedSwapping",
    "UnitMatching",
    "VaryingRates",
    "attenuation",
    "channel",
    "deshrink",
    "effective_rate",
    "flat_census",
    "mean_table",
    "posterior",
    "record_swap",
    "shrinkage",
    "swap_log",
    "weak_strata",
]

__getattr__ = load_on_demand(
    __name__,
    {
        "estimates": (
            "attenuation",
            "channel",
            "deshrink",
            "effective_rate",
            "mean_table",
            "posterior",
            "shrinkage",
            "weak_strata",
        ),
        "pairwise": (
            "SwapLog",
            "swap_log",
        ),
        "psa": ("PermutationSwapping",),
        "swapping_2010": ("Swapping2010",),
        "targeted": (
            "TargetedSwapping",
            "flat_census",
            "record_swap",
        ),
        "variants": (
            "ImputedStay",
            "NearPlaces",
            "NoVacuous",
            "NoisyKey",
            "NoisyTables",
            "UnitMatching",
            "VaryingRates",
        ),
    },
)
