"""State the factors that turn budgets per record added or removed into budgets for other units.

The statements of the mechanisms, composed plans and the catalog of the 2020 products all read these factors and no
others.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Final, Literal

from stirred.spec.conversions import DISJOINT_CELLS, GROUP_PRIVACY, Conversion, Factor

# The choices of the settings.

Definition = Literal["zcdp", "puredp"]  # budgets are ρ², or ε
NeighbourKind = Literal["added-or-removed", "changed"]
PromisedUnit = Literal["added-or-removed", "changed", "household"]  # "changed": a person who may move
KnownInvariants = Literal["housing-units", "none"]

# SafeTab.

# Group privacy is what was published for the Detailed DHC-A; the theorem needs half of it.
SAFETAB_P_CONVERSION = Conversion(
    published=Factor(times=4, unit="person", because=GROUP_PRIVACY),
    bureau=Factor(times=4, unit="person", because=GROUP_PRIVACY),
    proved=Factor(
        times=2,
        unit="person",
        because="a changed person leaves at most s cells and enters at most s others, twice the squared distance of a "
        "removal, also where the person moves",
        theorem="proof.md of SafeTab, Theorem 2",
    ),
)
SAFETAB_H_CONVERSION = Conversion(
    published=Factor(times=2, unit="household", because=DISJOINT_CELLS),
    bureau=Factor(times=2, unit="household", because=DISJOINT_CELLS),
    proved=Factor(
        times=2,
        unit="household",
        because=DISJOINT_CELLS,
        theorem="proof.md of SafeTab-H, Theorem 2",
    ),
)


# PHSafe, as its Theorem 2 proves.

PHSAFE_FACTORS: Final[Mapping[Definition, Mapping[PromisedUnit, Fraction]]] = {
    "zcdp": {"added-or-removed": Fraction(1), "changed": Fraction(2), "household": Fraction(1, 2)},
    "puredp": {"added-or-removed": Fraction(1), "changed": Fraction(2), "household": Fraction(1)},
}
PHSAFE_CONVERSION: Final = Conversion(
    published=Factor(
        times=2,
        unit="household",
        because="published without a proof: PHSafe counts persons joined to their households, and one person can move "
        "many counts, all of them in one cell, so the argument for disjoint cells does not apply as it stands",
    ),
    # the code's neighbours differ by one person (and by the record of that person's household): two steps are one
    # changed person, also one who moves, while a changed household is as many steps as it has persons
    bureau=Factor(times=4, unit="person", because=f"{GROUP_PRIVACY}; the code counts persons"),
    proved=Factor(
        times=PHSAFE_FACTORS["zcdp"][
            "household"
        ],  # a person who stays changes one household, as a whole household does
        unit="person",
        because="a person who stays changes one household, and one household moves a table of persons by √2·τ at most, "
        "where the noise is that of 2τ + 2; a person who moves changes two: times 2",
        link="kept",
        theorem="proof.md of PHSafe, Theorem 2",
    ),
)
