"""The domain all catalog entries share, the Census Edited File, and the invariants the published releases kept.

The domain is the set of all possible Census Edited Files (X_CEF in the paper): after editing and imputation. Distances
are those of the joint file: a person's record carries the variables of its household, and a vacant unit is a unit of its
own. A facility in which nobody lives is not in the file (the published tables count occupied ones only): with an invariant
on empty ones missing, the number of homes would not be fixed, and no constant would relate persons and households.
"""

from collections.abc import Sequence

from stirred.catalog.published import MAX_HOUSEHOLD_PERSONS
from stirred.spec import AtLeast, Constraint, Domain, Margin, Multiverse, RecordType, Variable

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
