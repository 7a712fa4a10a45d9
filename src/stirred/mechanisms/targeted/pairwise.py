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
from stirred.mechanisms.swapping.numbers.uncertainty import kept
from stirred.mechanisms.swapping.pipeline.frame import Frame
from stirred.mechanisms.swapping.pipeline.memory import MemoryRecords
from stirred.mechanisms.swapping.pipeline.publish import Logged, swapped_columns
from stirred.mechanisms.swapping.pipeline.release import opened
from stirred.mechanisms.swapping.records.columns import Column
from stirred.mechanisms.swapping.records.participation import Stay
from stirred.mechanisms.swapping.roles import Roles
from stirred.mechanisms.targeted.donors import Pairing
from stirred.mechanisms.targeted.draw import moves_of
from stirred.mechanisms.targeted.log import SwapLog, log_of
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
    def pairs(self, frame: Frame, run: Key) -> Pairing:
        """Who changes places with whom."""

    @property
    @abstractmethod
    def rules(self) -> tuple[str, ...]:
        """The rules by which partners are found, in words, in the order in which they are tried."""

    @property
    @abstractmethod
    def levels(self) -> tuple[str, ...]:
        """The areas that swaps cross, from coarse to fine."""

    @property
    def published_without_guarantee(self) -> str:
        """The office's reason."""
        return self.without_guarantee

    def parameters(self) -> dict[str, object]:
        """The swap's parameters, with all that is accepted and the reason."""
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
        """All of them are settings; the length of cycles also for pairs."""
        return self.parameters() | {
            "cycle": self.cycle,
            "release_identifiers": dict(self.release_identifiers),
        }

    def swap_roles(self, census: "Census", *, drop: Sequence[str]) -> Roles:
        """The roles of a swap with the same variables, of which some are not published."""
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

    def meeting(self, frame: Frame) -> tuple[str, ...]:
        """None: any two records may be compared or paired, so all of them are in one part."""
        del frame
        return ()

    def effect_on(self, shapes: Shapes, stays: Sequence[Stay]) -> ExpectedEffect | None:
        """Return the share that is swapped in any case; how many records are risky is known to the draw alone."""
        moved = PermutationSwapping.effect_on(self, shapes, stays)
        return None if moved is None or not self.rate else replace(moved, share=float(self.rate))

    def bounds(self, strata: StratumTable) -> tuple[Bound, ...]:
        """None is finite."""
        del strata
        source = Phrase("targeted.source")
        return (Bound(name=Phrase("targeted.bound"), budget=Budget.infinite(), source=source),)

    def size_law(self, frame: Frame) -> SizeLaw | None:
        """None: the budget is infinite in every universe in which something can move."""
        del frame
        return None

    def exact_law(self, census: "Census") -> Law | None:
        """None is written down: who is paired depends on all records."""
        del census
        return None

    def replicated(self, census: "Census", copies: int) -> tuple[Mechanism, "Census", str] | None:
        """None: copies in one file would be compared and paired with each other."""
        del census, copies
        return None

    def promised(self, frame: Frame, shapes: Shapes, census: "Census") -> Specification:
        """The invariants of the swap, without a finite budget; its reason is a note."""
        found = PermutationSwapping.promised(self, frame, shapes, census)
        notes = [Phrase("targeted.note.witness")]
        if self.without_guarantee:
            notes.append(Phrase("budget_note.without_guarantee", reason=self.without_guarantee))
        return replace(found, notes=(*notes, *found.notes))

    def remarks(self, shapes: Shapes) -> tuple[str, ...]:
        """None: the laws of the permutation swap do not hold here."""
        del shapes
        return ()

    def swapped(self, frame: Frame, run: Key, engine: Engine) -> dict[str, Column]:
        """The columns after the swap."""
        return swapped_columns(frame, moves_of(self.pairs(frame, run)), engine)

    def logged(self, frame: Frame, run: Key, engine: Engine) -> Logged:
        """The columns after the swap, and who took whose place."""
        found = self.pairs(frame, run)
        if frame.rows and not found.moved.any():
            raise PrivacyError(
                "nobody changed places, so the file would be published as it is",
                why="no record was selected, or no selected record found a partner",
                fix="choose a higher rate, more records at risk, or fewer variables on which partners agree",
            )
        log = log_of(frame, found, rules=self.rules, levels=self.levels)
        return swapped_columns(frame, moves_of(found), engine), log.internal()

    def keeps(self, by: Sequence[str], schema: "Schema") -> bool:
        """A table is exact when nothing in it moves, or all that stays is what partners always agree on."""
        return kept(by, match=self.match, swap=tables.moving(self, schema))

    def knobs(self) -> Sequence[Knob]:
        """None: no setting gives a finite budget."""
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
    """The log of the release that this key gives; the draw is made again in memory."""
    with opened(mechanism, census.checked(), engine or Local()) as source:
        if not isinstance(source, MemoryRecords):
            raise InputError(
                "the log needs the census in memory",
                why="the draw is made again to see who was swapped",
                fix="ask for it with Local() on a machine whose memory holds the census",
            )
        run = mechanism.bound(key, source.survey(mechanism.reader(key)).digest)
        found = mechanism.pairs(source.frame, run)
        return log_of(source.frame, found, rules=mechanism.rules, levels=mechanism.levels)
