"""Build the specifications of the published products and of their sums, on the Census Edited File."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache

from stirred.catalog.products import (
    BY_GROUP_PRIVACY,
    DHC_PERSONS,
    DHC_UNITS,
    MAX_HOUSEHOLD_PERSONS,
    MAX_STRATUM_2010,
    PAPER,
    PL_PERSONS,
    PL_UNITS,
    PRINTED,
    PRODUCTS,
    PROVED,
    SOURCE_2010,
    STIRRED_SOURCE,
    WHAT_IF_SOURCE,
    Product,
    WhatIf,
)
from stirred.languages import Phrase
from stirred.spec import (
    AtLeast,
    Bound,
    Budget,
    BudgetFunction,
    Constraint,
    Domain,
    Evidence,
    Exchanges,
    Hamming,
    LargestStratum,
    Margin,
    Multiplicative,
    Multiverse,
    NormalizedRenyi,
    RecordType,
    SizeLaw,
    Specification,
    Variable,
    compose,
)
from stirred.spec.budgets import Status
from stirred.spec.laws import TIGHT_SIZE, TIGHT_THEOREM_1

# The domain all catalog entries share, the Census Edited File, and the invariants the published releases kept.
#
# The domain is the set of all possible Census Edited Files (X_CEF in the paper): after editing and imputation.
# Distances are those of the joint file: a person's record carries the variables of its household, and a vacant unit is
# a unit of its own. A facility in which nobody lives is not in the file (the published tables count occupied ones
# only): with an invariant on empty ones missing, the number of homes would not be fixed, and no constant would relate
# persons and households.

SPINE = ("state", "county", "tract", "block_group", "block")
CHARACTERISTICS = ("type", "tenure", "age", "race", "hispanic", "members")
_LABELS = {
    "household": "the household or facility the person lives in",
    "quarters": "whether the person lives in a household or in group quarters",
    "size": "number of persons",
    "age": "age of the householder",
    "race": "race of the householder",
    "hispanic": "Hispanic origin of the householder",
    "members": "everything recorded about each member",
}
PERSON_VARIABLES = (*SPINE, "household", "age", "sex", "race", "hispanic", "relationship", "quarters")
OCCUPIED, VACANT, IN_GROUP_QUARTERS = "occupied", "vacant", "group quarters"


def _variables(*names: str, **levels: tuple[str, ...]) -> tuple[Variable, ...]:
    return tuple(Variable(name=name, levels=levels.get(name), label=_LABELS.get(name, "")) for name in names)


# What holds for every Census Edited File, with the variables it restricts: tenure and place are not among them.
CONSTRAINTS = (
    Constraint(
        words="edit rules for persons (a mother is older than her children by some years)",
        record_type="person",
        variables=("household", "age", "sex", "relationship"),
        kind="edit",
    ),
    Constraint(
        words="a household's record agrees with its members (its size, its type, and what it says of the householder)",
        record_type="household",
        variables=("size", "type", "age", "race", "hispanic", "members"),
        kind="edit",
    ),
    Constraint(
        words="a housing unit is occupied exactly when a household lives in it",
        record_type="housing unit",
        variables=("occupancy",),
        kind="edit",
    ),
    Constraint(
        words="structural zeros of the questionnaire, persons (nobody in group quarters is a householder)",
        record_type="person",
        variables=("age", "relationship", "quarters"),
        kind="structural zero",
    ),
    Constraint(
        words="structural zeros of the questionnaire, households (one person alone is no family)",
        record_type="household",
        variables=("size", "type", "age", "members"),
        kind="structural zero",
    ),
    Constraint(
        words=f"a household has at most {MAX_HOUSEHOLD_PERSONS:,} persons",
        record_type="household",
        variables=("size", "members"),
        kind="size",
    ),
    Constraint(
        words=f"at most {MAX_HOUSEHOLD_PERSONS:,} persons live in one household or facility",
        record_type="person",
        variables=("household",),
        kind="size",
    ),
)

CEF = Domain(
    name="CEF",
    label="all possible Census Edited Files of the United States",
    record_types=(
        RecordType(
            name="person", variables=_variables(*PERSON_VARIABLES, quarters=("household", IN_GROUP_QUARTERS))
        ),
        RecordType(name="household", variables=_variables(*SPINE, "size", *CHARACTERISTICS)),
        RecordType(
            name="housing unit", variables=_variables(*SPINE, "occupancy", occupancy=(OCCUPIED, VACANT))
        ),
        RecordType(
            name="group quarters",
            variables=_variables(*SPINE, "type", "occupancy", occupancy=(OCCUPIED,)),
        ),
    ),
    spine=SPINE,
    constraints=CONSTRAINTS,
    largest_household=MAX_HOUSEHOLD_PERSONS,
    size_variable="size",
)

POPULATION = Margin("person", ("state",), label="population by state")
HOUSING_UNITS = Margin("housing unit", ("block",), label="housing units by block")
GROUP_QUARTERS = Margin(
    "group quarters",
    ("block", "type"),
    {"occupancy": [OCCUPIED]},
    label="occupied group quarters by type by block",
)
SOME_UNIT = AtLeast(
    Margin("housing unit", ("block",), label="housing units by block"),
    1,
    label="whether a block has a housing unit",
)
SETS = {
    "topdown": Multiverse.of(POPULATION, HOUSING_UNITS, GROUP_QUARTERS),
    "safetab": Multiverse.of(HOUSING_UNITS),
    "phsafe": Multiverse.of(SOME_UNIT),
}
_AREAS = {
    "state": "state",
    "county": "county",
    "tract": "tract",
    "block_group": "block group",
    "block": "block",
}


def swap_invariants(match: Sequence[str], swap: Sequence[str]) -> Multiverse:
    r"""The invariants of a swap: all $n_{mh\cdot}$ and $n_{m\cdot s}$ (Proposition 4), and the records it leaves alone.

    >>> for invariant in swap_invariants(("county", "size"), ("tract",)):
    ...     print(invariant)
    all household characteristics by county
    group quarters by type and occupancy by block
    households by size by tract
    persons in group quarters with all their variables
    vacant housing units by block
    """
    sized = "size" in match
    return Multiverse.of(
        Margin(
            "household",
            (*match, *CHARACTERISTICS, *(() if sized else ("size",))),
            label=f"all household characteristics by {_AREAS[match[0]]}",
        ),
        Margin(
            "household",
            (*match, *swap),
            label=f"households {'by size ' if sized else ''}by {_AREAS[swap[-1]]}",
        ),
        *unswapped_margins(to_the_block=swap[-1] == SPINE[-1]),
    )


def unswapped_margins(*, to_the_block: bool) -> tuple[Margin, ...]:
    """Return the tables of all records that a swap of households never changes.

    An occupied housing unit is a household. Where households by block are exact, so are the occupied units; this is
    declared for units too, because no rule derives the one table from the other.
    """
    units = Margin(
        "housing unit",
        (*SPINE, "occupancy"),
        None if to_the_block else {"occupancy": [VACANT]},
        label="vacant and occupied housing units by block"
        if to_the_block
        else "vacant housing units by block",
    )
    facilities = Margin(
        "group quarters",
        (*SPINE, "type", "occupancy"),
        label="group quarters by type and occupancy by block",
    )
    residents = Margin(
        "person",
        PERSON_VARIABLES,
        {"quarters": [IN_GROUP_QUARTERS]},
        label="persons in group quarters with all their variables",
    )
    return units, facilities, residents


# The specifications of the published products and of their sums, built from the exact figures.

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
                source="proof.md of PermutationSwapping",
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


def stirred_what_if(row: WhatIf, rate: Fraction) -> Specification:
    r"""Return the same row if the households were stirred by cycles: the share p moves in every stratum.

    One exchange loses $|\ln\lambda|$ with $\lambda = (n-1)(1-p)/p$ in a stratum of n, most in the largest one.

    >>> from stirred.catalog.products import WHAT_IFS
    >>> print(stirred_what_if(WHAT_IFS[0], Fraction(1, 20)).budget)
    19.3609
    """
    swapped, law = what_if(row, rate), SizeLaw("by-exchange", rate)
    assert swapped.varies is not None  # its law is one of the largest stratum
    return replace(
        swapped,
        input_premetric=Exchanges("household"),
        budget=law.at(row.largest),
        evidence=Evidence(status="proved", source=STIRRED_SOURCE),
        bounds=(),
        varies=replace(swapped.varies, law=law, words=""),
    )


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
