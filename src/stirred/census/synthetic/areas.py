"""Draw the areas of one synthetic state, and the character of each block group."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit

from stirred.census.synthetic.households import SIZE_GROUP, SIZE_TRACT
from stirred.census.synthetic.plans import StatePlan, apportion
from stirred.chance import Key, Stream

# Draw one state's areas: counties, tracts, block groups and blocks, with codes, places and coordinates.

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def draw_uniforms(stream: Stream, n: int) -> Floats:
    """Return numbers in (0, 1), never at an end."""
    return ((stream.words64(n) >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53


def draw_normals(stream: Stream, n: int) -> Floats:
    """Return standard normal numbers by inversion."""
    return np.asarray(ndtri(draw_uniforms(stream, n)), dtype=np.float64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spine:
    """The tree of one state: for each area its parent's position, and for each block its code."""

    plan: StatePlan
    tract_county: Ints
    group_tract: Ints
    group_blocks: Ints  # blocks by block group
    occupied: Ints  # households by block group
    rural: Floats  # by county, standardised: small counties are rural

    @property
    def group_county(self) -> Ints:
        """Return the county of each block group."""
        return self.tract_county[self.group_tract]

    @property
    def first_block(self) -> Ints:
        """Return the position of each block group's first block, and one past the last."""
        return np.concatenate([[0], np.cumsum(self.group_blocks)]).astype(np.int64)

    def block_codes(self) -> Ints:
        """Return the code SSCCCTTTTTTBBBB of every block; BBBB begins with the block group's number."""
        county = self.plan.code * 1000 + 2 * np.arange(self.plan.counties) + 1
        tract = county[self.tract_county] * 1_000_000 + 100 * (_rank_children(self.tract_county) + 1)
        group = tract[self.group_tract] * 10 + _rank_children(self.group_tract) + 1
        of_block = np.repeat(np.arange(self.plan.block_groups), self.group_blocks)
        return np.asarray(group[of_block] * 1000 + _rank_children(of_block), dtype=np.int64)


def _rank_children(parents: Ints) -> Ints:
    """Return the position of each child among the children of its parent; children are consecutive."""
    first = np.searchsorted(parents, parents)
    return np.asarray(np.arange(parents.size) - first, dtype=np.int64)


def draw_spine(plan: StatePlan, key: Key) -> Spine:
    """Draw the areas of a state: heavy-tailed counties, block groups of some 540 households, uneven numbers of blocks."""
    name = ("spine", plan.code)
    size = 1.25 * draw_normals(key.stream(*name, "county"), plan.counties)
    tracts = 1 + apportion(plan.tracts - plan.counties, np.exp(size))
    tract_county = np.repeat(np.arange(plan.counties), tracts)
    rural = (np.log(tracts.mean()) - np.log(tracts)) / max(float(np.log(tracts).std()), 0.5)
    spread = np.exp(0.45 * draw_normals(key.stream(*name, "tract"), plan.tracts))
    groups = _apportion_capped(plan.block_groups, spread, least=1, most=9)
    group_tract = np.repeat(np.arange(plan.tracts), groups)
    weights = np.exp(0.36 * stdtrit(8.0, draw_uniforms(key.stream(*name, "households"), plan.block_groups)))
    occupied = apportion(plan.households, weights)
    many = (
        0.62 * draw_normals(key.stream(*name, "blocks"), plan.block_groups)
        + 0.25 * rural[tract_county[group_tract]]
    )
    blocks = _apportion_capped(plan.blocks, np.exp(many), least=1, most=999)
    return Spine(
        plan=plan,
        tract_county=tract_county,
        group_tract=group_tract,
        group_blocks=blocks,
        occupied=occupied,
        rural=rural,
    )


def _apportion_capped(total: int, weights: Floats, *, least: int, most: int) -> Ints:
    """Apportion with a minimum and a maximum per area; the excess goes to the others."""
    counts = np.full(weights.size, least, dtype=np.int64)
    left = total - int(counts.sum())
    while left > 0:
        open_ = counts < most
        if not open_.any():
            break
        counts += np.minimum(apportion(left, np.where(open_, weights, 0.0)), most - counts)
        left = total - int(counts.sum())
    return counts


def place_blocks(blocks: int, counties: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the kilometres of each block along a Hilbert curve, so that near codes are near in space.

    >>> x, y = place_blocks(4, 1)
    >>> sorted({(float(a), float(b)) for a, b in zip(x, y)})
    [(12.5, 12.5), (12.5, 37.5), (37.5, 12.5), (37.5, 37.5)]
    """
    order = max(1, int(np.ceil(np.log2(max(blocks, 2)) / 2)))
    left = (np.arange(blocks, dtype=np.float64) * (4.0**order / blocks)).astype(np.int64)
    x, y = np.zeros(blocks, dtype=np.int64), np.zeros(blocks, dtype=np.int64)
    for level in range(order):  # Hilbert's curve, two bits at a time
        side = 1 << level
        right_half = (left >> 1) & 1
        top_half = (left ^ right_half) & 1
        flip = (top_half == 0) & (right_half == 1)
        x, y = np.where(flip, side - 1 - x, x), np.where(flip, side - 1 - y, y)
        swap = top_half == 0
        x, y = np.where(swap, y, x), np.where(swap, x, y)
        x, y = x + side * right_half, y + side * top_half
        left >>= 2
    scale = 50.0 * np.sqrt(counties) / (1 << order)
    return ((x + 0.5) * scale).astype(np.float32), ((y + 0.5) * scale).astype(np.float32)


def draw_places(spine: Spine, key: Key) -> NDArray[np.int32]:
    """Return Off-spine places: runs of neighbouring blocks that ignore tract borders; 0 outside any place."""
    blocks = spine.plan.blocks
    typical = 6.0 * blocks / spine.plan.tracts
    runs = int(4 * blocks / typical) + 8
    lengths = np.ceil(typical * np.exp(draw_normals(key.stream("places", spine.plan.code), runs))).astype(
        np.int64
    )
    ends = np.cumsum(lengths)
    at = np.searchsorted(ends, np.arange(blocks), side="right")
    inside = at % 3 != 2  # two places, then open country
    return np.where(inside, spine.plan.code * 100_000 + at + 1, 0).astype(np.int32)


# Draw the character of each block group: its population groups, homes, household sizes and ages.
#
# Compositions are softmax of log shares plus normal effects of county, tract (correlated along the tracts' order, so
# segregation is spatial), block group and, in the kernel, block. The standard deviations are set so that dissimilarity
# and entropy indices at tract, block group and block lie near those of Hawaii 2020 and Washington 2010.

# Standard deviation of the effects by group: Hispanic, white, black, AIAN, Asian, NHPI, other, two or more.
TRACT_LOGIT_SD: Floats = np.array([0.58, 0.70, 1.15, 0.65, 0.90, 0.95, 0.45, 0.12])
BLOCK_GROUP_LOGIT_SD: Floats = np.array([0.27, 0.26, 0.36, 0.30, 0.30, 0.35, 0.25, 0.10])
BLOCK_LOGIT_SD_BY_GROUP: Floats = np.array([0.26, 0.20, 0.30, 0.28, 0.15, 0.25, 0.30, 0.05])
COUNTY_LOGIT_SD = 0.25
STATE_LOGIT_SD: Floats = np.array([0.75, 0.20, 0.80, 0.70, 0.50, 0.80, 0.30, 0.25])
TRACT_CORRELATION = 0.7  # correlation of neighbouring tracts


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbourhoods:
    """One row per block group; the kernels of homes.py read these."""

    composition: Floats  # logits of the eight groups
    size: Floats  # tilt of the size distribution
    own: Floats  # log odds of owning
    age: Floats  # exponent of the householder's age quantile
    empty: Floats  # chance that a block has no home
    vacant: Ints  # vacant units
    favourite: Floats  # quantiles of the neighbourhood's own detailed codes, by race and ethnicity


def correlate_tracts(noise: Floats) -> Floats:
    """Return series of unit variance in which neighbouring tracts are correlated, one row per tract."""
    scaled: Floats = noise * np.sqrt(1.0 - TRACT_CORRELATION**2)
    scaled[:1] = noise[:1]
    # by hand: importing scipy.signal takes longer than writing the demo census
    for i in range(1, len(scaled)):
        scaled[i] += TRACT_CORRELATION * scaled[i - 1]
    return scaled


def softmax(logits: Floats) -> Floats:
    """Return shares from logits, by row."""
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True), dtype=np.float64)


def rake_logits(effects: Floats, weights: Floats, shares: NDArray[np.float64]) -> Floats:
    """Return logits with these effects whose weighted mean composition equals the given shares."""
    base = np.log(shares)
    for _ in range(12):
        mean = (softmax(effects + base) * weights[:, None]).sum(axis=0) / weights.sum()
        base = base + np.log(shares / mean)
    return effects + base


def draw_state_shares(states: tuple[StatePlan, ...], shares: tuple[float, ...], key: Key) -> Floats:
    """Return the composition of each state: the given one for a single state, values around it for several."""
    asked = np.array(shares) / sum(shares)
    if len(states) == 1:
        return asked[None, :]
    effects = STATE_LOGIT_SD * draw_normals(key.stream("states"), 8 * len(states)).reshape(-1, 8)
    return softmax(rake_logits(effects, np.array([float(s.households) for s in states]), asked))


def draw_neighbourhoods(spine: Spine, shares: Floats, empty: float, key: Key) -> Neighbourhoods:
    """Draw the character of every block group of a state."""
    plan, tract, county = spine.plan, spine.group_tract, spine.group_county
    n = plan.block_groups

    def draw_grid(what: str, rows: int, columns: int) -> Floats:
        return draw_normals(key.stream("neighbourhoods", plan.code, what), rows * columns).reshape(
            rows, columns
        )

    effects = (
        COUNTY_LOGIT_SD * draw_grid("county", plan.counties, 8)[county]
        + TRACT_LOGIT_SD * correlate_tracts(draw_grid("tract", plan.tracts, 8))[tract]
        + BLOCK_GROUP_LOGIT_SD * draw_grid("group", n, 8)
    )
    weights = np.maximum(spine.occupied.astype(np.float64), 1e-9)
    life = correlate_tracts(draw_grid("life", plan.tracts, 3))[tract]
    life = life - np.average(life, axis=0, weights=weights)  # the state as a whole is average
    own_life = draw_grid("own", n, 5)
    # Homes, family size and age go together: large families own, and live away from the young and the old.
    size = SIZE_TRACT * life[:, 0] + SIZE_GROUP * own_life[:, 0]
    own = (
        0.68
        + 0.75 * (0.55 * life[:, 0] + 0.83 * life[:, 1])
        + 0.45 * own_life[:, 1]
        + 0.25 * spine.rural[county]
    )
    age = np.exp(-0.22 * (life[:, 2] + 0.6 * own_life[:, 2]) - 0.37)
    crowd = np.log(spine.group_blocks / spine.group_blocks.mean())
    bare = np.log(empty / (1.0 - empty)) + 0.6 * crowd + 0.4 * own_life[:, 3]
    rate = 1.0 / (1.0 + np.exp(2.28 - 0.55 * own_life[:, 4] - 0.3 * spine.rural[county]))
    favourite = np.repeat(
        (draw_normals(key.stream("favourites", plan.code), 7 * plan.tracts).reshape(-1, 7) * 0.5 + 0.5) % 1.0,
        np.bincount(tract, minlength=plan.tracts),
        axis=0,
    )
    return Neighbourhoods(
        composition=rake_logits(effects, weights, shares),
        size=size,
        own=own,
        age=age,
        empty=1.0 / (1.0 + np.exp(-bare)),
        vacant=np.round(spine.occupied * rate / (1.0 - rate)).astype(np.int64),
        favourite=np.ascontiguousarray(favourite),
    )
