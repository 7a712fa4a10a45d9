"""The figures others published, exactly as published, with where they stand: no ε is stored here.

"The paper" is J. Bailie, R. Gong and X.-L. Meng, "A Refreshment Stirred, Not Shaken: Invariant-Preserving Deployments of
Differential Privacy for the U.S. Decennial Census". All ρ² are zCDP budgets in the usual sense (the paper's ρ squared).
"""

from dataclasses import dataclass
from fractions import Fraction

PAPER = "Bailie, Gong and Meng, A Refreshment Stirred, Not Shaken"
DELTA = Fraction(1, 10**10)  # the δ of the Bureau's certificates and of the paper's tables
LARGEST_HOUSEHOLD = 99_999  # persons in one household or facility, the limit TopDown enforces


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """One published data product: its exact ρ², what one unit is, how the figure came to be, and where it stands."""

    name: str
    title: str
    rho_squared: Fraction
    unit: str  # "person" or "household"
    invariants: str  # a key of catalog.invariants.SETS
    source: str
    conversion: str
    published: str  # the day of publication, ISO
    printed: Fraction  # the figure of the paper's tables


PL_PERSONS = Product(
    name="pl-persons-2020",
    title="2020 Redistricting Data (P.L. 94-171), person tables",
    rho_squared=Fraction(293764, 114921),
    unit="person",
    invariants="topdown",
    source="Census Bureau, production settings and certificate of the 2020 redistricting run (TopDown Algorithm, "
    f"arXiv 2204.08986); {PAPER}, Table 3",
    conversion="none needed, TopDown counts changed person records",
    published="2021-08-12",
    printed=Fraction("2.56"),
)
PL_UNITS = Product(
    name="pl-units-2020",
    title="2020 Redistricting Data (P.L. 94-171), housing-unit tables",
    rho_squared=Fraction(11417641, 152349649),
    unit="household",
    invariants="topdown",
    source="Census Bureau, production settings and certificate of the 2020 redistricting run (TopDown Algorithm, "
    f"arXiv 2204.08986); {PAPER}, Table 3",
    conversion="none needed, TopDown counts changed unit records",
    published="2021-08-12",
    printed=Fraction("0.07"),
)
DHC_PERSONS = Product(
    name="dhc-persons-2020",
    title="2020 Demographic and Housing Characteristics File, person tables",
    rho_squared=Fraction(24811, 5000),
    unit="person",
    invariants="topdown",
    source=f"Census Bureau, production settings of the 2020 DHC run (DHCP); {PAPER}, Table 3",
    conversion="none needed, TopDown counts changed person records",
    published="2023-05-25",
    printed=Fraction("4.96"),
)
DHC_UNITS = Product(
    name="dhc-units-2020",
    title="2020 Demographic and Housing Characteristics File, housing-unit tables",
    rho_squared=Fraction(15401, 2000),
    unit="household",
    invariants="topdown",
    source=f"Census Bureau, production settings of the 2020 DHC run (DHCH); {PAPER}, Table 3",
    conversion="none needed, TopDown counts changed unit records",
    published="2023-05-25",
    printed=Fraction("7.70"),
)
DDHC_A = Product(
    name="ddhc-a-2020",
    title="2020 Detailed DHC-A File (SafeTab-P)",
    rho_squared=Fraction("19.776"),
    unit="person",
    invariants="safetab",
    source=f"Census Bureau, SafeTab-P production settings (add/remove ρ² = 4.944); {PAPER}, Table 4",
    conversion="the code's add-or-remove-one ρ² 4.944 times 4 (one change = one removal and one addition: ρ doubles)",
    published="2023-09-21",
    printed=Fraction("19.776"),
)
DDHC_B = Product(
    name="ddhc-b-2020",
    title="2020 Detailed DHC-B File (SafeTab-H)",
    rho_squared=Fraction("17.79"),
    unit="household",
    invariants="safetab",
    source=f"Census Bureau, SafeTab-H production settings (add/remove ρ² = 8.895302); {PAPER}, Table 4",
    conversion="published as 17.79, which is the code's add-or-remove-one ρ² 8.895302 times 2 (17.790604, cut): the "
    "factor 2 holds for disjoint cells under Gaussian noise; group privacy alone would give 4",
    published="2024-08-01",
    printed=Fraction("17.79"),
)
S_DHC = Product(
    name="sdhc-2020",
    title="2020 Supplemental DHC File (PHSafe)",
    rho_squared=Fraction("2.515"),
    unit="household",
    invariants="phsafe",
    source=f"Census Bureau, PHSafe production settings (add/remove ρ² = 1.257281); {PAPER}, Table 4",
    conversion="published as 2.515, which is the code's add-or-remove-one ρ² 1.257281 times 2 (2.514562); PHSafe's joins "
    "do not meet the disjoint-cells premise of that factor as they stand, and group privacy alone would give 4",
    published="2024-09-19",
    printed=Fraction("2.515"),
)
PRODUCTS = (PL_PERSONS, PL_UNITS, DHC_PERSONS, DHC_UNITS, DDHC_A, DDHC_B, S_DHC)
PRINTED_PL_AND_DHC = Fraction("15.29")  # the paper's rounded total of the four TopDown products


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

LARGEST_2010 = 3_650_000  # the paper's b of 3.65 million; the exact count is not given
RATES_2010 = (Fraction(1, 50), Fraction(1, 25))  # purported: 2 to 4 % of households
SOURCE_2010 = f"{PAPER}, Section 3.5 and Theorem 1; the swap rate is purported, the true key is finer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Unstated:
    """A release from the same confidential file whose specification was never stated: its cost is unknown, not zero."""

    name: str
    title: str
    source: str


_REMARK = f"{PAPER}, Remark 6: no information on a DP specification was found"
UNSTATED = (
    Unstated(name="accuracy-metrics-2020", title="2020 DAS accuracy metrics", source=_REMARK),
    Unstated(name="population-estimates-2020", title="Population and Housing Unit Estimates", source=_REMARK),
    Unstated(name="population-projections-2020", title="National Population Projections", source=_REMARK),
    Unstated(name="surname-file-2020", title="Surname file (a release that may come)", source=_REMARK),
    Unstated(
        name="research-outputs-2020",
        title="Research outputs made with access to the microdata",
        source=_REMARK,
    ),
)
