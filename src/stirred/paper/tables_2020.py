"""The paper's Tables 3, 4 and 5 and its estimate for 2010, from exact budgets and stratum sizes.

Stratum sizes (b) and the budgets of the production settings are inputs; every ε, ρ² of a sum and range is computed.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Final

from stirred.catalog.products import DHC_PERSONS, DHC_UNITS, PL_PERSONS, PL_UNITS, PRINTED, PRODUCTS, Product
from stirred.catalog.published import (
    DELTA,
    MAX_STRATUM_2010,
    RATES_2010,
    WHAT_IF_RATES,
    WHAT_IFS,
    WhatIf,
)
from stirred.catalog.releases import product, total, what_if
from stirred.mechanisms.swapping.budget.by_size import theorem_1, tight_budget
from stirred.paper.printed import compare_number
from stirred.spec import Specification, compose
from stirred.spec.outputs.divergences import rho_squared_to_epsilon

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
