"""The 18 tables of blocks of the 2010 Summary File 1 that the reconstruction study used (P1, P6–P12, P12A–I, P14)."""

from bisect import bisect
from itertools import combinations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from stirred.assess.attack.reconstruction.design import Covering, TableDesign

SEX, AGE_CLASS, RACE, HISPANIC = "sex", "age_class", "race", "hispanic"
AGE_STARTS = (*range(22), 22, 25, 30, 35, 40, 45, 50, 55, 60, 62, 65, 67, 70, 75, 80, 85)
"""Where each of the 38 age classes begins that P12 and P14 tell apart: 0, 1, … 21, 22–24, 25–29, … 85 and over."""

AGE_CLASSES = {age: bisect(AGE_STARTS, age) - 1 for age in range(AGE_STARTS[-1] + 1)}

P12_STARTS = (0, 5, 10, 15, 18, *AGE_STARTS[20:])
"""Where each of the 23 age classes of P12 begins."""

RACE_SETS: tuple[frozenset[int], ...] = tuple(
    frozenset(chosen) for several in range(1, 7) for chosen in combinations(range(6), several)
)
"""The races of the codes 1..63 (CENRACE): White, Black, AIAN, Asian, NHPI, other, then pairs, triples and so on."""

Integers = NDArray[np.int64]


def age_class(age: pl.Expr) -> pl.Expr:
    """Return the age class 0..37 of an age in years.

    >>> pl.DataFrame({"a": [0, 21, 24, 85, 110]}).select(age_class(pl.col("a")))["a"].to_list()
    [0, 21, 22, 37, 37]
    """
    return (
        age.cast(pl.Int64)
        .clip(0, AGE_STARTS[-1])
        .replace_strict(AGE_CLASSES, default=None, return_dtype=pl.Int64)
    )


def block_design() -> TableDesign:
    """Return the cells sex × age class × race × Hispanic origin and the tables that count them.

    P1 follows from P12, and P12A–G are one table here, because every person is counted in exactly one of them.

    >>> block_design().cells.height
    9576
    """
    parts = np.indices((2, len(AGE_STARTS), len(RACE_SETS), 2)).reshape(4, -1)
    sex, age, race, hispanic = (part.astype(np.int64) for part in parts)
    first = np.asarray(AGE_STARTS)[age]
    p12_age = np.searchsorted(P12_STARTS, first, side="right") - 1
    sexes_by_age = sex * len(P12_STARTS) + p12_age
    many = len(RACE_SETS)
    adult, nowhere = first >= 18, np.full_like(sex, -1)
    group = np.minimum(race, 6)  # the six races alone, then two or more
    not_hispanic_by_race = np.where(hispanic == 0, 1 + race, 0)  # P9 and P11: Hispanic, or not, by race
    tables = [
        _covering("P8", race, many),
        _covering("P9", not_hispanic_by_race, many + 1),
        _covering("P10", np.where(adult, race, nowhere), many),
        _covering("P11", np.where(adult, not_hispanic_by_race, nowhere), many + 1),
        _covering("P12", sexes_by_age, 2 * len(P12_STARTS)),
        _covering("P12A–G", group * 2 * len(P12_STARTS) + sexes_by_age, 7 * 2 * len(P12_STARTS)),
        _covering("P12H", np.where(hispanic == 1, sexes_by_age, nowhere), 2 * len(P12_STARTS)),
        _covering(
            "P12I", np.where((race == 0) & (hispanic == 0), sexes_by_age, nowhere), 2 * len(P12_STARTS)
        ),
        _covering("P14", np.where(first < 20, sex * 20 + first, nowhere), 40),
    ]
    for one in range(6):  # the six tallies of P6, and of P7 by Hispanic origin
        has = np.asarray([one in races for races in RACE_SETS])[race]
        tables.append(_covering(f"P6 {one + 1}", np.where(has, 0, nowhere), 1))
        tables.append(_covering(f"P7 {one + 1}", np.where(has, hispanic, nowhere), 2))
    cells = pl.DataFrame({SEX: sex + 1, AGE_CLASS: age, RACE: race + 1, HISPANIC: hispanic + 1})
    return TableDesign(cells=cells, coverings=tuple(tables))


def cell_of(records: pl.DataFrame) -> Integers:
    """Return the cell of ``block_design`` of each record.

    >>> cell_of(pl.DataFrame({"sex": [1], "age": [0], "race": [1], "hispanic": [2]})).tolist()
    [1]
    """
    if AGE_CLASS not in records.columns:
        records = records.with_columns(age_class(pl.col("age")).alias(AGE_CLASS))
    found = pl.lit(0, pl.Int64)
    for name, first, many in ((SEX, 1, 2), (AGE_CLASS, 0, len(AGE_STARTS)), (RACE, 1, 63), (HISPANIC, 1, 2)):
        found = found * many + pl.col(name).cast(pl.Int64) - first
    return records.select(found.alias("cell")).to_series().to_numpy().astype(np.int64)


def fits_blocks(records: pl.DataFrame) -> bool:
    """Return whether records have the variables of the block tables, in their codes."""
    ages = AGE_CLASS if AGE_CLASS in records.columns else "age"
    limits = {SEX: (1, 2), ages: (0, 37 if ages == AGE_CLASS else 150), RACE: (1, 63), HISPANIC: (1, 2)}
    for name, (low, high) in limits.items():
        if name not in records.columns or not records[name].dtype.is_integer():
            return False
        if records[name].null_count() or not records[name].cast(pl.Int64).is_between(low, high).all():
            return False
    return True


def _covering(name: str, codes: Integers, rows: int) -> Covering:
    return Covering(name=name, codes=codes.astype(np.int32), rows=rows)
