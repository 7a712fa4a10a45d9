"""The public criteria of the 2010 swap: who is selected, how likely, and which partners are preferred."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np
from numpy.typing import NDArray

from stirred.chance import Key
from stirred.mechanisms.targeted.chances import Floats, Ints, order_by_risk, round_at_random, share_total
from stirred.mechanisms.targeted.donors import FREE, Buckets, Pairing, Tier

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
