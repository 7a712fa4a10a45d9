"""The public criteria of the 2010 swap: who is selected, how likely, and which partners are preferred."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np
from numpy.typing import NDArray

from stirred.chance import Key
from stirred.mechanisms.targeted.chances import Floats, Ints, by_risk, rounded, shared
from stirred.mechanisms.targeted.donors import FREE, Buckets, Pairing, Tier

Flags = NDArray[np.bool_]
NO_LIMIT = 2**62


@dataclass(frozen=True, slots=True, kw_only=True)
class Criteria:
    """What the selection knows of each household."""

    weight: Floats  # 0: never selected
    always: Flags
    risky: Flags


def block_weights(block: Ints, power: int) -> Floats:
    """Households of larger blocks are selected less often: the size of the block to a power, inverted."""
    sizes = np.bincount(block, minlength=1).astype(np.float64)
    return np.asarray(_power(1.0 / np.maximum(sizes, 1.0), power)[block])


def imputation_weights(block: Ints, imputed: Flags, power: int) -> Floats:
    """The share of a block that was not imputed, with one household more, so that it is never 0."""
    sizes = np.bincount(block, minlength=1).astype(np.float64)
    some = np.bincount(block, imputed.astype(np.float64), minlength=1)
    return np.asarray(_power((1 + sizes - some) / (1 + sizes), power)[block])


def _power(numbers: Floats, power: int) -> Floats:
    found = np.ones_like(numbers)
    for _ in range(power):  # products alone: every machine rounds them alike
        found = found * numbers
    return found


def selected(order: Ints, state: Ints, criteria: Criteria, free: Flags, numbers: Ints) -> tuple[Flags, Ints]:
    """Who is in the set S: the unique ones, then by weight up to the number of each state; and S in its order."""
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


def tiers(
    prefer: Sequence[str], *, groups: Sequence[Ints], part: Flags, chosen: Flags, risky: Flags
) -> Iterator[tuple[str, Tier]]:
    """The rules for partners from the best to the last; ``groups`` are equal partners in the near areas and in the state."""
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
    order = by_risk(run, ("swapping-2010", 0), ids, criteria.weight)
    sizes = np.bincount(state[part], minlength=int(state.max(initial=-1)) + 1)
    total = rounded(run.stream("swapping-2010", "selected"), int(part.sum()) * rate)
    numbers = shared(run.stream("swapping-2010", "states"), total, sizes)
    chosen, seekers = selected(order, state, criteria, part, numbers)
    rules = [tier for _, tier in tiers(prefer, groups=groups, part=part, chosen=chosen, risky=criteria.risky)]
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
