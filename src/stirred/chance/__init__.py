"""Where randomness comes from: a key, named streams, and samplers that follow their stated law exactly."""

from stirred.chance.key import Key
from stirred.chance.multiset import MultisetDigest
from stirred.chance.permutations import derangement, permutation
from stirred.chance.samplers.bernoulli import Threshold, bernoulli, settle, threshold
from stirred.chance.samplers.binomial import binomial
from stirred.chance.samplers.gaussian import (
    DiscreteGaussian,
    DiscreteLaplace,
    discrete_gaussian,
    discrete_laplace,
)
from stirred.chance.samplers.integers import integers, multiply_words
from stirred.chance.stream import Stream, Uniform

__all__ = [
    "DiscreteGaussian",
    "DiscreteLaplace",
    "Key",
    "MultisetDigest",
    "Stream",
    "Threshold",
    "Uniform",
    "bernoulli",
    "binomial",
    "derangement",
    "discrete_gaussian",
    "discrete_laplace",
    "integers",
    "multiply_words",
    "permutation",
    "settle",
    "threshold",
]
