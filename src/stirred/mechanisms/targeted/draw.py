"""Draw the swaps of targeted record swapping: level by level from coarse to fine, each household at most once."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from stirred.chance import Key
from stirred.mechanisms.swapping.draw.moves import Moves
from stirred.mechanisms.targeted.chances import Floats, Ints, order_by_risk, round_at_random, share_total
from stirred.mechanisms.targeted.donors import FREE, Buckets, Pairing, Tier


def draw_pairs(
    run: Key,
    *,
    ids: NDArray[np.uint64],
    taking_part: NDArray[np.bool_],
    areas: Sequence[Ints],
    profiles: Sequence[Ints],
    risks: Sequence[Floats],
    must: NDArray[np.int8],
    rate: Fraction,
    cycle: int = 2,
) -> Pairing:
    """Draw the pairs that exchange places, or the cycles in which each takes the place of the next.

    ``areas`` and ``risks`` are lists by level, ``profiles`` by similarity profile; ``must`` is the level that a household
    has to cross, the number of levels where it may stay. Swaps that the rate asks for begin in the finest areas in
    proportion to their households; a household is selected, and taken as a partner, in proportion to its risk.
    """
    pairing = Pairing.of(taking_part)
    tiers = [Tier(groups=np.where(taking_part, groups, -1), partners=taking_part) for groups in profiles]
    finest = areas[-1]
    sizes = np.bincount(finest[taking_part], minlength=int(finest.max(initial=-1)) + 1)
    for level, (area, risk) in enumerate(zip(areas, risks, strict=True)):
        last = level == len(areas) - 1
        forced = (must == level) & (pairing.state == FREE)
        if not last and not forced.any():
            continue
        quota = np.zeros(sizes.size, np.int64)
        if last:
            total = round_at_random(run.stream("targeted", "swaps"), int(taking_part.sum()) * rate / cycle)
            quota = share_total(run.stream("targeted", "areas"), total, sizes)
        buckets = Buckets.of(tiers, area, order_by_risk(run, ("targeted", level), ids, risk))
        # Seekers have keys of their own and come area by area, as in recordSwap. In one order with the partners, over all
        # areas, a household that has to move finds others like it gone, takes one that need not move, and more move in all.
        seekers = order_by_risk(run, ("targeted-seekers", level), ids, np.where(forced, 1.0, risk))
        likely = last & (risk > 0) & (pairing.state == FREE)
        seekers = seekers[(forced | likely)[seekers]]
        # area by area, those who must move first: lexsort keeps the order of the keys among equals
        buckets.pair(
            pairing, seekers[np.lexsort((~forced[seekers], area[seekers]))], level=level, must=forced,
            quota_of=finest, quota=quota, done=np.bincount(finest[pairing.begun], minlength=sizes.size), cycle=cycle,
        )  # fmt: skip
    return pairing


def to_moves(pairing: Pairing) -> Moves:
    """Return the moves: each of a pair takes the place of the other, each of a cycle that of the next."""
    rows = np.flatnonzero(pairing.moved_mask)
    return Moves(receivers=rows.astype(np.uint32), givers=pairing.partner[rows].astype(np.uint32))
