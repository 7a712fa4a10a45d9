"""The kernel that fills block groups: blocks with uneven numbers of homes, their households, vacant units, facilities."""

import numpy as np
from numpy.typing import NDArray

from stirred.census.synthetic.people.codes import GQ_CODES, gq_type
from stirred.census.synthetic.people.dice import draw_below, draw_normal, draw_unit, pick_share
from stirred.census.synthetic.people.families import (
    GQ_TYPE,
    HOUSEHOLDER_AGE,
    KIND,
    TENURE,
    VACANCY,
    describe_household,
    draw_group,
    write_family,
)
from stirred.census.synthetic.people.household_life import (
    AGE_QUANTILE_STEPS,
    AGE_QUANTILES,
    GROUP_TILTS,
    MALE_SHARE_BY_WAY,
    MAX_HOUSEHOLD_PERSONS,
    OWN_BY_AGE,
    OWN_BY_GROUP,
    OWN_BY_WAY,
    PARENT,
    SIZE_BLOCK,
    SIZE_TILT_REACH,
    TILT_OF_GROUP,
    UNTILTED_SIZE_SHARES,
    WAY_LIMITS,
)
from stirred.census.synthetic.people.neighbourhoods import BLOCK_LOGIT_SD_BY_GROUP
from stirred.census.synthetic.people.persons import Codes, People, give_codes, write_resident
from stirred.census.synthetic.people.quarters import MEN, MIDDLE, OLDEST, SPREAD, YOUNGEST
from stirred.compiled import compile_kernel

BLOCK_SHARE_LOG_SD = 0.85  # standard deviation of the logarithm of a block's share of homes
BLOCK_SPREAD = 0.55  # how much blocks differ within their block group
VACANCY_LIMITS: NDArray[np.float64] = np.cumsum([0.26, 0.03, 0.09, 0.05, 0.33, 0.01, 0.23])
GQ_DETAILED: NDArray[np.int16] = np.array(GQ_CODES, dtype=np.int16)
GQ_MAJOR: NDArray[np.int8] = np.array([gq_type(code) for code in GQ_CODES], dtype=np.int8)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@compile_kernel
def fill_block_shares(dice: NDArray[np.uint64], blocks: int, empty: float, total: Floats) -> None:
    """Fill ``total`` with cumulative shares of homes by block; ``empty`` is the probability of no homes."""
    sum_ = 0.0
    for block in range(blocks):
        bare = draw_unit(dice) < empty
        weight = np.exp(BLOCK_SHARE_LOG_SD * draw_normal(dice))
        if not bare:
            sum_ += weight
        total[block] = sum_
    if sum_ == 0.0:
        total[blocks - 1] = 1.0
        sum_ = 1.0
    for block in range(blocks):
        total[block] /= sum_


@compile_kernel
def fill_tilted_sizes(theta: float, limits: Floats) -> None:
    """Fill ``limits`` with cumulative size distributions, one for each tilt of the groups."""
    for row in range(GROUP_TILTS.size):
        sum_ = 0.0
        for size in range(MAX_HOUSEHOLD_PERSONS):
            sum_ += UNTILTED_SIZE_SHARES[size] * np.exp((theta + GROUP_TILTS[row]) * SIZE_TILT_REACH[size])
            limits[row, size] = sum_
        for size in range(MAX_HOUSEHOLD_PERSONS):
            limits[row, size] /= sum_


@compile_kernel
def fill_block_groups(
    begin: int,
    end: int,
    seeds: NDArray[np.uint64],
    occupied: Ints,
    vacant: Ints,
    facility_counts: Ints,
    first_facility: Ints,
    places: NDArray[np.int8],
    residents: NDArray[np.int16],
    first_block: Ints,
    composition: Floats,
    size_tilt: Floats,
    own: Floats,
    age_power: Floats,
    empty: Floats,
    favourites: Floats,
    block_out: NDArray[np.int32],
    units: NDArray[np.int8],
    sizes: NDArray[np.int16],
    facility: NDArray[np.int16],
    people: People,
    codes: Codes,
) -> int:
    """Write all units and persons of the block groups begin..end-1; returns the persons, or -1 if there is no room."""
    dice = np.empty(2, dtype=np.uint64)
    limits = np.empty(8)
    names = np.empty(MAX_HOUSEHOLD_PERSONS, dtype=np.uint64)
    size_limits = np.empty((GROUP_TILTS.size, MAX_HOUSEHOLD_PERSONS))
    at, person, room = 0, 0, people.shape[1]
    for group in range(begin, end):
        dice[0] = seeds[group, 0]
        dice[1] = seeds[group, 1] | np.uint64(1)
        favourite = favourites[group]
        blocks = first_block[group + 1] - first_block[group]
        total = np.empty(blocks)
        fill_block_shares(dice, blocks, empty[group], total)
        here = np.empty(facility_counts[group], dtype=np.int64)
        for f in range(here.size):  # some facilities are in blocks without other homes
            here[f] = (
                draw_below(dice, blocks) if draw_unit(dice) < 0.12 else pick_share(total, draw_unit(dice))
            )
        u_occupied, u_vacant = draw_unit(dice), draw_unit(dice)
        done_occupied, done_vacant = 0, 0
        for block in range(blocks):
            homes = int(total[block] * occupied[group] + u_occupied) - done_occupied
            empty_homes = int(total[block] * vacant[group] + u_vacant) - done_vacant
            done_occupied += homes
            done_vacant += empty_homes
            theta = size_tilt[group] + SIZE_BLOCK * draw_normal(dice)
            own_here = own[group] + BLOCK_SPREAD * draw_normal(dice) + 0.4 * (theta - size_tilt[group])
            top, sum_ = -1e300, 0.0
            for g in range(8):
                limits[g] = composition[group, g] + BLOCK_LOGIT_SD_BY_GROUP[g] * draw_normal(dice)
                top = max(top, limits[g])
            for g in range(8):
                sum_ += np.exp(limits[g] - top)
                limits[g] = sum_
            for g in range(8):
                limits[g] /= sum_
            if homes > 0:
                fill_tilted_sizes(theta, size_limits)
            for _ in range(homes):
                if person + MAX_HOUSEHOLD_PERSONS > room:
                    return -1
                g = draw_group(limits, draw_unit(dice))
                size = 1 + pick_share(size_limits[TILT_OF_GROUP[g]], draw_unit(dice))
                way = pick_share(WAY_LIMITS[min(size, 6) - 1], draw_unit(dice))
                # old and young neighbourhoods differ in their couples and single persons, less in their parents
                power = age_power[group] if way < PARENT else 1.0 + 0.25 * (age_power[group] - 1.0)
                age = int(AGE_QUANTILES[way, int(AGE_QUANTILE_STEPS * draw_unit(dice) ** power)])
                sex = 1 if draw_unit(dice) < MALE_SHARE_BY_WAY[way] else 2
                couple = write_family(dice, people, person, size, way, age, sex, g, limits, names)
                for member in range(size):
                    give_codes(people, codes, person + member, names[member], favourite)
                describe_household(units, at, people, person, size, couple)
                age = int(units[HOUSEHOLDER_AGE, at])
                odds = own_here + OWN_BY_WAY[way] + OWN_BY_AGE[min(9, (age - 15) // 10)] + OWN_BY_GROUP[g]
                if draw_unit(dice) * (1.0 + np.exp(-odds)) < 1.0:
                    free = 0.12 + 0.011 * max(0, age - 40) if age < 85 else 0.75
                    units[TENURE, at] = 2 if draw_unit(dice) < free else 1
                else:
                    units[TENURE, at] = 4 if draw_unit(dice) < 0.04 else 3
                block_out[at] = first_block[group] + block
                sizes[at] = size
                person += size
                at += 1
            for _ in range(empty_homes):
                units[KIND, at] = 2
                units[VACANCY, at] = 1 + pick_share(VACANCY_LIMITS, draw_unit(dice))
                block_out[at] = first_block[group] + block
                at += 1
            for f in range(here.size):
                if here[f] != block:
                    continue
                place = places[first_facility[group] + f]
                living = residents[first_facility[group] + f]
                if person + living > room:
                    return -1
                for _ in range(living):
                    low, high, g = YOUNGEST[place], OLDEST[place], draw_group(limits, draw_unit(dice))
                    middle, spread, men = MIDDLE[place], SPREAD[place], MEN[place]
                    write_resident(
                        dice, people, codes, person, place, low, high, middle, spread, men, g, favourite
                    )
                    person += 1
                units[KIND, at] = 3
                units[GQ_TYPE, at] = GQ_MAJOR[place]
                facility[at] = GQ_DETAILED[place]
                block_out[at] = first_block[group] + block
                sizes[at] = living
                at += 1
    return person
