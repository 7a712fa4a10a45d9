"""The specifications of the published products and of their sums, built from the exact figures."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache

from stirred.catalog.census_edited_file import CEF, SETS, swapping
from stirred.catalog.published import (
    DDHC_A,
    DDHC_B,
    DHC_PERSONS,
    DHC_UNITS,
    LARGEST_2010,
    PAPER,
    PL_PERSONS,
    PL_UNITS,
    PRINTED_PL_AND_DHC,
    PRODUCTS,
    S_DHC,
    SOURCE_2010,
    WHAT_IF_SOURCE,
    Product,
    WhatIf,
)
from stirred.spec import (
    Bound,
    Budget,
    BudgetFunction,
    Evidence,
    Hamming,
    Multiplicative,
    NormalizedRenyi,
    Specification,
    compose,
)
from stirred.spec.budget import Status

UNITS_NOTE = (
    "a unit is a household's whole record; a vacant unit or an empty facility is a unit of its own, and a person's "
    "record carries its household's variables, so that the two distances can be related at all"
)
IMPUTATION_NOTE = (
    "units are records after imputation: for a contributor whose answers were copied into k records ρ is k times as "
    "large, ρ² k² times"
)


def _conversion(published: Product) -> tuple[str, ...]:
    if published.conversion.startswith("none"):
        return ()
    return (f"conversion of the input premetric, {published.name}: {published.conversion}",)


@cache
def product(published: Product) -> Specification:
    """One product under the flavor the paper states for it.

    A person's record may change in any way, also move, at one unit (the noise was scaled for that); the statement
    shown, in which a move counts as two changes, follows from it with constant 1.

    >>> print(product(PL_UNITS).rho_squared.exact)
    11417641/152349649
    """
    people = published.unit == "person"
    spec = Specification(
        domain=CEF,
        multiverse=SETS[published.invariants],
        input_premetric=Hamming("person", link="free") if people else Hamming("household"),
        output_premetric=NormalizedRenyi(),
        budget=Budget.sqrt(published.rho_squared),
        evidence=Evidence(status="published", source=published.source),
        notes=(
            IMPUTATION_NOTE,
            UNITS_NOTE,
            *_conversion(published),
        ),
    )
    return spec.per("person", link="kept") if people else spec


@cache
def pl() -> Specification:
    """The redistricting file: persons and units, per person."""
    return _sum(
        [PL_PERSONS, PL_UNITS], f"{PAPER}, Theorem 2, with the exact budgets of the production settings"
    )


@cache
def dhc() -> Specification:
    """The DHC without the redistricting file it builds on, per person."""
    return _sum(
        [DHC_PERSONS, DHC_UNITS], f"{PAPER}, Table 3, with the exact budgets of the production settings"
    )


@cache
def das_2020() -> Specification:
    """All primary releases of the 2020 census, per person, from the exact fractions (55.37487)."""
    return _sum(PRODUCTS, f"{PAPER}, Table 4, with the exact budgets of PL and DHC")


def _sum(products: Sequence[Product], source: str) -> Specification:
    """All of them published, under TopDown's invariants: block counts say whether a block has a unit (PHSafe's)."""
    total = compose([product(published) for published in products])
    topdown = SETS["topdown"]
    return replace(
        total,
        multiverse=topdown if topdown.refines(total.multiverse, CEF) else total.multiverse,
        evidence=Evidence(status="published", source=source),
    )


@cache
def das_2020_printed() -> Specification:
    """The paper's own total, from the figures it rounded: 15.29 + 19.776 + 17.79 + 2.515 = 55.371."""
    persons = replace(
        PL_PERSONS,
        name="PL and DHC, persons",
        rho_squared=Fraction("2.56") + Fraction("4.96"),
        source=f"{PAPER}, Table 3, rounded",
    )
    units = replace(
        PL_UNITS,
        name="PL and DHC, units",
        rho_squared=PRINTED_PL_AND_DHC - persons.rho_squared,
        source=f"{PAPER}, Tables 3 and 4, rounded",
    )
    return _sum((persons, units, DDHC_A, DDHC_B, S_DHC), f"{PAPER}, Table 4, as printed")


@cache
def swap(
    match: tuple[str, ...],
    swapped: tuple[str, ...],
    largest: int,
    rate: Fraction,
    status: Status,
    source: str,
) -> Specification:
    """The PSA with these match and swap variables, its budget by Theorem 1 at the universe with this largest stratum."""
    # imported here: whoever asks for a noisy release should not wait for the swapping kernels to load
    from stirred.mechanisms.swapping.accounting import TIGHT_SIZE, TIGHT_THEOREM_1, theorem_1, tight

    claimed, least = theorem_1(largest, rate), tight(largest, rate)
    return Specification(
        domain=CEF,
        multiverse=swapping(match, swapped),
        input_premetric=Hamming("household"),
        output_premetric=Multiplicative(),
        budget=claimed,
        evidence=Evidence(status=status, source=source),
        bounds=(
            Bound(name="Theorem 1", budget=claimed, source=f"{PAPER}, Theorem 1", tight=TIGHT_THEOREM_1),
            Bound(
                name="largest loss of a stratum",
                budget=least,
                source="mechanisms/swapping/proof.md",
                tight=TIGHT_SIZE,
            ),
        ),
        untouched=("vacant units", "group quarters"),
        varies=BudgetFunction(
            words="the budget grows with b, the size of the largest stratum with two different records, which the "
            "invariants fix (Remark 1)",
            universe=f"b = {largest:,}",
        ),
        notes=(
            "one budget covers every table made from the swapped file",
            "units are households after imputation",
            "vacant units and group quarters are not swapped: where they are released as they are, they are invariants "
            "too and have to be named",
        ),
    )


def what_if(row: WhatIf, rate: Fraction) -> Specification:
    """One row of the paper's Table 5 at a swap rate."""
    return swap(row.match, row.swap, row.largest, rate, "published", WHAT_IF_SOURCE)


def das_2010(rate: Fraction) -> Specification:
    """The 2010 census as if it had been a PSA with key state × household size and swapped blocks (Section 3.5)."""
    return swap(
        ("state", "size"),
        ("county", "tract", "block_group", "block"),
        LARGEST_2010,
        rate,
        "estimated",
        SOURCE_2010,
    )
