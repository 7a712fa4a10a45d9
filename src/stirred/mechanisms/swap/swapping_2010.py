"""The 2010 swap as a mechanism, after what is public of it: the paper's Appendix C, every criterion a setting."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from stirred.chance import Key
from stirred.engine import Engine, Local, Progress
from stirred.errors import InputError, PrivacyError, did_you_mean
from stirred.mechanisms.proposal import Proposal
from stirred.mechanisms.release import Release
from stirred.mechanisms.swap.config import Roles, Swapping2010Config
from stirred.mechanisms.swap.frame import Frame, StrataSummary, estimate_size
from stirred.mechanisms.swap.group_quarters import choose_quarters, require_one_file, restate_for_quarters
from stirred.mechanisms.swap.pairs import (
    FREE,
    Buckets,
    Floats,
    Ints,
    Pairing,
    Tier,
    order_by_risk,
    round_at_random,
    share_total,
)
from stirred.mechanisms.swap.pairwise import (
    PairwiseSwapping,
    find_level_areas,
    list_witnesses,
    measure_rarity,
    number_combinations,
    witness_by_cap,
    witness_by_cycle,
    witness_by_model,
    witness_by_number,
    witness_by_risk,
)
from stirred.mechanisms.swap.pipeline import SwapPromise
from stirred.mechanisms.swap.proposal import propose_2010
from stirred.mechanisms.swap.records import Column, find_level_codes
from stirred.mechanisms.swap.strata import NO_STRATUM

if TYPE_CHECKING:
    from stirred.census import Census, Schema


# The public criteria of the 2010 swap: who is selected, how likely, and which partners are preferred.

Flags = NDArray[np.bool_]
NO_LIMIT = 2**62


@dataclass(frozen=True, slots=True, kw_only=True)
class Criteria:
    """The weight and the flags of each household that decide its selection."""

    weight: Floats  # 0: never selected
    always: Flags
    risky: Flags


def block_weights(block: Ints, power: int) -> Floats:
    """Return the inverse size of the block to a power, so that larger blocks are selected less often."""
    sizes = np.bincount(block, minlength=1).astype(np.float64)
    return np.asarray(_raise_power(1.0 / np.maximum(sizes, 1.0), power)[block])


def imputation_weights(block: Ints, imputed: Flags, power: int) -> Floats:
    """Return the share of a block that was not imputed, plus one household so that it is never 0, to a power."""
    sizes = np.bincount(block, minlength=1).astype(np.float64)
    some = np.bincount(block, imputed.astype(np.float64), minlength=1)
    return np.asarray(_raise_power((1 + sizes - some) / (1 + sizes), power)[block])


def _raise_power(numbers: Floats, power: int) -> Floats:
    found = np.ones_like(numbers)
    for _ in range(power):  # products alone: every machine rounds them alike
        found = found * numbers
    return found


def select_households(
    order: Ints, state: Ints, criteria: Criteria, free: Flags, numbers: Ints
) -> tuple[Flags, Ints]:
    """Return who is selected, the unique ones first, then by weight up to each state's number, and their order."""
    can = order[(free & ((criteria.weight > 0) | criteria.always))[order]]
    first = can[np.argsort(~criteria.always[can], kind="stable")]
    by_state = np.argsort(state[first], kind="stable")
    held = np.bincount(state[first], minlength=numbers.size)
    places = np.arange(first.size) - np.repeat(np.cumsum(held) - held, held)
    place = np.empty(first.size, np.int64)
    place[by_state] = places
    within = criteria.always[first] | (place < numbers[state[first]])
    chosen = np.zeros(order.size, np.bool_)
    chosen[first[within]] = True
    return chosen, first[within]


def list_tiers(
    prefer: Sequence[str], *, groups: Sequence[Ints], part: Flags, chosen: Flags, risky: Flags
) -> Iterator[tuple[str, Tier]]:
    """Iterate over the rules for partners from best to last; ``groups`` are equal near and in the state."""
    last = len(groups) - 1
    options: dict[str, list[tuple[str, Flags | int]]] = {
        "selected": [("selected", chosen), ("", part)],
        "near": [("" if i == last else f"near {i}", i) for i in range(len(groups))],
        "risky": [("risky", risky), ("", part)],
    }
    for choice in product(*(options[name] for name in prefer)):
        partners, near = part.copy(), last
        for _, value in choice:
            if isinstance(value, int):
                near = value
            else:
                partners &= value
        yield (
            " ".join(word for word, _ in choice if word),
            Tier(groups=np.where(part, groups[near], -1), partners=partners),
        )


def draw_selected(
    run: Key,
    *,
    ids: NDArray[np.uint64],
    part: Flags,
    state: Ints,
    block: Ints,
    groups: Sequence[Ints],
    criteria: Criteria,
    prefer: Sequence[str],
    rate: Fraction,
    cap: Fraction | None = None,
    cycle: int = 2,
) -> Pairing:
    """Select by state, then pair each selected household, the unique ones first, with the best partner of another block.

    With a ``cap`` no more than this share of a state moves, unique ones included.
    """
    pairing = Pairing.of(part)
    order = order_by_risk(run, ("swapping-2010", 0), ids, criteria.weight)
    sizes = np.bincount(state[part], minlength=int(state.max(initial=-1)) + 1)
    total = round_at_random(run.stream("swapping-2010", "selected"), int(part.sum()) * rate)
    numbers = share_total(run.stream("swapping-2010", "states"), total, sizes)
    chosen, seekers = select_households(order, state, criteria, part, numbers)
    rules = [
        tier for _, tier in list_tiers(prefer, groups=groups, part=part, chosen=chosen, risky=criteria.risky)
    ]
    buckets = Buckets.of(rules, block, order)
    unique = criteria.always[seekers]
    most = np.full(sizes.size, NO_LIMIT)
    if cap is not None:
        most = np.array([int(size * cap) // cycle for size in sizes.tolist()], np.int64)
    done = np.zeros(sizes.size, np.int64)
    buckets.pair(
        pairing, seekers[unique], level=0, must=True, quota_of=state, quota=most, done=done, cycle=cycle,
        capped=True,
    )  # fmt: skip
    buckets.pair(
        pairing, seekers[~unique & (pairing.state == FREE)[seekers]], level=0, must=False,
        quota_of=state, quota=np.minimum((numbers + cycle - 1) // cycle, most), done=done, cycle=cycle,
    )  # fmt: skip
    return pairing


class Swapping2010(PairwiseSwapping):
    """Select households of each state by risk, and swap the place of each with an equal one of another block.

    Unique households are always selected; the others in proportion to a weight, up to the same rate in each state. A
    partner that is selected too, near, or risky is preferred. With ``noisy`` one variable on which partners are equal is
    disturbed before the pairing, as in the experiments of the Bureau's reconstruction study.

    >>> Swapping2010(swap=["county", "block"], preset="study-50").rate
    Fraction(1, 2)
    """

    name: ClassVar[str] = "swapping-2010"
    config: Swapping2010Config

    def check_settings(self) -> None:
        """Refuse criteria that contradict each other."""
        PairwiseSwapping.check_settings(self)
        config = self.config
        _require_levels(config.imputed, config.imputed_levels, config.totally_imputed)
        _require_choices(self.equal, self.noisy, self.prefer, config.swap, config.unique_in)
        if Fraction(config.race_factor) < 1:
            raise InputError(
                "race_factor is below 1",
                why="who is unique in the block is selected more often",
                fix='race_factor="3"',
            )

    @property
    def match(self) -> tuple[str, ...]:
        """Return the state and what partners are equal on without noise."""
        state = self.config.state
        return (state, *(name for name in self.equal if name not in (self.noisy, state)))

    @property
    def swap(self) -> tuple[str, ...]:
        """Return the areas that move."""
        return tuple(self.config.swap)

    @property
    def rate(self) -> Fraction:
        """Return the share of the households of each state that are selected."""
        return Fraction(self._chosen.rate or 0)

    @property
    def equal(self) -> tuple[str, ...]:
        """Return the variables on which partners are equal, beside the state."""
        return tuple(self._chosen.equal or ())

    @property
    def noisy(self) -> str:
        """Return the one of them that is disturbed for the pairing, or nothing."""
        return self._chosen.noisy or ""

    @property
    def prefer(self) -> tuple[str, ...]:
        """Return what makes a better partner, the most important first."""
        return tuple(self._chosen.prefer or ())

    @property
    def cap(self) -> Fraction | None:
        """Return the largest share of the households of a state that moves, or None."""
        return None if self.config.cap is None else Fraction(self.config.cap)

    @property
    def _chosen(self) -> Swapping2010Config:
        return self.config.fill_from_preset()

    @classmethod
    def propose(cls, schema: "Schema") -> Proposal | None:
        """Propose what a swap would match and move; the office decides who is at risk."""
        return propose_2010(schema)

    def named_levels(self) -> Mapping[str, Sequence[str]]:
        """Return the levels that mean imputed."""
        levels = (*self.config.imputed_levels, *self.config.totally_imputed)
        return {self.config.imputed: tuple(dict.fromkeys(levels))} if self.config.imputed else {}

    def adjust_roles(self, roles: Roles, census: "Census") -> Roles:
        """Return the roles with what the selection reads, which is not released unless it is held."""
        known = census.columns(self.resolution)
        deciding = [
            *self.config.race,
            *self.config.unique,
            *self.equal,
            *([self.config.imputed] if self.config.imputed else []),
        ]
        for name in dict.fromkeys(deciding):
            if name not in known:
                raise InputError(
                    f"{self.resolution} records have no variable {name}",
                    why="who is selected, and who is a partner, depends on variables of the records that are swapped",
                    fix=did_you_mean(name, known),
                )
        unseen = tuple(name for name in dict.fromkeys(deciding) if name not in roles.released_variables)
        found = replace(roles, unseen=unseen)
        choose_quarters(self.config, census, found)
        return found

    def refuse_degenerate(self) -> None:
        """Raise an error if nobody would ever be swapped."""
        if not self.rate and not self.config.unique:
            raise PrivacyError(
                "a rate of 0 without unique households swaps nobody",
                why="the file would be published as it is",
                fix='give a rate, such as "3/100", or variables on which a unique household is always selected',
            )

    def pair_records(self, frame: Frame, run: Key) -> Pairing:
        """Draw who changes places with whom."""
        part = frame.strata.codes != NO_STRATUM
        areas = find_level_areas(frame, self.swap)
        rows, block = frame.rows, areas[-1]
        alike = number_combinations(
            [self._match_column(frame, run, name) for name in (self.config.state, *self.equal)], rows
        )
        kinds = int(alike.max(initial=0)) + 1
        near = [number_pairs(area, alike, kinds) for area in reversed(areas[:-1])]
        pairing = draw_selected(
            run,
            ids=frame.ids,
            part=part,
            state=number_combinations(frame.of((self.config.state,)), rows),
            block=block,
            groups=[*near, alike],
            criteria=self._criteria(frame, areas),
            prefer=self.prefer,
            rate=self.rate,
            cap=self.cap,
            cycle=self.config.cycle,
        )
        moved = np.flatnonzero(pairing.moved_mask)
        for number, area in reversed(list(enumerate(areas))):
            crossed = area[moved] != area[pairing.partner[moved]]
            pairing.level[moved[crossed]] = number
        return pairing

    def _match_column(self, frame: Frame, run: Key, name: str) -> Column:
        column = frame.columns[name]
        if name != self.noisy:
            return column
        bits = run.blocks("swapping-2010/noise", frame.ids)[:, 0] >> np.uint64(62)
        step = np.array([-1, 0, 0, 1], np.int64)[bits.astype(np.int64)]
        return replace(column, codes=column.codes.astype(np.int64) + step, reach=None)

    def _criteria(self, frame: Frame, areas: Sequence[NDArray[np.int64]]) -> Criteria:
        block = areas[-1]
        weight = block_weights(block, self._chosen.block_size_power or 0)
        alone = np.zeros(frame.rows, np.bool_)
        if self.config.race:
            alone = measure_rarity(frame, [block], self.config.race)[0] == 1
            weight = np.where(alone, weight * float(Fraction(self.config.race_factor)), weight)
        always = np.zeros(frame.rows, np.bool_)
        if self.config.unique:
            area = areas[self.swap.index(self.config.unique_in)] if self.config.unique_in else block
            always = measure_rarity(frame, [area], self.config.unique)[0] == 1
        if self.config.imputed:
            some = self._find_marked(frame, self.config.imputed_levels)
            weight = weight * imputation_weights(block, some, self.config.imputation_power)
            whole = self._find_marked(frame, self.config.totally_imputed)
            weight, always = np.where(whole, 0.0, weight), always & ~whole
        return Criteria(weight=weight, always=always, risky=always | alone)

    def _find_marked(self, frame: Frame, levels: Sequence[str]) -> NDArray[np.bool_]:
        column = frame.columns[self.config.imputed]
        return np.isin(column.codes, find_level_codes(column, levels))

    @property
    def rules(self) -> tuple[str, ...]:
        """Return each kind of partner in words."""
        none = np.zeros(0, np.bool_)
        groups = [np.zeros(0, np.int64)] * len(self.swap)
        found = list_tiers(self.prefer, groups=groups, part=none, chosen=none, risky=none)
        named = [f"near {number}" for number in range(len(self.swap) - 1)]
        areas = dict(zip(named, (f"same {area}" for area in reversed(self.swap[:-1])), strict=True))
        words = []
        for rule, _ in found:
            told = rule
            for short, area in areas.items():
                told = told.replace(short, area)
            words.append(told or "any")
        return tuple(words)

    @property
    def levels(self) -> tuple[str, ...]:
        """Return the areas that swaps cross."""
        return self.swap

    def details(self) -> Mapping[str, object]:
        """Return pairs of data sets that show why no budget is finite."""
        certain = witness_by_number(self.rate, self.config.cycle) if self.rate else witness_by_risk(1)
        capped = None if self.cap is None else witness_by_cap(self.cap)
        return list_witnesses(
            certain,
            witness_by_cycle(self.config.cycle),
            capped,
            witness_by_model() if self.config.synthetic else None,
        )

    def make_promise(self, strata: StrataSummary, census: "Census") -> SwapPromise:
        """Return the promise, without invariants of persons in group quarters if these are drawn anew."""
        found = PairwiseSwapping.make_promise(self, strata, census)
        if not self.config.synthetic:
            return found
        drawn = list(self.config.synthetic)
        return replace(found, specification=restate_for_quarters(found.specification, drawn))

    def keeps(self, by: Sequence[str], schema: "Schema") -> bool:
        """Return whether the swap keeps the table and no variable in it is drawn anew."""
        return not {*self.config.synthetic} & {*by} and PairwiseSwapping.keeps(self, by, schema)

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
        """Swap; then draw persons in group quarters anew where this is wanted."""
        if self.config.synthetic:
            require_one_file(estimate_size(census, self.roles(census)).memory, engine or Local())
        made = PairwiseSwapping.release(
            self, census, key=key, engine=engine, out=out, state=state, progress=progress
        )
        quarters = choose_quarters(self.config, census, self.roles(census))
        if quarters is None:
            return made
        run = key.bind(self.name, "quarters", made.input_digest)
        return quarters.replace_persons(made, run, out)

    def refuse(self, census: "Census", engine: Engine | None = None) -> None:
        """Stop also at a state that the swap would leave."""
        if self.config.state in self.swap:
            raise InputError(
                f"{self.config.state} is swapped",
                why="no household leaves its state",
                fix=f"take {self.config.state} out of swap, or name a coarser area: state=…",
            )
        PairwiseSwapping.refuse(self, census, engine)
        if self.config.synthetic:
            require_one_file(estimate_size(census, self.roles(census)).memory, engine or Local())


def number_pairs(first: NDArray[np.int64], second: NDArray[np.int64], kinds: int) -> NDArray[np.int64]:
    """Combine two dense numbers into one dense number."""
    _, found = np.unique(first * kinds + second, return_inverse=True)
    return np.asarray(found, np.int64)


def _require_choices(
    equal: Sequence[str], noisy: str, prefer: Sequence[str], swap: Sequence[str], unique_in: str
) -> None:
    if noisy and noisy not in equal:
        raise InputError(
            f"{noisy} is noisy, and partners need not be equal on it",
            why="the noise is added to a variable on which partners are equal",
            fix=f'equal=[…, "{noisy}"]',
        )
    if len(set(prefer)) < len(prefer):
        raise InputError(
            "prefer lists what makes a better partner, each once",
            why="one is named twice",
            fix='prefer=["selected", "near", "risky"]',
        )
    if unique_in and unique_in not in swap:
        raise InputError(
            f"{unique_in} is no area that moves",
            why="a household is unique in one of the areas of swap",
            fix=did_you_mean(unique_in, swap),
        )


def _require_levels(imputed: str, some: Sequence[str], whole: Sequence[str]) -> None:
    if bool(imputed) != bool([*some, *whole]):
        raise InputError(
            "imputed needs a variable and its levels",
            why="one of them is missing",
            fix='imputed="allocated", imputed_levels=["part"], totally_imputed=["all"]',
        )
