"""The Permutation Swapping Algorithm (the paper's Algorithm 1) as a mechanism."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa

from stirred.chance import Key
from stirred.engine import Engine, Local, Progress, silent
from stirred.errors import require_kind
from stirred.languages import Phrase
from stirred.mechanisms.base import Knob, Mechanism, Restating, check_inputs, require_inputs, weight_error
from stirred.mechanisms.config import MechanismConfig
from stirred.mechanisms.contents import Law
from stirred.mechanisms.effect import ExpectedEffect
from stirred.mechanisms.exhibits import Exhibit
from stirred.mechanisms.proposal import Proposal
from stirred.mechanisms.release import PULL_KEY, Exchange, Guard, Release, format_table
from stirred.mechanisms.swap import estimates, promise, records
from stirred.mechanisms.swap.bounds import StratumTable, bounds
from stirred.mechanisms.swap.config import SwapConfig
from stirred.mechanisms.swap.estimates import keeps_table
from stirred.mechanisms.swap.exact_law import (
    PermutationLaw,
    copy_census,
    enumerate_moves,
    enumerate_releases,
    settings_of_copies,
)
from stirred.mechanisms.swap.frame import (
    ColumnsAndLog,
    Frame,
    apply_moves,
    estimate_size,
    load_frame,
    outline_frame,
)
from stirred.mechanisms.swap.guards import (
    REVERSAL_GUARD,
    StandingRecords,
    exhibit_guards,
    expect_share_moved,
    guard_identifiers,
    mark_trial,
    require_named,
)
from stirred.mechanisms.swap.moves import draw_moves
from stirred.mechanisms.swap.pipeline import count_strata, release, restate_specification
from stirred.mechanisms.swap.proposal import propose_swap
from stirred.mechanisms.swap.records import Column, Stay
from stirred.mechanisms.swap.roles import (
    Roles,
    derive_roles,
    find_held_in_tables,
    require_arguments,
    require_inner_rate,
    require_levels,
    require_reasons,
    require_tables,
)
from stirred.mechanisms.swap.strata import Shapes
from stirred.spec import Bound, SizeLaw, Specification
from stirred.spec.invariants import Views, largest_views, make_view
from stirred.spec.laws import Rate, parse_rate

if TYPE_CHECKING:
    from stirred.census import Census, Schema


# The settings of a swap that tuning and sliders turn.

RATE_STEPS = 400  # swap rates are tuned in steps of 1/400


def make_rate_knob(turned: Callable[[Fraction], Mechanism]) -> Knob:
    """Return the knob of the swap rate, up to one half."""
    return Knob(
        name="rate",
        effect="a higher swap rate has a smaller budget and a larger error",
        settings=tuple(Fraction(step, RATE_STEPS) for step in range(1, RATE_STEPS // 2 + 1)),
        turned=turned,
    )


# The Permutation Swapping Algorithm (the paper's Algorithm 1) as a mechanism.

MAX_RECORDS_ON_TRIAL = 3_000_000  # records of any type, up to which plan check makes a trial draw


@dataclass(frozen=True, slots=True, init=False)
class PermutationSwapping(Mechanism):
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
    Config: ClassVar[type[MechanismConfig]] = SwapConfig
    seconds_per_million: ClassVar[float] = 2.0
    bytes_per_record: ClassVar[int] = 60
    closed_form: ClassVar[bool] = True  # whether the law of a record's move is that of the closed forms

    match: tuple[str, ...]
    swap: tuple[str, ...]
    rate: Fraction
    resolution: str
    hold: tuple[str, ...] | None
    drop: tuple[str, ...]
    tables: tuple[tuple[str, ...], ...]
    microdata: bool
    carry: bool
    untouched: str
    release_identifiers: Mapping[str, str]
    accept_reversal: tuple[str, ...]

    def __init__(
        self,
        *,
        match: Sequence[str] = (),
        swap: Sequence[str],
        rate: Rate,
        resolution: str = "household",
        hold: Sequence[str] | None = None,
        drop: Sequence[str] = (),
        tables: Sequence[Sequence[str]] = (),
        microdata: bool = True,
        carry: bool = True,
        untouched: str = "publish",
        release_identifiers: Mapping[str, str] | Sequence[str] = (),
        accept_reversal: Sequence[str] = (),
    ) -> None:
        lists = {
            "match": match,
            "swap": swap,
            "hold": hold,
            "drop": drop,
            "accept_reversal": accept_reversal,
        }
        require_arguments(lists, tables, microdata=microdata, untouched=untouched)
        require_kind("resolution", resolution, str, wanted="a record type", fix='resolution="household"')
        settings = {
            "match": tuple(match),
            "swap": tuple(swap),
            "rate": parse_rate(rate),
            "resolution": resolution,
            "hold": None if hold is None else tuple(hold),
            "drop": tuple(drop),
            "tables": tuple(tuple(by) for by in tables),
            "microdata": microdata,
            "carry": carry,
            "untouched": untouched,
            "release_identifiers": require_reasons(release_identifiers),
            "accept_reversal": tuple(accept_reversal),
        }
        for label, setting in settings.items():
            object.__setattr__(self, label, setting)

    @classmethod
    def propose(cls, schema: "Schema") -> Proposal | None:
        """Match the coarsest area and the size, swap the finer areas, hold categories."""
        return propose_swap(schema, cls.Config)

    @property
    def record_type(self) -> str:
        """Return the record type that is swapped."""
        return self.resolution

    def parameters(self) -> dict[str, object]:
        """Return the parameters of a run, in JSON; the order within match and swap does not change the draw."""
        # listed only if not empty: the draw depends on the parameters, and must not change where nothing is accepted
        return {
            "match": list(self.match),
            "swap": list(self.swap),
            "rate": str(self.rate),
            "resolution": self.resolution,
            "hold": None if self.hold is None else list(self.hold),
            "drop": list(self.drop),
            "tables": [list(by) for by in self.tables],
            "microdata": self.microdata,
            "carry": self.carry,
            "untouched": self.untouched,
            **{name: names for name, names in self._accepted_settings().items() if names},
        }

    def settings(self) -> dict[str, object]:
        """Return the parameters that Config has, with what is accepted by name, also where nothing is."""
        return {**Mechanism.settings(self), **self._accepted_settings()}

    def _accepted_settings(self) -> dict[str, object]:
        """Return what is released although a guard would refuse it, by name."""
        return {
            "release_identifiers": dict(self.release_identifiers),
            "accept_reversal": list(self.accept_reversal),
        }

    def roles(self, census: "Census") -> Roles:
        """Return the role of every variable; refuse a choice that would undo the swap."""
        # without records only variables of a table are released, so only these are held
        hold = self.hold if self.microdata else find_held_in_tables(self.tables, {*self.match, *self.swap})
        found = derive_roles(
            census,
            record_type=self.resolution,
            match=self.match,
            swap=self.swap,
            hold=hold,
            drop=self.drop,
            carry=self.carry and self.microdata,
        )
        require_tables(self.tables, found.released_variables)
        require_named(self, found)
        return found

    def frame(self, census: "Census") -> Frame:
        """Load the records of the census in memory, with their strata."""
        return self.prepare_frame(load_frame(census, self.roles(census), untouched=self.untouched))

    def prepare_frame(self, frame: Frame) -> Frame:
        """Return the frame as this law uses it; a variant may leave records out of strata or use larger strata."""
        return frame

    def partition_variables(self, frame: Frame) -> tuple[str, ...]:
        """Return the columns to partition by; a draw is independent across their values."""
        return frame.roles.match

    @property
    def variables_needing_all_levels(self) -> tuple[str, ...]:
        """Return the variables for which the draw needs all levels that occur in the census."""
        return ()

    def specification(self, census: "Census", *, engine: Engine | None = None) -> Specification:
        """Return the promise at the realised universe; b is a function of the invariants (the paper's Remark 1)."""
        return self.state_promise(census, engine=engine)[0]

    def expected_effect(self, census: "Census", *, engine: Engine | None = None) -> ExpectedEffect | None:
        """Return the expected share of records that change places, from the sizes of the strata, which are invariants."""
        return self.state_promise(census, engine=engine)[1]

    def state_promise(
        self, census: "Census", *, engine: Engine | None = None
    ) -> tuple[Specification, ExpectedEffect | None]:
        """Return both from strata that are read once."""
        require_inputs(census, engine)
        place = engine or Local()
        require_levels(place.census(census), self.resolution, self.named_levels())
        strata = count_strata(self, census, place)
        effect = self.effect_on(strata.shapes, strata.frame.stays)
        return self.build_specification(strata.frame, strata.shapes, census), effect

    def effect_on(self, shapes: Shapes, stays: Sequence[Stay]) -> ExpectedEffect | None:
        """Return the expected share of records that change places in strata of these shapes."""
        return expect_share_moved(shapes, stays, self.lowest_rate())

    def prepare_restating(self, census: "Census", *, engine: Engine | None = None) -> Restating:
        """Return a function that states the promise at other swap rates, from strata that are read once."""
        return restate_specification(self, census, engine or Local())

    def refuse_promise(
        self, census: "Census", specification: Specification, engine: Engine | None = None
    ) -> None:
        """Stop where nothing can move: ε = 0 is then true, and the file would be published as it is."""
        if specification.varies is None or not specification.varies.b:
            strata = count_strata(self, census, engine or Local())
            StandingRecords.of(strata.shapes, strata.frame.stays).guard(self.resolution)

    def guards(
        self, census: "Census", *, engine: Engine | None = None, trial: bool = True
    ) -> Sequence[Guard]:
        """Return the findings on identifiers, on records that cannot move, and, from a trial draw, on reversal."""
        place = engine or Local()
        found = self.roles(census)
        size = estimate_size(place.census(census), found)
        if trial and size.rows <= MAX_RECORDS_ON_TRIAL and place.fits(2 * size.memory):
            made = release(self, census, key=Key.fresh(), engine=place, out=None, progress=silent)
            return tuple(mark_trial(guard) for guard in made.guards)
        strata = count_strata(self, census, place)
        return (
            guard_identifiers(self, census, found, place),
            StandingRecords.of(strata.shapes, strata.frame.stays).guard(self.resolution),
            Guard(name=REVERSAL_GUARD, finding=Phrase("guard.by_the_run")),
        )

    def highest_rate(self) -> float:
        """Return the largest swap rate of any record."""
        return float(self.rate)

    def lowest_rate(self) -> Fraction:
        """Return the smallest swap rate of any record, from which the expected effect is stated."""
        return self.rate

    def bounds(self, strata: StratumTable) -> tuple[Bound, ...]:
        """Return every bound on the loss that applies to these strata; a variant with another law has its own."""
        return bounds(strata, self.rate)

    def draw_swap(self, frame: Frame, run: Key, engine: Engine) -> dict[str, Column]:
        """Draw once and return the columns after the swap."""
        strata = frame.strata
        moves = draw_moves(
            run, ids=frame.ids, strata=strata.codes, rate=self.rate, sizes=strata.sizes, engine=engine
        )
        return apply_moves(frame, moves, engine)

    def draw_and_log(self, frame: Frame, run: Key, engine: Engine) -> ColumnsAndLog:
        """Draw once and return the columns after the swap and the confidential log, which is empty here."""
        return self.draw_swap(frame, run, engine), {}

    def remarks(self, shapes: Shapes) -> tuple[str, ...]:
        """Return warnings for the release: strata that are rarely swapped."""
        return promise.note_weak_strata(shapes, self.rate)

    def finish_table(self, cells: pa.Table, run: Key) -> pa.Table:
        """Return the contingency table to publish, from the non-empty cells of the swapped records."""
        del run
        return cells

    def build_specification(self, frame: Frame, shapes: Shapes, census: "Census") -> Specification:
        """Build the specification for these strata."""
        return promise.state_specification(
            frame,
            shapes,
            census,
            self.bounds,
            law=self.size_law(frame),
            depends=self.describe_dependence(),
            released=self.views(census),
        )

    def size_law(self, frame: Frame) -> SizeLaw | None:
        """Return the budget of every universe as a law of b, or None for a variant without a stated law."""
        del frame  # a variant may use the roles
        return SizeLaw("by-size", self.rate) if type(self).bounds is PermutationSwapping.bounds else None

    def describe_dependence(self) -> str:
        """Describe all parameters that the budget depends on beside the invariants.

        All are named, so that two different budget functions never have equal words.
        """
        known = {*PermutationSwapping.parameters(self)} - {"rate"}  # these decide the invariants
        chosen = {name: value for name, value in self.parameters().items() if name not in known and value}
        return promise.describe_law(self.name, chosen)

    def refuse_degenerate(self) -> None:
        """Raise an error if the rate makes some outputs impossible."""
        require_inner_rate(self.rate)

    def refuse(self, census: "Census", engine: Engine | None = None) -> None:
        """Stop at a rate that protects nothing, at variables that would undo the swap, and at identifiers."""
        self.refuse_degenerate()
        self.prepare_frame(outline_frame(census, self.roles(census)))
        require_levels(census, self.resolution, self.named_levels(), count=False)
        guard_identifiers(self, census, self.roles(census), engine or Local())

    def named_levels(self) -> Mapping[str, Sequence[str]]:
        """Return the levels that the settings name, by variable; one that does not exist is refused."""
        return {}

    def released_columns(self, census: "Census") -> Mapping[str, Sequence[str]]:
        """Return the columns of the swapped records and of those that travel along; without records, those of the tables."""
        if not self.microdata:
            return {self.resolution: tuple({name: None for by in self.tables for name in by})}
        roles = self.roles(census)
        return {self.resolution: roles.released_variables, **dict(roles.members)}

    def views(self, census: "Census") -> Views:
        """Return the released columns of the records and of linked records; without records, the tables."""
        kept = records.find_release_rule(census.schema.record(self.resolution), self.untouched)
        where = None if kept is None or kept.levels is None else {kept.column: kept.levels}
        if not self.microdata:
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

    def require_weight(self, weight: str, *, record_type: str, census: "Census") -> None:
        """Raise an error unless records with closed forms are released and the weight stays with its record."""
        if not self.closed_form or not self.microdata:
            raise weight_error(self.name)
        estimates.require_held(self.roles(census), weight, record_type)

    def table(
        self,
        release: Release,
        by: Sequence[str],
        *,
        record_type: str = "",
        weight: str = "",
        engine: Engine | None = None,
    ) -> pa.Table:
        """Return counts or weighted totals with estimate, standard error and interval, if closed forms exist."""
        asked, place = record_type or self.resolution, engine or Local()
        if not self.closed_form or self.resolution not in release.microdata:
            return Mechanism.table(self, release, by, record_type=asked, weight=weight, engine=place)
        made = format_table(estimates.estimate_table(self, release, by, asked, place, weight=weight), by)
        return made.replace_schema_metadata({**(made.schema.metadata or {}), PULL_KEY: str(self.rate)})

    def keeps(self, by: Sequence[str], schema: "Schema") -> bool:
        """Return whether a table is exact: nothing in it moves, or all that stays is matched (Proposition 4)."""
        return self.closed_form and keeps_table(
            by, match=self.match, swap=estimates.list_moving(self, schema)
        )

    def exchange(self, release: Release) -> Exchange | None:
        """Return the law by which one record moves: selected with the effective rate of its stratum."""
        return estimates.describe_exchange(self, release) if self.closed_form else None

    def exhibits(self, release: Release | None, *, engine: Engine | None = None) -> Sequence[Exhibit]:
        """Return the effective rates by stratum size, and what the guards found."""
        if release is None:
            return ()
        guarded = (exhibit_guards(release.guards),) if release.guards else ()
        if not self.closed_form or self.resolution not in release.microdata:
            return guarded
        return (estimates.exhibit_effective_rates(self, release, engine or Local()), *guarded)

    def knobs(self) -> Sequence[Knob]:
        """Return the knob of the swap rate, up to one half."""
        return (make_rate_knob(lambda rate: type(self)(**{**self.parameters(), "rate": rate})),)  # type: ignore[arg-type]

    def permutations(self, frame: Frame) -> PermutationLaw | None:
        """Return the law of the moves of a small census, or None if there are too many or it is not written down."""
        return enumerate_moves(frame, [self.rate] * frame.rows)

    def exact_law(self, census: "Census") -> Law | None:
        """Return what each permutation releases, with its probability."""
        frame = self.frame(census)
        return enumerate_releases(
            frame, self.permutations(frame), microdata=self.microdata, tables=self.tables
        )

    def replicate(self, census: "Census", copies: int) -> tuple[Mechanism, "Census", str] | None:
        """Return (mechanism, census with copies, copy column): copies are strata, hence independent."""
        if not self.microdata or self.tables:
            return None
        made, name = copy_census(census, self.resolution, copies)
        settings = self.parameters() | settings_of_copies(self.match, self.roles(made), name)
        return type(self)(**settings), made, name  # type: ignore[arg-type]

    def digest_key(self, key: Key) -> Key:
        """Return the key for the digest of the census; workers may hold it, because it has no other use."""
        return key.bind(self.name, json.dumps(self.parameters(), sort_keys=True), "input")

    def run_key(self, key: Key, digest: bytes) -> Key:
        """Return the key of this run on this census."""
        return key.bind(self.name, json.dumps(self.parameters(), sort_keys=True), digest)

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
        place = engine or Local()
        require_levels(place.census(census), self.resolution, self.named_levels())
        return release(self, census, key=key, engine=place, out=out, progress=progress or silent)
