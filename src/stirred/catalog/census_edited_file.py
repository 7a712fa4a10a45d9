"""The domain all catalog entries share, the Census Edited File, and the invariants the published releases kept.

The domain is the set of all possible Census Edited Files (X_CEF in the paper): after editing and imputation. Distances
are those of the joint file: a person's record carries the variables of its household, and a vacant unit or an empty
facility is a unit of its own.
"""

from collections.abc import Sequence

from stirred.catalog.published import LARGEST_HOUSEHOLD
from stirred.spec import AtLeast, Constraint, Domain, Margin, Multiverse, RecordType, Variable

SPINE = ("state", "county", "tract", "block_group", "block")
CHARACTERISTICS = ("type", "tenure", "age", "race", "hispanic", "members")
_LABELS = {
    "size": "number of persons",
    "age": "age of the householder",
    "race": "race of the householder",
    "hispanic": "Hispanic origin of the householder",
    "members": "everything recorded about each member",
}


def _variables(*names: str) -> tuple[Variable, ...]:
    return tuple(Variable(name=name, label=_LABELS.get(name, "")) for name in names)


CEF = Domain(
    name="CEF",
    label="all possible Census Edited Files of the United States",
    record_types=(
        RecordType(
            name="person",
            variables=_variables(
                *SPINE, "household", "age", "sex", "race", "hispanic", "relationship", "quarters"
            ),
        ),
        RecordType(name="household", variables=_variables(*SPINE, "size", *CHARACTERISTICS)),
        RecordType(name="housing unit", variables=_variables(*SPINE, "occupancy")),
        RecordType(name="group quarters", variables=_variables(*SPINE, "type", "occupancy")),
    ),
    spine=SPINE,
    constraints=(
        Constraint(words="edit rules (a mother is older than her children by some years)", kind="edit"),
        Constraint(words="structural zeros of the questionnaire", kind="structural zero"),
        Constraint(words=f"a household or facility has at most {LARGEST_HOUSEHOLD:,} persons", kind="size"),
    ),
    largest_household=LARGEST_HOUSEHOLD,
)

POPULATION = Margin("person", ("state",), label="population by state")
HOUSING_UNITS = Margin("housing unit", ("block",), label="housing units by block")
GROUP_QUARTERS = Margin(
    "group quarters",
    ("block", "type"),
    {"occupancy": ["occupied"]},
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


def swapping(match: Sequence[str], swap: Sequence[str]) -> Multiverse:
    r"""The invariants of a swap: all $n_{mh\cdot}$ and $n_{m\cdot s}$ (Proposition 4 and Definition 2).

    >>> print(swapping(("county", "size"), ("tract",)))
    {all household characteristics by county, households by size by tract}
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
    )
