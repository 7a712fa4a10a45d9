"""Kernels that write the persons of a household or facility, with consistent ages, sexes, relationships and races."""

import numpy as np
from numpy.typing import NDArray

from stirred.census.synthetic.people.codes import (
    CENRACE_OF_MASK,
    CODE_LIMITS,
    CODE_VALUES,
    HISPANIC_TABLE,
    NOT_HISPANIC_CODE,
    TWO_TABLE,
)
from stirred.census.synthetic.people.dice import Dice, draw_below, draw_unit, draw_word, mix_word, pick_share
from stirred.compiled import compile_kernel

RELATIONSHIP, SEX, AGE, RACE, HISPANIC = 0, 1, 2, 3, 4  # rows of the persons' array
HISPANIC_MASK_VALUES, HISPANIC_LIMITS = HISPANIC_TABLE
TWO_RACE_MASK_VALUES, TWO_LIMITS = TWO_TABLE
FAVOURITE_SHARE = 0.35  # share of detailed codes that follow the neighbourhood's own

People = NDArray[np.int8]
Codes = NDArray[np.int16]


@compile_kernel
def draw_race(dice: Dice, group: int) -> int:
    """Return the races (a mask) of a person of one of the eight groups."""
    if group == 0:
        return int(HISPANIC_MASK_VALUES[pick_share(HISPANIC_LIMITS, draw_unit(dice))])
    if group == 7:
        return int(TWO_RACE_MASK_VALUES[pick_share(TWO_LIMITS, draw_unit(dice))])
    return 1 << (group - 1)


@compile_kernel
def choose_code(row: int, u: float, v: float, favourite: NDArray[np.float64]) -> int:
    """Return a detailed code of one race (or ethnicity, row 6): the neighbourhood's own or any."""
    if v < FAVOURITE_SHARE:
        u = favourite[row]
    return int(CODE_VALUES[row, pick_share(CODE_LIMITS[row], u)])


@compile_kernel
def write_person(
    people: People, at: int, relationship: int, sex: int, age: int, mask: int, hispanic: int
) -> None:
    """Write one person; the race stays a mask until the codes are given."""
    people[RELATIONSHIP, at] = relationship
    people[SEX, at] = sex
    people[AGE, at] = age
    people[RACE, at] = mask
    people[HISPANIC, at] = hispanic


@compile_kernel
def give_codes(people: People, codes: Codes, at: int, name: int, favourite: NDArray[np.float64]) -> None:
    """Turn the mask into CENRACE and detailed codes; persons with the same family word share their codes."""
    mask = people[RACE, at]
    people[RACE, at] = CENRACE_OF_MASK[mask]
    used = 0
    for race in range(6):
        if mask >> race & 1:
            codes[used, at] = choose_code(race, mix_word(name, race), mix_word(name, 16 + race), favourite)
            used += 1
    if mask & 1 and mix_word(name, 40) < 0.25:  # a second ancestry
        second = choose_code(0, mix_word(name, 41), 1.0, favourite)
        if second != codes[0, at]:
            codes[used, at] = second
            used += 1
    for empty in range(used, 8):
        codes[empty, at] = 0
    ethnicity = NOT_HISPANIC_CODE
    if people[HISPANIC, at] == 2:
        ethnicity = choose_code(6, mix_word(name, 6), mix_word(name, 22), favourite)
    codes[8, at] = ethnicity


@compile_kernel
def draw_child_age(dice: Dice, mother: int, householder: int, oldest: int) -> int:
    """Return the age of a child at home: most are young, and the age difference to the parents is plausible."""
    age = mother - 16 - int(12.0 * draw_unit(dice) + 12.0 * draw_unit(dice))
    if age > 22 and draw_unit(dice) < 0.65:
        age = draw_below(dice, 22)
    lowest = max(0, mother - 44, householder - 60)
    if age < lowest:
        age = lowest + draw_below(dice, 4)
    return max(0, min(age, min(mother, householder) - 15, oldest))


@compile_kernel
def draw_child_kind(dice: Dice, age: int) -> int:
    """Return the relationship code of a child: biological, adopted, stepchild or foster child."""
    u = draw_unit(dice)
    if u < 0.925:
        return 6
    if u < 0.948:
        return 7
    return 16 if u > 0.994 and age <= 20 else 8


@compile_kernel
def write_resident(
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
    age = int(middle + spread * (draw_unit(dice) + draw_unit(dice) + draw_unit(dice) - 1.5))
    if age < low or age > high:
        age = low + draw_below(dice, high - low + 1)
    sex = 1 if draw_unit(dice) < male else 2
    write_person(people, at, 18 + place, sex, age, draw_race(dice, group), 2 if group == 0 else 1)
    give_codes(people, codes, at, draw_word(dice), favourite)
