"""What SafeTab's budgets per record added or removed are multiplied by for a changed record, each factor with its theorem.

The statements of the mechanisms, composed plans and the catalog of the 2020 products all read these factors and no others.
"""

from stirred.spec.algebra.conversions import DISJOINT_CELLS, GROUP_PRIVACY, Conversion, Factor

# Group privacy is what was published for the Detailed DHC-A; the theorem needs half of it.
SAFETAB_P_CONVERSION = Conversion(
    published=Factor(times=4, unit="person", because=GROUP_PRIVACY),
    bureau=Factor(times=4, unit="person", because=GROUP_PRIVACY),
    proved=Factor(
        times=2,
        unit="person",
        because="a changed person leaves at most s cells and enters at most s others, twice the squared distance of a "
        "removal, also where the person moves",
        theorem="mechanisms/safetab/proof.md, Theorem 2",
    ),
)
SAFETAB_H_CONVERSION = Conversion(
    published=Factor(times=2, unit="household", because=DISJOINT_CELLS),
    bureau=Factor(times=2, unit="household", because=DISJOINT_CELLS),
    proved=Factor(
        times=2,
        unit="household",
        because=DISJOINT_CELLS,
        theorem="mechanisms/safetab/households/proof.md, Theorem 2",
    ),
)
