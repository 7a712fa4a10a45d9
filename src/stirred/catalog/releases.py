"""The specifications of the published products and of their sums, built from the exact figures."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache

from stirred.catalog.census_edited_file import CEF, CHARACTERISTICS, SETS, swap_invariants
from stirred.catalog.products import (
    BY_GROUP_PRIVACY,
    DHC_PERSONS,
    DHC_UNITS,
    PL_PERSONS,
    PL_UNITS,
    PRINTED,
    PRODUCTS,
    PROVED,
    Product,
)
from stirred.catalog.published import MAX_STRATUM_2010, PAPER, SOURCE_2010, WHAT_IF_SOURCE, WhatIf
from stirred.languages import Phrase
from stirred.spec import (
    Bound,
    Budget,
    BudgetFunction,
    Evidence,
    Hamming,
    LargestStratum,
    Multiplicative,
    NormalizedRenyi,
    SizeLaw,
    Specification,
    compose,
)
from stirred.spec.laws.sizes import TIGHT_SIZE, TIGHT_THEOREM_1
from stirred.spec.numbers.budget import Status

UNITS_NOTE = (
    "a unit is a household's whole record; a vacant unit is a unit of its own, and a person's record carries its "
    "household's variables, so that the two distances can be related where the number of homes is fixed"
)
IMPUTATION_NOTE = (
    "units are records after imputation: for a contributor whose answers were copied into k records ρ is k times as "
    "large, ρ² k² times"
)


def _conversion(published: Product) -> tuple[str, ...]:
    if published.conversion is None:
        return ()
    return (f"conversion of the input premetric, {published.name}: {published.conversion_words}",)


@cache
def product(published: Product) -> Specification:
    """Return the specification of one product, under the flavor the paper states for it.

    A person's record may change in any way, also move, at one unit (the noise was scaled for that), unless the factor
    says that it holds for a person who stays; the statement shown, in which a move counts as two changes, follows from
    it with constant 1.

    >>> print(product(PL_UNITS).rho_squared.exact)
    11417641/152349649
    """
    people = published.unit == "person"
    spec = Specification(
        domain=CEF,
        multiverse=SETS[published.invariants],
        input_premetric=Hamming("person", link=published.link) if people else Hamming("household"),
        output_premetric=NormalizedRenyi(),
        budget=Budget.sqrt(published.rho_squared),
        evidence=Evidence(status=published.status, source=published.source),
        notes=(
            IMPUTATION_NOTE,
            UNITS_NOTE,
            *_conversion(published),
        ),
    )
    return spec.per("person", link="kept") if people else spec


@cache
def pl() -> Specification:
    """Return the specification of the redistricting file: persons and units, per person."""
    return total(
        [PL_PERSONS, PL_UNITS], f"{PAPER}, Theorem 2, with the exact budgets of the production settings"
    )


@cache
def dhc() -> Specification:
    """Return the specification of the DHC without the redistricting file it builds on, per person."""
    return total(
        [DHC_PERSONS, DHC_UNITS], f"{PAPER}, Table 3, with the exact budgets of the production settings"
    )


@cache
def topdown() -> Specification:
    """Return the specification of redistricting file and DHC together, per person.

    >>> print(topdown().rho_squared)
    15.2939
    """
    source = f"{PAPER}, Theorem 2 and Table 3, with the exact budgets of the production settings"
    return total([PL_PERSONS, PL_UNITS, DHC_PERSONS, DHC_UNITS], source)


@cache
def das_2020() -> Specification:
    """Return the total of all primary releases of 2020, per person, with the published factors (55.37504)."""
    return total(PRODUCTS, f"{PAPER}, Table 4, with the exact budgets of the production settings")


@cache
def das_2020_proved() -> Specification:
    """Return the total of 2020 with the factors that theorems prove (43.60112).

    What the production code computes is taken as it is documented, so the whole remains a published figure.
    """
    return total(
        PROVED,
        f"{PAPER}, Table 4, with the exact budgets of the production settings and factors that are proved",
    )


@cache
def das_2020_by_group_privacy() -> Specification:
    """Return the total of 2020 with factors from the guarantees of the code alone (57.88960)."""
    source = f"{PAPER}, Table 4, with the exact budgets of the production settings; group privacy where no proof is known"
    return total(BY_GROUP_PRIVACY, source)


def total(products: Sequence[Product], source: str) -> Specification:
    """Return the specification of all of these products together, under TopDown's invariants."""
    total = compose([product(published) for published in products])
    topdown = SETS["topdown"]
    return replace(
        total,
        multiverse=topdown if topdown.refines(total.multiverse, CEF) else total.multiverse,
        evidence=Evidence(status="published", source=source),
    )


@cache
def das_2020_printed() -> Specification:
    """Return the paper's own total, from rounded figures: 15.29 + 19.776 + 17.79 + 2.515 = 55.371."""
    return total(PRINTED, f"{PAPER}, Table 4, as printed")


@cache
def swap(
    match: tuple[str, ...],
    swapped: tuple[str, ...],
    largest: int,
    rate: Fraction,
    status: Status,
    source: str,
) -> Specification:
    """Return the specification of the PSA with these variables; Theorem 1 gives its budget."""
    claimed, least = SizeLaw("theorem-1", rate).at(largest), SizeLaw("by-size", rate).at(largest)
    return Specification(
        domain=CEF,
        multiverse=swap_invariants(match, swapped),
        input_premetric=Hamming("household"),
        output_premetric=Multiplicative(),
        budget=claimed,
        evidence=Evidence(status=status, source=source),
        bounds=(
            Bound(
                name="Theorem 1", budget=claimed, source=f"{PAPER}, Theorem 1", tight=Phrase(TIGHT_THEOREM_1)
            ),
            Bound(
                name="largest loss of a stratum",
                budget=least,
                source="mechanisms/swapping/proof.md",
                tight=Phrase(TIGHT_SIZE),
            ),
        ),
        untouched=("vacant housing units", "group quarters and the persons in them"),
        varies=BudgetFunction(
            law=SizeLaw("theorem-1", rate),
            statistic=LargestStratum(
                "household",
                match,
                hold=(*CHARACTERISTICS, *(() if "size" in match else ("size",))),
                swap=swapped,
            ),
            b=largest,
            universe=f"b = {largest:,}",
        ),
        notes=(
            "one budget covers every table made from the swapped file",
            "units are households after imputation",
            "vacant housing units, group quarters and the persons in group quarters are not swapped: they are released "
            "as they are, so they stand among the invariants",
        ),
    )


def what_if(row: WhatIf, rate: Fraction) -> Specification:
    """Return the specification of one row of the paper's Table 5 at a swap rate."""
    return swap(row.match, row.swap, row.largest, rate, "published", WHAT_IF_SOURCE)


def das_2010(rate: Fraction) -> Specification:
    """Return the 2010 census as a PSA with key state × household size and swapped blocks (Section 3.5)."""
    return swap(
        ("state", "size"),
        ("county", "tract", "block_group", "block"),
        MAX_STRATUM_2010,
        rate,
        "estimated",
        SOURCE_2010,
    )
