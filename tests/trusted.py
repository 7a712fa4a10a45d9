"""A census whose records are taken on trust, for tests of what a mechanism refuses by itself."""

from stirred.census import Census
from stirred.census.census import Checkup


def trusted(census: Census) -> Census:
    """The census as if its records had been held against the schema; its identifiers are not known to be unique."""
    known = set(census._linkable)
    census._mark_checked(Checkup(invalid="refuse"))
    census._linkable.intersection_update(known)
    return census
