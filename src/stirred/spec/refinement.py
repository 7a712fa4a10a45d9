"""Which invariants determine which: decided from the functional dependencies, with a reason."""

from typing import TYPE_CHECKING

from stirred.spec.verdict import Verdict

if TYPE_CHECKING:
    from stirred.spec.domain import Domain
    from stirred.spec.multiverse import Multiverse


def refines(finer: "Multiverse", coarser: "Multiverse", domain: "Domain") -> Verdict:
    """Whether the invariants of ``finer`` determine those of ``coarser``."""
    if coarser.invariants <= finer.invariants:
        return Verdict.yes("every invariant of the second is one of the first")
    return Verdict.unknown("no rule decides it")
