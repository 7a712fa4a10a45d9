"""The Permutation Swapping Algorithm (the paper's Algorithm 1), and what it shares with other swaps within strata.

What they share promises nothing: the closed forms of tables, the rate, exact laws and independent copies. Every mechanism
states its own bounds, and says itself whether they are a law of the sizes of strata.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa

from stirred.chance import Key
from stirred.engine import Engine, Local
from stirred.mechanisms.base import Knob, Mechanism, weight_error
from stirred.mechanisms.exhibits import Exhibit
from stirred.mechanisms.proposal import Proposal
from stirred.mechanisms.release import PULL_KEY, Exchange, Release, format_table
from stirred.mechanisms.swap import estimates
from stirred.mechanisms.swap.bounds import bound_exchange, bounds
from stirred.mechanisms.swap.comparison import LossAtShare, find_rate
from stirred.mechanisms.swap.config import MatchedSwapConfig, SwapConfig, require_inner_rate
from stirred.mechanisms.swap.exact_law import PermutationLaw, enumerate_moves
from stirred.mechanisms.swap.frame import Frame, StrataSummary, apply_moves
from stirred.mechanisms.swap.guards import expect_share_moved
from stirred.mechanisms.swap.moves import draw_moves
from stirred.mechanisms.swap.pipeline import SwapMechanism, SwapPromise, copy_in_strata
from stirred.mechanisms.swap.promise import describe_dependence, note_weak_strata, state_specification
from stirred.mechanisms.swap.proposal import propose_swap
from stirred.mechanisms.swap.records import Column
from stirred.mechanisms.swap.strata import StratumTable
from stirred.spec import Bound, Budget, SizeLaw, Specification

if TYPE_CHECKING:
    from stirred.census import Census, Schema


RATE_STEPS = 400  # swap rates are tuned in steps of 1/400


def make_rate_knob(turned: Callable[[Fraction], Mechanism]) -> Knob:
    """Return the knob of the swap rate, up to one half."""
    return Knob(
        name="rate",
        effect="a higher swap rate has a smaller budget and a larger error",
        settings=tuple(Fraction(step, RATE_STEPS) for step in range(1, RATE_STEPS // 2 + 1)),
        turned=turned,
    )


class StratumSwapping(SwapMechanism):
    """Swap records within strata of equal match variables; where the law of their moves is known, tables have its error."""

    config: MatchedSwapConfig

    @property
    def match(self) -> tuple[str, ...]:
        """Return the match variables."""
        return tuple(self.config.match)

    @property
    def swap(self) -> tuple[str, ...]:
        """Return the swap variables."""
        return tuple(self.config.swap)

    @property
    def pair_law(self) -> Fraction | estimates.PairSource | None:
        """Return what the closed forms of estimates take (a Fraction: the PSA's at this rate); None: there are none."""
        return None

    @classmethod
    def propose(cls, schema: "Schema") -> Proposal | None:
        """Match the coarsest area and the size, swap the finer areas, hold categories."""
        return propose_swap(schema, cls.Config)

    def replicate(self, census: "Census", copies: int) -> tuple[Mechanism, "Census", str] | None:
        """Return (mechanism, census with copies, copy column): copies are strata, hence independent."""
        return copy_in_strata(self, census, copies)

    def require_weight(self, weight: str, *, record_type: str, census: "Census") -> None:
        """Raise an error unless records with closed forms are released and the weight stays with its record."""
        if not self.config.microdata or self.pair_law is None:
            raise weight_error(self.name)
        estimates.require_held(self.roles(census), weight, record_type)

    def make_moments(self, release: Release) -> Callable[..., estimates.Moments]:  # noqa: ARG002
        """Return the kernel that sums the moments of strata; here all strata have the pair law."""
        return estimates.Moments

    def table(
        self,
        release: Release,
        by: Sequence[str],
        *,
        record_type: str = "",
        weight: str = "",
        engine: Engine | None = None,
    ) -> pa.Table:
        """Return counts or weighted totals with estimate, standard error and interval, where closed forms exist."""
        asked, place, law = record_type or self.resolution, engine or Local(), self.pair_law
        if law is None or self.resolution not in release.microdata:
            return Mechanism.table(self, release, by, record_type=asked, weight=weight, engine=place)
        moments = self.make_moments(release)
        found = estimates.estimate_table(
            self, release, by, asked, place, law=law, weight=weight, moments=moments
        )
        made = format_table(found, by)
        pull = estimates.largest_share(self, release, place, law)
        return made.replace_schema_metadata({**(made.schema.metadata or {}), PULL_KEY: str(pull)})


class RateSwapping(StratumSwapping):
    """Swap records within strata at a swap rate; the bounds on the loss are each mechanism's own, and may be unknown."""

    config: SwapConfig

    @property
    def rate(self) -> Fraction:
        """Return the swap rate p."""
        return Fraction(self.config.rate)

    @abstractmethod
    def bounds(self, strata: StratumTable) -> tuple[Bound, ...]:
        """Return every bound on the loss for strata of these shapes, proved or not."""

    @abstractmethod
    def size_law(self, frame: Frame) -> SizeLaw | None:
        """Return the budget of every universe as a law of b, or None where none is stated."""

    def make_promise(self, strata: StrataSummary, census: "Census") -> SwapPromise:
        """Return the promise that the bounds give, the expected share that moves, and strata that are rarely swapped."""
        return SwapPromise(
            specification=state_specification(
                strata,
                census,
                self.list_bounds(strata),
                law=self.size_law(strata.frame),
                depends=describe_dependence(self),
                released=self.views(census),
            ),
            effect=expect_share_moved(strata.shapes, strata.frame.stays, self.lowest_rate()),
            warnings=note_weak_strata(strata.shapes, self.rate),
        )

    def list_bounds(self, strata: StrataSummary) -> tuple[Bound, ...]:
        """Return the bounds for the strata of a census; a variant may use the roles too."""
        return self.bounds(strata.shapes.table)

    def refuse_degenerate(self) -> None:
        """Raise an error if the rate makes some outputs impossible."""
        require_inner_rate(self.rate)

    def highest_rate(self) -> float:
        """Return the largest swap rate of any record."""
        return float(self.rate)

    def lowest_rate(self) -> Fraction:
        """Return the smallest swap rate of any record, from which the expected effect is stated."""
        return self.rate

    def draw_swap(self, frame: Frame, run: Key, engine: Engine) -> dict[str, Column]:
        """Select records at the rate, derange them within their strata, and return the columns."""
        moves = draw_moves(
            run,
            ids=frame.ids,
            strata=frame.strata.codes,
            rate=self.rate,
            sizes=frame.strata.sizes,
            engine=engine,
        )
        return apply_moves(frame, moves, engine)

    def permutations(self, frame: Frame) -> PermutationLaw | None:
        """Return the law of the moves of a small census, or None if there are too many."""
        return enumerate_moves(frame, [self.rate] * frame.rows)


class ProvedSwapping(RateSwapping):
    """A swap at a rate with a proved bound that is finite at every rate between 0 and 1, so that tuning may turn it."""

    def knobs(self) -> Sequence[Knob]:
        """Return the knob of the swap rate, up to one half."""
        return (make_rate_knob(lambda rate: self.replace(rate=rate)),)


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
