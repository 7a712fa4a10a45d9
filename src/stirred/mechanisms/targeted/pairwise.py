"""What all pairwise swaps have in common: the release path of the swap, an infinite budget, and a log for the office."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from stirred.chance import Key
from stirred.engine import Engine, Local, Progress
from stirred.errors import InputError, PrivacyError, require_kind
from stirred.languages import Phrase
from stirred.mechanisms.base import Knob, Mechanism, Release
from stirred.mechanisms.contents import Law
from stirred.mechanisms.effect import ExpectedEffect
from stirred.mechanisms.swapping.budget.claim import StratumTable
from stirred.mechanisms.swapping.budget.shapes import Shapes
from stirred.mechanisms.swapping.mechanism import PermutationSwapping
from stirred.mechanisms.swapping.numbers import tables
from stirred.mechanisms.swapping.numbers.uncertainty import keeps_table
from stirred.mechanisms.swapping.pipeline.frame import Frame
from stirred.mechanisms.swapping.pipeline.memory import MemoryRecords
from stirred.mechanisms.swapping.pipeline.publish import ColumnsAndLog, apply_moves
from stirred.mechanisms.swapping.pipeline.release import open_records
from stirred.mechanisms.swapping.records.columns import Column
from stirred.mechanisms.swapping.records.participation import Stay
from stirred.mechanisms.swapping.roles import Roles
from stirred.mechanisms.targeted.donors import Pairing
from stirred.mechanisms.targeted.draw import to_moves
from stirred.mechanisms.targeted.log import SwapLog, make_log
from stirred.spec import Bound, Budget, SizeLaw, Specification

if TYPE_CHECKING:
    from stirred.census import Census, Schema


@dataclass(frozen=True, slots=True, init=False)
class PairwiseSwapping(PermutationSwapping):
    """A swap of disjoint pairs: no protection loss budget is finite (proof.md), and the reason to publish is a setting."""

    closed_form: ClassVar[bool] = False
    seconds_per_million: ClassVar[float] = 6.0
    bytes_per_record: ClassVar[int] = 200

    without_guarantee: str
    cycle: int

    def __init__(self, *, without_guarantee: str = "", cycle: int = 2, **settings: Any) -> None:
        PermutationSwapping.__init__(self, **settings)
        require_kind("cycle", cycle, int, wanted="a whole number", fix="cycle=2 swaps pairs")
        if cycle < 2:
            raise InputError(
                "a cycle has fewer than two records",
                why="a record cannot take its own place",
                fix="cycle=2 swaps pairs, cycle=3 turns three records",
            )
        require_kind(
            "without_guarantee", without_guarantee, str, wanted="a reason", fix='without_guarantee="…"'
        )
        object.__setattr__(self, "without_guarantee", without_guarantee)
        object.__setattr__(self, "cycle", cycle)

    @abstractmethod
    def pair_records(self, frame: Frame, run: Key) -> Pairing:
        """Draw who changes places with whom."""

    @property
    @abstractmethod
    def rules(self) -> tuple[str, ...]:
        """Return the rules by which partners are found, in words, in the order in which they are tried."""

    @property
    @abstractmethod
    def levels(self) -> tuple[str, ...]:
        """Return the areas that swaps cross, from coarse to fine."""

    @property
    def published_without_guarantee(self) -> str:
        """Return the office's reason to publish without a guarantee."""
        return self.without_guarantee

    def parameters(self) -> dict[str, object]:
        """Return the swap's parameters, with all that is accepted and the reason."""
        accepted = {
            # an empty list as ever: the draw depends on the parameters
            "release_identifiers": dict(self.release_identifiers) or [],
            "accept_reversal": list(self.accept_reversal),
            "without_guarantee": self.without_guarantee,
            # listed only beyond pairs: the draw depends on the parameters, and must not change for pairs
            **({"cycle": self.cycle} if self.cycle > 2 else {}),
        }
        return PermutationSwapping.parameters(self) | accepted

    def settings(self) -> dict[str, object]:
        """Return the parameters, with the length of cycles also for pairs."""
        return self.parameters() | {
            "cycle": self.cycle,
            "release_identifiers": dict(self.release_identifiers),
        }

    def derive_swap_roles(self, census: "Census", *, drop: Sequence[str]) -> Roles:
        """Return the roles of a swap with the same variables, of which some are not published."""
        plain = PermutationSwapping(
            match=self.match,
            swap=self.swap,
            rate=self.rate,
            resolution=self.resolution,
            hold=self.hold,
            drop=drop,
            tables=self.tables,
            microdata=self.microdata,
            carry=self.carry,
            untouched=self.untouched,
            release_identifiers=self.release_identifiers,
            accept_reversal=self.accept_reversal,
        )
        return plain.roles(census)

    def partition_variables(self, frame: Frame) -> tuple[str, ...]:
        """Return no columns: any two records may be paired, so all of them are in one part."""
        del frame
        return ()

    def effect_on(self, shapes: Shapes, stays: Sequence[Stay]) -> ExpectedEffect | None:
        """Return the share that is swapped in any case; how many records are risky is known to the draw alone."""
        moved = PermutationSwapping.effect_on(self, shapes, stays)
        return None if moved is None or not self.rate else replace(moved, share=float(self.rate))

    def bounds(self, strata: StratumTable) -> tuple[Bound, ...]:
        """Return one infinite bound."""
        del strata
        source = Phrase("targeted.source")
        return (Bound(name=Phrase("targeted.bound"), budget=Budget.infinite(), source=source),)

    def size_law(self, frame: Frame) -> SizeLaw | None:
        """Return None, because the budget is infinite wherever something can move."""
        del frame
        return None

    def exact_law(self, census: "Census") -> Law | None:
        """Return None, because who is paired depends on all records."""
        del census
        return None

    def replicate(self, census: "Census", copies: int) -> tuple[Mechanism, "Census", str] | None:
        """Return None, because copies in one file would be paired with each other."""
        del census, copies
        return None

    def build_specification(self, frame: Frame, shapes: Shapes, census: "Census") -> Specification:
        """Build a specification with the swap's invariants and no finite budget; the reason is a note."""
        found = PermutationSwapping.build_specification(self, frame, shapes, census)
        notes = [Phrase("targeted.note.witness")]
        if self.without_guarantee:
            notes.append(Phrase("budget_note.without_guarantee", reason=self.without_guarantee))
        return replace(found, notes=(*notes, *found.notes))

    def remarks(self, shapes: Shapes) -> tuple[str, ...]:
        """Return no warnings, because the laws of the permutation swap do not hold here."""
        del shapes
        return ()

    def draw_swap(self, frame: Frame, run: Key, engine: Engine) -> dict[str, Column]:
        """Draw once and return the columns after the swap."""
        return apply_moves(frame, to_moves(self.pair_records(frame, run)), engine)

    def draw_and_log(self, frame: Frame, run: Key, engine: Engine) -> ColumnsAndLog:
        """Draw once and return the columns and the log; raise an error if nobody moved."""
        found = self.pair_records(frame, run)
        if frame.rows and not found.moved_mask.any():
            raise PrivacyError(
                "nobody changed places, so the file would be published as it is",
                why="no record was selected, or no selected record found a partner",
                fix="choose a higher rate, more records at risk, or fewer variables on which partners agree",
            )
        log = make_log(frame, found, rules=self.rules, levels=self.levels)
        return apply_moves(frame, to_moves(found), engine), log.internal()

    def keeps(self, by: Sequence[str], schema: "Schema") -> bool:
        """Return whether a table is exact: nothing in it moves, or all that stays is what partners agree on."""
        return keeps_table(by, match=self.match, swap=tables.list_moving(self, schema))

    def knobs(self) -> Sequence[Knob]:
        """Return no knobs, because no setting gives a finite budget."""
        return ()

    def release(
        self,
        census: "Census",
        *,
        key: Key,
        engine: Engine | None = None,
        out: Path | None = None,
        state: Path | None = None,
        progress: Progress | None = None,
    ) -> Release:
        """Swap, order, write and verify; the settings say why there is no guarantee."""
        made = PermutationSwapping.release(
            self, census, key=key, engine=engine, out=out, state=state, progress=progress
        )
        return replace(made, settings=self.settings())


def swap_log(
    mechanism: PairwiseSwapping, census: "Census", *, key: Key, engine: Engine | None = None
) -> SwapLog:
    """Return the log of the release that this key gives, by drawing again in memory."""
    with open_records(mechanism, census.check(), engine or Local()) as source:
        if not isinstance(source, MemoryRecords):
            raise InputError(
                "the log needs the census in memory",
                why="the draw is made again to see who was swapped",
                fix="ask for it with Local() on a machine whose memory holds the census",
            )
        run = mechanism.run_key(key, source.survey(mechanism.digest_key(key)).digest)
        found = mechanism.pair_records(source.frame, run)
        return make_log(source.frame, found, rules=mechanism.rules, levels=mechanism.levels)
