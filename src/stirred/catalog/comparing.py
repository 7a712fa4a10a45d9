"""Compare specifications, which may be given by their names in the catalog."""

from typing import Protocol, runtime_checkable

from stirred.catalog.book import catalog
from stirred.errors import InputError
from stirred.spec import Comparison, Specification
from stirred.spec import compare as compare_specifications


@runtime_checkable
class SupportsSpecification(Protocol):
    """A value that states a specification, such as a release."""

    @property
    def specification(self) -> Specification:
        """Return the specification."""
        ...


def compare(
    first: Specification | SupportsSpecification | str, second: Specification | SupportsSpecification | str
) -> Comparison:
    """Compare two specifications, releases or catalog names; return five verdicts.

    >>> compare("whatif-state@1/2", "whatif-state@1/20").overall.relation.value
    'stronger'
    """
    return compare_specifications(_find_specification(first), _find_specification(second))


def _find_specification(given: object) -> Specification:
    if isinstance(given, Specification):
        return given
    if isinstance(given, str):
        return catalog[given]
    if isinstance(given, SupportsSpecification) and isinstance(given.specification, Specification):
        return given.specification
    raise InputError(
        "only specifications can be compared",
        why=f"this is of type {type(given).__name__}",
        fix='st.compare(release, "das-2020"): a specification, a release, or a name in list(st.catalog)',
    )
