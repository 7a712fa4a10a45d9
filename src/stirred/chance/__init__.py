"""Where randomness comes from: a key, named streams, and samplers that follow their stated law exactly."""

from stirred.chance.keys import Key, MultisetDigest
from stirred.chance.noise import (
    DiscreteGaussian,
    DiscreteLaplace,
    binomial,
    discrete_gaussian,
    discrete_laplace,
)
from stirred.chance.streams import Stream, Uniform
from stirred.chance.uniform import (
    Threshold,
    bernoulli,
    derangement,
    integers,
    multiply_words,
    permutation,
    settle,
    threshold,
)

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
