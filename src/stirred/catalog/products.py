"""State the figures that others published, with their sources, and the data products of the 2020 census."""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

from stirred.mechanisms.census2020.factors import (
    PHSAFE_CONVERSION,
    SAFETAB_H_CONVERSION,
    SAFETAB_P_CONVERSION,
)
from stirred.spec.conversions import Conversion
from stirred.spec.input_premetrics import Link

# The figures that others published, exactly as published, with their sources; no ε is stored here.
#
# "The paper" is J. Bailie, R. Gong and X.-L. Meng, "A Refreshment Stirred, Not Shaken: Invariant-Preserving
# Deployments of Differential Privacy for the U.S. Decennial Census". All ρ² are zCDP budgets in the usual sense (the
# paper's ρ squared).

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
STIRRED_SOURCE = f"proof.md of Stirring; {PAPER}, Table 5 (stratum sizes from the 2020 DHC)"

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


# The data products of the 2020 census: the budget of each as its production code counts it, and as it was published.


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """One published data product: its exact budget, its unit, how the figure was converted, and its source.

    >>> print(S_DHC.rho_squared, S_DHC.as_proved().rho_squared, S_DHC.as_printed().rho_squared)
    1257281/500000 1257281/2000000 503/200
    """

    name: str
    title: str
    counted: Fraction  # ρ² as the production code counts it
    unit: str  # "person" or "household"
    invariants: str  # a key of census_edited_file.SETS
    source: str
    published: str  # the day of publication, ISO
    printed: Fraction  # the figure of the paper's tables, rounded
    conversion: Conversion | None = None  # None: the code counts changed records, nothing is converted
    figure: Literal["published", "bureau", "proved", "printed"] = "published"  # which of its figures is meant
    link: Link = "free"  # of a person: whether the figure also holds for one who moves to another household

    @property
    def rho_squared(self) -> Fraction:
        """Return the exact ρ² per changed record."""
        if self.figure == "printed":
            return self.printed
        if self.conversion is None:
            return self.counted
        return self.counted * self.conversion.factor(self.figure).times

    @property
    def status(self) -> Literal["published", "proved"]:
        """Return whether the step from the code's guarantee to this figure is proved, or only published."""
        return "proved" if self.figure in ("bureau", "proved") else "published"

    @property
    def conversion_words(self) -> str:
        if self.conversion is None:
            return (
                f"none needed, TopDown counts changed {'person' if self.unit == 'person' else 'unit'} records"
            )
        return self.conversion.words(self.counted, self.printed)

    def as_proved(self) -> "Product":
        """Return the product with the factor that a theorem proves; itself if nothing was converted."""
        return self._by("proved", "proved", "with a factor that is proved")

    def by_group_privacy(self) -> "Product":
        """Return the product with a factor that follows from the guarantee of the code alone."""
        return self._by(
            "bureau", "group-privacy", "with a factor that follows from the guarantee of the code alone"
        )

    def _by(self, figure: Literal["bureau", "proved"], name: str, words: str) -> "Product":
        if self.conversion is None:
            return self
        by = self.conversion.factor(figure)
        settings, _, _ = self.source.partition("; ")
        return replace(
            self,
            name=f"{self.name}-{name}",
            title=f"{self.title}, {words}",
            unit=by.unit,
            link=by.link,
            source=f"times {by.times}, proved ({by.theorem or by.because.partition(':')[0]}), {by.assumption}: {settings}",
            figure=figure,
        )

    def as_printed(self) -> "Product":
        """Return the product with the figure of the paper's tables."""
        return replace(
            self,
            title=f"{self.title}, as printed",
            source=f"{PAPER}, Table 4, as printed ({self.name})",
            figure="printed",
        )


PL_PERSONS = Product(
    name="pl-persons-2020",
    title="2020 Redistricting Data (P.L. 94-171), person tables",
    counted=Fraction(293764, 114921),
    unit="person",
    invariants="topdown",
    source="Census Bureau, production settings and certificate of the 2020 redistricting run (TopDown Algorithm, "
    f"arXiv 2204.08986); {PAPER}, Table 3",
    published="2021-08-12",
    printed=Fraction("2.56"),
)
PL_UNITS = Product(
    name="pl-units-2020",
    title="2020 Redistricting Data (P.L. 94-171), housing-unit tables",
    counted=Fraction(11417641, 152349649),
    unit="household",
    invariants="topdown",
    source="Census Bureau, production settings and certificate of the 2020 redistricting run (TopDown Algorithm, "
    f"arXiv 2204.08986); {PAPER}, Table 3",
    published="2021-08-12",
    printed=Fraction("0.07"),
)
DHC_PERSONS = Product(
    name="dhc-persons-2020",
    title="2020 Demographic and Housing Characteristics File, person tables",
    counted=Fraction(24811, 5000),
    unit="person",
    invariants="topdown",
    source=f"Census Bureau, production settings of the 2020 DHC run (DHCP); {PAPER}, Table 3",
    published="2023-05-25",
    printed=Fraction("4.96"),
)
DHC_UNITS = Product(
    name="dhc-units-2020",
    title="2020 Demographic and Housing Characteristics File, housing-unit tables",
    counted=Fraction(15401, 2000),
    unit="household",
    invariants="topdown",
    source=f"Census Bureau, production settings of the 2020 DHC run (DHCH); {PAPER}, Table 3",
    published="2023-05-25",
    printed=Fraction("7.70"),
)
DDHC_A = Product(
    name="ddhc-a-2020",
    title="2020 Detailed DHC-A File (SafeTab-P)",
    counted=Fraction("4.944"),
    unit="person",
    invariants="safetab",
    source=f"Census Bureau, SafeTab-P production settings (add/remove ρ² = 4.944); {PAPER}, Table 4",
    conversion=SAFETAB_P_CONVERSION,
    published="2023-09-21",
    printed=Fraction("19.776"),
)
DDHC_B = Product(
    name="ddhc-b-2020",
    title="2020 Detailed DHC-B File (SafeTab-H)",
    counted=Fraction("8.895302"),
    unit="household",
    invariants="safetab",
    source=f"Census Bureau, SafeTab-H production settings (add/remove ρ² = 8.895302); {PAPER}, Table 4",
    conversion=SAFETAB_H_CONVERSION,
    published="2024-08-01",
    printed=Fraction("17.79"),
)
S_DHC = Product(
    name="sdhc-2020",
    title="2020 Supplemental DHC File (PHSafe)",
    counted=Fraction("1.257281"),
    unit="household",
    invariants="phsafe",
    source=f"Census Bureau, PHSafe production settings (add/remove ρ² = 1.257281); {PAPER}, Table 4",
    conversion=PHSAFE_CONVERSION,
    published="2024-09-19",
    printed=Fraction("2.515"),
)
PRODUCTS = (PL_PERSONS, PL_UNITS, DHC_PERSONS, DHC_UNITS, DDHC_A, DDHC_B, S_DHC)
PROVED = tuple(product.as_proved() for product in PRODUCTS)
BY_GROUP_PRIVACY = tuple(product.by_group_privacy() for product in PRODUCTS)
PRINTED_PL_AND_DHC = Fraction("15.29")  # the paper's rounded total of the four TopDown products
_PRINTED_PERSONS = PL_PERSONS.printed + DHC_PERSONS.printed
PRINTED = (
    replace(
        PL_PERSONS,
        name="PL and DHC, persons",
        title="2020 Redistricting Data and DHC, person tables, as printed",
        counted=_PRINTED_PERSONS,
        source=f"{PAPER}, Table 3, rounded",
    ),
    replace(
        PL_UNITS,
        name="PL and DHC, units",
        title="2020 Redistricting Data and DHC, housing-unit tables, as printed",
        counted=PRINTED_PL_AND_DHC - _PRINTED_PERSONS,
        source=f"{PAPER}, Tables 3 and 4, rounded",
    ),
    *(product.as_printed() for product in (DDHC_A, DDHC_B, S_DHC)),
)
