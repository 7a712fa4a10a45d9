"""Draw one state's areas: counties, tracts, block groups and blocks, with codes, places and coordinates."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit

from stirred.census.synthetic.plans import StatePlan, apportion
from stirred.chance import Key, Stream

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
