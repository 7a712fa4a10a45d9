"""What follows from a release for one who knows how it was made: places, counts and small areas."""

from typing import TYPE_CHECKING

from stirred.on_demand import load_on_demand

if TYPE_CHECKING:
    from stirred.assess.attack.inference.beliefs import infer_counts as infer_counts
    from stirred.assess.attack.inference.counts import KnownNoise as KnownNoise
    from stirred.assess.attack.inference.counts import Prior as Prior
    from stirred.assess.attack.inference.counts import frechet_bounds as frechet_bounds
    from stirred.assess.attack.inference.counts import poisson as poisson
    from stirred.assess.attack.inference.counts import posterior_counts as posterior_counts
    from stirred.assess.attack.inference.counts import prior_to_posterior as prior_to_posterior
    from stirred.assess.attack.inference.counts import uniform as uniform
    from stirred.assess.attack.inference.differencing import compare_releases as compare_releases
    from stirred.assess.attack.inference.differencing import difference_areas as difference_areas
    from stirred.assess.attack.inference.differencing import make_pieces as make_pieces
    from stirred.assess.attack.inference.inversion import invert_swap as invert_swap
    from stirred.assess.attack.inference.places import posterior_places as posterior_places
    from stirred.assess.attack.inference.places import remove_shrinkage as remove_shrinkage

__all__ = [
    "KnownNoise",
    "Prior",
    "compare_releases",
    "difference_areas",
    "frechet_bounds",
    "infer_counts",
    "invert_swap",
    "make_pieces",
    "poisson",
    "posterior_counts",
    "posterior_places",
    "prior_to_posterior",
    "remove_shrinkage",
    "uniform",
]

__getattr__ = load_on_demand(
    __name__,
    {
        "beliefs": ("infer_counts",),
        "counts": (
            "KnownNoise",
            "Prior",
            "frechet_bounds",
            "poisson",
            "posterior_counts",
            "prior_to_posterior",
            "uniform",
        ),
        "difference_areas": ("compare_releases", "difference_areas", "make_pieces"),
        "invert_swap": ("invert_swap",),
        "places": ("remove_shrinkage", "posterior_places"),
    },
)
