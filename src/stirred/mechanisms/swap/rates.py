"""What swaps within strata share, proved or not: the closed forms of tables, the rate, exact laws, independent copies.

Nothing here promises: every mechanism states its own bounds, and says itself whether they are a law of the sizes of strata.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

import pyarrow as pa

from stirred.chance import Key
from stirred.engine import Engine, Local
from stirred.mechanisms.base import Knob, Mechanism, weight_error
from stirred.mechanisms.proposal import Proposal
from stirred.mechanisms.release import PULL_KEY, Release, format_table
from stirred.mechanisms.swap import estimates
from stirred.mechanisms.swap.config import MatchedSwapConfig, SwapConfig
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
