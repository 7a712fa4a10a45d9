"""The household types of DHC: production's 522 codes, recodes and sizes, from rules about households."""

import numpy as np
import polars as pl
import pytest

from stirred import Workload
from stirred.errors import InputError
from stirred.mechanisms.topdown.histogram import axis_expression
from stirred.mechanisms.topdown.rules import Constraints, Record, list_structural_zeros
from stirred.mechanisms.topdown.run.records import (
    GEOGRAPHY,
    HOUSEHOLD_RECODES,
    UNIT_COLUMNS,
    make_facility_rows,
    make_unit_rows,
)

UNITS = Workload.preset("dhc-units")
TYPES = UNITS.histogram.axis("hhtype")
PARTS = {name: TYPES.recode(name) for name in (*HOUSEHOLD_RECODES, "pair")}
MARRIED, COHABITING, NOBODY = (0, 1), (2, 3), (4,)  # groups of ``coupled``
UNDER_6, SCHOOL, BOTH, NONE = 0, 1, 2, 3


def where(**groups: tuple[int, ...]) -> list[int]:
    """The types whose parts are in the given groups."""
    return [i for i in range(TYPES.size) if all(PARTS[name][i] in of for name, of in groups.items())]


def numbers(*ranges: tuple[int, int]) -> list[int]:
    return [i for first, end in ranges for i in range(first, end)]


def test_sizes_of_production() -> None:
    """The histogram and every query have the numbers of cells that the Bureau's schema has."""
    assert (TYPES.size, TYPES.groups("hhtype183")) == (522, 183)
    sizes = {query.name: query.size for query in UNITS.queries}
    assert list(sizes.values()) == [8, 4, 28, 48, 20, 15_372, 138_348, 4_941, 1_578_528, 10]


@pytest.mark.parametrize(
    ("code", "couple", "own", "relatives", "children", "young", "generations", "persons"),
    [
        (10, 0, UNDER_6, 0, BOTH, 1, 0, 5),
        (104, 1, SCHOOL, 0, SCHOOL, 1, 0, 4),
        (141, 1, NONE, 0, SCHOOL, 1, 1, 4),
        (172, 2, UNDER_6, 0, UNDER_6, 1, 0, 3),
        (393, 4, NONE, 1, NONE, 1, 0, 1),
        (482, 4, NONE, 0, NONE, 0, 1, 3),
    ],
)
def test_published_codes(
    code: int,
    couple: int,
    own: int,
    relatives: int,
    children: int,
    young: int,
    generations: int,
    persons: int,
) -> None:
    """Codes and flags from the tests of the Bureau's attribute."""
    found = [PARTS[name][code] for name in HOUSEHOLD_RECODES]
    assert found == [couple, own, relatives, children, young, generations, persons - 1]


def test_published_groups() -> None:
    """Codes by family, couple, own children and size, from the same tests."""
    assert where(coupled=MARRIED) == numbers((0, 172))
    assert where(relatives=(0,)) == numbers((0, 256), (282, 366), (394, 493))
    assert where(relatives=(1,)) == numbers((256, 282), (366, 394), (493, 522))
    assert where(coupled=MARRIED, own=(UNDER_6, SCHOOL, BOTH)) == numbers((0, 41), (86, 127))
    assert where(coupled=MARRIED, own=(UNDER_6,)) == numbers((0, 17), (86, 103))
    assert where(coupled=MARRIED, own=(BOTH,)) == numbers((34, 41), (120, 127))
    other = (*COHABITING, *NOBODY)
    assert where(coupled=other, own=(UNDER_6,)) == numbers((172, 189), (282, 299), (394, 415))
    assert where(coupled=other, own=(SCHOOL,)) == numbers((189, 206), (299, 316), (415, 436))
    assert where(coupled=other, own=(BOTH,)) == numbers((206, 213), (316, 323), (436, 445))
    assert where(coupled=other, own=(NONE,)) == numbers((213, 282), (323, 394), (445, 522))
    assert where(hhsize=(0,)) == [392, 393]
    two = [66, 76, 152, 162, 270, 276, 380, 386, 394, 415, 445, 456, 476, 487, 493, 499, 510, 516]
    assert where(hhsize=(1,)) == two
    assert where(hhsize=(1,), young=(1,)) == [76, 162, 276, 386, 394, 415, 445, 456, 487, 493, 499, 516]
    assert where(hhsize=(2,), own=(BOTH,)) == [436]
    assert where(hhsize=(2,), pair=(0,), own=(UNDER_6, SCHOOL, BOTH)) == [0, 17, 86, 103, 172, 189, 282, 299]
    assert where(hhsize=(3,), pair=(0,), own=(BOTH,)) == [34, 120, 206, 316]


def test_types_come_from_the_columns_of_a_household() -> None:
    homes = pl.DataFrame({
        "size": [5, 1, 0, 3, 2], "couple": [1, 0, 0, 0, 1], "children": [1, 0, 0, 0, 1], "relatives": [1, 0, 0, 1, 1],
        "minors": [2, 0, 0, 0, 1], "young": [1, 1, 0, 0, 1], "multigenerational": [0, 0, 0, 1, 0],
    })  # fmt: skip
    found = homes.select(axis_expression(TYPES, homes.schema)).to_series().to_list()
    assert found == [
        10,
        393,
        392,
        482,
        None,
    ]  # the last cannot exist: two persons are not a couple with a child


def test_a_unit_in_the_bureaus_layout() -> None:
    """Codes of the unit file from the layout: a married couple, a cohabiting one, a man alone, a vacant unit."""
    records = pl.DataFrame({
        "block": ["390599771001000"] * 5, "sex": [1, 1, 0, 0, 1], "hhage": [2, 1, 0, 0, 6], "hisp": [0, 1, 0, 0, 0],
        "race": [0, 6, 1, 0, 2], "elderly": [0, 0, 0, 0, 2], "tenvac": [0, 2, 1, 9, 2], "HHTYPE": [10, 172, 393, 392, 482],
    })  # fmt: skip
    made = make_unit_rows(TYPES, records)
    assert made.columns == ["SCHEMA_TYPE_CODE", "SCHEMA_BUILD_ID", *GEOGRAPHY, *UNIT_COLUMNS]
    assert made.select("TABTRACTCE", "TABBLK").row(0) == ("977100", "1000")
    assert ["|".join(row) for row in made.select(UNIT_COLUMNS).rows()] == [
        "2|000|1|0|5|1|01|1|5|1|3|1|01|1|1|0|0|0|3|2",
        "2|000|3|0|3|3|03|3|4|1|2|2|07|1|1|0|0|0|1|2",
        "2|000|2|0|1|4|09|0|0|0|1|1|02|4|1|0|0|0|4|1",
        "2|000|0|7|0|0|00|0|0|0|0|0|00|0|0|0|0|0|0|0",
        "2|000|3|0|3|3|07|5|5|2|7|1|03|4|0|1|1|0|4|2",
    ]
    counts = pl.DataFrame({"block": ["390599771001000"], "kind": [10], "count": [2]})
    quarters = make_facility_rows(counts, "HHTYPE")
    assert ["|".join(row) for row in quarters.select(UNIT_COLUMNS).rows()] == [
        "4|301|0|0|0|0|00|0|0|0|0|0|00|0|0|0|0|0|0|0"
    ] * 2


ALONE, CHILD_ALONE, MOTHER, COUPLE, FATHER_OF_TWO = 392, 393, 394, 270, 436  # codes of types
MAN, WOMAN = 0, 1


@pytest.mark.parametrize(
    ("sex", "hhage", "elderly", "code", "possible"),
    [
        (MAN, 0, 0, ALONE, True),
        (MAN, 3, 1, ALONE, False),  # alone at 45-54, and somebody of 60
        (MAN, 6, 1, ALONE, False),  # alone at 65-74, and the oldest is 60-64
        (WOMAN, 8, 3, ALONE, True),
        (WOMAN, 0, 0, CHILD_ALONE, True),
        (WOMAN, 2, 0, CHILD_ALONE, False),  # alone under 18 at 35-44
        (WOMAN, 4, 0, MOTHER, True),
        (WOMAN, 4, 2, MOTHER, False),  # 55-59 with one child, and somebody of 65
        (WOMAN, 5, 1, MOTHER, False),  # 60-64 with an own child under 6
        (MAN, 5, 1, MOTHER, True),
        (MAN, 7, 3, MOTHER, False),  # a man of 75 with an own child under 6
        (MAN, 4, 2, COUPLE, True),
        (MAN, 0, 3, COUPLE, False),  # under 25 with a partner of 75
        (MAN, 6, 1, COUPLE, False),  # the householder is 65-74, the oldest 60-64
        (MAN, 3, 3, FATHER_OF_TWO, False),  # three persons, two of them children, and somebody of 75
        (MAN, 3, 0, FATHER_OF_TWO, True),
    ],
)
def test_structural_zeros_of_production(
    sex: int, hhage: int, elderly: int, code: int, possible: bool
) -> None:
    rules = Constraints((), list_structural_zeros(UNITS), Record(), UNITS.histogram)
    cell = np.ravel_multi_index((sex, hhage, 0, 0, elderly, 0, code), UNITS.histogram.shape)
    assert rules.possible(np.array([cell])).tolist() == [possible]


def test_a_vacant_unit_has_one_cell() -> None:
    rules = Constraints((), list_structural_zeros(UNITS), Record(), UNITS.histogram)
    cells = np.arange(UNITS.histogram.cells)[
        np.unravel_index(np.arange(UNITS.histogram.cells), UNITS.histogram.shape)[5] == 3
    ]
    left = np.unravel_index(cells[rules.possible(cells)], UNITS.histogram.shape)
    assert [axis.tolist() for axis in left] == [[0], [0], [0], [0], [0], [3], [ALONE]]


def test_a_workload_like_a_preset() -> None:
    """What it does not say itself comes from the preset; a name that is none is refused."""
    own = Workload.parse('like = "small"\nname = "mine"\n')
    assert (own.name, own.queries) == ("mine", Workload.preset("small").queries)
    with pytest.raises(InputError, match="no preset"):
        Workload.parse('like = "smal"\nname = "mine"\n')
