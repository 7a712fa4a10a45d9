"""What follows from a release for one who knows how it was made: places, counts and small areas."""

from stirred.assess.attack.inference.beliefs import believed_counts
from stirred.assess.attack.inference.counts import (
    KnownNoise,
    Prior,
    frechet,
    poisson,
    posterior_counts,
    prior_to_posterior,
    uniform,
)
from stirred.assess.attack.inference.differencing import between_releases, differencing, pieces_of
from stirred.assess.attack.inference.inversion import inversion
from stirred.assess.attack.inference.places import deshrunk, posterior_places

__all__ = [
    "KnownNoise",
    "Prior",
    "believed_counts",
    "between_releases",
    "deshrunk",
    "differencing",
    "frechet",
    "inversion",
    "pieces_of",
    "poisson",
    "posterior_counts",
    "posterior_places",
    "prior_to_posterior",
    "uniform",
]
