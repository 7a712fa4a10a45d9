"""The Permutation Swapping Algorithm (the paper's Algorithm 1) as a mechanism, with its proved bounds and closed forms."""

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

from stirred.engine import Engine, Local
from stirred.mechanisms.exhibits import Exhibit
from stirred.mechanisms.release import Exchange, Release
from stirred.mechanisms.swap import estimates
from stirred.mechanisms.swap.bounds import bound_exchange, bounds
from stirred.mechanisms.swap.comparison import LossAtShare, find_rate
from stirred.mechanisms.swap.config import SwapConfig
from stirred.mechanisms.swap.frame import Frame, StrataSummary
from stirred.mechanisms.swap.rates import ProvedSwapping
from stirred.mechanisms.swap.strata import StratumTable
from stirred.spec import Bound, Budget, SizeLaw, Specification

if TYPE_CHECKING:
    from stirred.census import Schema


class PermutationSwapping(ProvedSwapping):
    """Swap records within strata of equal match variables: select with probability p, then derange uniformly.

    ``resolution`` is the record type that is swapped; records linked to it (the persons of a household) move
    with it. Without ``hold`` every other variable is released as it is. ``tables`` are contingency tables of the
    swapped records, ``microdata=False`` releases only these tables. ``untouched`` decides what happens to records that
    never take part (vacant units, group quarters).

    >>> psa = PermutationSwapping(match=["state", "size"], swap=["county"], rate="1/20")
    >>> psa.parameters()["rate"]
    '1/20'
    """

    name: ClassVar[str] = "permutation-swapping"
    config: SwapConfig

    def bounds(self, strata: StratumTable) -> tuple[Bound, ...]:
        """Return every bound on the loss that applies to these strata, the paper's Theorem 1 first."""
        return bounds(strata, self.rate)

    def size_law(self, frame: Frame) -> SizeLaw | None:
        """Return the budget of every universe as a law of b, or None for a subclass with bounds of its own."""
        del frame
        return SizeLaw("by-size", self.rate) if type(self).bounds is PermutationSwapping.bounds else None

    def bound_exchange(self, strata: StrataSummary, specification: Specification) -> Budget:
        """Return what one exchange of two records loses at most, by the least bound that is proved for it."""
        if self.size_law(strata.frame) is None:  # a subclass with bounds of its own
            return ProvedSwapping.bound_exchange(self, strata, specification)
        return bound_exchange(strata.shapes.table, self.rate)

    @classmethod
    def lose_at_share(cls, strata: StrataSummary, share: Fraction) -> LossAtShare | None:
        """Return what one exchange loses at most at the rate that moves this share, by the least proved bound."""
        rate = find_rate(strata.shapes, share)
        if rate is None:
            return None
        return LossAtShare(mechanism=cls.name, loss=bound_exchange(strata.shapes.table, rate))

    # The closed forms: the law of one record's move is known, and with it the error of every table

    @property
    def pair_law(self) -> Fraction:
        """Return the argument of the closed forms of estimates: the swap rate."""
        return self.rate

    def keeps(self, by: Sequence[str], schema: "Schema") -> bool:
        """Return whether a table is exact: nothing in it moves, or all that stays is matched (Proposition 4)."""
        moving = estimates.list_moving(self.match, self.swap, schema)
        return estimates.keeps_table(by, match=self.match, swap=moving)

    def exchange(self, release: Release) -> Exchange | None:
        """Return the law by which one record moves: selected with the effective rate of its stratum."""
        return estimates.describe_exchange(self, release, lambda n: estimates.effective_rate(n, self.rate))

    def exhibits(self, release: Release | None, *, engine: Engine | None = None) -> Sequence[Exhibit]:
        """Return the effective rates by stratum size, and what the guards found."""
        guarded = ProvedSwapping.exhibits(self, release)
        if release is None or self.resolution not in release.microdata:
            return guarded
        return (estimates.exhibit_effective_rates(self, release, engine or Local()), *guarded)
