"""The numbers in the paper's text, each computed again."""

from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

import numpy as np

from stirred.catalog.products import DELTA, DHC_PERSONS, DHC_UNITS, PL_PERSONS, PL_UNITS, WHAT_IFS
from stirred.catalog.releases import das_2020_printed, total
from stirred.census.synthetic.plans import HOUSEHOLD_COUNT, TABLE_1, apportion_sizes
from stirred.mechanisms.swap.budget import rates_for, smallest_budget, theorem_1
from stirred.paper.budgets import bound_gap, theorem_3
from stirred.paper.documents import compare_number, state_number
from stirred.paper.massachusetts import PAPER_SWAPPED, mape
from stirred.spec.output_premetrics import rho_squared_to_epsilon

# Abowd et al. 2023, in thousands: people unlike most of their block and unique in it, in blocks with one reconstruction;
# how many of them were linked to a name, and how many of these rightly; and all people counted in 2010
UNIQUE_THOUSANDS: Final = 3_364
LINKED_THOUSANDS: Final = 2_418
CONFIRMED_THOUSANDS: Final = 2_301
PEOPLE_2010_THOUSANDS: Final = 308_746
SMALLEST_BY_STRATUM: Final = {10: ("1.20", "77"), 1_000_000: ("6.91", "99.9")}


def text_numbers(
    *, copies: int = 2, epsilon: int = 3, b: int = 10, delta: Fraction = DELTA
) -> dict[str, Any]:
    """Compute the numbers in sentences of Sections 3.4, 3.6, 4 and 5 and Appendix F.

    >>> [row["computed"] for row in text_numbers()["rows"] if row["what"].startswith("the two swap rates")]
    [35.3863, 95.2574]
    """
    rows = [
        *_demonstration(),
        *_shape(b, epsilon),
        *_gap(b),
        *_theorem_2(),
        *_reconstruction(),
        *_imputation(copies, delta),
    ]
    return {
        "name": "text-numbers",
        "title": "Numbers in the text",
        "source": "formulas of the paper; exact budgets of the production settings",
        "inputs": {"copies": copies, "epsilon": epsilon, "b": b, "delta": float(delta)},
        "rows": rows,
    }


def _demonstration() -> list[dict[str, Any]]:
    """Compute Section 3.4: totals of Table 1, and the error that its two halves show."""
    owned, rented = (sum(row[i] for row in TABLE_1.values()) for i in (0, 1))
    kept = [sum(row[i] for row in PAPER_SWAPPED.values()) for i in (0, 1)]
    before, after = (
        np.array([table[county] for county in sorted(table)], float) for table in (TABLE_1, PAPER_SWAPPED)
    )
    error = mape(before, after)
    return [
        {"section": "3.4", "what": "owned homes", **compare_number(owned, "435,805")},
        {"section": "3.4", "what": "rented homes", **compare_number(rented, "708,619")},
        {"section": "3.4", "what": "households", **compare_number(HOUSEHOLD_COUNT, "1,144,424")},
        {"section": "3.4", "what": "owned homes after the swap", **compare_number(kept[0], "435,805")},
        {"section": "3.4", "what": "rented homes after the swap", **compare_number(kept[1], "708,619")},
        {"section": "3.4", "what": "households after the swap", **compare_number(sum(kept), "1,144,424")},
        {
            "section": "3.4",
            "what": "largest stratum b (the synthetic census is made with it)",
            **compare_number(max(apportion_sizes().values()), "264,331"),
        },
        {
            "section": "3.4",
            "what": "MAPE between the two halves of the paper's Table 1",
            **state_number(round(error, 6), "the paper draws it in Figure 1 and prints no number"),
        },
    ]


def _shape(b: int, epsilon: int) -> list[dict[str, Any]]:
    """Compute Section 3.6: the smallest ε and the two swap rates of a larger one."""
    rows = []
    for size, (printed, percent) in SMALLEST_BY_STRATUM.items():
        least, rate = smallest_budget(size)
        said = f"the smallest ε at b = {size:,}"
        rows += [
            {"section": "3.6", "what": said, **compare_number(least.upper(6), printed)},
            {
                "section": "3.6",
                "what": f"{said}: swap rate in percent",
                **compare_number(Decimal(str(float(100 * rate))), percent),
            },
        ]
    why = "the paper cuts 95.257 off instead of rounding it: e³/(1 + e³)"
    for rate, printed in zip(rates_for(b, epsilon), ("35.4", "95.2"), strict=True):
        what = f"the two swap rates of ε = {epsilon} at b = {b}, in percent"
        rows.append(
            {
                "section": "3.6",
                "what": what,
                **compare_number(round(float(100 * rate), 4), printed, reason=why),
            }
        )
    return rows


def _gap(b: int) -> list[dict[str, Any]]:
    """Compute Appendix F: the excess of Theorem 1, as a bound and exactly."""
    rate = Fraction(1, 20)
    exact = theorem_1(b, rate).upper(12) - theorem_3(b, rate).upper(12)
    why = "f(10) is larger by seven millionths; the exact gap is below 0.148"
    return [
        {
            "section": "F",
            "what": f"f({b})",
            **compare_number(round(float(bound_gap(b)), 6), "0.148", reason=why),
        },
        {
            "section": "F",
            "what": f"Theorem 1 less Theorem 3 at b = {b}",
            **compare_number(round(float(exact), 6), "0.148"),
        },
    ]


def _theorem_2() -> list[dict[str, Any]]:
    """Compute Section 4 (Theorem 2, the factor of households) and Section 5 (the largest stratum)."""
    pl = total([PL_PERSONS, PL_UNITS], "Theorem 2")
    both = total([PL_PERSONS, PL_UNITS, DHC_PERSONS, DHC_UNITS], "Theorem 2")
    dhc = total([DHC_PERSONS, DHC_UNITS], "Appendix H")
    people = total([PL_PERSONS, DHC_PERSONS], "Theorem 2")
    factors = [round(spec.per("household").budget.upper(9) / spec.budget.upper(9)) for spec in (people, both)]
    sharper = "the tables of housing units count per household already: only the person tables get the factor"
    added = "the paper adds rounded parts: 7.70 + 4.96"
    why = "13,475,623 is 13.48 million when it is rounded"
    return [
        {"section": "4", "what": "ρ² of PL (Theorem 2)", **compare_number(pl.rho_squared.upper(6), "2.63")},
        {
            "section": "4",
            "what": "ρ² of PL and DHC (Theorem 2)",
            **compare_number(both.rho_squared.upper(6), "15.29"),
        },
        {
            "section": "H",
            "what": "ρ² of DHC alone",
            **compare_number(dhc.rho_squared.upper(6), "12.66", reason=added),
        },
        {
            "section": "4",
            "what": "factor on ρ per household instead of per person, person tables",
            **compare_number(factors[0], "99,999"),
        },
        {
            "section": "4",
            "what": "factor on ρ per household instead of per person, all tables",
            **compare_number(factors[1], "99,999", reason=sharper),
        },
        {
            "section": "5.2",
            "what": "largest stratum of a state, in millions",
            **compare_number(round(WHAT_IFS[0].largest / 10**6, 6), "13.47", reason=why),
        },
    ]


def _reconstruction() -> list[dict[str, Any]]:
    """Compute Section 6.1: the result of the attack on the 2010 tables, from its published counts."""
    millions, share = UNIQUE_THOUSANDS / 1000, 100 * UNIQUE_THOUSANDS / PEOPLE_2010_THOUSANDS
    rest = "of those linked to a name; of all of them it is the next number"
    return [
        {
            "section": "6.1",
            "what": "vulnerable people, in millions",
            **compare_number(round(millions, 3), "3.4"),
        },
        {"section": "6.1", "what": "in percent of the population", **compare_number(round(share, 3), "1")},
        {
            "section": "6.1",
            "what": "their race and ethnicity predicted rightly, in percent",
            **compare_number(round(100 * CONFIRMED_THOUSANDS / LINKED_THOUSANDS, 3), "95", reason=rest),
        },
        {
            "section": "6.1",
            "what": "the same in percent of all vulnerable people",
            **state_number(
                round(100 * CONFIRMED_THOUSANDS / UNIQUE_THOUSANDS, 3),
                "a third of them was linked to no name",
            ),
        },
    ]


def _imputation(copies: int, delta: Fraction) -> list[dict[str, Any]]:
    """Compute Section 5.4: a contributor whose answers were copied into several records."""
    spec = das_2020_printed().per("person", copies=copies)
    read = rho_squared_to_epsilon(spec.rho_squared, delta)
    what = f"for a person whose record stands {copies} times"
    return [
        {"section": "5.4", "what": f"ρ² {what}", **compare_number(spec.rho_squared.upper(6), "221.48")},
        {"section": "5.4", "what": f"ε {what}", **compare_number(read, "364.31")},
    ]
