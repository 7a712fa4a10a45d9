"""Compute the paper's budgets: Figure 2, Tables 3 to 5, the estimates for 2010 and 2000, Theorems 3 and 4."""

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import mpmath
import polars as pl

from stirred.catalog.products import (
    DELTA,
    DHC_PERSONS,
    DHC_UNITS,
    MAX_STRATUM_2010,
    PL_PERSONS,
    PL_UNITS,
    PRINTED,
    PRODUCTS,
    RATES_2010,
    WHAT_IF_RATES,
    WHAT_IFS,
    Product,
    WhatIf,
)
from stirred.catalog.releases import product, total, what_if
from stirred.errors import InputError
from stirred.mechanisms.swap.budget import smallest_budget, theorem_1, tight_budget
from stirred.paper.documents import compare_number, state_number
from stirred.spec import Budget, Specification, compose
from stirred.spec.laws import count_derangements
from stirred.spec.output_premetrics import rho_squared_to_epsilon

# How far Theorem 1 can be from the best budget: the paper's Theorems 3 and 4 (its Appendix F).

HALF = Fraction(1, 2)


def theorem_3(b: int, rate: Fraction) -> Budget:
    r"""What some universe needs at least: $\max\{\ln o,\ \tfrac12\ln\frac{d(b)}{d(b-2)} - \ln o\}$, ∞ at rates 0 and 1.

    At b = 3 the second bound says nothing, because d(1) = 0.

    >>> from stirred.mechanisms.swap.budget import theorem_1
    >>> float(theorem_3(10, Fraction(1, 20)).upper(4)), float(theorem_1(10, Fraction(1, 20)).upper(4))
    (5.1944, 5.3424)
    """
    if rate in (0, 1):
        return Budget.infinite()
    odds = rate / (1 - rate)
    found = [Budget.log(odds)] if odds > 1 else [Budget.zero()]
    if b != 3 and (ratio := Fraction(count_derangements(b), count_derangements(b - 2)) / odds**2) > 1:
        found.append(Budget.log(ratio) * HALF)
    return max(found)


def bound_gap(b: int) -> Fraction:
    r"""Return Theorem 4's bound on the excess of Theorem 1, rounded up at the twelfth decimal.

    $f(b) = \tfrac12\ln\Big[\frac{(b+1)^2}{b(b-1)}\cdot\frac{1 + e/(2(b-2)!)}{1 - e/(2\,b!)}\Big]$; decreasing to 0.

    >>> round(float(bound_gap(10)), 6)
    0.148007
    """
    with mpmath.workdps(40):
        first = mpmath.mpf((b + 1) ** 2) / (b * (b - 1))
        above = 1 + mpmath.e / (2 * mpmath.factorial(b - 2))
        under = 1 - mpmath.e / (2 * mpmath.factorial(b))
        value = mpmath.log(first * above / under) / 2
        return Fraction(int(mpmath.ceil(value * 10**12)), 10**12)


# The paper's Figure 2: the swap rate against the budget, for strata from 2 to a million records.

STRATA: Final = (2, 10, 100, 1_000, 10_000, 100_000, 1_000_000)
GRID: Final = tuple(Fraction(k, 10_000) for k in (10, 20, 50, *range(100, 9901, 100), 9950, 9980, 9990, 9999))


def figure_budget() -> dict[str, object]:
    """Return the curves ε(p) of Theorem 1 for several b, the smallest ε of each, and the dotted rates.

    >>> [d["epsilon"] for d in figure_budget()["diamonds"]][1]
    1.19895
    """
    rows = [
        {"b": b, "rate": str(p), "percent": float(100 * p), "epsilon": epsilon, **state_number(epsilon)}
        for b in STRATA
        for p in GRID
        for epsilon in [float(theorem_1(b, p).upper(5))]
    ]
    diamonds = []
    for b in STRATA:
        least, at = smallest_budget(b)
        diamonds.append({"b": b, "percent": float(100 * at), "epsilon": float(least.upper(5))})
    return {
        "name": "figure-budget",
        "title": "Figure 2: swap rate against ε",
        "source": "Theorem 1",
        "inputs": {"b": list(STRATA)},
        "rows": rows,
        "diamonds": diamonds,
        "dotted_percent": [5, 50],
    }


# The paper's Tables 3, 4 and 5 and its estimate for 2010, from exact budgets and stratum sizes.
#
# Stratum sizes (b) and the budgets of the production settings are inputs; every ε, ρ² of a sum and range is computed.

Document = dict[str, Any]
Rows = list[dict[str, Any]]
EXACT_INPUTS: Final = (
    "the paper converts rounded ρ²; here the exact budget of the production settings is converted"
)
TABLE_3: Final = {
    "pl-units-2020": ("PL, households", "0.07", "2.70"),
    "pl-persons-2020": ("PL, persons", "2.56", "17.90"),
    "dhc-units-2020": ("DHC, households", "7.70", "34.33"),
    "dhc-persons-2020": ("DHC, persons", "4.96", "26.34"),
}
TABLE_5: Final = {
    "whatif-state": ("19.36", "16.42"),
    "whatif-state-size": ("18.13", "15.19"),
    "whatif-county": ("17.99", "15.05"),
    "whatif-county-size": ("16.70", "13.75"),
    "whatif-block-group": ("11.68", "8.73"),
    "whatif-block-group-size": ("11.37", "8.42"),
}


def table_budgets(
    products: Sequence[Product] = (PL_UNITS, PL_PERSONS, DHC_UNITS, DHC_PERSONS), delta: Fraction = DELTA
) -> Document:
    """Compute Table 3: ρ² of the four parts of TopDown and of their sum, and ε = ρ² + 2ρ√(−ln δ).

    >>> [row["computed"] for row in table_budgets()["rows"]][-2:]
    [15.29387, 52.825422]
    """
    rows: Rows = []
    for one in products:
        title, rho_squared, epsilon = TABLE_3[one.name]
        rows += _both(title, product(one), rho_squared, epsilon, delta)
    rows += _both("Total", compose([product(one) for one in products]), "15.29", "52.83", delta)
    return {
        "name": "table-budgets",
        "title": "Table 3: budgets of the 2020 redistricting data and DHC",
        "source": "exact budgets of the production settings",
        "inputs": {"delta": float(delta), **{one.name: str(one.rho_squared) for one in products}},
        "rows": rows,
    }


def _both(title: str, spec: Specification, rho_squared: str, epsilon: str, delta: Fraction) -> Rows:
    """Return ρ² and the ε that it is read as, each beside the printed number."""
    computed = spec.rho_squared
    read = rho_squared_to_epsilon(computed, delta)
    return [
        {
            "row": title,
            "quantity": "ρ²",
            **compare_number(computed.upper(6), rho_squared, reason=EXACT_INPUTS),
        },
        {
            "row": title,
            "quantity": f"ε at δ = {float(delta):g}",
            **compare_number(read, epsilon, reason=EXACT_INPUTS),
        },
    ]


def table_2020(
    products: Sequence[Product] = PRODUCTS, what_ifs: Sequence[WhatIf] = WHAT_IFS, delta: Fraction = DELTA
) -> Document:
    """Compute Table 4: every mechanism of 2020, their sum, and the swap that was not used."""
    found = {one.name: product(one) for one in products}
    by_topdown = [one for one in products if one.conversion is None]
    source = "exact budgets of the production settings"
    summed = "the paper adds rounded parts: 15.29 + 19.776 + 17.79 + 2.515"
    rows = [
        *_describe_product("TopDown (PL and DHC)", total(by_topdown, source), "15.29", "52.83", delta),
        *_describe_product("SafeTab-P (DDHC-A)", found["ddhc-a-2020"], "19.776", None, delta),
        *_describe_product("SafeTab-H (DDHC-B)", found["ddhc-b-2020"], "17.79", None, delta),
        *_describe_product("PHSafe (S-DHC)", found["sdhc-2020"], "2.515", None, delta),
        *_describe_product(
            "2020 DAS to date, exact budgets",
            total(products, source),
            "55.371",
            "126.78",
            delta,
            reason=summed,
        ),
        *_describe_product(
            "2020 DAS to date, the paper's sum", total(PRINTED, "as printed"), "55.371", "126.78", delta
        ),
        *_describe_product(
            "2020 DAS to date, proved factors",
            total([one.as_proved() for one in products], source),
            "55.371",
            "126.78",
            delta,
            reason="SafeTab-P times 2 instead of 4 and PHSafe times 1/2 instead of 2, which theorems here prove",
        ),
        *_describe_product(
            "2020 DAS to date, guarantees of the code alone",
            total([one.by_group_privacy() for one in products], source),
            "55.371",
            "126.78",
            delta,
            reason="PHSafe times 4, by group privacy, instead of 2, which has no proof",
        ),
    ]
    for end, name, printed in (("smallest", min, "8.42"), ("largest", max, "19.36")):
        spec = name(
            (what_if(row, rate) for row in what_ifs for rate in WHAT_IF_RATES),
            key=lambda s: s.budget.upper(6),
        )
        rows.append(
            {
                **_words(f"Swapping (PSA), {end}", spec),
                "quantity": "ε",
                **compare_number(spec.budget.upper(6), printed),
            }
        )
    return {
        "name": "table-2020",
        "title": "Table 4: the specifications of the 2020 census",
        "source": f"{source}; stratum sizes of Table 5",
        "inputs": {
            "delta": float(delta),
            **{one.name: str(one.rho_squared) for one in products},
            "printed": [str(one.rho_squared) for one in PRINTED],
            **{row.name: row.largest for row in what_ifs},
        },
        "rows": rows,
    }


def _words(title: str, spec: Specification) -> dict[str, str]:
    return {
        "row": title,
        "output_premetric": str(spec.output_premetric),
        "input_premetric": str(spec.input_premetric),
        "invariants": str(spec.multiverse),
    }


def _describe_product(
    title: str, spec: Specification, rho_squared: str, epsilon: str | None, delta: Fraction, reason: str = ""
) -> Rows:
    words = _words(title, spec)
    rows = [
        {**words, "quantity": "ρ²", **compare_number(spec.rho_squared.upper(6), rho_squared, reason=reason)}
    ]
    if epsilon is not None:
        read = rho_squared_to_epsilon(spec.rho_squared, delta)
        why = reason or EXACT_INPUTS
        rows.append(
            {**words, "quantity": f"ε at δ = {float(delta):g}", **compare_number(read, epsilon, reason=why)}
        )
    return rows


def table_whatif(
    what_ifs: Sequence[WhatIf] = WHAT_IFS, rates: Sequence[Fraction] = WHAT_IF_RATES
) -> Document:
    """Compute Table 5: what if 2020 had swapped; ε by Theorem 1 for six choices of strata.

    >>> [row["computed"] for row in table_whatif()["rows"]][:2]
    [19.360832, 16.416393]
    """
    rows = []
    for row in what_ifs:
        for index, rate in enumerate(rates):
            computed = theorem_1(row.largest, rate).upper(6)
            rows.append(
                {
                    "match": " × ".join(row.match),
                    "swap": row.swap[0],
                    "b": row.largest,
                    "where": row.where,
                    "rate": str(rate),
                    **compare_number(computed, TABLE_5[row.name][index]),
                    "tight": float(tight_budget(row.largest, rate).upper(6)),
                }
            )
    return {
        "name": "table-whatif",
        "title": "Table 5: what if 2020 had swapped",
        "source": "stratum sizes b as the paper states them (2020 DHC); the tables themselves are not used",
        "inputs": {row.name: row.largest for row in what_ifs},
        "rows": rows,
    }


def estimate_2010(b: int = MAX_STRATUM_2010, rates: Sequence[Fraction] = RATES_2010) -> Document:
    """Compute Section 3.5: ε of 2010 as a PSA with key state × household size, 2 to 4 % swapped."""
    printed = {RATES_2010[0]: "19", RATES_2010[1]: "18.29"}
    rows = [
        {
            "match": "state × size",
            "rate": str(rate),
            "b": b,
            **compare_number(theorem_1(b, rate).upper(6), printed[rate]),
            "tight": float(tight_budget(b, rate).upper(6)),
        }
        for rate in rates
    ]
    return {
        "name": "estimate-2010",
        "title": "Section 3.5: the 2010 census as if it had been a PSA",
        "source": "b = 3.65 million as the paper states it; the swap rate is purported",
        "inputs": {"b": b, "rates": [str(rate) for rate in rates]},
        "rows": rows,
    }


# The paper's Table 5 for the census of 2000: its largest strata counted from published tables that the user names.

SIZES: Final = tuple(f"hh{size}" for size in range(1, 8))
LEVELS: Final = {  # strata → the file, its columns, what is swapped
    "state": ("tracts.parquet", ("state",), "county"),
    "county": ("tracts.parquet", ("state", "county"), "tract"),
    "block group": ("block_groups.parquet", ("state", "county", "tract", "block_group"), "block"),
}
NO_DATA: Final = "household size by tract and block group of the 2000 census"


def table_whatif_2000(*, data: Path | None = None) -> dict[str, Any]:
    """Count the largest strata of 2000 and compute ε by Theorem 1; needs ``--data DIR``."""
    if data is None:
        raise InputError(
            "table-whatif-2000 needs the tables of the 2000 census",
            why="they are not part of Stirred",
            fix=f"stirred reproduce table-whatif-2000 --data DIR, with {NO_DATA} in tracts.parquet and block_groups.parquet",
        )
    rows = []
    for name, (file, columns, swap) in LEVELS.items():
        frame = _read(data, file, columns)
        totals = frame.group_by(columns).agg(pl.col(*SIZES).sum())
        whole = totals.select(*columns, pl.sum_horizontal(*SIZES).alias("b"))
        sizes = totals.unpivot(SIZES, index=list(columns), variable_name="size", value_name="b")
        for match, strata in ((name, whole), (f"{name} × household size", sizes)):
            largest = strata.sort("b", *columns, descending=[True, *(False for _ in columns)]).row(
                0, named=True
            )
            where = "".join(str(largest[column]) for column in columns)
            persons = largest.get("size", "")[2:]
            words = f", {persons} person{'s' if persons != '1' else ''}" if persons else ""
            b = int(largest["b"])
            rows += [
                {
                    "match": match,
                    "swap": swap,
                    "b": b,
                    "where": f"{where}{words}",
                    "rate": str(rate),
                    **state_number(theorem_1(b, rate).upper(6), "the paper's table is about 2020"),
                    "tight": float(tight_budget(b, rate).upper(6)),
                }
                for rate in WHAT_IF_RATES
            ]
    return {
        "name": "table-whatif-2000",
        "title": "Table 5 for the census of 2000: what if it had swapped",
        "source": f"{NO_DATA} (published tables, already swapped by the Bureau)",
        "inputs": {"files": list(dict.fromkeys(file for file, _, _ in LEVELS.values()))},
        "rows": rows,
    }


def _read(data: Path, file: str, columns: tuple[str, ...]) -> pl.DataFrame:
    path = data / file
    if not path.is_file() and (data / "census2000" / file).is_file():
        path = data / "census2000" / file
    if not path.is_file():
        raise InputError(
            f"{file} is not in the folder of --data",
            why=f"the strata are counted from {NO_DATA}",
            fix=f"name the folder that holds {file}",
        )
    lacking = [name for name in (*columns, *SIZES) if name not in pl.read_parquet_schema(path)]
    if lacking:
        raise InputError(
            f"{file} lacks {', '.join(lacking)}",
            why="areas and households by size (hh1 to hh7) are needed",
            fix="name the folder that holds the tables of 2000",
        )
    return pl.read_parquet(path, columns=[*columns, *SIZES])
