"""Swapping that keeps a promise: the Permutation Swapping Algorithm, its budget, its closed forms, its relatives."""

from stirred.mechanisms.swapping.closed_forms import (
    attenuation,
    channel,
    deshrink,
    effective_rate,
    mean_table,
    posterior,
    shrinkage,
    weak_strata,
)
from stirred.mechanisms.swapping.mechanism import PermutationSwapping

__all__ = [
    "PermutationSwapping",
    "attenuation",
    "channel",
    "deshrink",
    "effective_rate",
    "mean_table",
    "posterior",
    "shrinkage",
    "weak_strata",
]
