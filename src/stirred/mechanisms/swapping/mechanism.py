"""The Permutation Swapping Algorithm (the paper's Algorithm 1) as a mechanism."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa

from stirred.chance import Key
from stirred.engine import Engine, Local, Progress, silent
from stirred.errors import require_kind
from stirred.languages import Phrase
from stirred.mechanisms.arguments import admitted, require_inputs
from stirred.mechanisms.base import Exhibit, Guard, Knob, Mechanism, MechanismConfig, Release, unweighted
from stirred.mechanisms.contents import Law
from stirred.mechanisms.effect import ExpectedEffect
from stirred.mechanisms.participation import Exchange
from stirred.mechanisms.proposal import Proposal
from stirred.mechanisms.released import PULL, finished
from stirred.mechanisms.swapping import statement
from stirred.mechanisms.swapping.arguments import (
    held_by_tables,
    require_arguments,
    require_inner_rate,
    require_reasons,
    require_tables,
)
from stirred.mechanisms.swapping.budget.by_size import Rate, rate_of
from stirred.mechanisms.swapping.budget.claim import StratumTable, bounds
from stirred.mechanisms.swapping.budget.shapes import Shapes
from stirred.mechanisms.swapping.config import SwapConfig
from stirred.mechanisms.swapping.draw.moves import draw
from stirred.mechanisms.swapping.guards.checks import REVERSAL, identified, require_named
from stirred.mechanisms.swapping.guards.shown import on_trial, shown_guards
from stirred.mechanisms.swapping.guards.standing import Standing, share_moved
from stirred.mechanisms.swapping.knobs import rate_knob
from stirred.mechanisms.swapping.numbers import tables
from stirred.mechanisms.swapping.numbers.copies import copied, matched_by_copy
from stirred.mechanisms.swapping.numbers.exact_law import PermutationLaw, by_record, released_law
from stirred.mechanisms.swapping.numbers.uncertainty import kept
from stirred.mechanisms.swapping.pipeline import memory
from stirred.mechanisms.swapping.pipeline.frame import Frame
from stirred.mechanisms.swapping.pipeline.publish import Logged, swapped_columns
from stirred.mechanisms.swapping.pipeline.release import Restating, release, restated, stated
from stirred.mechanisms.swapping.proposal import propose
from stirred.mechanisms.swapping.records import participation
from stirred.mechanisms.swapping.records.columns import Column
from stirred.mechanisms.swapping.records.participation import Stay
from stirred.mechanisms.swapping.records.size import size_of
from stirred.mechanisms.swapping.roles import Roles, require_levels, roles
from stirred.spec import Bound, SizeLaw, Specification
from stirred.spec.released import Views, largest_views, view_of

if TYPE_CHECKING:
    from stirred.census import Census, Schema

TRIAL = 3_000_000  # records of any type, up to which plan check makes a trial draw


@dataclass(frozen=True, slots=True, init=False)
class PermutationSwapping(Mechanism):
    """Swaps records within strata of equal match variables: selected with probability p, then deranged uniformly.

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
            "rate": rate_of(rate),
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
        return propose(schema, cls.Config)

    @property
    def record_type(self) -> str:
        """The record type that is swapped."""
        return self.resolution

    def parameters(self) -> dict[str, object]:
        """The parameters of a run, in JSON; the order within match and swap is kept, but does not change the draw."""
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
            **{name: names for name, names in self._accepted().items() if names},
        }

    def settings(self) -> dict[str, object]:
        """The parameters that Config has, and what is accepted by name, also where nothing is."""
        return {**Mechanism.settings(self), **self._accepted()}

    def _accepted(self) -> dict[str, object]:
        """What is released although a guard would refuse it, by name."""
        return {
            "release_identifiers": dict(self.release_identifiers),
            "accept_reversal": list(self.accept_reversal),
        }

    def roles(self, census: "Census") -> Roles:
        """The role of every variable; refuses a choice that would undo the swap."""
        # without records only variables of a table are released, so only these are held
        hold = self.hold if self.microdata else held_by_tables(self.tables, {*self.match, *self.swap})
        found = roles(
            census,
            record_type=self.resolution,
            match=self.match,
            swap=self.swap,
            hold=hold,
            drop=self.drop,
            carry=self.carry and self.microdata,
        )
        require_tables(self.tables, found.released)
        require_named(self, found)
        return found

    def frame(self, census: "Census") -> Frame:
        """The records of the census in memory, with their strata."""
        return self.adapted(memory.load(census, self.roles(census), untouched=self.untouched))

    def adapted(self, frame: Frame) -> Frame:
        """The records as this law uses them; a variant may exclude records from strata or use larger strata."""
        return frame

    def meeting(self, frame: Frame) -> tuple[str, ...]:
        """Variables by which records are grouped: records that differ in one of them never affect each other."""
        return frame.roles.match

    @property
    def whole(self) -> tuple[str, ...]:
        """Variables for which the draw needs all levels that occur in the census."""
        return ()

    def specification(self, census: "Census", *, engine: Engine | None = None) -> Specification:
        """The promise at the realised universe; b is a function of the invariants (the paper's Remark 1)."""
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
        strata = stated(self, census, place)
        effect = self.effect_on(strata.shapes, strata.frame.stays)
        return self.promised(strata.frame, strata.shapes, census), effect

    def effect_on(self, shapes: Shapes, stays: Sequence[Stay]) -> ExpectedEffect | None:
        """Return the expected share of records that change places in strata of these shapes."""
        return share_moved(shapes, stays, self.lowest_rate())

    def restated(self, census: "Census", *, engine: Engine | None = None) -> Restating:
        """The strata are read once: they do not depend on the swap rate."""
        return restated(self, census, engine or Local())

    def refuse_stated(
        self, census: "Census", specification: Specification, engine: Engine | None = None
    ) -> None:
        """Stop where nothing can move: ε = 0 is then true, and the file would be published as it is."""
        if specification.varies is None or not specification.varies.b:
            strata = stated(self, census, engine or Local())
            Standing.of(strata.shapes, strata.frame.stays).guard(self.resolution)

    def guards(
        self, census: "Census", *, engine: Engine | None = None, trial: bool = True
    ) -> Sequence[Guard]:
        """Identifiers, records that cannot move, and columns that undo the swap; the last on a trial draw."""
        place = engine or Local()
        found = self.roles(census)
        size = size_of(place.census(census), found)
        if trial and size.rows <= TRIAL and place.fits(2 * size.memory):
            made = release(self, census, key=Key.fresh(), engine=place, out=None, progress=silent)
            return tuple(on_trial(guard) for guard in made.guards)
        strata = stated(self, census, place)
        return (
            identified(self, census, found, place),
            Standing.of(strata.shapes, strata.frame.stays).guard(self.resolution),
            Guard(name=REVERSAL, finding=Phrase("guard.by_the_run")),
        )

    def highest_rate(self) -> float:
        """The largest swap rate of any record."""
        return float(self.rate)

    def lowest_rate(self) -> Fraction:
        """Return the smallest swap rate of any record, from which the expected effect is stated."""
        return self.rate

    def bounds(self, strata: StratumTable) -> tuple[Bound, ...]:
        """Every bound on the loss that applies to these strata; a variant with another law has its own bounds."""
        return bounds(strata, self.rate)

    def swapped(self, frame: Frame, run: Key, engine: Engine) -> dict[str, Column]:
        """The columns after one draw."""
        strata = frame.strata
        moves = draw(
            run, ids=frame.ids, strata=strata.codes, rate=self.rate, sizes=strata.sizes, engine=engine
        )
        return swapped_columns(frame, moves, engine)

    def logged(self, frame: Frame, run: Key, engine: Engine) -> Logged:
        """The columns after one draw, and what the office alone may know of it: here nothing."""
        return self.swapped(frame, run, engine), {}

    def remarks(self, shapes: Shapes) -> tuple[str, ...]:
        """Warnings for the release: strata that are rarely swapped."""
        return statement.notes(shapes, self.rate)

    def made_table(self, cells: pa.Table, run: Key) -> pa.Table:
        """The contingency table to publish, from the non-empty cells of the swapped records."""
        del run
        return cells

    def promised(self, frame: Frame, shapes: Shapes, census: "Census") -> Specification:
        """The promise for these strata."""
        return statement.specification(
            frame,
            shapes,
            census,
            self.bounds,
            law=self.size_law(frame),
            depends=self.depends(),
            released=self.views(census),
        )

    def size_law(self, frame: Frame) -> SizeLaw | None:
        """The budget of every universe as a law of b; None for a variant with other bounds and no stated law."""
        del frame  # a variant may use the roles
        return SizeLaw("by-size", self.rate) if type(self).bounds is PermutationSwapping.bounds else None

    def depends(self) -> str:
        """What the budget depends on beside the invariants: all parameters, so that two functions never have equal words."""
        known = {*PermutationSwapping.parameters(self)} - {"rate"}  # these decide the invariants
        chosen = {name: value for name, value in self.parameters().items() if name not in known and value}
        return statement.other_law(self.name, chosen)

    def refuse_degenerate(self) -> None:
        """Raise an error if the rate makes some outputs impossible."""
        require_inner_rate(self.rate)

    def refuse(self, census: "Census", engine: Engine | None = None) -> None:
        """Stop at a rate that protects nothing, at variables that would undo the swap, and at identifiers."""
        self.refuse_degenerate()
        self.adapted(memory.outline(census, self.roles(census)))
        require_levels(census, self.resolution, self.named_levels(), count=False)
        identified(self, census, self.roles(census), engine or Local())

    def named_levels(self) -> Mapping[str, Sequence[str]]:
        """The levels that the settings name, by variable; one that does not exist is refused."""
        return {}

    def released_columns(self, census: "Census") -> Mapping[str, Sequence[str]]:
        """Return the columns of the swapped records and of those that travel along; without records, those of the tables."""
        if not self.microdata:
            return {self.resolution: tuple({name: None for by in self.tables for name in by})}
        roles = self.roles(census)
        return {self.resolution: roles.released, **dict(roles.members)}

    def views(self, census: "Census") -> Views:
        """The released columns of the records and of those that travel along; without records, the tables."""
        kept = participation.released(census.schema.record(self.resolution), self.untouched)
        where = None if kept is None or kept.levels is None else {kept.column: kept.levels}
        if not self.microdata:
            found = [view_of(census.domain, self.resolution, by, where) for by in self.tables]
            return largest_views(census.domain, found)
        leaving = self.released_columns(census)
        homes = leaving[self.resolution]
        found = [view_of(census.domain, self.resolution, homes, where)]
        # members are released with the number of their home, so what leaves of both leaves together
        found += [
            view_of(census.domain, record_type, (*names, *homes), where)
            for record_type, names in leaving.items()
            if record_type != self.resolution
        ]
        return largest_views(census.domain, found)

    def require_weight(self, weight: str, *, record_type: str, census: "Census") -> None:
        """A weighted table needs a law with closed forms, and a weight that stays with its record."""
        if not self.closed_form or not self.microdata:
            raise unweighted(self.name)
        tables.require_held(self.roles(census), weight, record_type)

    def table(
        self,
        release: Release,
        by: Sequence[str],
        *,
        record_type: str = "",
        weight: str = "",
        engine: Engine | None = None,
    ) -> pa.Table:
        """Counts or weighted totals with unbiased estimate, standard error and interval, where the law has closed forms."""
        asked, place = record_type or self.resolution, engine or Local()
        if not self.closed_form or self.resolution not in release.microdata:
            return Mechanism.table(self, release, by, record_type=asked, weight=weight, engine=place)
        made = finished(tables.uncertain(self, release, by, asked, place, weight=weight), by)
        return made.replace_schema_metadata({**(made.schema.metadata or {}), PULL: str(self.rate)})

    def keeps(self, by: Sequence[str], schema: "Schema") -> bool:
        """Proposition 4: a table is exact when nothing in it moves, or all that stays is matched."""
        return self.closed_form and kept(by, match=self.match, swap=tables.moving(self, schema))

    def exchange(self, release: Release) -> Exchange | None:
        """The law of one record: selected with the effective rate of its stratum."""
        return tables.exchange(self, release) if self.closed_form else None

    def exhibits(self, release: Release | None, *, engine: Engine | None = None) -> Sequence[Exhibit]:
        """Where the swaps fell, and what the guards found."""
        if release is None:
            return ()
        guarded = (shown_guards(release.guards),) if release.guards else ()
        if not self.closed_form or self.resolution not in release.microdata:
            return guarded
        return (tables.where_swaps_fell(self, release, engine or Local()), *guarded)

    def knobs(self) -> Sequence[Knob]:
        """The swap rate, up to one half."""
        return (rate_knob(lambda rate: type(self)(**{**self.parameters(), "rate": rate})),)  # type: ignore[arg-type]

    def permutations(self, frame: Frame) -> PermutationLaw | None:
        """The law of the moves of a small census; None where there are too many, or none is written down."""
        return by_record(frame, [self.rate] * frame.rows)

    def exact_law(self, census: "Census") -> Law | None:
        """What each permutation releases, with its probability."""
        frame = self.frame(census)
        return released_law(frame, self.permutations(frame), microdata=self.microdata, tables=self.tables)

    def replicated(self, census: "Census", copies: int) -> tuple[Mechanism, "Census", str] | None:
        """Strata are independent, so copies that are strata of their own are swapped as in runs of their own."""
        if not self.microdata or self.tables:
            return None
        made, name = copied(census, self.resolution, copies)
        settings = self.parameters() | matched_by_copy(self.match, self.roles(made), name)
        return type(self)(**settings), made, name  # type: ignore[arg-type]

    def reader(self, key: Key) -> Key:
        """The key for the digest of the census; workers may hold it, because it is used for nothing else."""
        return key.bind(self.name, json.dumps(self.parameters(), sort_keys=True), "input")

    def bound(self, key: Key, digest: bytes) -> Key:
        """The key of this run on this census."""
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
        census = admitted(census, key, engine)
        place = engine or Local()
        require_levels(place.census(census), self.resolution, self.named_levels())
        return release(self, census, key=key, engine=place, out=out, progress=progress or silent)
