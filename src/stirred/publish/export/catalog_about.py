"""What the registry asks about the published products of the catalog."""

from stirred.catalog import Entry
from stirred.errors import InputError
from stirred.publish.export.registry import About

_USE = (
    "Congressional apportionment, redistricting, the allocation of public funds, public policy and research with the "
    "counts of the decennial census."
)
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


def about_entry(entry: Entry | None) -> About:
    """The registry's own questions answered for a catalog entry; a what-if was never deployed and is refused."""
    if entry is None:
        raise InputError(
            "the registry needs more about this data product",
            why="a specification does not know its curator, its use or its date",
            fix="write them into a TOML file and pass it: --about about.toml (see docs/reference/spec-json.md)",
        )
    if entry.hypothetical:
        raise InputError(
            f"{entry.name} cannot be registered",
            why="the registry lists deployments, and this release was never made",
            fix="export the card instead: --html or --markdown",
        )
    prefix = next(
        (key for key in sorted(_MECHANISMS, key=len, reverse=True) if entry.name.startswith(key)), "das"
    )
    swap = bool(entry.rates)
    return About(
        name=entry.title,
        data_curators=("U.S. Census Bureau",),
        description=f"{entry.title}. Catalog entry {entry.name}.",
        intended_use=_USE,
        data_product_type="Summary statistics",
        data_product_region="USA",
        publication_date=entry.published,
        mechanisms="Data swapping, read as the Permutation Swapping Algorithm."
        if swap
        else _MECHANISMS[prefix],
        sources=entry.source,
    )
