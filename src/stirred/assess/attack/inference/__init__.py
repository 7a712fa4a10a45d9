"""What follows from a release for one who knows how it was made: places, counts and small areas."""

from typing import TYPE_CHECKING

from stirred.on_demand import on_demand

if TYPE_CHECKING:
    from stirred.assess.attack.inference.beliefs import believed_counts as believed_counts
    from stirred.assess.attack.inference.counts import KnownNoise as KnownNoise
    from stirred.assess.attack.inference.counts import Prior as Prior
    from stirred.assess.attack.inference.counts import frechet as frechet
    from stirred.assess.attack.inference.counts import poisson as poisson
    from stirred.assess.attack.inference.counts import posterior_counts as posterior_counts
    from stirred.assess.attack.inference.counts import prior_to_posterior as prior_to_posterior
    from stirred.assess.attack.inference.counts import uniform as uniform
    from stirred.assess.attack.inference.differencing import between_releases as between_releases
    from stirred.assess.attack.inference.differencing import differencing as differencing
    from stirred.assess.attack.inference.differencing import pieces_of as pieces_of
    from stirred.assess.attack.inference.inversion import inversion as inversion
    from stirred.assess.attack.inference.places import deshrunk as deshrunk
    from stirred.assess.attack.inference.places import posterior_places as posterior_places

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

__getattr__ = on_demand(
    __name__,
    {
        "beliefs": ("believed_counts",),
        "counts": (
            "KnownNoise",
            "Prior",
            "frechet",
            "poisson",
            "posterior_counts",
            "prior_to_posterior",
            "uniform",
        ),
        "differencing": ("between_releases", "differencing", "pieces_of"),
        "inversion": ("inversion",),
        "places": ("deshrunk", "posterior_places"),
    },
)
