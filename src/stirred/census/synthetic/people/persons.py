"""Kernels that write the persons of a household or facility, with consistent ages, sexes, relationships and races."""

import numpy as np
from numpy.typing import NDArray

from stirred.census.synthetic.people.codes import (
    CENRACE,
    CODE_LIMITS,
    CODE_VALUES,
    HISPANIC_TABLE,
    NOT_HISPANIC_CODE,
    TWO_TABLE,
)
from stirred.census.synthetic.people.dice import Dice, below, mix, pick, unit, word
from stirred.compiled import compiled

RELATIONSHIP, SEX, AGE, RACE, HISPANIC = 0, 1, 2, 3, 4  # rows of the persons' array
HISPANIC_MASKS, HISPANIC_LIMITS = HISPANIC_TABLE
TWO_MASKS, TWO_LIMITS = TWO_TABLE
FAVOURITE = 0.35  # share of detailed codes that follow the neighbourhood's own

People = NDArray[np.int8]
Codes = NDArray[np.int16]


@compiled
def race_of(dice: Dice, group: int) -> int:
    """The races (a mask) of a person of one of the eight groups."""
    if group == 0:
        return int(HISPANIC_MASKS[pick(HISPANIC_LIMITS, unit(dice))])
    if group == 7:
        return int(TWO_MASKS[pick(TWO_LIMITS, unit(dice))])
    return 1 << (group - 1)


@compiled
def detail(row: int, u: float, v: float, favourite: NDArray[np.float64]) -> int:
    """A detailed code of one race (or ethnicity, row 6): the neighbourhood's own or any."""
    if v < FAVOURITE:
        u = favourite[row]
    return int(CODE_VALUES[row, pick(CODE_LIMITS[row], u)])


@compiled
def put(people: People, at: int, relationship: int, sex: int, age: int, mask: int, hispanic: int) -> None:
    """Write one person; the race stays a mask until the codes are given."""
    people[RELATIONSHIP, at] = relationship
    people[SEX, at] = sex
    people[AGE, at] = age
    people[RACE, at] = mask
    people[HISPANIC, at] = hispanic


@compiled
def give_codes(people: People, codes: Codes, at: int, name: int, favourite: NDArray[np.float64]) -> None:
    """Turn the mask into CENRACE and detailed codes; persons with the same family word share their codes."""
    mask = people[RACE, at]
    people[RACE, at] = CENRACE[mask]
    used = 0
    for race in range(6):
        if mask >> race & 1:
            codes[used, at] = detail(race, mix(name, race), mix(name, 16 + race), favourite)
            used += 1
    if mask & 1 and mix(name, 40) < 0.25:  # a second ancestry
        second = detail(0, mix(name, 41), 1.0, favourite)
        if second != codes[0, at]:
            codes[used, at] = second
            used += 1
    for empty in range(used, 8):
        codes[empty, at] = 0
    ethnicity = NOT_HISPANIC_CODE
    if people[HISPANIC, at] == 2:
        ethnicity = detail(6, mix(name, 6), mix(name, 22), favourite)
    codes[8, at] = ethnicity


@compiled
def child_age(dice: Dice, mother: int, householder: int, oldest: int) -> int:
    """The age of a child at home: most are young, and the age difference to the parents is plausible."""
    age = mother - 16 - int(12.0 * unit(dice) + 12.0 * unit(dice))
    if age > 22 and unit(dice) < 0.65:
        age = below(dice, 22)
    lowest = max(0, mother - 44, householder - 60)
    if age < lowest:
        age = lowest + below(dice, 4)
    return max(0, min(age, min(mother, householder) - 15, oldest))


@compiled
def child_kind(dice: Dice, age: int) -> int:
    """Biological, adopted, stepchild, or foster child."""
    u = unit(dice)
    if u < 0.925:
        return 6
    if u < 0.948:
        return 7
    return 16 if u > 0.994 and age <= 20 else 8


@compiled
def resident(
    dice: Dice,
    people: People,
    codes: Codes,
    at: int,
    place: int,
    low: int,
    high: int,
    middle: float,
    spread: float,
    male: float,
    group: int,
    favourite: NDArray[np.float64],
) -> None:
    """Write one resident of a facility, of an age that its type allows."""
    age = int(middle + spread * (unit(dice) + unit(dice) + unit(dice) - 1.5))
    if age < low or age > high:
        age = low + below(dice, high - low + 1)
    sex = 1 if unit(dice) < male else 2
    put(people, at, 18 + place, sex, age, race_of(dice, group), 2 if group == 0 else 1)
    give_codes(people, codes, at, word(dice), favourite)
