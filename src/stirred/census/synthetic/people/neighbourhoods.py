"""Draw the character of each block group: its population groups, homes, household sizes and ages.

Compositions are softmax of log shares plus normal effects of county, tract (correlated along the tracts' order, so
segregation is spatial), block group and, in the kernel, block. The standard deviations are set so that dissimilarity
and entropy indices at tract, block group and block lie near those of Hawaii 2020 and Washington 2010.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stirred.census.synthetic.people.household_life import SIZE_GROUP, SIZE_TRACT
from stirred.census.synthetic.plans import StatePlan
from stirred.census.synthetic.spine import Floats, Ints, Spine, draw_normals
from stirred.chance import Key

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

    def drawn(what: str, rows: int, columns: int) -> Floats:
        return draw_normals(key.stream("neighbourhoods", plan.code, what), rows * columns).reshape(
            rows, columns
        )

    effects = (
        COUNTY_LOGIT_SD * drawn("county", plan.counties, 8)[county]
        + TRACT_LOGIT_SD * correlate_tracts(drawn("tract", plan.tracts, 8))[tract]
        + BLOCK_GROUP_LOGIT_SD * drawn("group", n, 8)
    )
    weights = np.maximum(spine.occupied.astype(np.float64), 1e-9)
    life = correlate_tracts(drawn("life", plan.tracts, 3))[tract]
    life = life - np.average(life, axis=0, weights=weights)  # the state as a whole is average
    own_life = drawn("own", n, 5)
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
