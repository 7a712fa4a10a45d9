"""The codes of synthetic records: races, detailed groups, group quarters, and their labels."""

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

RACES = ("White", "Black", "AIAN", "Asian", "NHPI", "other")
"""The six races, in the order of CENRACE; bit r of a mask is race r."""

RACE_MASKS: tuple[int, ...] = tuple(
    sum(1 << race for race in chosen) for several in range(1, 7) for chosen in combinations(range(6), several)
)
"""The mask of each CENRACE code 1..63: alone first, then pairs, triples … in lexicographic order."""

CENRACE_OF_MASK: NDArray[np.int8] = np.zeros(64, dtype=np.int8)
CENRACE_OF_MASK[list(RACE_MASKS)] = np.arange(1, 64, dtype=np.int8)

POPULATION_GROUPS = ("hispanic", "white", "black", "aian", "asian", "nhpi", "other", "two")
"""Hispanic of any race, then not Hispanic by race alone, then two or more: the eight groups of block tables."""

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
