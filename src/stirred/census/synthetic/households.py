"""Draw who lives in a synthetic home or facility: codes, sizes, ages, relationships and races."""

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from stirred.kernels import compile_kernel

# The codes of synthetic records: races, detailed groups, group quarters, and their labels.

RACES = ("White", "Black", "AIAN", "Asian", "NHPI", "other")
"""The six races, in the order of CENRACE; bit r of a mask is race r."""

RACE_MASKS: tuple[int, ...] = tuple(
    sum(1 << race for race in chosen) for several in range(1, 7) for chosen in combinations(range(6), several)
)
"""The mask of each CENRACE code 1..63: alone first, then pairs, triples … in lexicographic order."""

CENRACE_OF_MASK: NDArray[np.int8] = np.zeros(64, dtype=np.int8)
CENRACE_OF_MASK[list(RACE_MASKS)] = np.arange(1, 64, dtype=np.int8)

GQ_CODES: tuple[int, ...] = (
    *(101, 102, 103, 104, 105, 106, 201, 202, 203, 301, 401, 402),
    *(403, 404, 405, 501, 601, 602, 701, 801, 802, 900, 901, 997),
)
"""The 24 detailed group-quarters codes; person.relationship is 18 + the position here."""

GQ_TYPES = ("correctional", "juvenile", "nursing", "other institutional", "college", "military", "other")


def gq_type(code: int) -> int:
    """Return the major type 1..7 of a detailed group-quarters code, by its hundreds digit.

    >>> gq_type(301), gq_type(501), gq_type(997)
    (3, 5, 7)
    """
    return min(code // 100, 7)


def parse_weights(text: str) -> list[tuple[str, float]]:
    """Return keys with weights, as written ``key:weight key:weight``.

    >>> parse_weights("1000:34 1171:17")
    [('1000', 34.0), ('1171', 17.0)]
    """
    return [(key, float(weight)) for key, weight in (item.split(":") for item in text.split())]


# Detailed race codes by race, each with a weight: codes of the 2020 DDHC-A production list. The weights are round
# numbers near the published order of the groups, not estimates of anything.
DETAILED_RACE_WEIGHTS: tuple[str, ...] = (
    # White: checkbox, German, Irish, English, Italian, Polish, French, Swedish, Lebanese, Iranian, Egyptian
    "1000:34 1171:17 1201:14 1121:16 1206:7 1286:4 1156:3 1355:2 7151:1 7091:1 7071:1",
    # Black: checkbox, African American, Jamaican, Haitian, Nigerian, Ethiopian, Somali
    "3000:28 3011:60 3446:3 3441:3 3236:3 3166:2 3266:1",
    # AIAN: checkbox, Cherokee, Navajo, Choctaw, Chippewa, Sioux, Apache, Aztec
    "5000:25 5599:18 5999:14 5689:8 5649:8 6295:7 5514:5 6843:15",
    # Asian: Chinese, Asian Indian, Filipino, Vietnamese, Korean, Japanese, Pakistani, Hmong, Cambodian, Thai
    "4020:24 4220:24 4450:18 4520:11 4050:8 4040:5 4290:4 4080:2 4440:2 4510:2",
    # NHPI: Native Hawaiian, Samoan, Chamorro, Tongan, Fijian, Marshallese
    "7530:40 7550:20 7615:15 7561:8 7711:7 7641:10",
    # some other race: checkbox, Brazilian, Guyanese, Belizean, Cabo Verdean, multiracial
    "8000:78 8060:8 8140:5 8040:2 8080:3 8570:4",
)
NOT_HISPANIC_CODE = 9950
# Mexican, Puerto Rican, Cuban, Salvadoran, Dominican, Guatemalan, Colombian, Honduran, Ecuadorian, Peruvian, Spaniard
ETHNICITY_WEIGHTS = "2010:59 2330:10 2310:4 2151:4 2321:4 2110:3 2231:3 2120:2 2240:2 2260:2 2400:2 2790:5"

CODE_VALUES: NDArray[np.int16] = np.zeros((7, 16), dtype=np.int16)
CODE_LIMITS: NDArray[np.float64] = np.ones((7, 16), dtype=np.float64)
for _row, _text in enumerate((*DETAILED_RACE_WEIGHTS, ETHNICITY_WEIGHTS)):
    _list = parse_weights(_text)
    CODE_VALUES[_row, : len(_list)] = [int(code) for code, _ in _list]
    CODE_VALUES[_row, len(_list) :] = int(_list[-1][0])
    CODE_LIMITS[_row, : len(_list)] = np.cumsum([weight for _, weight in _list]) / sum(
        weight for _, weight in _list
    )

# Race masks within the two groups that are not one race (W, B, I, A, P, O stand for the six races).
HISPANIC_MASK_WEIGHTS = "O:42 W:20 WO:30 B:2 I:2 WB:1 BO:1 IO:1 A:1"
TWO_RACE_MASK_WEIGHTS = (
    "WI:31 WB:19 WA:18 WO:14 BO:4 BI:3 WBI:2 WP:2 AP:2 WAP:2 BA:1 AO:1 WBO:1 WBIA:0.3 WBIAP:0.05 WBIAPO:0.02"
)


def make_mask_table(text: str) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return masks and cumulative shares of a weighted list of race combinations.

    >>> masks, limits = make_mask_table("W:1 WO:3")
    >>> masks.tolist(), limits.tolist()
    ([1, 33], [0.25, 1.0])
    """
    items = parse_weights(text)
    masks = np.array([sum(1 << "WBIAPO".index(letter) for letter in key) for key, _ in items], dtype=np.int64)
    limits = np.cumsum([weight for _, weight in items])
    return masks, limits / limits[-1]


HISPANIC_TABLE = make_mask_table(HISPANIC_MASK_WEIGHTS)
_RARE_MASK_WEIGHTS = " ".join(
    "".join(letter for r, letter in enumerate("WBIAPO") if mask >> r & 1) + ":0.01" for mask in RACE_MASKS[6:]
)
TWO_TABLE = make_mask_table(f"{TWO_RACE_MASK_WEIGHTS} {_RARE_MASK_WEIGHTS}")  # every combination occurs


def _parse_labels(text: str, first: int = 0) -> dict[int, str]:
    return dict(enumerate(text.split("|"), first))


CODE_LABELS: dict[str, dict[int, str]] = {
    "kind": _parse_labels("occupied|vacant|group quarters", first=1),
    "tenure": _parse_labels("not applicable|owned with a mortgage|owned free and clear|rented|no rent paid"),
    "type": _parse_labels(
        "not applicable|married couple|other family, male householder|other family, female householder|"
        "living alone|nonfamily, not alone"
    ),
    "couple": _parse_labels(
        "no couple|married, opposite sex|married, same sex|unmarried partners, opposite sex|"
        "unmarried partners, same sex"
    ),
    "children": _parse_labels("no own children under 18|under 6 only|under 6 and 6-17|6-17 only"),
    "multigenerational": _parse_labels("no|three or more generations"),
    "relatives": _parse_labels("no relative of the householder|with relatives"),
    "minors": _parse_labels("none under 18|under 6 only|under 6 and 6-17|6-17 only"),
    "young": _parse_labels("nobody under 18|somebody under 18"),
    "elderly": _parse_labels("no one of 60 or over|oldest is 60-64|oldest is 65-74|oldest is 75 or over"),
    "sex": _parse_labels("not applicable|male|female"),
    "hispanic": _parse_labels("not applicable|not Hispanic|Hispanic"),
    "vacancy": _parse_labels(
        "not vacant|for rent|rented, not occupied|for sale|sold, not occupied|seasonal|migrant workers|other"
    ),
    "gq_type": _parse_labels("|".join(("no group quarters", *GQ_TYPES))),
    "race": {
        0: "not applicable",
        **{
            code: "+".join(RACES[r] for r in range(6) if mask >> r & 1)
            for code, mask in enumerate(RACE_MASKS, 1)
        },
    },
    "relationship": _parse_labels(
        "householder alone|householder|opposite-sex spouse|opposite-sex partner|same-sex spouse|same-sex partner|"
        "biological child|adopted child|stepchild|sibling|parent|grandchild|parent-in-law|child-in-law|"
        "other relative|roommate|foster child|other nonrelative|"
        + "|".join(f"group quarters {code}" for code in GQ_CODES)
    ),
}


# A fast reproducible generator for kernels: splitmix, with seed and step from a chance stream.
#
# No guarantee depends on synthetic records, so speed matters most; every block group has its own pair of 64-bit words
# from the key, so its records do not depend on order, chunks or threads.

Dice = NDArray[np.uint64]  # [position, step]; the step is odd


@compile_kernel
def draw_word(dice: Dice) -> int:
    """Return the next 64 bits (Steele, Lea, Flood 2014: splitmix)."""
    dice[0] += dice[1]
    z = dice[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))  # type: ignore[no-any-return]


@compile_kernel
def draw_unit(dice: Dice) -> float:
    """Return a uniform number in [0, 1)."""
    return (draw_word(dice) >> np.uint64(11)) * 1.1102230246251565e-16  # 2⁻⁵³


@compile_kernel
def draw_below(dice: Dice, bound: int) -> int:
    """Return a uniform integer in 0..bound-1."""
    return int(draw_unit(dice) * bound)


@compile_kernel
def draw_normal(dice: Dice) -> float:
    """Return a standard normal number (Box and Muller 1958)."""
    return np.sqrt(-2.0 * np.log(1.0 - draw_unit(dice))) * np.cos(6.283185307179586 * draw_unit(dice))  # type: ignore[no-any-return]


@compile_kernel
def pick_share(limits: NDArray[np.float64], u: float) -> int:
    """Return the first position whose cumulative share exceeds u."""
    last = limits.size - 1
    i = 0
    while i < last and u >= limits[i]:
        i += 1
    return i


@compile_kernel
def mix_word(value: int, salt: int) -> float:
    """Return a uniform number that depends only on a word and a salt."""
    z = np.uint64(value) ^ (np.uint64(salt + 1) * np.uint64(0x9E3779B97F4A7C15))
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((z ^ (z >> np.uint64(31))) >> np.uint64(11)) * 1.1102230246251565e-16


# The distribution of households: sizes, ways of living together, and the householder's age in each.

# Shares of household sizes 1, 2, … over all neighbourhoods, near those of 2020 (mean 2.48).
SIZE_SHARES: NDArray[np.float64] = np.array(
    [0.285, 0.335, 0.156, 0.129, 0.058, 0.022, 0.0085, 0.0035, 0.0015, 0.0008, 0.0004, 0.0002, 0.0001]
)
MAX_HOUSEHOLD_PERSONS = SIZE_SHARES.size
# Neighbourhoods tilt the distribution by exp(θ · REACH[size]), θ normal with these standard deviations.
SIZE_TILT_REACH: NDArray[np.float64] = np.array([0.0, 1.0, 1.6, 2.0, 2.2, *(2.3,) * 8])
SIZE_TRACT, SIZE_GROUP, SIZE_BLOCK = 0.50, 0.28, 0.40
# How far the householder's group tilts it too, and which of the tilts is the group's.
GROUP_TILTS: NDArray[np.float64] = np.array([-0.05, 0.03, 0.12, 0.28])
TILT_OF_GROUP: NDArray[np.int64] = np.array([3, 0, 1, 2, 2, 3, 2, 1])


def untilt_shares(shares: NDArray[np.float64], spread: float) -> NDArray[np.float64]:
    r"""The distribution whose tilts average to the shares: $\mathrm E_\theta[p_k e^{\theta r_k} / Z_\theta] = s_k$.

    >>> base = untilt_shares(SIZE_SHARES, 0.7)
    >>> bool(base[2] > SIZE_SHARES[2])  # tilting moves households from the middle to both ends
    True
    """
    grid = np.linspace(-4.0, 4.0, 81)
    weights = np.exp(-0.5 * grid**2)
    weights /= weights.sum()
    factors = np.exp(spread * grid[:, None] * SIZE_TILT_REACH)
    base = shares.copy()
    for _ in range(200):
        tilted = factors * base
        mixed = weights @ (tilted / tilted.sum(axis=1, keepdims=True))
        base *= shares / mixed
    return np.asarray(base / base.sum(), dtype=np.float64)


UNTILTED_SIZE_SHARES: NDArray[np.float64] = untilt_shares(
    SIZE_SHARES, float(np.sqrt(SIZE_TRACT**2 + SIZE_GROUP**2 + SIZE_BLOCK**2))
)

# Ways of living together.
ALONE, MARRIED, COHABITING, PARENT, WITH_PARENT, RELATIVES, ROOMMATES = 0, 1, 2, 3, 4, 5, 6
MARRIED_CHILDREN, COHABITING_CHILDREN, THREE_GENERATIONS, MARRIED_AND_PARENT = 7, 8, 9, 10

# Shares of the ways among households of 1, 2, 3, 4, 5 and 6 or more persons (keys as numbered above).
_WAY_WEIGHTS = (
    "0:1",
    "1:53 2:12 3:17 4:4 5:6 6:8",
    "7:50 8:9 3:21 4:3 5:4 6:5 9:6 10:2",
    "7:64 8:8 3:12 4:2 5:2 6:3 9:6 10:3",
    "7:62 8:7 3:11 4:2 5:2 6:2 9:9 10:5",
    "7:52 8:6 3:10 4:3 5:4 6:1 9:15 10:9",
)
WAY_LIMITS: NDArray[np.float64] = np.zeros((6, 11))
for _row, _text in enumerate(_WAY_WEIGHTS):
    for _key, _weight in parse_weights(_text):
        WAY_LIMITS[_row, int(_key)] = _weight
WAY_LIMITS = np.cumsum(WAY_LIMITS, axis=1) / WAY_LIMITS.sum(axis=1, keepdims=True)

# The householder's age by way: mixtures of normal curves (weight, mean, standard deviation), then the range.
_AGE_LAWS: tuple[tuple[tuple[tuple[float, float, float], ...], int, int], ...] = (
    (((0.28, 29, 6), (0.30, 50, 9), (0.42, 72, 11)), 18, 104),
    (((0.20, 31, 6), (0.80, 64, 11)), 18, 100),
    (((0.70, 30, 6), (0.30, 52, 11)), 18, 92),
    (((0.75, 39, 9), (0.25, 60, 12)), 18, 95),
    (((1.0, 48, 13),), 18, 80),
    (((0.40, 28, 8), (0.60, 56, 14)), 15, 96),
    (((0.75, 27, 6), (0.25, 50, 14)), 15, 92),
    (((0.85, 41, 8), (0.15, 56, 8)), 18, 84),
    (((1.0, 35, 8),), 18, 70),
    (((1.0, 58, 8),), 40, 90),
    (((1.0, 45, 9),), 22, 75),
)
AGE_QUANTILE_STEPS = 4096
AGE_QUANTILES: NDArray[np.int8] = np.zeros((len(_AGE_LAWS), AGE_QUANTILE_STEPS), dtype=np.int8)
for _way, (_mixture, _low, _high) in enumerate(_AGE_LAWS):
    _years = np.arange(_low, _high + 1)
    _density = sum(w / s * np.exp(-0.5 * ((_years - m) / s) ** 2) for w, m, s in _mixture)
    _limits = np.cumsum(_density) / np.sum(_density)
    AGE_QUANTILES[_way] = _years[
        np.searchsorted(_limits, (np.arange(AGE_QUANTILE_STEPS) + 0.5) / AGE_QUANTILE_STEPS)
    ]

# Share of male householders by way.
MALE_SHARE_BY_WAY: NDArray[np.float64] = np.array(
    [0.46, 0.56, 0.52, 0.2, 0.45, 0.48, 0.55, 0.58, 0.5, 0.4, 0.58]
)
# How the odds of owning move with the way of living, and with the householder's age (by ten years from 15).
OWN_BY_WAY: NDArray[np.float64] = np.array([-0.35, 0.75, -0.5, -0.55, 0.2, -0.1, -1.2, 0.65, -0.7, 0.35, 0.7])
OWN_BY_AGE: NDArray[np.float64] = np.array([-2.0, -0.95, -0.05, 0.3, 0.6, 0.85, 0.75, 0.4, 0.2, 0.0])
# By group: Hispanic, white, black, AIAN, Asian, NHPI, other, two or more.
OWN_BY_GROUP: NDArray[np.float64] = np.array([-0.35, 0.3, -0.65, -0.35, 0.05, -0.45, -0.35, -0.2])
# Chance that a spouse or partner is of the same group.
SAME_GROUP_SHARES: NDArray[np.float64] = np.array([0.8, 0.92, 0.86, 0.5, 0.8, 0.5, 0.4, 0.25])


# Kernels that write the persons of a household or facility, with consistent ages, sexes, relationships and races.

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


# The kernel that makes one occupied home: its persons, and the household variables that follow from them.

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


# Draw group quarters: the facilities of a block group, their sizes, and the ages allowed in them.

# By code: chance that a block group has any, mean number where it has, typical residents, youngest and oldest
# resident (TopDown's structural zeros), middle of their ages, spread, share of men.
_FACILITY_TEXT = """
101 .0004 1 600 18  90 36 40 .92
102 .0009 1 1200 18 90 38 40 .93
103 .0050 1 700 16  90 38 40 .92
104 .0120 1 190 16  85 35 38 .86
105 .0060 1  60 18  80 36 36 .80
106 .0002 1  80 17  65 28 24 .92
201 .0110 1   9  3  25 14 12 .60
202 .0060 1  18  5  25 15 10 .60
203 .0040 1  30 10  25 16  6 .82
301 .0680 1  92 20 110 83 34 .33
401 .0040 1  45 15  95 42 50 .60
402 .0040 1  12  0  95 55 70 .52
403 .0040 1   8 18 105 80 36 .42
404 .0001 1  10 17  65 32 30 .80
405 .0020 1  25  3  30 15 16 .62
501 .0120 6 165 16  65 20  6 .46
601 .0016 5 160 17  65 23 12 .84
602 .0003 1 120 17  65 25 14 .82
701 .0280 1  22  0  90 34 66 .60
801 .2600 1.4 6 16 105 50 60 .57
802 .0480 1  14 16  90 38 44 .68
900 .0005 1  18 16  75 38 40 .96
901 .0180 1  15  0  90 34 40 .70
997 .0180 1  20  0  95 40 70 .52
"""
_FACILITY_ROWS = [line.split() for line in _FACILITY_TEXT.strip().splitlines()]
assert tuple(int(row[0]) for row in _FACILITY_ROWS) == GQ_CODES
_FACILITY_NUMBERS = np.array([[float(cell) for cell in row[1:]] for row in _FACILITY_ROWS])
PRESENT, SEVERAL, RESIDENTS = (np.ascontiguousarray(_FACILITY_NUMBERS[:, k]) for k in range(3))
YOUNGEST, OLDEST = (_FACILITY_NUMBERS[:, k].astype(np.int64) for k in (3, 4))
MIDDLE, SPREAD, MEN = (np.ascontiguousarray(_FACILITY_NUMBERS[:, k]) for k in (5, 6, 7))
MAX_FACILITY_PERSONS = 20_000


@compile_kernel
def _fill_facilities(
    seeds: NDArray[np.uint64], counts: NDArray[np.int64], places: NDArray[np.int8], sizes: NDArray[np.int16]
) -> int:
    dice = np.empty(2, dtype=np.uint64)
    at = 0
    for group in range(seeds.shape[0]):
        dice[0] = seeds[group, 0]
        dice[1] = seeds[group, 1] | np.uint64(1)
        first = at
        for place in range(24):
            if draw_unit(dice) >= PRESENT[place]:
                continue
            more = 1.0 - 1.0 / SEVERAL[place]
            again = True
            while again:
                residents = RESIDENTS[place] * np.exp(0.8 * draw_normal(dice) - 0.32)
                if at < sizes.size:
                    places[at] = place
                    sizes[at] = max(1, min(MAX_FACILITY_PERSONS, int(residents + 0.5)))
                at += 1
                again = draw_unit(dice) < more
        counts[group] = at - first
    return at


def draw_facilities(
    seeds: NDArray[np.uint64],
) -> tuple[NDArray[np.int64], NDArray[np.int8], NDArray[np.int16]]:
    """Return facilities by block group, then the code's position and the residents of each facility.

    >>> counts, places, sizes = draw_facilities(np.arange(2000, dtype=np.uint64).reshape(1000, 2) * 977 + 1)
    >>> int(counts.sum()) == len(places) == len(sizes), 300 < len(places) < 1200
    (True, True)
    """
    counts = np.zeros(len(seeds), dtype=np.int64)
    empty = np.zeros(0, dtype=np.int8), np.zeros(0, dtype=np.int16)
    total = _fill_facilities(seeds, counts, *empty)
    places, sizes = np.zeros(total, dtype=np.int8), np.zeros(total, dtype=np.int16)
    _fill_facilities(seeds, counts, places, sizes)
    return counts, places, sizes
