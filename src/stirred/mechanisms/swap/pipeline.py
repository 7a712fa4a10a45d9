"""A swap from census to release, once for every law of moves: strata, draw, order, write, verify, tabulate, guard.

The pipeline computes no budget and knows no rate. A new swap is three things, and nothing is copied:

1. a *Config*, with ``SwapOutputConfig`` for the settings that every swap has and a field for each setting of its own
   (``MatchedConfig`` has match and swap variables);
2. a *law of moves*: ``draw_swap``, given a frame with its strata and the key of the run, returns the columns after the swap
   (``apply_moves`` makes them of who gives and who receives). ``prepare_frame``, ``partition_variables`` and the other
   methods of ``MoveLaw`` have defaults in ``SwapMechanism`` for laws that draw within each stratum by itself;
3. a *promise*: ``make_promise``, given all strata, returns the specification (``promise.state_specification`` lists the
   invariants and takes the bounds), the expected effect and warnings. Nothing promises for a law that does not::

    class Stirring(SwapMechanism):
        name = "stirring"
        config: StirringConfig

        match = property(lambda self: tuple(self.config.match))
        swap = property(lambda self: tuple(self.config.swap))
        def refuse_degenerate(self): ...                   # settings under which some output is impossible
        def highest_rate(self): ...                        # the largest share of records that moves, for a guard
        def draw_swap(self, frame, run, engine): ...       # the law of moves
        def make_promise(self, strata, census): ...        # the only place where a budget comes from

A swap within strata at a rate has more in ``psa.py``: exact laws of small censuses, independent copies, the knob of the
rate. Closed forms are the Permutation Swapping Algorithm's own.
"""

import json
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa

from stirred.chance import Key
from stirred.engine import Engine, Local, Progress, silent
from stirred.languages import Phrase, unit
from stirred.mechanisms.base import Mechanism, RestatePromise, check_inputs, require_inputs
from stirred.mechanisms.contents import Law
from stirred.mechanisms.effect import ExpectedEffect
from stirred.mechanisms.exhibits import Exhibit
from stirred.mechanisms.release import Check, Guard, Release
from stirred.mechanisms.swap import parts
from stirred.mechanisms.swap.comparison import LossAtShare, compare_losses
from stirred.mechanisms.swap.config import (
    Roles,
    SwapOutputConfig,
    derive_roles,
    find_held_in_tables,
    require_levels,
    require_output,
    require_reasons,
    require_tables,
)
from stirred.mechanisms.swap.exact_law import (
    PermutationLaw,
    copy_census,
    enumerate_releases,
    settings_of_copies,
)
from stirred.mechanisms.swap.fingerprints import InputFingerprints, require_kept
from stirred.mechanisms.swap.frame import (
    ColumnsAndLog,
    Frame,
    MemoryRecords,
    MoveLaw,
    OutputFingerprints,
    RecordSource,
    StrataSummary,
    estimate_size,
    load_frame,
    outline_frame,
)
from stirred.mechanisms.swap.guards import (
    REVERSAL_GUARD,
    StandingRecords,
    exhibit_guards,
    guard_identifiers,
    guard_reversal,
    mark_trial,
    require_named,
)
from stirred.mechanisms.swap.records import Column, find_release_rule, refuse_staying
from stirred.spec import Budget, Exchanges, Ledger, Specification
from stirred.spec.invariants import Views, largest_views, make_view

if TYPE_CHECKING:
    from stirred.census import Census

MAX_RECORDS_ON_TRIAL = 3_000_000  # records of any type, up to which plan check makes a trial draw


@dataclass(frozen=True, slots=True, kw_only=True)
class SwapPromise:
    """What a mechanism states of the strata of one census: the specification, the expected effect, and warnings."""

    specification: Specification
    effect: ExpectedEffect | None = None
    warnings: tuple[str, ...] = ()
    moved: float | None = None  # the share of the records that can move, where the effect does not say it


StatePromise = Callable[[StrataSummary], SwapPromise]


@dataclass(frozen=True, slots=True, kw_only=True)
class SwapPipeline:
    """The settings that all swaps have, and all that happens to the records under a law of moves."""

    name: str  # of the mechanism; with its parameters it names the streams of a run
    parameters: Mapping[str, object]
    law: MoveLaw

    match: tuple[str, ...]
    swap: tuple[str, ...]
    settings: SwapOutputConfig  # that every swap has

    @property
    def resolution(self) -> str:
        """Return the record type that is swapped."""
        return self.settings.resolution

    @property
    def tables(self) -> tuple[tuple[str, ...], ...]:
        """Return the contingency tables that are released."""
        return tuple(tuple(by) for by in self.settings.tables)

    # Variables and records

    def roles(self, census: "Census") -> Roles:
        """Return the role of every variable; refuse a choice that would undo the swap."""
        # without records only variables of a table are released, so only these are held
        hold = (
            self.settings.hold
            if self.settings.microdata
            else find_held_in_tables(self.tables, {*self.match, *self.swap})
        )
        found = derive_roles(
            census,
            record_type=self.resolution,
            match=self.match,
            swap=self.swap,
            hold=hold,
            drop=self.settings.drop,
            carry=self.settings.carry and self.settings.microdata,
        )
        found = self.law.adjust_roles(found, census)
        require_tables(self.tables, found.released_variables)
        require_named(self.settings, found)
        return found

    def released_columns(self, census: "Census") -> Mapping[str, Sequence[str]]:
        """Return the columns of the swapped records and of those that travel along; without records, those of the tables."""
        if not self.settings.microdata:
            return {self.resolution: tuple({name: None for by in self.tables for name in by})}
        roles = self.roles(census)
        return {self.resolution: roles.released_variables, **dict(roles.members)}

    def views(self, census: "Census") -> Views:
        """Return the released columns of the records and of linked records; without records, the tables."""
        kept = find_release_rule(census.schema.record(self.resolution), self.settings.untouched)
        where = None if kept is None or kept.levels is None else {kept.column: kept.levels}
        if not self.settings.microdata:
            found = [make_view(census.domain, self.resolution, by, where) for by in self.tables]
            return largest_views(census.domain, found)
        leaving = self.released_columns(census)
        homes = leaving[self.resolution]
        found = [make_view(census.domain, self.resolution, homes, where)]
        # members are released with the number of their home, so what leaves of both leaves together
        found += [
            make_view(census.domain, record_type, (*names, *homes), where)
            for record_type, names in leaving.items()
            if record_type != self.resolution
        ]
        return largest_views(census.domain, found)

    def frame(self, census: "Census", *, along: bool = True) -> Frame:
        """Load the records of the census in memory, with their strata; ``along`` adds linked records."""
        return self.law.prepare_frame(
            load_frame(census, self.roles(census), untouched=self.settings.untouched, along=along)
        )

    @contextmanager
    def open_records(
        self, census: "Census", engine: Engine, *, progress: Progress = silent, along: bool = True
    ) -> Iterator[RecordSource]:
        """Open the records of a census, in memory where they fit, else in parts; ``along`` adds linked records."""
        roles = self.roles(census)
        size = estimate_size(engine.census(census), roles)
        with ExitStack() as held:
            progress("read", 0, 1)
            source: RecordSource
            if engine.fits(size.memory):
                frame = self.frame(census, along=along)
                source = MemoryRecords.of(
                    self.law, frame, engine, progress, microdata=self.settings.microdata
                )
            else:
                source = parts.open_parts(
                    self.law,
                    roles,
                    census,
                    engine,
                    size,
                    progress,
                    held,
                    untouched=self.settings.untouched,
                    microdata=self.settings.microdata,
                    along=along,
                )
            progress("read", 1, 1)
            yield source

    def count_strata(self, census: "Census", engine: Engine) -> StrataSummary:
        """Count the strata of a census, from which a promise is stated, without linked records."""
        with self.open_records(census, engine, along=False) as source:
            return self._count_and_refuse(source, cells=False)

    def _count_and_refuse(self, source: RecordSource, *, cells: bool) -> StrataSummary:
        found = source.count_strata(cells=cells)
        if self.settings.untouched == "refuse":
            refuse_staying(found.frame.stays, found.frame.roles.record_type)
        return found

    # What is refused and guarded

    def refuse(self, census: "Census", engine: Engine) -> None:
        """Stop at variables that would undo the swap, at levels that do not exist, and at identifiers."""
        roles = self.roles(census)
        self.law.prepare_frame(outline_frame(census, roles))
        require_levels(census, self.resolution, self.law.named_levels(), count=False)
        self._guard_identifiers(census, roles, engine)

    def require_levels(self, census: "Census", engine: Engine) -> None:
        """Raise an error if the settings name a level that does not occur; what is wrong with a variable is said first."""
        named = self.law.named_levels()
        if named:
            self.roles(census)
        require_levels(engine.census(census), self.resolution, named)

    def _guard_identifiers(self, census: "Census", roles: Roles, engine: Engine) -> Guard:
        return guard_identifiers(self.settings, self.released_columns(census), census, roles, engine)

    def guard_immovable(self, strata: StrataSummary) -> Guard:
        """Return the finding on records that cannot move; stop where nothing can."""
        return StandingRecords.of(strata.shapes, strata.frame.stays).guard(self.resolution)

    def guards(
        self, census: "Census", engine: Engine, state_promise: StatePromise, *, trial: bool
    ) -> tuple[Guard, ...]:
        """Return the findings on identifiers, on records that cannot move, and, from a trial draw, on reversal."""
        roles = self.roles(census)
        size = estimate_size(engine.census(census), roles)
        if trial and size.rows <= MAX_RECORDS_ON_TRIAL and engine.fits(2 * size.memory):
            made = self.release(
                census, state_promise, key=Key.fresh(), engine=engine, out=None, progress=silent
            )
            return tuple(mark_trial(guard) for guard in made.guards)
        return (
            self._guard_identifiers(census, roles, engine),
            self.guard_immovable(self.count_strata(census, engine)),
            Guard(name=REVERSAL_GUARD, finding=Phrase("guard.by_the_run")),
        )

    # The release

    def digest_key(self, key: Key) -> Key:
        """Return the key for the digest of the census; workers may hold it, because it has no other use."""
        return key.bind(self.name, json.dumps(self.parameters, sort_keys=True), "input")

    def run_key(self, key: Key, digest: bytes) -> Key:
        """Return the key of this run on this census."""
        return key.bind(self.name, json.dumps(self.parameters, sort_keys=True), digest)

    def release(
        self,
        census: "Census",
        state_promise: StatePromise,
        *,
        key: Key,
        engine: Engine,
        out: Path | None,
        progress: Progress,
    ) -> Release:
        """Swap, order, verify and write; with ``out`` the records go to Parquet files in that folder.

        ``state_promise`` states the promise when the strata are counted, before anything is drawn.
        """
        progress("guards", 0, 2)
        named = self._guard_identifiers(census, self.roles(census), engine)
        progress("guards", 1, 2)
        with self.open_records(census, engine, progress=progress) as source:
            progress("digest", 0, 1)
            before = source.survey(self.digest_key(key))
            run = self.run_key(key, before.digest)
            progress("digest", 1, 1)
            strata = self._count_and_refuse(source, cells=True)
            standing = self.guard_immovable(strata)
            promise = state_promise(strata)
            stated = promise.specification
            with source.draw_swap(run, before, out) as swapped:
                checks = check_invariants(strata, before, swapped.after)
                tables = {" × ".join(by): self.law.finish_table(swapped.table(by), run) for by in self.tables}
                microdata = swapped.write_records()
                # a refusal here deletes what was written: the caller sees the refusal or the file, never both
                undone = guard_reversal(
                    self.settings,
                    strata.frame.roles,
                    census.schema,
                    microdata,
                    tables,
                    rate=self.law.highest_rate(),
                )
                progress("guards", 2, 2)
                return Release(
                    mechanism=self.name,
                    parameters=dict(self.parameters),
                    specification=stated,
                    tables=tables,
                    microdata=microdata,
                    checks=checks,
                    ledger=Ledger().spend(by=self.name, on=self.resolution, budget=stated.budget),
                    notes=promise.warnings,
                    guards=(named, standing, undone),
                    input_digest=run.digest(b"input", before.digest).hex(),
                    private=key.private,
                    internal=swapped.internal,
                    settings=self.settings.settings(),
                    effect=promise.effect,
                    schema=census.schema,
                    folder=census.folder,
                )


def check_invariants(
    strata: StrataSummary, before: InputFingerprints, after: OutputFingerprints
) -> tuple[Check, ...]:
    """Compare the invariants before and after; one that is not kept is an error."""
    frame = strata.frame
    kept = frame.list_kept_tables()
    # homes has one entry per kept table, and then that of the identifiers
    found = [
        Check(invariant=table.name, kept=was == now, numbers=cells)
        for table, was, now, cells in zip(kept, before.homes, after.homes, strata.cells, strict=False)
    ]
    key = "swap.check.members_placed" if frame.stays else "swap.check.members"
    for (record_type, _), was, now in zip(frame.roles.members, before.people, after.people, strict=True):
        # identifiers are unique, so both together show that every member is still in its household
        same = was == now and before.homes[len(kept)] == after.homes[len(kept)]
        home = unit(frame.roles.record_type, "of_their")
        told = Phrase(key, records=unit(record_type, "records"), of_their=home)
        found.append(Check(invariant=told, kept=same, numbers=now.rows))
    return require_kept(found)


# A mechanism that hands itself to a pipeline as its law of moves: it has the contract of a mechanism, and promises nothing.


class SwapMechanism(Mechanism):
    """Give a law of moves the contract of a mechanism; the promise is the subclass's own, and there is no default.

    ``resolution`` is the record type that is swapped; records linked to it (the persons of a household) move
    with it. Without ``hold`` every other variable is released as it is. ``tables`` are contingency tables of the
    swapped records, ``microdata=False`` releases only these tables. ``untouched`` decides what happens to records that
    never take part (vacant units, group quarters).
    """

    seconds_per_million: ClassVar[float] = 2.0
    bytes_per_record: ClassVar[int] = 60

    config: SwapOutputConfig

    def check_settings(self) -> None:
        """Refuse settings under which nothing is released, and identifiers without a reason."""
        require_output(self.config.tables, microdata=self.config.microdata)
        require_reasons(self.config.release_identifiers)

    @property
    @abstractmethod
    def match(self) -> tuple[str, ...]:
        """Return the variables that make the strata, or on which partners agree."""

    @property
    @abstractmethod
    def swap(self) -> tuple[str, ...]:
        """Return the variables that move, together."""

    @property
    def resolution(self) -> str:
        """Return the record type that is swapped."""
        return self.config.resolution

    @property
    def pipeline(self) -> SwapPipeline:
        """Return the pipeline with these settings and this law of moves."""
        return SwapPipeline(
            name=self.name,
            parameters=self.parameters(),
            law=self,
            match=self.match,
            swap=self.swap,
            settings=self.config,
        )

    # What each mechanism states of its own: the promise, and the law of moves

    @abstractmethod
    def make_promise(self, strata: StrataSummary, census: "Census") -> SwapPromise:
        """Return the promise for these strata: specification, expected effect and warnings."""

    def bound_exchange(self, strata: StrataSummary, specification: Specification) -> Budget:
        """Return what one exchange of two records loses at most: two changed records, or one exchange, as it counts."""
        del strata
        exchanges = isinstance(specification.input_premetric, Exchanges)
        return specification.budget if exchanges else specification.budget * 2

    @classmethod
    def lose_at_share(cls, strata: StrataSummary, share: Fraction) -> LossAtShare | None:
        """Return what one exchange loses at most if this share of the records that can move did, or None if unknown."""
        del strata, share
        return None

    @abstractmethod
    def refuse_degenerate(self) -> None:
        """Raise an error if these settings protect nothing, whatever the census is."""

    @abstractmethod
    def highest_rate(self) -> float:
        """Return the largest share of records that is expected to move, which the guard against reversal assumes."""

    @abstractmethod
    def draw_swap(self, frame: Frame, run: Key, engine: Engine) -> dict[str, Column]:
        """Draw once and return the columns after the swap."""

    def draw_and_log(self, frame: Frame, run: Key, engine: Engine) -> ColumnsAndLog:
        """Draw once and return the columns after the swap and the confidential log, which is empty here."""
        return self.draw_swap(frame, run, engine), {}

    def adjust_roles(self, roles: Roles, census: "Census") -> Roles:
        """Return the roles; a law that reads variables which are not released adds them here."""
        del census
        return roles

    def prepare_frame(self, frame: Frame) -> Frame:
        """Return the frame as this law uses it; a law may leave records out of strata or use larger strata."""
        return frame

    def partition_variables(self, frame: Frame) -> tuple[str, ...]:
        """Return the match variables: here a draw is independent across strata."""
        return frame.roles.match

    @property
    def most_types_counted(self) -> int:
        """Return 0: a promise needs to know whether a stratum has one, two or more types."""
        return 0

    @property
    def variables_needing_all_levels(self) -> tuple[str, ...]:
        """Return the variables for which the draw needs all levels that occur in the census."""
        return ()

    def named_levels(self) -> Mapping[str, Sequence[str]]:
        """Return the levels that the settings name, by variable; one that does not exist is refused."""
        return {}

    def finish_table(self, cells: pa.Table, run: Key) -> pa.Table:
        """Return the contingency table to publish, from the non-empty cells of the swapped records."""
        del run
        return cells

    def permutations(self, frame: Frame) -> PermutationLaw | None:
        """Return the law of the moves of a small census, or None if it is not written down."""
        del frame
        return None

    # The contract of a mechanism, through the pipeline

    @property
    def record_type(self) -> str:
        """Return the record type that is swapped."""
        return self.resolution

    def roles(self, census: "Census") -> Roles:
        """Return the role of every variable; refuse a choice that would undo the swap."""
        return self.pipeline.roles(census)

    def frame(self, census: "Census") -> Frame:
        """Load the records of the census in memory, with their strata."""
        return self.pipeline.frame(census)

    def released_columns(self, census: "Census") -> Mapping[str, Sequence[str]]:
        """Return the columns of the swapped records and of those that travel along; without records, those of the tables."""
        return self.pipeline.released_columns(census)

    def views(self, census: "Census") -> Views:
        """Return the released columns of the records and of linked records; without records, the tables."""
        return self.pipeline.views(census)

    def refuse(self, census: "Census", engine: Engine | None = None) -> None:
        """Stop at settings that protect nothing, at variables that would undo the swap, and at identifiers."""
        self.refuse_degenerate()
        self.pipeline.refuse(census, engine or Local())

    def refuse_promise(
        self, census: "Census", specification: Specification, engine: Engine | None = None
    ) -> None:
        """Stop where nothing can move: the promise holds but protects nothing, for the file would be published as it is."""
        if specification.varies is None or not specification.varies.b:
            self.pipeline.guard_immovable(self.pipeline.count_strata(census, engine or Local()))

    def guards(
        self, census: "Census", *, engine: Engine | None = None, trial: bool = True
    ) -> Sequence[Guard]:
        """Return the findings on identifiers, on records that cannot move, and, from a trial draw, on reversal."""
        return self.pipeline.guards(census, engine or Local(), self._bind_promise(census), trial=trial)

    def specification(self, census: "Census", *, engine: Engine | None = None) -> Specification:
        """Return the promise at the realised universe, from the strata, which are invariants."""
        return self.make_promise(self._count_strata(census, engine), census).specification

    def expected_effect(self, census: "Census", *, engine: Engine | None = None) -> ExpectedEffect | None:
        """Return the expected share of records that change places, from the sizes of the strata, which are invariants."""
        return self.state_promise(census, engine=engine)[1]

    def state_promise(
        self, census: "Census", *, engine: Engine | None = None
    ) -> tuple[Specification, ExpectedEffect | None]:
        """Return both from strata that are read once, the effect with what other swaps would lose at its share."""
        found = self._bind_promise(census)(self._count_strata(census, engine))
        return found.specification, found.effect

    def _count_strata(self, census: "Census", engine: Engine | None) -> StrataSummary:
        require_inputs(census, engine)
        engine_used = engine or Local()
        self.pipeline.require_levels(census, engine_used)
        return self.pipeline.count_strata(census, engine_used)

    def prepare_restating(self, census: "Census", *, engine: Engine | None = None) -> RestatePromise:
        """Return a function that states the promise at other values of a knob, from strata that are read once."""
        engine_used = engine or Local()
        strata = self.pipeline.count_strata(census, engine_used)

        def state(other: Mechanism) -> Specification:
            if isinstance(other, SwapMechanism) and other.name == self.name:
                return other.make_promise(strata, census).specification
            return other.specification(census, engine=engine_used)

        return state

    def _bind_promise(self, census: "Census") -> StatePromise:
        def state(strata: StrataSummary) -> SwapPromise:
            made = self.make_promise(strata, census)
            if made.effect is None:
                return made
            loss = self.bound_exchange(strata, made.specification)
            compared = compare_losses(made.effect, strata, name=self.name, loss=loss, moved=made.moved)
            return replace(made, effect=compared)

        return state

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
        """Swap, order, write and verify; with ``out`` the records go to Parquet files in that folder."""
        del state  # a swap is one step: an interrupted one starts again
        self.refuse_degenerate()
        census = check_inputs(census, key, engine)
        engine_used = engine or Local()
        self.pipeline.require_levels(census, engine_used)
        return self.pipeline.release(
            census,
            self._bind_promise(census),
            key=key,
            engine=engine_used,
            out=out,
            progress=progress or silent,
        )

    def exact_law(self, census: "Census") -> Law | None:
        """Return what each permutation releases, with its probability."""
        frame = self.frame(census)
        return enumerate_releases(
            frame, self.permutations(frame), microdata=self.config.microdata, tables=self.pipeline.tables
        )

    def exhibits(self, release: Release | None, *, engine: Engine | None = None) -> Sequence[Exhibit]:
        """Return what swaps would lose at the share that this one moves, and what the guards found."""
        del engine
        if release is None:
            return ()
        compared = release.effect and release.effect.compare_losses("swap.losses.finding")
        lost = Exhibit(
            title=Phrase("swap.losses.title"), finding=compared or "", note=Phrase("swap.losses.note")
        )
        return (
            *((lost,) if compared else ()),
            *((exhibit_guards(release.guards),) if release.guards else ()),
        )


def copy_in_strata(
    mechanism: SwapMechanism, census: "Census", copies: int
) -> tuple[Mechanism, "Census", str] | None:
    """Return (mechanism, census with copies, copy column) for a law within strata: copies are strata, hence independent."""
    if not mechanism.config.microdata or mechanism.config.tables:
        return None
    made, name = copy_census(census, mechanism.resolution, copies)
    settings = settings_of_copies(mechanism.match, mechanism.roles(made), name)
    return mechanism.replace(**settings), made, name
