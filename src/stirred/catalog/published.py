"""The figures that others published, exactly as published, with their sources; no ε is stored here.

"The paper" is J. Bailie, R. Gong and X.-L. Meng, "A Refreshment Stirred, Not Shaken: Invariant-Preserving Deployments of
Differential Privacy for the U.S. Decennial Census". All ρ² are zCDP budgets in the usual sense (the paper's ρ squared).
"""

from dataclasses import dataclass
from fractions import Fraction

PAPER = "Bailie, Gong and Meng, A Refreshment Stirred, Not Shaken"
DELTA = Fraction(1, 10**10)  # the δ of the Bureau's certificates and of the paper's tables
MAX_HOUSEHOLD_PERSONS = 99_999  # persons in one household or facility, the limit TopDown enforces


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf:
    """One row of the paper's Table 5: what is matched and swapped, and the largest stratum, from the 2020 DHC."""

    name: str
    match: tuple[str, ...]
    swap: tuple[str, ...]
    largest: int  # b: the number of households in the largest stratum
    where: str


WHAT_IFS = (
    WhatIf(name="whatif-state", match=("state",), swap=("county",), largest=13_475_623, where="California"),
    WhatIf(
        name="whatif-state-size",
        match=("state", "size"),
        swap=("county",),
        largest=3_948_028,
        where="California, two-person households",
    ),
    WhatIf(
        name="whatif-county",
        match=("county",),
        swap=("tract",),
        largest=3_420_628,
        where="Los Angeles County, California",
    ),
    WhatIf(
        name="whatif-county-size",
        match=("county", "size"),
        swap=("tract",),
        largest=939_185,
        where="Los Angeles County, California, two-person households",
    ),
    WhatIf(
        name="whatif-block-group",
        match=("block_group",),
        swap=("block",),
        largest=6_204,
        where="California block group 060730187001",
    ),
    WhatIf(
        name="whatif-block-group-size",
        match=("block_group", "size"),
        swap=("block",),
        largest=4_549,
        where="Florida block group 121199114024, two-person households",
    ),
)
WHAT_IF_RATES = (Fraction(1, 20), Fraction(1, 2))
WHAT_IF_SOURCE = f"{PAPER}, Table 5 (stratum sizes from the 2020 DHC) and Theorem 1"

MAX_STRATUM_2010 = 3_650_000  # the paper's b of 3.65 million; the exact count is not given
RATES_2010 = (Fraction(1, 50), Fraction(1, 25))  # purported: 2 to 4 % of households
SOURCE_2010 = f"{PAPER}, Section 3.5 and Theorem 1; the swap rate is purported, the true key is finer"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnstatedRelease:
    """A release from the same confidential file without a stated specification: its cost is unknown, not 0."""

    name: str
    title: str
    source: str


_REMARK = f"{PAPER}, Remark 6: no information on a DP specification was found"
UNSTATED = (
    UnstatedRelease(name="accuracy-metrics-2020", title="2020 DAS accuracy metrics", source=_REMARK),
    UnstatedRelease(
        name="population-estimates-2020", title="Population and Housing Unit Estimates", source=_REMARK
    ),
    UnstatedRelease(
        name="population-projections-2020", title="National Population Projections", source=_REMARK
    ),
    UnstatedRelease(name="surname-file-2020", title="Surname file (a release that may come)", source=_REMARK),
    UnstatedRelease(
        name="research-outputs-2020",
        title="Research outputs made with access to the microdata",
        source=_REMARK,
    ),
)
