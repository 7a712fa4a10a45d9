"""How each published product was made, in a sentence."""

from stirred.catalog.entries import CatalogEntry

_MECHANISMS = {
    "pl": "TopDown Algorithm: discrete Gaussian noise on queries over the geographic hierarchy, then constrained "
    "least squares and controlled rounding.",
    "dhc": "TopDown Algorithm: discrete Gaussian noise on queries over the geographic hierarchy, then constrained "
    "least squares and controlled rounding.",
    "topdown": "TopDown Algorithm, run for the redistricting data and again for the DHC: discrete Gaussian noise on "
    "queries over the geographic hierarchy, then constrained least squares and controlled rounding.",
    "ddhc-a": "SafeTab-P: discrete Gaussian noise on counts of population groups, adaptive detail.",
    "ddhc-b": "SafeTab-H: discrete Gaussian noise on counts of households by population group, adaptive detail.",
    "sdhc": "PHSafe: discrete Gaussian noise on counts that join persons and households, households truncated.",
    "das": "TopDown Algorithm, SafeTab-P, SafeTab-H and PHSafe.",
}


def mechanisms_of(entry: CatalogEntry) -> str:
    """Return the mechanisms of an entry in words."""
    if entry.rates:
        return "Data swapping, read as the Permutation Swapping Algorithm."
    known = sorted(_MECHANISMS, key=len, reverse=True)
    return _MECHANISMS[next((key for key in known if entry.name.startswith(key)), "das")]
