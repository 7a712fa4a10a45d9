"""Variants of the PSA as mechanisms: varying rates, imputed records that stay, other moves, noise."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stirred.census import Schema
from stirred.chance import Key, discrete_gaussian
from stirred.engine import Engine, Local
from stirred.errors import InputError, PrivacyError, did_you_mean
from stirred.languages import Phrase
from stirred.mechanisms.base import Mechanism
from stirred.mechanisms.contents import MAX_OUTPUTS, Law
from stirred.mechanisms.proposal import Proposal
from stirred.mechanisms.swap.config import (
    ImputedStayConfig,
    NearPlacesConfig,
    NoisyKeyConfig,
    NoisyTablesConfig,
    NoVacuousConfig,
    UnitMatchingConfig,
    VaryingRatesConfig,
    require_inner_rate,
)
from stirred.mechanisms.swap.enumeration import chain_law, near_law, nonvacuous_law
from stirred.mechanisms.swap.exact_law import (
    PermutationLaw,
    combine_strata,
    enumerate_moves,
    enumerate_selection,
)
from stirred.mechanisms.swap.frame import Frame, StrataSummary, apply_moves
from stirred.mechanisms.swap.moves import Moves, draw_moves, toss_coins
from stirred.mechanisms.swap.pipeline import SwapPromise
from stirred.mechanisms.swap.proposal import propose_swap
from stirred.mechanisms.swap.psa import ProvedSwapping, RateSwapping
from stirred.mechanisms.swap.records import (
    IMPUTED,
    Column,
    Digits,
    Stay,
    encode_table,
    find_level_codes,
    rank_columns,
)
from stirred.mechanisms.swap.strata import NO_STRATUM, StratumCodes, StratumTable, count_sizes
from stirred.mechanisms.swap.strata import form_strata as coded
from stirred.mechanisms.swap.variant_budgets import (
    read_inner_rate,
    unit_matching_rates,
    variant_bounds,
)
from stirred.spec import Bound, Budget, Evidence, NormalizedRenyi, SizeLaw, Specification

if TYPE_CHECKING:
    from stirred.census import Census


# Variants of the PSA that change which records may move: rates that vary by record, and imputed records that stay.
#
# The laws and their proofs are in proof.md; budgets come from budgets.py.


class VaryingRates(ProvedSwapping):
    """Law 1: the swap rate of a record depends on its variables (1a held, 1b also swap) or on its rarity (1c).

    ``rates`` gives a rate for levels of the variable ``by``; records of other levels have the rate ``rate``. With
    ``rarity`` a record whose combination of these variables occurs at most ``counts_up_to`` times has ``rare``.

    >>> VaryingRates(swap=["block"], rate="1/20", by="tenure", rates={"rent": "1/10"}).law(("tenure",))
    '1a'
    """

    name: ClassVar[str] = "swapping-varying-rates"
    config: VaryingRatesConfig

    def check_settings(self) -> None:
        """Refuse rates from two sources or from none, and rates at which a record never or always moves."""
        ProvedSwapping.check_settings(self)
        by, rarity, chosen = self.config.by, self.config.rarity, self.config.rare is not None
        if bool(by) == bool(rarity) or bool(by) != bool(self.config.rates) or bool(rarity) != chosen:
            raise InputError(
                "varying swap rates need one source",
                why="rates come either from a variable or from rarity",
                fix='by="tenure", rates={"rent": "1/10"}; or rarity=["race", "block"], rare="1/2"',
            )
        for rate in self.all_rates()[1:]:
            read_inner_rate(rate)

    @property
    def rates(self) -> tuple[tuple[str, Fraction], ...]:
        """Return the levels that have a rate of their own, in their order."""
        return tuple(sorted((level, Fraction(rate)) for level, rate in (self.config.rates or {}).items()))

    def named_levels(self) -> Mapping[str, Sequence[str]]:
        """Return the levels that have a rate of their own."""
        return {self.config.by: [level for level, _ in self.rates]} if self.config.by else {}

    def all_rates(self) -> tuple[Fraction, ...]:
        """Return the rate of each class of records, the common one first."""
        rare = () if self.config.rare is None else (Fraction(self.config.rare),)
        return (self.rate, *(rate for _, rate in self.rates), *rare)

    def highest_rate(self) -> float:
        """Return the largest of all rates."""
        return float(max(self.all_rates()))

    def lowest_rate(self) -> Fraction:
        """Return the smallest of all rates: how many records have which one may be no invariant."""
        return min(self.all_rates())

    def law(self, held: Sequence[str]) -> str:
        """Return the name of the law, 1a if the rate depends only on held variables."""
        if self.config.rarity:
            return "1c"
        return "1a" if self.config.by in held else "1b"

    def bounds(self, strata: StratumTable, *, held: Sequence[str] = ()) -> tuple[Bound, ...]:
        """Return the bounds of law 1; a variable that is not in ``held`` is assumed to move."""
        rates = self.all_rates()
        more = {"counts_up_to": self.config.counts_up_to} if self.config.rarity else {}
        return variant_bounds(self.law(held), strata, min(rates), highest=max(rates), **more)

    def prepare_frame(self, frame: Frame) -> Frame:
        """Return the frame, or raise an error if a rate depends on a variable that is not released."""
        for name in (self.config.by, *self.config.rarity):
            if name and name not in frame.roles.released_variables:
                raise InputError(
                    f"no rate can depend on {name}",
                    why="the law is stated for rates that are functions of released variables",
                    fix=did_you_mean(name, frame.roles.released_variables),
                )
        return frame

    def list_bounds(self, strata: StrataSummary) -> tuple[Bound, ...]:
        """Return the bounds at the smallest and the largest rate."""
        # levels that move with a swap variable are not held, although they are not named
        return self.bounds(strata.shapes.table, held=strata.frame.roles.held_variables)

    def size_law(self, frame: Frame) -> SizeLaw | None:
        """Return law 1a at the smallest and largest rate, or None for 1b and 1c, which depend on more than b."""
        rates = self.all_rates()
        if self.law(frame.roles.held_variables) != "1a":
            return None
        return SizeLaw("by-size", min(rates), max(rates))

    def partition_variables(self, frame: Frame) -> tuple[str, ...]:
        """Return the match variables; with rarity, those that it names, because it is counted everywhere."""
        match = frame.roles.match
        return tuple(name for name in match if name in self.config.rarity) if self.config.rarity else match

    def classes(self, frame: Frame) -> NDArray[np.uint16]:
        """Return the class of every record, from the input file."""
        found = np.zeros(frame.rows, np.uint16)
        if self.config.by:
            column = frame.columns[self.config.by]
            for i, (level, _) in enumerate(self.rates):
                found[np.isin(column.codes, find_level_codes(column, [level]))] = i + 1
            return found
        digits = Digits.of([frame.columns[name] for name in self.config.rarity])
        numbers = digits.numbers() if digits.fits else rank_columns(digits.columns).codes
        _, places, counts = np.unique(numbers, return_inverse=True, return_counts=True)
        found[counts[places] <= self.config.counts_up_to] = 1
        return found

    def permutations(self, frame: Frame) -> PermutationLaw | None:
        """Return the law of the moves, each record with the rate of its class."""
        rates = self.all_rates()
        return enumerate_moves(frame, [rates[code] for code in self.classes(frame).tolist()])

    def replicate(self, census: "Census", copies: int) -> tuple[Mechanism, "Census", str] | None:
        """Return what the swap returns, with rarity counted within each copy."""
        made = ProvedSwapping.replicate(self, census, copies)
        if made is None or not self.config.rarity:
            return made
        mechanism, many, name = made
        return mechanism.replace(rarity=[*self.config.rarity, name]), many, name

    def draw_swap(self, frame: Frame, run: Key, engine: Engine) -> dict[str, Column]:
        """Draw once with a rate for each class and return the columns."""
        moves = draw_moves(
            run,
            ids=frame.ids,
            strata=frame.strata.codes,
            rate=self.all_rates(),
            classes=self.classes(frame),
            sizes=frame.strata.sizes,
            engine=engine,
        )
        return apply_moves(frame, moves, engine)

    def refuse_degenerate(self) -> None:
        """Raise an error unless every rate lies strictly between 0 and 1."""
        for rate in self.all_rates():
            require_inner_rate(rate)


class ImputedStay(ProvedSwapping):
    """Law 2: never swap imputed records; data sets that differ in one are infinitely far apart.

    >>> ImputedStay(swap=["block"], rate="1/20", imputed="allocated", levels=["1"]).parameters()["imputed"]
    'allocated'
    """

    name: ClassVar[str] = "swapping-imputed-stay"
    config: ImputedStayConfig

    def check_settings(self) -> None:
        """Refuse a mark without levels."""
        ProvedSwapping.check_settings(self)
        if not self.config.levels:
            raise InputError(
                "no level marks imputed records",
                why="levels is empty",
                fix='imputed="allocated", levels=["1"]',
            )

    def named_levels(self) -> Mapping[str, Sequence[str]]:
        """Return the levels that mark imputed records."""
        return {self.config.imputed: self.config.levels}

    def prepare_frame(self, frame: Frame) -> Frame:
        """Return the frame with imputed records left out of the strata."""
        imputed, levels = self.config.imputed, tuple(self.config.levels)
        if imputed not in frame.columns or imputed in self.swap:
            raise InputError(
                f"{imputed} is not a held variable that is released",
                why="the mark of imputed records is an invariant and must be public",
                fix=did_you_mean(imputed, frame.roles.held_variables),
            )
        column = frame.columns[imputed]
        marked = np.isin(column.codes, find_level_codes(column, levels)) & (frame.strata.codes != NO_STRATUM)
        codes = frame.strata.codes.copy()
        codes[marked] = NO_STRATUM
        sizes = count_sizes(codes)
        whole = np.zeros(frame.strata.sizes.size, np.uint32)
        whole[: sizes.size] = sizes
        stay = Stay(
            column=imputed,
            levels=levels,
            codes=find_level_codes(column, levels),
            records=int(marked.sum()),
            why=IMPUTED,
        )
        return replace(frame, strata=StratumCodes(codes=codes, sizes=whole), stays=(*frame.stays, stay))

    def bounds(self, strata: StratumTable) -> tuple[Bound, ...]:
        """Return the PSA's bounds over strata without imputed records."""
        return variant_bounds("2", strata, self.rate)

    def size_law(self, frame: Frame) -> SizeLaw | None:
        """Return the PSA's size law, with b taken over strata without imputed records."""
        del frame
        return SizeLaw("by-size", self.rate)


# Variants of the PSA that change how selected records move: no vacuous swaps, near places, other strata.
#
# The laws and their proofs are in proof.md; budgets come from budgets.py.

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


class NoVacuous(ProvedSwapping):
    """Law 3: reject a draw as a whole if it moves records but does not change the table of its stratum."""

    name: ClassVar[str] = "swapping-no-vacuous"
    config: NoVacuousConfig

    @classmethod
    def propose(cls, schema: Schema) -> Proposal | None:
        """Propose the settings of the swap, without linked records."""
        return propose_swap(schema, cls.Config, carry=False)

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

    def size_law(self, frame: Frame) -> SizeLaw | None:
        """Return None, because law 3 depends on the types in each stratum too."""
        del frame
        return None

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
    return Moves(receivers=np.concatenate(receivers), givers=np.concatenate(givers), rounds=attempt)


def _has_two_types(strata: StratumCodes, values: NDArray[Any]) -> NDArray[np.bool_]:
    inside = strata.codes != NO_STRATUM
    codes, held = strata.codes[inside], values[inside]
    least = np.full(strata.sizes.size, np.iinfo(np.int64).max)
    most = np.full(strata.sizes.size, -1, np.int64)
    np.minimum.at(least, codes, held.astype(np.int64))
    np.maximum.at(most, codes, held.astype(np.int64))
    result: NDArray[np.bool_] = most > least
    return result


class NearPlaces(ProvedSwapping):
    """Law 4: prefer the nearer of the two arrangements of a random pair of moved records, Λ to 1.

    The distance of two places is the number of moving variables in which they differ: blocks of one tract are near.
    """

    name: ClassVar[str] = "swapping-near-places"
    config: NearPlacesConfig

    def check_settings(self) -> None:
        """Refuse a preference for far places."""
        ProvedSwapping.check_settings(self)
        if self.preference < 1:
            raise InputError(
                "the preference for near places must be at least 1",
                why="below 1 it would prefer far places",
                fix="give 2 or 3",
            )

    @property
    def preference(self) -> Fraction:
        """Return Λ, how much the nearer of two arrangements is preferred."""
        return Fraction(self.config.preference)

    def bounds(self, strata: StratumTable) -> tuple[Bound, ...]:
        """Return the bounds of law 4."""
        return variant_bounds("4", strata, self.rate, preference=self.preference)

    def size_law(self, frame: Frame) -> SizeLaw | None:
        """Return None, because law 4 depends on the preference too."""
        del frame
        return None

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
    return Moves(receivers=moves.receivers, givers=giver[moves.receivers], rounds=moves.rounds)


class UnitMatching(ProvedSwapping):
    """Law 5: first a swap at rate αp in coarser pools, then one at (1−α)p in the strata.

    ``loose`` names the match variables that the pools ignore; tables of these by place are no longer invariant.
    """

    name: ClassVar[str] = "swapping-unit-matching"
    config: UnitMatchingConfig

    def check_settings(self) -> None:
        """Refuse a share outside 0 to 1, and variables that are not matched."""
        ProvedSwapping.check_settings(self)
        unit_matching_rates(self.rate, self.alpha)
        loose = self.config.loose
        if not loose or any(name not in self.match for name in loose):
            raise InputError(
                "only match variables can be loosened",
                why="loose is empty, or names a variable that is not matched",
                fix='match=["state", "size"], loose=["size"]',
            )

    @property
    def alpha(self) -> Fraction:
        """Return α, the part of the swap rate that is spent in the pools."""
        return Fraction(self.config.alpha)

    def prepare_frame(self, frame: Frame) -> Frame:
        """Return the frame with pools as strata: pools decide invariants and budget, and each is in one part."""
        pooled = tuple(name for name in frame.roles.match if name not in self.config.loose)
        part = frame.strata.codes != NO_STRATUM
        pools = coded(frame.of(pooled), rows=frame.rows, taking_part=None if part.all() else part)
        hold = (*self.config.loose, *frame.roles.hold)
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


# Variants of the PSA with noise before or after the swap: a noisy swap key, and noisy tables of the swapped file.


class NoisyKey(RateSwapping):
    """Law 6a: redraw the match variable ``noisy`` among its levels with probability ``change`` before matching.

    The noisy values decide who may swap with whom and are not published. No finite bound is known.
    """

    name: ClassVar[str] = "swapping-noisy-key"
    config: NoisyKeyConfig

    def check_settings(self) -> None:
        """Refuse noise on a variable that is not matched."""
        RateSwapping.check_settings(self)
        if self.config.noisy not in self.match:
            raise InputError(
                f"{self.config.noisy} is not a match variable",
                why="noise is added to a match variable",
                fix=f'match=[…, "{self.config.noisy}"]',
            )

    @property
    def change(self) -> Fraction:
        """Return the probability that the noisy variable is drawn again."""
        return Fraction(self.config.change)

    def prepare_frame(self, frame: Frame) -> Frame:
        """Return the frame in strata without the noisy variable; only these stay invariant, each in one part."""
        pooled = tuple(name for name in frame.roles.match if name != self.config.noisy)
        part = frame.strata.codes != NO_STRATUM
        pools = coded(frame.of(pooled), rows=frame.rows, taking_part=None if part.all() else part)
        return replace(
            frame,
            roles=replace(frame.roles, match=pooled, hold=(self.config.noisy, *frame.roles.hold)),
            strata=pools,
        )

    @property
    def variables_needing_all_levels(self) -> tuple[str, ...]:
        """Return the noisy variable, because a value is redrawn among all levels that occur anywhere."""
        return (self.config.noisy,)

    def bounds(self, strata: StratumTable) -> tuple[Bound, ...]:
        """Return the bounds of law 6a: an unknown one, beside the largest loss found by enumeration."""
        return variant_bounds("6a", strata, self.rate, change=self.change)

    def size_law(self, frame: Frame) -> SizeLaw | None:
        """Return None, because no finite bound is known."""
        del frame
        return None

    def refuse_degenerate(self) -> None:
        """Raise an error also if the key is never noisy: then more is invariant than is stated."""
        RateSwapping.refuse_degenerate(self)
        if not self.change:
            raise PrivacyError(
                "a noisy key that never changes protects nothing",
                why="its strata are exact, which the stated invariants do not say (ε = ∞)",
                fix="give change above 0, or use PermutationSwapping",
            )

    def permutations(self, frame: Frame) -> PermutationLaw | None:
        """Return the law of Algorithm 1 for every combination of noisy keys, by its probability."""
        column = frame.columns[self.config.noisy]
        levels = np.unique(column.codes).tolist()
        others = [name for name in self.match if name != self.config.noisy]
        if len(levels) ** frame.rows > MAX_OUTPUTS:
            return None
        rest = list(zip(*(frame.columns[name].codes.tolist() for name in others), strict=True))
        out = (frame.strata.codes == NO_STRATUM).tolist()
        found: dict[tuple[int, ...], Fraction] = {}
        for keys in product(levels, repeat=frame.rows):
            chance = prod(
                (1 - self.change) * (key == own) + self.change / len(levels)
                for key, own in zip(keys, column.codes.tolist(), strict=True)
            )
            marks = [(key, rest[i] if rest else ()) for i, key in enumerate(keys)]
            codes = [
                int(NO_STRATUM) if out[i] else sorted({*marks}).index(mark) for i, mark in enumerate(marks)
            ]
            inside = combine_strata(
                codes, lambda group: enumerate_selection((self.rate,) * len(group)), rows=frame.rows
            )
            for g, more in (inside or {}).items():
                found[g] = found.get(g, Fraction(0)) + chance * more
        return found or None

    def draw_swap(self, frame: Frame, run: Key, engine: Engine) -> dict[str, Column]:
        """Draw the noisy key of every record, then swap within its strata."""
        column = frame.columns[self.config.noisy]
        levels = dict(frame.levels).get(self.config.noisy, np.unique(column.codes))
        redrawn = toss_coins(run.bind("noisy"), "swap/near", frame.ids, self.change)
        drawn = levels[_draw_below(run, frame.ids, levels.size)]
        noisy = replace(column, codes=np.where(redrawn, drawn, column.codes))
        part = frame.strata.codes != NO_STRATUM
        match = [noisy if name == self.config.noisy else frame.columns[name] for name in self.match]
        strata = coded(match, rows=frame.rows, taking_part=None if part.all() else part)
        moves = draw_moves(
            run, ids=frame.ids, strata=strata.codes, rate=self.rate, sizes=strata.sizes, engine=engine
        )
        return apply_moves(frame, moves, engine)


def _draw_below(run: Key, ids: NDArray[np.uint64], bound: int) -> NDArray[np.int64]:
    """Draw a number below the bound for each identifier, exactly uniform, by rejection."""
    result = np.zeros(ids.size, np.int64)
    pending = np.arange(ids.size)
    limit = 2**64 - 2**64 % max(bound, 1)  # no levels, so there are no records
    counter = 0
    while pending.size:
        words = run.blocks("swap/level", ids[pending], counter=counter)[:, 0]
        result[pending] = (words % np.uint64(bound)).astype(np.int64)
        pending = pending[words > np.uint64(limit - 1)]
        counter += 1
    return result


class NoisyTables(ProvedSwapping):
    r"""Law 6b: tables of the swapped file, each cell with discrete Gaussian noise of variance about $\sigma^2$.

    The swap's guarantee holds by post-processing. Every combination of levels gets noise, the empty ones too. The noise
    has its own guarantee, in another flavor: ``noise_specification``.
    """

    name: ClassVar[str] = "swapping-noisy-tables"
    config: NoisyTablesConfig

    def check_settings(self) -> None:
        """Refuse noise without variance."""
        ProvedSwapping.check_settings(self)
        if self.sigma_squared <= 0:
            raise InputError(
                "the variance of the noise must be positive",
                why="a variance of 0 would add no noise",
                fix='sigma_squared="4"',
            )

    @property
    def sigma_squared(self) -> Fraction:
        """Return σ², the variance of the noise in a cell."""
        return Fraction(self.config.sigma_squared)

    def bounds(self, strata: StratumTable) -> tuple[Bound, ...]:
        """Return the bounds of law 6b, which are the swap's by post-processing."""
        return variant_bounds("6b", strata, self.rate)

    def size_law(self, frame: Frame) -> SizeLaw | None:
        """Return the size law of the swap itself."""
        del frame
        return SizeLaw("by-size", self.rate)

    def make_promise(self, strata: StrataSummary, census: "Census") -> SwapPromise:
        """Return the swap's promise, with a note on what the noise alone promises."""
        swap = ProvedSwapping.make_promise(self, strata, census)
        own = self._noise(swap.specification, strata.frame)
        told = Phrase("swap.note.noise_alone", rho_squared=own.rho_squared.exact, source=own.evidence.source)
        stated = replace(swap.specification, notes=(*swap.specification.notes, told))
        return replace(swap, specification=stated)

    def noise_specification(self, census: "Census") -> Specification:
        r"""What the noise promises of the census, through the swap: $\rho^2 = T/\sigma^2$ with the swap's invariants.

        T counts the tables with a variable that moves and one that is held; the others are invariants.
        """
        strata = self.pipeline.count_strata(census, Local())
        return self._noise(ProvedSwapping.make_promise(self, strata, census).specification, strata.frame)

    def _noise(self, swap: Specification, frame: Frame) -> Specification:
        moving, hold = {*frame.roles.moving_variables}, {*frame.roles.hold}
        tables = sum(1 for by in self.config.tables if moving & {*by} and hold & {*by})
        return replace(
            swap,
            output_premetric=NormalizedRenyi(),
            budget=Budget.sqrt(tables / self.sigma_squared) if tables else Budget.zero(),
            evidence=Evidence(status="proved", source=Phrase("swap.source.coupled")),
            bounds=(),
            varies=None,
        )

    def exact_law(self, census: "Census") -> Law | None:
        """Return None, because the discrete Gaussian has no probabilities in fractions."""
        del census
        return None

    def finish_table(self, cells: pa.Table, run: Key) -> pa.Table:
        """Return every combination of levels with its own noise, the empty cells too."""
        names = [name for name in cells.column_names if name != "count"]
        columns = list(encode_table(cells, names).values())
        levels = [np.unique(column.codes) for column in columns]
        shape = tuple(level.size for level in levels)
        places = tuple(
            np.searchsorted(level, column.codes) for level, column in zip(levels, columns, strict=True)
        )
        counts = np.zeros(int(np.prod(shape)), np.int64)
        counts[np.ravel_multi_index(places, shape)] = cells["count"].to_numpy()
        noise = discrete_gaussian(run.stream("noise", *names), self.sigma_squared, counts.size)
        grid = np.unravel_index(np.arange(counts.size), shape)
        found = {
            column.name: replace(column, codes=level[index]).arrow()
            for column, level, index in zip(columns, levels, grid, strict=True)
        }
        return pa.table({**found, "count": pa.array(counts + noise)})
