"""The kernel that fills block groups: blocks with uneven numbers of homes, their households, vacant units, facilities."""

import numpy as np
from numpy.typing import NDArray

from stirred.census.synthetic.people.codes import GQ_CODES, gq_type
from stirred.census.synthetic.people.dice import below, normal, pick, unit
from stirred.census.synthetic.people.families import (
    GQ_TYPE,
    HOUSEHOLDER_AGE,
    KIND,
    TENURE,
    VACANCY,
    any_group,
    describe,
    family,
)
from stirred.census.synthetic.people.household_life import (
    AGE_QUANTILES,
    LARGEST,
    MALE,
    OWN_BY_AGE,
    OWN_BY_GROUP,
    OWN_BY_WAY,
    PARENT,
    REACH,
    SIZE_BLOCK,
    SIZES,
    STEPS,
    TILT_OF_GROUP,
    TILTS,
    WAY_LIMITS,
)
from stirred.census.synthetic.people.neighbourhoods import BLOCK
from stirred.census.synthetic.people.persons import Codes, People, give_codes, resident
from stirred.census.synthetic.people.quarters import MEN, MIDDLE, OLDEST, SPREAD, YOUNGEST
from stirred.compiled import compiled

UNEVEN = 0.85  # standard deviation of the logarithm of a block's share of homes
OWN_BLOCK = 0.55  # how much blocks differ within their block group
VACANCIES: NDArray[np.float64] = np.cumsum([0.26, 0.03, 0.09, 0.05, 0.33, 0.01, 0.23])
GQ_DETAILED: NDArray[np.int16] = np.array(GQ_CODES, dtype=np.int16)
GQ_MAJOR: NDArray[np.int8] = np.array([gq_type(code) for code in GQ_CODES], dtype=np.int8)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@compiled
def shares(dice: NDArray[np.uint64], blocks: int, empty: float, total: Floats) -> None:
    """Cumulative shares of the homes of a block group by block, where a share of the blocks stays empty."""
    sum_ = 0.0
    for block in range(blocks):
        bare = unit(dice) < empty
        weight = np.exp(UNEVEN * normal(dice))
        if not bare:
            sum_ += weight
        total[block] = sum_
    if sum_ == 0.0:
        total[blocks - 1] = 1.0
        sum_ = 1.0
    for block in range(blocks):
        total[block] /= sum_


@compiled
def tilted(theta: float, limits: Floats) -> None:
    """Cumulative size distributions, one for each of the groups' tilts."""
    for row in range(TILTS.size):
        sum_ = 0.0
        for size in range(LARGEST):
            sum_ += SIZES[size] * np.exp((theta + TILTS[row]) * REACH[size])
            limits[row, size] = sum_
        for size in range(LARGEST):
            limits[row, size] /= sum_


@compiled
def settle(
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
    names = np.empty(LARGEST, dtype=np.uint64)
    size_limits = np.empty((TILTS.size, LARGEST))
    at, person, room = 0, 0, people.shape[1]
    for group in range(begin, end):
        dice[0] = seeds[group, 0]
        dice[1] = seeds[group, 1] | np.uint64(1)
        favourite = favourites[group]
        blocks = first_block[group + 1] - first_block[group]
        total = np.empty(blocks)
        shares(dice, blocks, empty[group], total)
        here = np.empty(facility_counts[group], dtype=np.int64)
        for f in range(here.size):  # some facilities are in blocks without other homes
            here[f] = below(dice, blocks) if unit(dice) < 0.12 else pick(total, unit(dice))
        u_occupied, u_vacant = unit(dice), unit(dice)
        done_occupied, done_vacant = 0, 0
        for block in range(blocks):
            homes = int(total[block] * occupied[group] + u_occupied) - done_occupied
            empty_homes = int(total[block] * vacant[group] + u_vacant) - done_vacant
            done_occupied += homes
            done_vacant += empty_homes
            theta = size_tilt[group] + SIZE_BLOCK * normal(dice)
            own_here = own[group] + OWN_BLOCK * normal(dice) + 0.4 * (theta - size_tilt[group])
            top, sum_ = -1e300, 0.0
            for g in range(8):
                limits[g] = composition[group, g] + BLOCK[g] * normal(dice)
                top = max(top, limits[g])
            for g in range(8):
                sum_ += np.exp(limits[g] - top)
                limits[g] = sum_
            for g in range(8):
                limits[g] /= sum_
            if homes > 0:
                tilted(theta, size_limits)
            for _ in range(homes):
                if person + LARGEST > room:
                    return -1
                g = any_group(limits, unit(dice))
                size = 1 + pick(size_limits[TILT_OF_GROUP[g]], unit(dice))
                way = pick(WAY_LIMITS[min(size, 6) - 1], unit(dice))
                # old and young neighbourhoods differ in their couples and single persons, less in their parents
                power = age_power[group] if way < PARENT else 1.0 + 0.25 * (age_power[group] - 1.0)
                age = int(AGE_QUANTILES[way, int(STEPS * unit(dice) ** power)])
                sex = 1 if unit(dice) < MALE[way] else 2
                couple = family(dice, people, person, size, way, age, sex, g, limits, names)
                for member in range(size):
                    give_codes(people, codes, person + member, names[member], favourite)
                describe(units, at, people, person, size, couple)
                age = int(units[HOUSEHOLDER_AGE, at])
                odds = own_here + OWN_BY_WAY[way] + OWN_BY_AGE[min(9, (age - 15) // 10)] + OWN_BY_GROUP[g]
                if unit(dice) * (1.0 + np.exp(-odds)) < 1.0:
                    free = 0.12 + 0.011 * max(0, age - 40) if age < 85 else 0.75
                    units[TENURE, at] = 2 if unit(dice) < free else 1
                else:
                    units[TENURE, at] = 4 if unit(dice) < 0.04 else 3
                block_out[at] = first_block[group] + block
                sizes[at] = size
                person += size
                at += 1
            for _ in range(empty_homes):
                units[KIND, at] = 2
                units[VACANCY, at] = 1 + pick(VACANCIES, unit(dice))
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
                    low, high, g = YOUNGEST[place], OLDEST[place], any_group(limits, unit(dice))
                    middle, spread, men = MIDDLE[place], SPREAD[place], MEN[place]
                    resident(dice, people, codes, person, place, low, high, middle, spread, men, g, favourite)
                    person += 1
                units[KIND, at] = 3
                units[GQ_TYPE, at] = GQ_MAJOR[place]
                facility[at] = GQ_DETAILED[place]
                block_out[at] = first_block[group] + block
                sizes[at] = living
                at += 1
    return person
