"""The kernel that makes one occupied home: its persons, and the household variables that follow from them."""

import numpy as np
from numpy.typing import NDArray

from stirred.census.synthetic.people.dice import Dice, draw_below, draw_unit, draw_word, mix_word
from stirred.census.synthetic.people.household_life import (
    ALONE,
    COHABITING,
    COHABITING_CHILDREN,
    MARRIED,
    MARRIED_AND_PARENT,
    MARRIED_CHILDREN,
    PARENT,
    RELATIVES,
    ROOMMATES,
    SAME_GROUP_SHARES,
    THREE_GENERATIONS,
    WITH_PARENT,
)
from stirred.census.synthetic.people.persons import (
    AGE,
    HISPANIC,
    RELATIONSHIP,
    People,
    draw_child_age,
    draw_child_kind,
    draw_race,
    write_person,
)
from stirred.compiled import compile_kernel

# Rows of the units' array of small numbers.
KIND, TENURE, TYPE, COUPLE, CHILDREN, MULTIGENERATIONAL, ELDERLY = 0, 1, 2, 3, 4, 5, 6
HOUSEHOLDER_SEX, HOUSEHOLDER_AGE, HOUSEHOLDER_RACE, HOUSEHOLDER_HISPANIC, VACANCY, GQ_TYPE = (
    7,
    8,
    9,
    10,
    11,
    12,
)
RELATIVES_PRESENT, MINORS, YOUNG = 13, 14, 15
UNIT_ROWS = 16


@compile_kernel
def draw_group(limits: NDArray[np.float64], u: float) -> int:
    """Draw a group of the block, for a person who is not a relative."""
    group = 0
    while group < 7 and u >= limits[group]:
        group += 1
    return group


@compile_kernel
def write_family(
    dice: Dice,
    people: People,
    first: int,
    size: int,
    way: int,
    age: int,
    sex: int,
    group: int,
    limits: NDArray[np.float64],
    names: NDArray[np.uint64],
) -> int:
    """Write the persons of a home, householder first; returns the couple's kind 0..4."""
    name = draw_word(dice)
    mask = draw_race(dice, group)
    hispanic = 2 if group == 0 else 1
    if way in (PARENT, MARRIED_CHILDREN, COHABITING_CHILDREN):
        age = max(age, 16 + 2 * size)
    write_person(people, first, 0 if size == 1 else 1, sex, age, mask, hispanic)
    names[:size] = name
    at = first + 1
    end = first + size
    if way == ALONE:
        return 0
    mother, child_mask, child_hispanic, couple = age, mask, hispanic, 0
    married = way in (MARRIED, MARRIED_CHILDREN, MARRIED_AND_PARENT)
    three = way == THREE_GENERATIONS
    if married or way in (COHABITING, COHABITING_CHILDREN) or (three and size > 3 and draw_unit(dice) < 0.6):
        unmarried = way in (COHABITING, COHABITING_CHILDREN)
        same = draw_unit(dice) < (0.06 if unmarried else 0.009)
        couple = (3 if unmarried else 1) + (1 if same else 0)
        other = sex if same else 3 - sex
        older = 2.0 if other == 1 else -2.0
        partner = int(age + older + 7.0 * (draw_unit(dice) + draw_unit(dice) + draw_unit(dice) - 1.5) + 0.5)
        partner = max(18 if age >= 20 else 16, min(102, partner))
        partner_group = (
            group if draw_unit(dice) < SAME_GROUP_SHARES[group] else draw_group(limits, draw_unit(dice))
        )
        partner_mask = mask if partner_group == group else draw_race(dice, partner_group)
        partner_hispanic = 2 if partner_group == 0 else 1
        if partner_group != group:
            names[1] = draw_word(dice)
        # relgq: 2 opposite-sex spouse, 3 opposite-sex partner, 4 same-sex spouse, 5 same-sex partner
        code = (4 if same else 2) + (1 if unmarried else 0)
        write_person(people, at, code, other, partner, partner_mask, partner_hispanic)
        at += 1
        if sex == 1 and not same:
            mother = partner
        if mix_word(name, 50) < 0.85:
            child_mask = mask | partner_mask
            child_hispanic = max(hispanic, partner_hispanic)
    if three:
        grandparent = max(18, min(age - 17, mother - 17, age - 18 - draw_below(dice, 16)))
        kind = 1 + draw_below(dice, 2)
        write_person(people, at, 6, kind, grandparent, child_mask, child_hispanic)
        at += 1
        if end - at >= 2 and draw_unit(dice) < 0.4:
            in_law = max(18, min(89, grandparent - 3 + draw_below(dice, 7)))
            write_person(people, at, 13, 3 - kind, in_law, child_mask, child_hispanic)
            at += 1
        while at < end:
            young = draw_below(dice, min(18, max(1, grandparent - 16)))
            write_person(people, at, 11, 1 + draw_below(dice, 2), young, child_mask, child_hispanic)
            at += 1
        return couple
    if way in (WITH_PARENT, MARRIED_AND_PARENT) and at < end:
        in_law = way == MARRIED_AND_PARENT and draw_unit(dice) < 0.45
        old = max(30, min(108, age + 18 + draw_below(dice, 18)))
        gender = 1 if draw_unit(dice) < 0.27 else 2
        write_person(people, at, 12 if in_law else 10, gender, old, mask, hispanic)
        at += 1
    while at < end:
        if way == ROOMMATES:
            lodger = draw_group(limits, draw_unit(dice))
            old = max(15, min(95, age - 6 + draw_below(dice, 13)))
            code = 15 if draw_unit(dice) < 0.6 else 17
            lodger_mask = draw_race(dice, lodger)
            write_person(people, at, code, 1 + draw_below(dice, 2), old, lodger_mask, 2 if lodger == 0 else 1)
            names[at - first] = draw_word(dice)
        elif way == RELATIVES:
            if draw_unit(dice) < 0.5:
                old, code = max(0, min(100, age - 7 + draw_below(dice, 15))), 9
            else:
                old, code = draw_below(dice, 70), 14
            write_person(people, at, code, 1 + draw_below(dice, 2), old, mask, hispanic)
        else:
            years = draw_child_age(dice, mother, age, 70)
            write_person(
                people,
                at,
                draw_child_kind(dice, years),
                1 + draw_below(dice, 2),
                years,
                child_mask,
                child_hispanic,
            )
        at += 1
    return couple


@compile_kernel
def describe_household(
    units: NDArray[np.int8], unit_at: int, people: People, first: int, size: int, couple: int
) -> None:
    """Compute the household variables from its persons: type, children, generations, the oldest and the youngest."""
    relatives = False
    married = False
    little = False
    school = False
    small = False
    grown = False
    young = False
    child = False
    above = False
    below_child = False
    oldest = 0
    for at in range(first, first + size):
        code = people[RELATIONSHIP, at]
        years = people[AGE, at]
        oldest = max(oldest, years)
        young |= years < 18
        if code > 5:  # neither householder nor spouse or partner
            small |= years < 6
            grown |= 6 <= years < 18
        married |= code in (2, 4)
        relatives |= code in (2, 4) or 6 <= code <= 14
        above |= code in (10, 12)
        below_child |= code == 11
        if 6 <= code <= 8:
            child = True
            little |= years < 6
            school |= 6 <= years < 18
    sex = people[1, first]
    units[KIND, unit_at] = 1
    if size == 1:
        units[TYPE, unit_at] = 4
    elif married:
        units[TYPE, unit_at] = 1
    elif relatives:
        units[TYPE, unit_at] = 1 + sex
    else:
        units[TYPE, unit_at] = 5
    units[COUPLE, unit_at] = couple
    units[CHILDREN, unit_at] = (2 if school else 1) if little else (3 if school else 0)
    units[MULTIGENERATIONAL, unit_at] = 1 if child and (above or below_child) else 0
    units[ELDERLY, unit_at] = 3 if oldest >= 75 else (2 if oldest >= 65 else (1 if oldest >= 60 else 0))
    units[RELATIVES_PRESENT, unit_at] = 1 if relatives else 0
    units[MINORS, unit_at] = (2 if grown else 1) if small else (3 if grown else 0)
    units[YOUNG, unit_at] = 1 if young else 0
    units[HOUSEHOLDER_SEX, unit_at] = sex
    units[HOUSEHOLDER_AGE, unit_at] = people[AGE, first]
    units[HOUSEHOLDER_RACE, unit_at] = people[3, first]
    units[HOUSEHOLDER_HISPANIC, unit_at] = people[HISPANIC, first]
