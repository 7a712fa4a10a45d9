"""Draw disjoint pairs (or cycles) of records: weighted sampling without replacement, and partners from buckets."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from stirred.chance import Key, Stream, integers, permutation
from stirred.kernels import compile_kernel
from stirred.mechanisms.swap.moves import Moves

# Find partners for a pairwise swap: hashed buckets by (group, area) with a heap of areas for each group, no scan.
#
# A tier is one rule of who may be a partner: records of the same group (equal on a similarity profile) in another
# area. Each bucket holds the records of one group in one area by rank; each group has a heap of its buckets by their
# first free record. The best partner of another area is the top of the heap, or the better of its two children where
# the top is the seeker's own area. Every record leaves a bucket once, so n pairs cost O(n log areas). A cycle is a
# pair that is extended: its next record lies neither in the area of the last one nor in that of the first, so that it
# can be closed at any length.

Ints = NDArray[np.int64]
States = NDArray[np.uint8]

FREE, SWAPPED, BLOCKED = 0, 1, 2
NO_RANK = np.int64(2**62)  # the rank of an empty bucket
MAX_DENSE_TABLE = 1 << 20  # numbers below this many are made dense with a table


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """One rule: the group of each record (−1: none), and which records may be partners."""

    groups: Ints
    partners: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """The state of all swaps of a run; its arrays are changed in place."""

    state: States
    partner: Ints  # whose place a record takes, of a pair each other's; −1 where a record stays
    level: NDArray[np.int8]  # at which level of the hierarchy a record was swapped
    tier: NDArray[np.int8]  # by which rule
    begun: NDArray[np.bool_]  # whether the record was selected, and not only a partner
    failed: NDArray[np.bool_]  # had to be swapped, and no partner was left

    @staticmethod
    def of(taking_part: NDArray[np.bool_]) -> "Pairing":
        """Return a pairing in which nothing is swapped yet."""
        n = taking_part.size
        return Pairing(
            state=np.where(taking_part, FREE, BLOCKED).astype(np.uint8),
            partner=np.full(n, -1, np.int64),
            level=np.full(n, -1, np.int8),
            tier=np.full(n, -1, np.int8),
            begun=np.zeros(n, np.bool_),
            failed=np.zeros(n, np.bool_),
        )

    @property
    def moved_mask(self) -> NDArray[np.bool_]:
        """Return which records are swapped."""
        return self.partner >= 0


def number_densely(numbers: NDArray[np.generic], bound: int) -> tuple[Ints, Ints]:
    """Return the distinct numbers, sorted, and the place of each number; all are below ``bound``.

    >>> number_densely(np.array([7, 2, 7]), 8)
    (array([2, 7]), array([1, 0, 1]))
    """
    if bound > max(MAX_DENSE_TABLE, 4 * numbers.size):
        found, places = np.unique(numbers, return_inverse=True)
        return found, places.astype(np.int64)
    present = np.zeros(bound, np.bool_)
    present[numbers] = True
    places = np.cumsum(present) - 1
    return np.flatnonzero(present), places[numbers]


@compile_kernel
def _fill_buckets(rows: Ints, buckets: Ints, cursor: Ints, items: Ints) -> None:
    for i in range(rows.size):
        items[cursor[buckets[i]]] = rows[i]
        cursor[buckets[i]] += 1


@compile_kernel
def _sift(heap: Ints, low: int, high: int, at: int, top: Ints) -> None:
    bucket = heap[at]
    while True:
        child = low + 2 * (at - low) + 1
        if child >= high:
            break
        if child + 1 < high and top[heap[child + 1]] < top[heap[child]]:
            child += 1
        if top[heap[child]] >= top[bucket]:
            break
        heap[at] = heap[child]
        at = child
    heap[at] = bucket


@compile_kernel
def _heapify(lows: Ints, highs: Ints, heap: Ints, top: Ints) -> None:
    for g in range(lows.size):
        for at in range(lows[g] + (highs[g] - lows[g]) // 2 - 1, lows[g] - 1, -1):
            _sift(heap, lows[g], highs[g], at, top)


@compile_kernel
def _refresh(
    heap: Ints,
    low: int,
    high: int,
    at: int,
    top: Ints,
    head: Ints,
    stop: Ints,
    items: Ints,
    rank: Ints,
    state: States,
) -> None:
    """Advance the bucket at a place of the heap until its first record is free."""
    while True:
        bucket = heap[at]
        if top[bucket] == NO_RANK or state[items[head[bucket]]] == FREE:
            return
        h = head[bucket] + 1
        while h < stop[bucket] and state[items[h]] != FREE:
            h += 1
        head[bucket] = h
        top[bucket] = rank[items[h]] if h < stop[bucket] else NO_RANK
        _sift(heap, low, high, at, top)


@compile_kernel
def _find_best_bucket(
    low: int,
    high: int,
    first: int,
    last: int,
    heap: Ints,
    top: Ints,
    head: Ints,
    stop: Ints,
    items: Ints,
    area: Ints,
    rank: Ints,
    state: States,
) -> int:
    """Return the bucket of a group with the best free record outside two areas, or −1 if none is left."""
    _refresh(heap, low, high, low, top, head, stop, items, rank, state)
    bucket = heap[low]
    if top[bucket] == NO_RANK:
        return -1
    if area[bucket] != first and area[bucket] != last:
        return int(bucket)
    best = -1
    for at in range(low + 1, min(low + 3, high)):
        _refresh(heap, low, high, at, top, head, stop, items, rank, state)
        bucket = heap[at]
        if top[bucket] == NO_RANK:
            continue
        if area[bucket] != first and area[bucket] != last:
            if best < 0 or top[bucket] < top[best]:
                best = bucket
            continue
        below = low + 2 * (at - low) + 1  # both areas are found now: all below are others
        for deep in range(below, min(below + 2, high)):
            _refresh(heap, low, high, deep, top, head, stop, items, rank, state)
            bucket = heap[deep]
            if top[bucket] != NO_RANK and (best < 0 or top[bucket] < top[best]):
                best = bucket
    return best


@compile_kernel
def _pair_seekers(
    seekers: Ints,
    groups: NDArray[np.int64],
    own: Ints,
    quota_of: Ints,
    quota: Ints,
    done: Ints,
    lows: Ints,
    highs: Ints,
    heap: Ints,
    top: Ints,
    head: Ints,
    stop: Ints,
    items: Ints,
    area: Ints,
    rank: Ints,
    state: States,
    partner: Ints,
    tier: NDArray[np.int8],
    begun: NDArray[np.bool_],
    failed: NDArray[np.bool_],
    must: NDArray[np.bool_],
    cycle: int,
    capped: bool,
) -> None:
    for seeker in seekers:
        if state[seeker] != FREE:
            continue
        if (capped or not must[seeker]) and done[quota_of[seeker]] >= quota[quota_of[seeker]]:
            continue
        found = -1
        for t in range(groups.shape[0]):
            g = groups[t, seeker]
            if g < 0 or lows[g] == highs[g]:
                continue
            low, high = lows[g], highs[g]
            best = _find_best_bucket(
                low, high, own[seeker], own[seeker], heap, top, head, stop, items, area, rank, state
            )
            if best >= 0:
                found = items[head[best]]
                tier[seeker] = t
                break
        if found < 0:
            if must[seeker]:
                failed[seeker] = True
                state[seeker] = BLOCKED
            continue
        state[seeker] = SWAPPED
        begun[seeker] = True
        last = seeker
        for length in range(2, cycle + 1):
            partner[last] = found
            state[found] = SWAPPED
            tier[found] = tier[seeker]
            last = found
            if length == cycle:
                break
            g = groups[tier[seeker], seeker]
            best = _find_best_bucket(
                lows[g], highs[g], own[seeker], own[last], heap, top, head, stop, items, area, rank, state
            )
            if best < 0:
                break
            found = items[head[best]]
        partner[last] = seeker
        done[quota_of[seeker]] += 1


@dataclass(frozen=True, slots=True)
class Buckets:
    """The buckets of all tiers, one tier after the other."""

    groups: NDArray[np.int64]  # of each tier and record: a group of its own numbering, −1: none
    lows: Ints
    highs: Ints
    heap: Ints
    top: Ints
    head: Ints
    stop: Ints
    items: Ints
    area: Ints
    own: Ints
    rank: Ints

    @staticmethod
    def of(tiers: Sequence[Tier], own: Ints, order: Ints) -> "Buckets":
        """Make the buckets; partners lie in another area than their seeker, earlier ones in ``order`` come first."""
        rank = np.empty(own.size, np.int64)
        rank[order] = np.arange(order.size)
        areas = int(own.max(initial=-1)) + 1
        parts = [_make_tier_buckets(tier, own, areas, order) for tier in tiers]
        groups = np.empty((len(tiers), own.size), np.int64)
        lows, highs, head, stop, items, area = ([np.empty(0, np.int64)] for _ in range(6))
        bucket_at, item_at, group_at = 0, 0, 0
        for t, (tier, part) in enumerate(zip(tiers, parts, strict=True)):
            starts, ends, places, rows, found = part
            groups[t] = np.where(tier.groups >= 0, tier.groups + group_at, -1)
            lows.append(starts + bucket_at)
            highs.append(ends + bucket_at)
            head.append(places[:-1] + item_at)
            stop.append(places[1:] + item_at)
            items.append(rows)
            area.append(found)
            bucket_at, item_at, group_at = bucket_at + found.size, item_at + rows.size, group_at + starts.size
        joined = [np.concatenate(some) for some in (lows, highs, head, stop, items, area)]
        top = rank[joined[4][joined[2]]] if joined[4].size else np.empty(0, np.int64)
        heap = np.arange(top.size)
        _heapify(joined[0], joined[1], heap, top)
        return Buckets(
            groups, joined[0], joined[1], heap, top, joined[2], joined[3], joined[4], joined[5], own, rank
        )

    def pair(
        self,
        pairing: Pairing,
        seekers: Ints,
        *,
        level: int,
        must: NDArray[np.bool_] | bool,
        quota_of: Ints,
        quota: Ints,
        done: Ints,
        cycle: int = 2,
        capped: bool = False,
    ) -> None:
        """Swap each seeker, in order, with the best partner of the first tier that has one, up to a number by area.

        Those who ``must`` be swapped count towards the number and are bound by it only where it is ``capped``; where they
        find no partner, they are no partners later.
        With a ``cycle`` above 2 more records of the same tier are added to each pair, up to this number, and all take the
        place of the next.
        """
        before = pairing.moved_mask
        _pair_seekers(
            seekers, self.groups, self.own, quota_of, quota, done, self.lows, self.highs, self.heap, self.top,
            self.head, self.stop, self.items, self.area, self.rank, pairing.state, pairing.partner, pairing.tier,
            pairing.begun, pairing.failed, np.broadcast_to(must, len(self.own)).copy(), cycle, capped,
        )  # fmt: skip
        pairing.level[pairing.moved_mask & ~before] = level


def _make_tier_buckets(tier: Tier, own: Ints, areas: int, order: Ints) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    """Return the bucket range of each group, the bucket starts, their records by rank, and their areas."""
    rows = order[tier.partners[order] & (tier.groups[order] >= 0)]
    number = int(tier.groups.max(initial=-1)) + 1
    cells, buckets = number_densely(tier.groups[rows] * areas + own[rows], max(number * areas, 1))
    places = np.concatenate(([0], np.cumsum(np.bincount(buckets, minlength=cells.size))))
    items = np.empty(rows.size, np.int64)
    _fill_buckets(rows, buckets, places[:-1].copy(), items)
    edges = np.searchsorted(cells // max(areas, 1), np.arange(number + 1))
    return edges[:-1], edges[1:], places, items, cells % max(areas, 1)


# Weighted sampling without replacement by keys, with the same bits on every machine.

Floats = NDArray[np.float64]
LN2 = 0.6931471805599453
SERIES_TERMS = 12  # of the series of the logarithm: its rest is below 2⁻⁵³
ZERO_RISK_FACTOR = 1e200  # the factor of records with risk 0: they come after all others, in a random order


def draw_exponential(words: NDArray[np.uint64]) -> Floats:
    """Return −ln U of uniform words by operations that every machine rounds alike.

    >>> float(draw_exponential(np.array([2**63], np.uint64))[0])
    0.6931471805599453
    """
    uniform = ((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    part, power = np.frexp(uniform)
    low = part < 0.7071067811865476
    part, power = np.where(low, 2 * part, part), np.where(low, power - 1, power)
    s = (part - 1) / (part + 1)
    square, total = s * s, np.zeros_like(s)
    for k in range(SERIES_TERMS, -1, -1):
        total = total * square + 1 / (2 * k + 1)
    return np.asarray(-(power * LN2 + 2 * s * total))


def order_by_risk(run: Key, label: tuple[str, int], ids: NDArray[np.uint64], risk: Floats) -> Ints:
    """Order all rows by a draw without replacement, each time in proportion to the risk.

    The keys are Exp(1) / risk (Efraimidis and Spirakis 2006); equal keys are ordered by identifier.
    """
    drawn = draw_exponential(run.blocks(label, ids)[:, 0])
    with np.errstate(divide="ignore"):
        keys = np.where(risk > 0, drawn / np.where(risk > 0, risk, 1.0), drawn * ZERO_RISK_FACTOR)
    order = np.argsort(keys)
    if (keys[order][1:] == keys[order][:-1]).any():
        order = np.lexsort((ids, keys))
    return order


def round_at_random(stream: Stream, number: Fraction) -> int:
    """Round the number down or up at random, so that its mean is exact.

    >>> round_at_random(Key.for_tests(1).stream("swaps"), Fraction(3))
    3
    """
    whole, rest = divmod(number.numerator, number.denominator)
    return whole + int(rest > 0 and int(integers(stream, number.denominator, 1)[0]) < rest)


def share_total(stream: Stream, total: int, sizes: Ints) -> Ints:
    """Divide a total in proportion to sizes, each part rounded down or up at random, with this sum.

    Systematic sampling over the areas in a random order: each part has its exact mean.

    >>> share_total(Key.for_tests(1).stream("areas"), 4, np.array([10, 30])).tolist()
    [1, 3]
    """
    everything = int(sizes.sum())
    if not everything:
        return np.zeros(sizes.size, np.int64)
    order = permutation(stream, sizes.size)
    start = int(integers(stream, everything, 1)[0])
    ends = [(total * int(part) + start) // everything for part in np.cumsum(sizes[order])]
    found = np.empty(sizes.size, np.int64)
    found[order] = np.diff([start // everything, *ends])
    return found


# Draw the swaps of targeted record swapping: level by level from coarse to fine, each household at most once.


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
