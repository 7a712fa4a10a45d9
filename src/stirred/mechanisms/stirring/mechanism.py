"""Stirring as a mechanism: the promise from the laws of all strata, the draw, and the closed forms of tables."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import permutations
from math import factorial
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stirred.chance import Key
from stirred.engine import Engine, Local
from stirred.errors import InputError, PrivacyError, did_you_mean
from stirred.languages import Phrase
from stirred.mechanisms.base import Knob
from stirred.mechanisms.effect import ExpectedEffect
from stirred.mechanisms.exhibits import Exhibit, Listing
from stirred.mechanisms.proposal import Advice
from stirred.mechanisms.release import Exchange, Release, require_schema, scan_records
from stirred.mechanisms.stirring.config import StirringConfig
from stirred.mechanisms.stirring.estimates import StirredMoments, count_stratum_shapes, list_shapes
from stirred.mechanisms.stirring.free_slots import MAX_TYPES
from stirred.mechanisms.stirring.law import (
    BY_HELD,
    BY_PLACE,
    CYCLES,
    Asked,
    PermutationLaw,
    StratumLaw,
    StratumLaws,
    StratumShape,
    changed_slots,
    choose_laws,
    enumerate_cycles,
    enumerate_types,
    epsilon_after,
    exchange_loss,
    expect_type_changes,
    moved_share,
    ratio,
    record_loss,
    rho_squared,
)
from stirred.mechanisms.stirring.moves import draw_stirring
from stirred.mechanisms.swap import estimates
from stirred.mechanisms.swap.comparison import LossAtShare
from stirred.mechanisms.swap.config import Roles
from stirred.mechanisms.swap.exact_law import combine_strata
from stirred.mechanisms.swap.frame import Frame, StrataSummary, apply_moves
from stirred.mechanisms.swap.pipeline import SwapMechanism, SwapPromise
from stirred.mechanisms.swap.promise import describe_dependence, state_specification
from stirred.mechanisms.swap.proposal import count_held_kinds
from stirred.mechanisms.swap.psa import StratumSwapping, make_rate_knob
from stirred.mechanisms.swap.records import Column, find_level_codes
from stirred.mechanisms.swap.strata import NO_STRATUM, Shapes, count_sizes, number_rows
from stirred.spec import (
    Approximate,
    Bound,
    Budget,
    BudgetFunction,
    Exchanges,
    Hamming,
    Multiplicative,
    NormalizedRenyi,
    Specification,
)
from stirred.spec.card.words import DEFAULT_DELTA, write_small
from stirred.spec.exact import Interval
from stirred.spec.laws import Rate, SizeLaw

if TYPE_CHECKING:
    from stirred.census import Census, Schema

CHANGES_SHOWN = (2, 3, 4, 10)  # changed records in one stratum
RELEASES_SHOWN = (1, 2, 4, 8)  # releases of the same census
RELEASES_SOURCE = "proof.md of stirring, Section 2: one exchange is hidden as by randomised response"
LOSS_STEPS_PER_UNIT = 4  # losses are tuned in quarters
MAX_LOSS_TUNED = 20
SIZES_NAMED = 3  # of strata, in an error
DESCRIBED_LAWS = {  # the name of a law, and what it is said to change
    CYCLES: ("cycles", "share_that_moves"),
    BY_HELD: ("held types", "share_that_changes_type"),
    BY_PLACE: ("places as types", "share_that_changes_place"),
}


class Stirring(StratumSwapping):
    """Permute the swap values of each stratum by the law that loses least at one exchange: by cycles or by types.

    ``rate`` is the share of records that moves by cycles in every stratum; by types as many records change their type as if
    this share had moved by cycles, and fewer move. ``loss`` is the largest ε of one exchange; with both λ is the smaller of
    what they allow. ``law`` is by cycles, or by types where a stratum has few held types or few places. Records with one of
    ``shuffle_levels`` of the held or match variable ``shuffle_first`` are shuffled among themselves first, which costs
    nothing and moves no fewer.

    >>> Stirring(match=["state", "size"], swap=["county"], rate="1/20").parameters()["rate"]
    '1/20'
    """

    name: ClassVar[str] = "stirring"
    config: StirringConfig

    def check_settings(self) -> None:
        """Refuse a rate or a loss that nothing can have, neither of them, and a shuffle of nobody."""
        SwapMechanism.check_settings(self)
        Asked.of(rate=self.config.rate, loss=self.config.loss, law=self.config.law)
        if bool(self.config.shuffle_first) != bool(self.config.shuffle_levels):
            raise InputError(
                "a shuffle before the stirring needs a variable and its levels",
                why="shuffle_first or shuffle_levels is empty",
                fix='shuffle_first="tenure", shuffle_levels=["rent"]',
            )

    @property
    def rate(self) -> Fraction | None:
        """Return the share of records that moves by cycles, or None where a loss alone is asked for."""
        return None if self.config.rate is None else Fraction(self.config.rate)

    @property
    def loss(self) -> Fraction | None:
        """Return the largest ε of one exchange, or None where a rate alone is asked for."""
        return None if self.config.loss is None else Fraction(self.config.loss)

    @classmethod
    def advise(cls, schema: "Schema") -> Advice | None:
        """Advise it, with the reason: how much less it loses depends on how many ways records can differ in."""
        kinds = count_held_kinds(schema)
        if kinds is None or kinds > 2:
            return Advice(
                chosen=True,
                reason="records differ in many ways, so two that trade places lose about half of the ε that they lose by "
                "permutation-swapping at the same share of moved records; not in strata of two, where both are the same "
                "swap, and where nearly all records of a small stratum change at once permutation-swapping can lose less",
            )
        return Advice(
            chosen=True,
            reason="records differ in two ways at most, and among mechanisms that change as few of them on average none "
            "loses less at one exchange than the law for two types; in strata of two permutation-swapping is the same swap",
        )

    @property
    def goal(self) -> Asked:
        """Return what is asked of every stratum."""
        return Asked(self.rate, self.loss, self.config.law)

    # The promise

    def make_promise(self, strata: StrataSummary, census: "Census") -> SwapPromise:
        """Return the promise from the laws of all strata, which their sizes and types decide."""
        shapes = strata.shapes
        laws = choose_laws(list_shapes(shapes), self.goal)
        differing = _find_differing(shapes)
        self._refuse_contradiction(shapes, laws, differing)
        self._refuse_shuffle(shapes, laws, differing)
        stated = state_specification(
            strata,
            census,
            (_bound_exchange(laws, differing),),
            law=self._find_size_law(),
            depends=describe_dependence(self),
            released=self.views(census),
            input_premetric=Exchanges(self.resolution),
        )
        notes = (*stated.notes, *_note_records(shapes, laws, differing), *self._note_shuffle())
        return SwapPromise(
            specification=replace(stated, notes=notes),
            effect=_expect_effect(strata, laws, differing),
            moved=_find_share(shapes, laws, differing),
        )

    def _find_size_law(self) -> SizeLaw | None:
        """Return ε of an exchange as a law of the largest stratum; None where a loss limits it or types are asked for.

        The law of a stratum that loses least never loses more than that by cycles.
        """
        if self.rate is None or self.loss is not None or self.config.law == "types":
            return None
        return SizeLaw("by-exchange", self.rate)

    @classmethod
    def lose_at_share(cls, strata: StrataSummary, share: Fraction) -> LossAtShare | None:
        """Return what one exchange loses at most if this share moved in every stratum, by the law that loses least."""
        laws, differing = (
            choose_laws(list_shapes(strata.shapes), Asked(share, None, "auto")),
            _find_differing(strata.shapes),
        )
        worst = _find_worst(laws, differing)
        if worst is None:
            return None
        by_types = bool((laws.kinds()[differing] != CYCLES).any())
        return LossAtShare(
            mechanism=f"{cls.name}, law = auto" if by_types else cls.name, loss=exchange_loss(worst)
        )

    def record_specification(self, census: "Census", *, engine: Engine | None = None) -> Specification:
        """Return the same promise per changed record: ε = (1 − 1/h)·|ln λ|, h the most records that one cycle can join."""
        strata = self.pipeline.count_strata(census, engine or Local())
        stated = self.make_promise(strata, census).specification
        laws = choose_laws(list_shapes(strata.shapes), self.goal)
        return replace(
            stated,
            input_premetric=Hamming(self.resolution),
            budget=_bound_records(strata.shapes, laws, _find_differing(strata.shapes)),
            bounds=(),
            varies=self._say_it_varies(stated),
        )

    def _say_it_varies(self, stated: Specification) -> BudgetFunction | None:
        """Return in words how the budget differs by universe: its law is one of ε of an exchange."""
        if stated.varies is None:
            return None
        return BudgetFunction(
            words=describe_dependence(self), universe=stated.varies.universe, b=stated.varies.b
        )

    def concentrated_specification(self, census: "Census", *, engine: Engine | None = None) -> Specification:
        """Return the same promise in zCDP: ρ² = ln λ·(λ − 1)/(λ + 1) for one exchange, which is less than its ε allows."""
        stated = self.specification(census, engine=engine)
        return replace(
            stated,
            output_premetric=NormalizedRenyi(),
            budget=Budget.sqrt(rho_squared(_find_odds(stated.budget))),
            evidence=replace(stated.evidence, source=RELEASES_SOURCE),
            bounds=(),
            varies=self._say_it_varies(stated),
        )

    def repeated_specification(
        self, census: "Census", *, releases: int, delta: Rate = DEFAULT_DELTA, engine: Engine | None = None
    ) -> Specification:
        """Return the promise of several releases of one census together: the smallest ε at δ, for one exchange.

        They compose as randomised responses do (Kairouz, Oh and Viswanath 2015), better than by adding up.
        """
        stated = self.specification(census, engine=engine)
        share = Approximate(delta).delta
        return replace(
            stated,
            output_premetric=Approximate(share) if share else Multiplicative(),
            budget=epsilon_after(_find_odds(stated.budget), releases, share),
            evidence=replace(stated.evidence, source=RELEASES_SOURCE),
            bounds=(),
            varies=self._say_it_varies(stated),
        )

    def _refuse_contradiction(self, shapes: Shapes, laws: StratumLaws, differing: NDArray[np.bool_]) -> None:
        """Refuse a rate that some strata reach only at a larger loss than asked; name them by their sizes."""
        asked = self.goal
        if asked.rate is None or asked.cap is None:
            return
        beyond = differing & np.array(
            [not asked.keeps_loss(laws[i].weight) for i in range(shapes.n.size)], bool
        )
        if not beyond.any():
            return
        reached = {
            n: max(
                _find_changes(shape, StratumLaw(laws[i].kind, 1 / asked.cap)).share
                for i, shape in _list_shaped(shapes, beyond)
                if shape.n == n
            )
            for n in np.unique(shapes.n[beyond])[:SIZES_NAMED].tolist()
        }
        told = "; ".join(f"{n:,} records: {_cut_share(share)}" for n, share in reached.items())
        raise InputError(
            f"the rate {self.rate} and the loss {self.loss} contradict each other",
            why=f"the rate is reached only at a larger loss in {_count_by_size(shapes, beyond)}; at this loss these reach, "
            f"by size: {told}",
            fix="give a smaller rate, a larger loss, or only one of the two",
        )

    def _refuse_shuffle(self, shapes: Shapes, laws: StratumLaws, differing: NDArray[np.bool_]) -> None:
        """Refuse a shuffle before a stirring that moves more than an even shuffle does: together they would move fewer."""
        if not self.config.shuffle_first:
            return
        below = differing & np.array([laws[i].weight < 1 for i in range(shapes.n.size)], bool)
        if not below.any():
            return
        n = int(shapes.n[below].min())
        raise InputError(
            f"the rate {self.rate} is not reached where records are shuffled first",
            why="a rate above 1 − 1/n, which an even shuffle moves, is asked of "
            f"{_count_by_size(shapes, below)}; there shuffled records would move less often than the others",
            fix=f"give a rate of at most {Fraction(n - 1, n)}, a match with larger strata, or no shuffle_first",
        )

    def _note_shuffle(self) -> tuple[str, ...]:
        if not self.config.shuffle_first:
            return ()
        levels = ", ".join(self.config.shuffle_levels)
        return (Phrase("stirring.note.shuffled", variable=self.config.shuffle_first, levels=levels),)

    def refuse_degenerate(self) -> None:
        """Raise nothing: settings that protect nothing cannot be made."""

    def adjust_roles(self, roles: Roles, census: "Census") -> Roles:
        """Return the roles; refuse a shuffle by place, or by a variable that is not released."""
        self._require_condition(roles, census.schema)
        return roles

    def _require_condition(self, roles: Roles, schema: "Schema") -> None:
        """Refuse a condition on anything but a held or match variable: it would choose by place."""
        name = self.config.shuffle_first
        if not name or (name in roles.match and name not in roles.moving_variables):
            return
        areas = {*roles.moving_variables, *schema.spine, *(off.name for off in schema.geography.off_spine)}
        if name in areas:
            raise PrivacyError(
                f"records cannot be shuffled first by {name}",
                why="it is a place, or derived from one: who is shuffled must follow from what a record is, because a "
                "choice by what it is and where it lives, such as alone of its kind in a place, loses more than is stated",
                fix="choose records by a held or match variable, never by where they live",
            )
        if name not in roles.held_variables:
            raise InputError(
                f"{name} is not a held variable that is released",
                why="what decides who is shuffled first is an invariant and must be public",
                fix=did_you_mean(name, roles.held_variables),
            )

    def highest_rate(self) -> float:
        """Return the rate, or 1 where a loss alone is asked for: in a large stratum nearly all records move then."""
        return (
            1.0
            if self.rate is None or self.loss is not None or self.config.shuffle_first
            else float(self.rate)
        )

    def named_levels(self) -> Mapping[str, Sequence[str]]:
        """Return the levels of the records that are shuffled first."""
        return {self.config.shuffle_first: self.config.shuffle_levels} if self.config.shuffle_first else {}

    # The law of moves

    @property
    def most_types_counted(self) -> int:
        """Return up to how many types of a stratum decide its law."""
        return 0 if self.config.law == "cycles" else MAX_TYPES

    def draw_swap(self, frame: Frame, run: Key, engine: Engine) -> dict[str, Column]:
        """Shuffle the chosen records first, stir every stratum, and return the columns."""
        if self.config.shuffle_first:
            codes = frame.strata.codes.copy()
            codes[~self._find_chosen(frame)] = NO_STRATUM
            sizes = np.zeros(frame.strata.sizes.size, np.uint32)
            found = count_sizes(codes)
            sizes[: found.size] = found
            even = StratumLaws((StratumLaw(CYCLES, Fraction(1)),), np.zeros(sizes.size, np.intp))
            first = draw_stirring(
                run.bind("shuffle"), ids=frame.ids, strata=codes, sizes=sizes, laws=even, engine=engine
            )
            frame = replace(frame, columns=apply_moves(frame, first, engine))
        laws = self._choose_laws(frame)
        kinds = {law.kind for law in laws.laws}
        moves = draw_stirring(
            run,
            ids=frame.ids,
            strata=frame.strata.codes,
            sizes=frame.strata.sizes,
            laws=laws,
            held=_number_types(frame, frame.roles.hold) if BY_HELD in kinds else None,
            places=_number_types(frame, frame.roles.moving_variables) if BY_PLACE in kinds else None,
            engine=engine,
        )
        return apply_moves(frame, moves, engine)

    def _choose_laws(self, frame: Frame) -> StratumLaws:
        """Return the law of every stratum of a frame; with linked members all records are taken to differ."""
        held = None if frame.roles.members else frame.of(frame.roles.hold)
        places = frame.of(frame.roles.moving_variables)
        return choose_laws(count_stratum_shapes(frame.strata, held, places), self.goal)

    def _find_chosen(self, frame: Frame) -> NDArray[np.bool_]:
        column = frame.columns[self.config.shuffle_first]
        return np.isin(column.codes, find_level_codes(column, self.config.shuffle_levels))

    def permutations(self, frame: Frame) -> PermutationLaw | None:
        """Return the law of the moves of a small census, or None if there are too many."""
        laws = self._choose_laws(frame)
        held = _number_types(frame, frame.roles.hold) if not frame.roles.members else None
        places = _number_types(frame, frame.roles.moving_variables)
        chosen = self._find_chosen(frame) if self.config.shuffle_first else np.zeros(frame.rows, np.bool_)
        codes = frame.strata.codes.tolist()

        def inside(group: list[int]) -> PermutationLaw:
            own = laws[codes[group[0]]]
            marked = [i for i, row in enumerate(group) if chosen[row]]
            found: dict[tuple[int, ...], Fraction] = {}
            for order in permutations(marked):
                first = list(range(len(group)))
                for i, j in zip(marked, order, strict=True):
                    first[i] = j
                if own.kind == CYCLES:
                    law = enumerate_cycles(len(group), own.weight)
                elif own.kind == BY_HELD:
                    assert held is not None
                    law = enumerate_types([int(held[row]) for row in group], own.weight)
                else:
                    law = enumerate_types([int(places[group[j]]) for j in first], own.weight)
                for s, chance in law.items():
                    both = tuple(first[i] for i in s)
                    found[both] = found.get(both, Fraction(0)) + chance / factorial(len(marked))
            return found

        return combine_strata(codes, inside, rows=frame.rows)

    # The closed forms: the law of one and of two records' moves is known, and with it the error of every table

    @property
    def pair_law(self) -> "CyclesPairs":
        """Return the law of two records' moves by cycles."""
        return CyclesPairs(self.goal)

    def make_moments(self, release: Release) -> "partial[StirredMoments]":
        """Return the kernel that sums the moments of strata, each by its own law."""
        return partial(
            StirredMoments,
            asked=self.goal,
            held=self._list_held(release),
            first=self.config.shuffle_first,
            levels=tuple(self.config.shuffle_levels),
        )

    def _list_held(self, release: Release) -> tuple[str, ...] | None:
        """Return the variables that make held types in a release; None where linked records make all records differ."""
        schema = require_schema(release)
        if any(schema.record(name).linked_to == self.resolution for name in release.microdata):
            return None
        record = schema.record(self.resolution)
        moving = estimates.list_moving(self.match, self.swap, schema)
        names = scan_records(release.microdata[self.resolution]).collect_schema().names()
        return tuple(name for name in names if name not in {record.id, *self.match, *moving})

    def keeps(self, by: Sequence[str], schema: "Schema") -> bool:
        """Return whether a table is exact: nothing in it moves, or all that stays is matched."""
        moving = estimates.list_moving(self.match, self.swap, schema)
        return estimates.keeps_table(by, match=self.match, swap=moving)

    def exchange(self, release: Release) -> Exchange | None:
        """Return the law by which one record moves."""
        found = estimates.describe_exchange(self, release, self.pair_law.shares)
        if found is None:
            return None
        kernel = self.make_moments(release)((), self.match, found.moving, self.pair_law)
        return replace(found, moved=kernel.find_moved)

    def exhibits(self, release: Release | None, *, engine: Engine | None = None) -> Sequence[Exhibit]:
        """Return what larger changes and several releases lose, what swaps lose at this share, and what guards found."""
        found = SwapMechanism.exhibits(self, release, engine=engine)
        if release is None or not release.specification.budget.is_finite:
            return found
        return (_exhibit_losses(release.specification.budget), *found)

    def preview(self, census: "Census") -> tuple[Sequence[Exhibit], Mapping[str, object]]:
        """Return what larger changes and several releases would lose, and the promise per changed record."""
        strata = self._count_strata(census, None)
        promise, shapes = self.make_promise(strata, census), strata.shapes
        budget = promise.specification.budget
        laws, odds = choose_laws(list_shapes(shapes), self.goal), _find_odds(budget)
        told = promise.effect.words() if promise.effect else ""
        return (replace(_exhibit_losses(budget), note=told),), {
            **self.details(),
            "expected_by_law": _describe_changes(shapes, laws, _find_differing(shapes)),
            "epsilon_per_record": _bound_records(shapes, laws, _find_differing(shapes)).exact,
            "rho_squared_of_an_exchange": float(rho_squared(odds).upper(6)),
            "epsilon_of_releases": {
                str(k): float(epsilon_after(odds, k, DEFAULT_DELTA).upper(6)) for k in RELEASES_SHOWN
            },
            "delta": str(DEFAULT_DELTA),
        }

    def details(self) -> Mapping[str, object]:
        """Return the loss as a function of the distance, by its formula."""
        return {
            "loss_per_exchange": "|ln λ| in a stratum with weight λ; strata add up",
            "loss_by_distance": "at most (h − ⌈h/r⌉)·|ln λ| at Hamming distance h in one stratum, r the smallest of its "
            "size, held types and places",
            "rho_squared_per_exchange": "ln λ·(λ − 1)/(λ + 1)",
        }

    def knobs(self) -> Sequence[Knob]:
        """Return the knobs of rate and loss, the one that is set first; with both the smaller λ holds."""
        rate = make_rate_knob(lambda rate: self._turned(rate=rate))
        steps = range(MAX_LOSS_TUNED * LOSS_STEPS_PER_UNIT, 0, -1)
        loss = Knob(
            name="loss",
            effect="a smaller loss has a smaller budget and a larger error",
            settings=tuple(Fraction(step, LOSS_STEPS_PER_UNIT) for step in steps),
            turned=lambda loss: self._turned(loss=loss),
        )
        return (loss, rate) if self.rate is None else (rate, loss)

    def _turned(self, **changes: Fraction) -> "Stirring":
        return self.replace(**changes)


# The laws of the strata of a census, and what they lose together.


def _number_types(frame: Frame, names: tuple[str, ...]) -> NDArray[np.uint64]:
    """Return a number for each record, equal for equal values of the variables."""
    columns = frame.of(names)
    if all(column.span <= 1 for column in columns):
        return np.zeros(frame.rows, np.uint64)
    return number_rows(columns).numbers(slice(0, frame.rows)).astype(np.uint64, copy=False)


def _find_differing(shapes: Shapes) -> NDArray[np.bool_]:
    """Return which shapes have two held types and two places, so that an exchange can change something."""
    return (shapes.hold_types >= 2) & (shapes.swap_types >= 2)


class Changes(NamedTuple):
    """What is expected in some strata of one law: the share that moves (by types, of the same effect), how many change."""

    law: int
    strata: int
    records: int
    share: float
    changed: float


def _find_worst(laws: StratumLaws, differing: NDArray[np.bool_]) -> Fraction | None:
    """Return the λ of the stratum whose exchanges lose most, or None where nothing differs."""
    return max({laws[i].weight for i in np.flatnonzero(differing).tolist()}, key=ratio, default=None)


def _bound_exchange(laws: StratumLaws, differing: NDArray[np.bool_]) -> Bound:
    """Return what one exchange loses at most: |ln λ| of the stratum that loses most."""
    worst = _find_worst(laws, differing)
    if worst is None:
        return Bound(
            name=Phrase("bound.nothing"), budget=Budget.zero(), source=Phrase("bound.source.nothing")
        )
    return Bound(
        name=Phrase("bound.stirring"),
        budget=exchange_loss(worst),
        source=Phrase("bound.source.stirring"),
        tight=Phrase("bound.tight.stirring"),
    )


def _bound_records(shapes: Shapes, laws: StratumLaws, differing: NDArray[np.bool_]) -> Budget:
    """Return the largest loss per unit of Hamming distance over all strata whose records differ."""
    if not differing.any():
        return Budget.zero()
    # by types half of the loss of an exchange for each record, as if no cycle were longer than two
    two = (shapes.hold_types == 2) | (shapes.swap_types == 2) | (laws.kinds() != CYCLES)
    cycle = np.where(two, 2, shapes.n)
    weights = [laws[i].weight for i in range(shapes.n.size)]
    doubles = np.array([abs(float(np.log(float(weight)))) for weight in weights]) * (1 - 1 / cycle)
    nearly = np.flatnonzero(differing & (doubles >= doubles[differing].max() * (1 - 1e-9) - 1e-12))
    return max(record_loss(weight, types) for weight, types in {(weights[i], int(cycle[i])) for i in nearly})


def _find_odds(budget: Budget) -> Fraction:
    """Return e to a budget, rounded up: what follows from it grows with the odds, so it is never too small."""
    return Interval.point(Fraction(budget.upper(12))).exp(96).high


def _exhibit_losses(budget: Budget) -> Exhibit:
    """Show what changes of more records lose, and what several releases of one census lose together."""
    odds = _find_odds(budget)
    changes = [(h, h - 1, (budget * (h - 1)).upper(4)) for h in CHANGES_SHOWN]
    releases = [
        (
            k,
            (budget * k).upper(4),
            epsilon_after(odds, k, DEFAULT_DELTA).upper(4),
            (rho_squared(odds) * k).upper(4),
        )
        for k in RELEASES_SHOWN
    ]
    by_changes = [Phrase(f"stirring.losses.{name}") for name in ("changed", "exchanges", "epsilon")]
    by_releases = [Phrase(f"stirring.losses.{name}") for name in ("number", "epsilon", "at_delta", "rho")]
    return Exhibit(
        title=Phrase("stirring.losses.title"),
        finding=Phrase("stirring.losses.finding", loss=budget.upper(4)),
        parts=(
            Listing(
                caption=Phrase("stirring.losses.changes"),
                columns=by_changes,
                rows=changes,
                numeric=by_changes,
            ),
            Listing(
                caption=Phrase("stirring.losses.releases", delta=write_small(DEFAULT_DELTA)),
                columns=by_releases,
                rows=releases,
                numeric=by_releases,
            ),
        ),
    )


def _note_records(shapes: Shapes, laws: StratumLaws, differing: NDArray[np.bool_]) -> tuple[str, ...]:
    """State the loss per changed record, that of an exchange in zCDP, and how many strata have a law by types."""
    worst = _find_worst(laws, differing)
    if worst is None:
        return ()
    loss = _bound_records(shapes, laws, differing)
    told: list[str] = [Phrase("stirring.note.records", loss=loss.upper(4), rho=rho_squared(worst).upper(4))]
    kinds = laws.kinds()
    by_types = int(shapes.strata[differing & (kinds != CYCLES)].sum())
    if by_types:
        told.append(Phrase("stirring.note.types", count=by_types))
    return tuple(told)


def _list_shaped(shapes: Shapes, chosen: NDArray[np.bool_]) -> Iterator[tuple[int, StratumShape]]:
    """Yield the places of the chosen shapes with what a choice of law reads of each."""
    listed = list_shapes(shapes)
    for i in np.flatnonzero(chosen).tolist():
        yield i, listed.distinct[listed.numbers[i]]


def _find_changes(shape: StratumShape, law: StratumLaw, strata: int = 1) -> Changes:
    """Return what is expected in so many strata of one shape."""
    counts = dict(shape.list_sides()).get(law.kind)
    if counts is None:
        share = float(moved_share(shape.n, law.weight))
        return Changes(law.kind, strata, strata * shape.n, share, strata * shape.n * share)
    changed = expect_type_changes(counts, law.weight)
    return Changes(law.kind, strata, strata * shape.n, changed / changed_slots(counts, 1), strata * changed)


def _list_changes(shapes: Shapes, laws: StratumLaws, differing: NDArray[np.bool_]) -> Iterator[Changes]:
    """Yield what is expected in the strata of each shape where records differ."""
    for i, shape in _list_shaped(shapes, differing):
        yield _find_changes(shape, laws[i], int(shapes.strata[i]))


def _describe_changes(
    shapes: Shapes, laws: StratumLaws, differing: NDArray[np.bool_]
) -> dict[str, dict[str, float]]:
    """Return by law how many strata and records have it, and which share is expected to move or to change its type."""
    found = list(_list_changes(shapes, laws, differing))
    told = {}
    for kind, (name, share) in DESCRIBED_LAWS.items():
        own = [one for one in found if one.law == kind]
        records = sum(one.records for one in own)
        if records:
            changed = sum(one.changed for one in own) / records
            told[name] = {
                "strata": sum(one.strata for one in own),
                "records": records,
                share: float(f"{changed:.6g}"),
            }
    return told


def _count_by_size(shapes: Shapes, chosen: NDArray[np.bool_]) -> str:
    """Return in words how many strata there are of each of the smallest sizes, and of all others."""
    sizes, places = np.unique(shapes.n[chosen], return_inverse=True)
    many = np.bincount(places, shapes.strata[chosen]).astype(int).tolist()
    told = [f"{count:,} of {n:,} records" for n, count in zip(sizes.tolist(), many, strict=True)]
    whole, rest = sum(many), sum(many[SIZES_NAMED:])
    named = [*told[:SIZES_NAMED], *([f"{rest:,} larger"] if rest else [])]
    return f"{whole:,} {'stratum' if whole == 1 else 'strata'} ({', '.join(named)})"


def _cut_share(share: float) -> str:
    """Return a share cut to four digits, so that it is reached."""
    return f"{int(share * 10_000) / 10_000:.4f}"


def _find_share(shapes: Shapes, laws: StratumLaws, differing: NDArray[np.bool_]) -> float | None:
    """Return the share that moves where records differ; by types, the share that by cycles would change as many types."""
    found = list(_list_changes(shapes, laws, differing))
    records = sum(one.records for one in found)
    return sum(one.records * one.share for one in found) / records if records else None


def _expect_effect(strata: StrataSummary, laws: StratumLaws, differing: NDArray[np.bool_]) -> ExpectedEffect:
    """Return the expected share of all records that change places; by types, of those whose type differs there."""
    shapes = strata.shapes
    moved = sum(one.changed for one in _list_changes(shapes, laws, differing))
    records = int((shapes.n * shapes.strata).sum()) + sum(stay.records for stay in strata.frame.stays)
    return ExpectedEffect(kind="records", share=moved / max(records, 1), records=records)


@dataclass(frozen=True, slots=True)
class CyclesPairs:
    r"""The moves of one and of two records by cycles: weights λ², λ, λ, 1, 1 over $(\lambda+n-1)(\lambda+n-2)$.

    >>> CyclesPairs(Asked.of(rate="1/20")).pairs(20).moves
    0.05
    """

    asked: Asked

    def share(self, n: int) -> Fraction:
        """Return the share that moves in a stratum of n records."""
        return moved_share(n, self.asked.weight(n))

    def shares(self, n: ArrayLike) -> NDArray[np.float64]:
        """Return the shares that move in strata of these sizes."""
        sizes, places = np.unique(np.asarray(n, np.int64), return_inverse=True)
        found = np.array([float(self.share(int(size))) for size in sizes])[places]
        return found.reshape(np.shape(n))

    def pairs(self, n: int) -> estimates.PairLaw:
        """Return the pair law in a stratum of n records."""
        if n < 2:
            return estimates.PairLaw(
                moves=0.0, both_stay=1.0, exchange=0.0, stay_and_go=0.0, follow=0.0, apart=0.0
            )
        weight = self.asked.weight(n)
        whole = (weight + n - 1) * (weight + n - 2)
        one = float(1 / whole)
        return estimates.PairLaw(
            moves=float(self.share(n)),
            both_stay=float(weight**2 / whole),
            exchange=float(weight / whole),
            stay_and_go=float(weight / whole) if n > 2 else 0.0,
            follow=one if n > 2 else 0.0,
            apart=one if n > 3 else 0.0,
        )
