"""What swaps at a rate within strata share, proved or not: the rate, exact laws of small censuses, independent copies.

Nothing here promises: every mechanism states its own bounds, and says itself whether they are a law of the sizes of strata.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from stirred.chance import Key
from stirred.engine import Engine
from stirred.mechanisms.base import Knob, Mechanism
from stirred.mechanisms.proposal import Proposal
from stirred.mechanisms.swap.config import SwapConfig
from stirred.mechanisms.swap.exact_law import PermutationLaw, enumerate_moves
from stirred.mechanisms.swap.frame import Frame, StrataSummary, apply_moves
from stirred.mechanisms.swap.guards import expect_share_moved
from stirred.mechanisms.swap.moves import draw_moves
from stirred.mechanisms.swap.pipeline import SwapMechanism, SwapPromise, copy_in_strata
from stirred.mechanisms.swap.promise import describe_dependence, note_weak_strata, state_specification
from stirred.mechanisms.swap.proposal import propose_swap
from stirred.mechanisms.swap.records import Column
from stirred.mechanisms.swap.roles import require_inner_rate
from stirred.mechanisms.swap.strata import StratumTable
from stirred.spec import Bound, SizeLaw

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


class RateSwapping(SwapMechanism):
    """Swap records within strata at a swap rate; the bounds on the loss are each mechanism's own, and may be unknown."""

    config: SwapConfig

    @property
    def match(self) -> tuple[str, ...]:
        """Return the match variables."""
        return tuple(self.config.match)

    @property
    def swap(self) -> tuple[str, ...]:
        """Return the swap variables."""
        return tuple(self.config.swap)

    @property
    def rate(self) -> Fraction:
        """Return the swap rate p."""
        return Fraction(self.config.rate)

    @classmethod
    def propose(cls, schema: "Schema") -> Proposal | None:
        """Match the coarsest area and the size, swap the finer areas, hold categories."""
        return propose_swap(schema, cls.Config)

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

    def replicate(self, census: "Census", copies: int) -> tuple[Mechanism, "Census", str] | None:
        """Return (mechanism, census with copies, copy column): copies are strata, hence independent."""
        return copy_in_strata(self, census, copies)


class ProvedSwapping(RateSwapping):
    """A swap at a rate with a proved bound that is finite at every rate between 0 and 1, so that tuning may turn it."""

    def knobs(self) -> Sequence[Knob]:
        """Return the knob of the swap rate, up to one half."""
        return (make_rate_knob(lambda rate: self.replace(rate=rate)),)
