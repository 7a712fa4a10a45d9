"""Variants of the PSA that change how selected records move: no vacuous swaps, near places, other strata.

The laws and their proofs are in proof.md; budgets come from budgets.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from stirred.census import Schema
from stirred.chance import Key
from stirred.engine import Engine
from stirred.errors import InputError
from stirred.mechanisms.config import MechanismConfig
from stirred.mechanisms.proposal import Proposal
from stirred.mechanisms.swapping.arguments import refuse_text
from stirred.mechanisms.swapping.budget.by_size import Rate, parse_rate
from stirred.mechanisms.swapping.budget.claim import StratumTable
from stirred.mechanisms.swapping.config import NearPlacesConfig, NoVacuousConfig, UnitMatchingConfig
from stirred.mechanisms.swapping.draw.moves import Moves, draw_moves
from stirred.mechanisms.swapping.draw.selection import toss_coins
from stirred.mechanisms.swapping.draw.strata import NO_STRATUM, StratumCodes
from stirred.mechanisms.swapping.draw.strata import form_strata as coded
from stirred.mechanisms.swapping.mechanism import PermutationSwapping
from stirred.mechanisms.swapping.numbers.exact_law import PermutationLaw, combine_strata, enumerate_selection
from stirred.mechanisms.swapping.pipeline.frame import Frame
from stirred.mechanisms.swapping.pipeline.publish import apply_moves
from stirred.mechanisms.swapping.proposal import propose_swap
from stirred.mechanisms.swapping.records.columns import Column
from stirred.mechanisms.swapping.records.packing import rank_columns
from stirred.mechanisms.swapping.variants.budgets import unit_matching_rates, variant_bounds
from stirred.mechanisms.swapping.variants.laws import chain_law, near_law, nonvacuous_law
from stirred.spec import Bound, SizeLaw
from stirred.spec.numbers.numerals import parse_fraction

Codes = NDArray[np.uint32]


def _find_changed(
    strata: Codes, hold: NDArray[Any], swap: NDArray[Any], moves: Moves, count: int
) -> NDArray[np.bool_]:
    """Return whether the hold × swap table of each stratum changed, by sorted pairs before and after."""
    rows, codes = moves.receivers, strata[moves.receivers]
    before = np.lexsort((swap[rows], hold[rows], codes))
    after = np.lexsort((swap[moves.givers], hold[rows], codes))
    differs = (hold[rows][before] != hold[rows][after]) | (swap[rows][before] != swap[moves.givers][after])
    changed = np.zeros(count, np.bool_)
    changed[codes[before][differs]] = True
    return changed


@dataclass(frozen=True, slots=True, init=False)
class NoVacuous(PermutationSwapping):
    """Law 3: reject a draw as a whole if it moves records but does not change the table of its stratum."""

    name: ClassVar[str] = "swapping-no-vacuous"
    Config: ClassVar[type[MechanismConfig]] = NoVacuousConfig
    closed_form: ClassVar[bool] = False

    @classmethod
    def propose(cls, schema: Schema) -> Proposal | None:
        """Propose the settings of the swap, without linked records."""
        return propose_swap(schema, cls.Config, carry=False)

    def __init__(self, **settings: Any) -> None:
        PermutationSwapping.__init__(self, **settings)

    def prepare_frame(self, frame: Frame) -> Frame:
        """Return the frame, or refuse linked records, because they would have to be compared too."""
        if frame.roles.members:
            raise InputError(
                "vacuous swaps cannot be recognised if linked records move too",
                why="whether a table changed would depend on who lives in each household",
                fix="publish no persons (--no-persons, carry=False), or tables alone (--tables-only, microdata=False)",
            )
        return frame

    def bounds(self, strata: StratumTable) -> tuple[Bound, ...]:
        """Return the bounds of law 3."""
        return variant_bounds("3", strata, self.rate)

    def permutations(self, frame: Frame) -> PermutationLaw | None:
        """Return the law of Algorithm 1, given that no record was selected or the table of the stratum changed."""
        hold, swap = (
            _rank_records(frame, frame.roles.hold),
            _rank_records(frame, frame.roles.moving_variables),
        )
        law = nonvacuous_law(self.rate)

        def inside(group: list[int]) -> PermutationLaw:
            own, places = tuple(hold[group].tolist()), tuple(swap[group].tolist())
            moves = len({*own}) > 1 and len({*places}) > 1
            return law(own, places) if moves else {tuple(range(len(group))): Fraction(1)}

        return combine_strata(frame.strata.codes.tolist(), inside, rows=frame.rows)

    def draw_swap(self, frame: Frame, run: Key, engine: Engine) -> dict[str, Column]:
        """Draw, and draw the vacuous strata again, until none is left."""
        hold, swap = (
            _rank_records(frame, frame.roles.hold),
            _rank_records(frame, frame.roles.moving_variables),
        )
        moves = draw_non_vacuous(run, frame.ids, frame.strata, hold, swap, self.rate, engine)
        return apply_moves(frame, moves, engine)


def _rank_records(frame: Frame, names: tuple[str, ...]) -> NDArray[Any]:
    """Combine some columns into one number for each record."""
    return rank_columns(frame.of(names)).codes if names else np.zeros(frame.rows, np.uint32)


def draw_non_vacuous(
    run: Key,
    ids: NDArray[np.uint64],
    strata: StratumCodes,
    hold: NDArray[Any],
    swap: NDArray[Any],
    rate: Fraction,
    engine: Engine | None = None,
) -> Moves:
    """Draw law 3; strata with one hold or one swap type are left alone."""
    count = strata.sizes.size
    live = _has_two_types(strata, hold) & _has_two_types(strata, swap)
    receivers, givers = [np.empty(0, np.uint32)], [np.empty(0, np.uint32)]
    attempt = 0
    while live.any():
        inside = (strata.codes != NO_STRATUM) & live[np.minimum(strata.codes, count - 1)]
        codes = np.where(inside, strata.codes, NO_STRATUM).astype(np.uint32)
        sizes = np.where(live, strata.sizes, 0).astype(np.uint32)
        moves = draw_moves(
            run.bind("non-vacuous", attempt), ids=ids, strata=codes, rate=rate, sizes=sizes, engine=engine
        )
        moved = np.zeros(count, np.bool_)
        moved[codes[moves.receivers]] = True
        again = moved & ~_find_changed(codes, hold, swap, moves, count)
        keep = ~again[codes[moves.receivers]]
        receivers.append(moves.receivers[keep])
        givers.append(moves.givers[keep])
        live = again
        attempt += 1
    return Moves(receivers=np.concatenate(receivers), givers=np.concatenate(givers), attempts=attempt)


def _has_two_types(strata: StratumCodes, values: NDArray[Any]) -> NDArray[np.bool_]:
    inside = strata.codes != NO_STRATUM
    codes, held = strata.codes[inside], values[inside]
    least = np.full(strata.sizes.size, np.iinfo(np.int64).max)
    most = np.full(strata.sizes.size, -1, np.int64)
    np.minimum.at(least, codes, held.astype(np.int64))
    np.maximum.at(most, codes, held.astype(np.int64))
    result: NDArray[np.bool_] = most > least
    return result


@dataclass(frozen=True, slots=True, init=False)
class NearPlaces(PermutationSwapping):
    """Law 4: prefer the nearer of the two arrangements of a random pair of moved records, Λ to 1.

    The distance of two places is the number of moving variables in which they differ: blocks of one tract are near.
    """

    name: ClassVar[str] = "swapping-near-places"
    Config: ClassVar[type[MechanismConfig]] = NearPlacesConfig
    closed_form: ClassVar[bool] = False

    preference: Fraction

    def __init__(self, *, preference: Rate, **settings: Any) -> None:
        PermutationSwapping.__init__(self, **settings)
        weight = parse_fraction(preference, "preference for near places")
        if weight < 1:
            raise InputError(
                "the preference for near places must be at least 1",
                why="below 1 it would prefer far places",
                fix="give 2 or 3",
            )
        object.__setattr__(self, "preference", weight)

    def parameters(self) -> dict[str, object]:
        """Return the PSA's parameters, and Λ."""
        return {**PermutationSwapping.parameters(self), "preference": str(self.preference)}

    def bounds(self, strata: StratumTable) -> tuple[Bound, ...]:
        """Return the bounds of law 4."""
        return variant_bounds("4", strata, self.rate, preference=self.preference)

    def permutations(self, frame: Frame) -> PermutationLaw | None:
        """Return the law of Algorithm 1, followed by the choice between the two arrangements of random pairs."""
        places = [column.codes for column in frame.of(frame.roles.moving_variables)]
        law = near_law(self.rate, self.preference, lambda i, j: sum(int(c[i] != c[j]) for c in places))
        codes = frame.strata.codes.tolist()
        return combine_strata(codes, lambda group: law(tuple(group), tuple(group)), rows=frame.rows)

    def draw_swap(self, frame: Frame, run: Key, engine: Engine) -> dict[str, Column]:
        """Draw, then rearrange random pairs."""
        strata = frame.strata
        moves = draw_moves(
            run, ids=frame.ids, strata=strata.codes, rate=self.rate, sizes=strata.sizes, engine=engine
        )
        places = [column.codes for column in frame.of(frame.roles.moving_variables)]
        return apply_moves(
            frame, rearrange_pairs(run, frame.ids, strata.codes, moves, places, self.preference), engine
        )


def _measure_distance(places: Sequence[NDArray[Any]], one: Codes, other: Codes) -> NDArray[np.int64]:
    total = np.zeros(one.size, np.int64)
    for codes in places:
        total += codes[one] != codes[other]
    return total


def rearrange_pairs(
    run: Key,
    ids: NDArray[np.uint64],
    strata: Codes,
    moves: Moves,
    places: Sequence[NDArray[Any]],
    preference: Fraction,
) -> Moves:
    """Pair all records of a stratum at random and prefer the nearer arrangement (law 4's second step)."""
    inside = np.flatnonzero(strata != NO_STRATUM).astype(np.uint32)
    words = run.blocks("swap/pair", ids[inside])
    order = inside[np.lexsort((ids[inside], words[:, 1], words[:, 0], strata[inside]))]
    codes = strata[order]
    starts = (
        np.flatnonzero(np.concatenate(([True], codes[1:] != codes[:-1])))
        if order.size
        else np.empty(0, np.int64)
    )
    rank = np.arange(order.size) - np.repeat(starts, np.diff(np.append(starts, order.size)))
    first = np.flatnonzero((rank[:-1] % 2 == 0) & (codes[1:] == codes[:-1])) if order.size else starts
    one, other = order[first], order[first + 1]
    giver = np.arange(strata.size, dtype=np.uint32)
    giver[moves.receivers] = moves.givers
    free = (giver[one] != one) & (giver[other] != other) & (giver[one] != other) & (giver[other] != one)
    one, other = one[free], other[free]
    mine, yours = giver[one], giver[other]
    straight = _measure_distance(places, one, mine) + _measure_distance(places, other, yours)
    crossed = _measure_distance(places, one, yours) + _measure_distance(places, other, mine)
    near = toss_coins(
        run, "swap/near", ids[np.where(ids[one] < ids[other], one, other)], preference / (1 + preference)
    )
    even = toss_coins(
        run.bind("tie"), "swap/near", ids[np.where(ids[one] < ids[other], one, other)], Fraction(1, 2)
    )
    cross = np.where(straight == crossed, even, np.where(crossed < straight, near, ~near))
    giver[one[cross]], giver[other[cross]] = yours[cross], mine[cross]
    return Moves(receivers=moves.receivers, givers=giver[moves.receivers], attempts=moves.attempts)


@dataclass(frozen=True, slots=True, init=False)
class UnitMatching(PermutationSwapping):
    """Law 5: first a swap at rate αp in coarser pools, then one at (1−α)p in the strata.

    ``loose`` names the match variables that the pools ignore; tables of these by place are no longer invariant.
    """

    name: ClassVar[str] = "swapping-unit-matching"
    Config: ClassVar[type[MechanismConfig]] = UnitMatchingConfig
    closed_form: ClassVar[bool] = False

    loose: tuple[str, ...]
    alpha: Fraction

    def __init__(self, *, loose: Sequence[str], alpha: Rate, **settings: Any) -> None:
        PermutationSwapping.__init__(self, **settings)
        unit_matching_rates(self.rate, alpha)
        refuse_text("loose", loose)
        lacking = [name for name in loose if name not in self.match]
        if lacking or not loose:
            raise InputError(
                "only match variables can be loosened",
                why="loose is empty, or names a variable that is not matched",
                fix='match=["state", "size"], loose=["size"]',
            )
        object.__setattr__(self, "loose", tuple(loose))
        object.__setattr__(self, "alpha", parse_rate(alpha))

    def parameters(self) -> dict[str, object]:
        """Return the PSA's parameters, the loosened variables and α."""
        return {**PermutationSwapping.parameters(self), "loose": list(self.loose), "alpha": str(self.alpha)}

    def prepare_frame(self, frame: Frame) -> Frame:
        """Return the frame with pools as strata: pools decide invariants and budget, and each is in one part."""
        pooled = tuple(name for name in frame.roles.match if name not in self.loose)
        part = frame.strata.codes != NO_STRATUM
        pools = coded(frame.of(pooled), rows=frame.rows, taking_part=None if part.all() else part)
        hold = (*self.loose, *frame.roles.hold)
        return replace(frame, roles=replace(frame.roles, match=pooled, hold=hold), strata=pools)

    def bounds(self, strata: StratumTable) -> tuple[Bound, ...]:
        """Return the bounds of law 5, which the pools decide at rate αp."""
        return variant_bounds("5", strata, self.rate, alpha=self.alpha)

    def size_law(self, frame: Frame) -> SizeLaw | None:
        """Return the PSA's law at the rate αp of the pools, with b taken over pools."""
        del frame
        return SizeLaw("by-size", unit_matching_rates(self.rate, self.alpha)[0])

    def permutations(self, frame: Frame) -> PermutationLaw | None:
        """Return the law of Algorithm 1 in the pools, then in the strata."""
        wide, narrow = unit_matching_rates(self.rate, self.alpha)
        fine = self._form_fine_strata(frame).codes
        pools = frame.strata.codes.tolist()

        def inside(group: list[int]) -> PermutationLaw:
            strata = fine[group].tolist()
            later = (
                combine_strata(
                    strata, lambda some: enumerate_selection((narrow,) * len(some)), rows=len(group)
                )
                or {}
            )
            every = tuple(range(len(group)))
            return chain_law(lambda *_: enumerate_selection((wide,) * len(group)), lambda *_: later)(
                every, every
            )

        return combine_strata(pools, inside, rows=frame.rows)

    def _form_fine_strata(self, frame: Frame) -> StratumCodes:
        """Form the strata of all match variables, within the pools."""
        part = frame.strata.codes != NO_STRATUM
        return coded(frame.of(self.match), rows=frame.rows, taking_part=None if part.all() else part)

    def draw_swap(self, frame: Frame, run: Key, engine: Engine) -> dict[str, Column]:
        """Draw both swaps, the second on the output of the first, and return the columns."""
        wide, narrow = unit_matching_rates(self.rate, self.alpha)
        pools = frame.strata
        first = draw_moves(
            run.bind("pools"), ids=frame.ids, strata=pools.codes, rate=wide, sizes=pools.sizes, engine=engine
        )
        between = replace(frame, columns=apply_moves(frame, first, engine))
        fine = self._form_fine_strata(frame)
        second = draw_moves(
            run.bind("strata"), ids=frame.ids, strata=fine.codes, rate=narrow, sizes=fine.sizes, engine=engine
        )
        return apply_moves(between, second, engine)
