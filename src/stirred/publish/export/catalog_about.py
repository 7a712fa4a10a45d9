"""What the registry asks about the published products of the catalog."""

from stirred.catalog import CatalogEntry
from stirred.catalog.mechanisms import mechanisms_of
from stirred.errors import InputError
from stirred.publish.export.registry import About

_USE = (
    "Congressional apportionment, redistricting, the allocation of public funds, public policy and research with the "
    "counts of the decennial census."
)


def about_entry(entry: CatalogEntry | None) -> About:
    """Answer the registry's questions for a catalog entry; refuse a what-if, which was never deployed."""
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
    return About(
        name=entry.title,
        data_curators=("U.S. Census Bureau",),
        description=f"{entry.title}. Catalog entry {entry.name}.",
        intended_use=_USE,
        data_product_type="Summary statistics",
        data_product_region="USA",
        publication_date=entry.published,
        mechanisms=mechanisms_of(entry),
        sources=entry.source,
    )
