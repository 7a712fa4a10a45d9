"""The published numbers, as printed by the Bureau and by the paper, against what the catalog computes."""

import re
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from mpmath import log, mp, mpf, sqrt

from stirred.catalog import catalog
from stirred.spec import reading

DELTA = Fraction(1, 10**10)
NAMES = [
    "pl-persons-2020",
    "pl-units-2020",
    "pl-2020",
    "dhc-persons-2020",
    "dhc-units-2020",
    "dhc-2020",
    "topdown-2020",
    "ddhc-a-2020",
    "ddhc-a-2020-proved",
    "ddhc-b-2020",
    "sdhc-2020",
    "sdhc-2020-proved",
    "sdhc-2020-group-privacy",
    "das-2020",
    "das-2020-proved",
    "das-2020-group-privacy",
    "das-2020-printed",
    "das-2010",
    "whatif-state",
    "whatif-state-size",
    "whatif-county",
    "whatif-county-size",
    "whatif-block-group",
    "whatif-block-group-size",
    "whatif-state-stirred",
    "whatif-state-size-stirred",
    "whatif-county-stirred",
    "whatif-county-size-stirred",
    "whatif-block-group-stirred",
    "whatif-block-group-size-stirred",
]
PL_PERSONS, PL_UNITS = Fraction(293764, 114921), Fraction(11417641, 152349649)
DHC_PERSONS, DHC_UNITS = Fraction("4.9622"), Fraction("7.7005")
TOPDOWN = PL_PERSONS + PL_UNITS + DHC_PERSONS + DHC_UNITS
# The production settings, level by level: ρ² per record added or removed, the whole of the United States.
LEVEL_1, FINE, COARSE = (
    5,
    2,
    4,
)  # geographies with a budget: level 1; level 2 nation and states; level 2 below
SAFETAB_P = LEVEL_1 * Fraction("0.008") + FINE * Fraction("2.134") + COARSE * Fraction("0.159")
SAFETAB_H = 2 * (LEVEL_1 * Fraction("0.006915") + FINE * Fraction("1.9208") + COARSE * Fraction("0.142869"))
PHSAFE = (
    3 * (3 * Fraction("0.002619") + Fraction("0.141622") + 2 * Fraction("0.016371"))  # PH1, PH4, PH7
    + 3 * (3 * Fraction("0.000022") + Fraction("0.00117") + 2 * Fraction("0.000135"))  # denominators
    + Fraction("0.002619")
    + Fraction("0.016371")  # PH2
    + 3 * Fraction("0.001061")
    + Fraction("0.662976")
    + 2 * Fraction("0.00663")  # PH3
    + Fraction("0.001061")
    + Fraction("0.00663")  # PH6
)
PUBLISHED = TOPDOWN + 4 * SAFETAB_P + 2 * SAFETAB_H + 2 * PHSAFE
GROUP_PRIVACY = TOPDOWN + 4 * SAFETAB_P + 2 * SAFETAB_H + 4 * PHSAFE
PROVED = TOPDOWN + 2 * SAFETAB_P + 2 * SAFETAB_H + PHSAFE / 2  # Theorem 2 of each mechanism


def epsilon(rho_squared: Fraction) -> Decimal:
    """ρ² + 2ρ√(−ln δ) by a computation of this test's own, to nine digits."""
    with mp.workdps(40):
        value = mpf(rho_squared.numerator) / rho_squared.denominator
        return Decimal(mp.nstr(value + 2 * sqrt(value * log(mpf(10) ** 10)), 25))


def up(value: Fraction | Decimal, decimals: int) -> Decimal:
    exact = value if isinstance(value, Decimal) else Decimal(value.numerator) / Decimal(value.denominator)
    return exact.quantize(Decimal(1).scaleb(-decimals), rounding=ROUND_CEILING)


def simple(name: str) -> Decimal:
    return reading(catalog[name].rho_squared, DELTA).epsilon


def test_the_names_are_those_of_the_documents() -> None:
    assert sorted(catalog) == sorted(NAMES)


# The paper's Table 3 (to nearest), from the exact published budgets; tight: the Bureau's certificates.
@pytest.mark.parametrize(
    ("name", "exact", "epsilon"),
    [
        ("pl-persons-2020", "293764/114921", "17.90"),
        ("pl-units-2020", "11417641/152349649", "2.70"),
        ("dhc-persons-2020", "24811/5000", "26.34"),
        ("dhc-units-2020", "15401/2000", "34.33"),
    ],
)
def test_budgets_of_table_3(name: str, exact: str, epsilon: str) -> None:
    assert catalog[name].rho_squared.exact == exact
    assert round(simple(name), 2) == Decimal(epsilon)


def test_total_of_table_3_is_not_the_sum_of_the_epsilons() -> None:
    total = catalog["pl-2020"] + catalog["dhc-2020"]
    assert total.rho_squared.fraction == Fraction(2677677240811805083, 175081740127290000)
    assert round(reading(total.rho_squared, DELTA).epsilon, 2) == Decimal("52.83")


@pytest.mark.parametrize(
    ("name", "fraction"), [("pl-persons-2020", (17849145, 1041158)), ("pl-units-2020", (1455307, 588081))]
)
def test_tight_conversion_gives_the_certificates(name: str, fraction: tuple[int, int]) -> None:
    tight = reading(catalog[name].rho_squared, DELTA, tight=True, decimals=9).epsilon
    assert abs(Fraction(tight) - Fraction(*fraction)) < Fraction(1, 10**6)


def test_topdown_2020_is_the_total_of_table_3() -> None:
    spec = catalog["topdown-2020"]
    assert spec.rho_squared.fraction == TOPDOWN == Fraction(2677677240811805083, 175081740127290000)
    assert round(simple("topdown-2020"), 2) == Decimal("52.83")
    assert simple("topdown-2020") == up(epsilon(TOPDOWN), 6) == Decimal("52.825422")
    both = catalog["pl-2020"] + catalog["dhc-2020"]
    assert spec.multiverse == both.multiverse
    assert spec.rho_squared == both.rho_squared
    assert set(catalog.entry("topdown-2020").parts) == {
        "pl-persons-2020",
        "pl-units-2020",
        "dhc-persons-2020",
        "dhc-units-2020",
    }


def test_settings_of_safetab_and_phsafe_add_up() -> None:
    assert (
        Fraction("4.944"),
        Fraction("8.895302"),
        Fraction("1.257281"),
    ) == (SAFETAB_P, SAFETAB_H, PHSAFE)


# ρ² per record added or removed; published factor and figure; proved factor and figure; the figure printed.
@pytest.mark.parametrize(
    ("name", "counted", "published", "proved", "printed"),
    [
        ("ddhc-a-2020", SAFETAB_P, (4, "19.776"), (2, "9.888"), "19.776"),
        ("ddhc-b-2020", SAFETAB_H, (2, "17.790604"), (2, "17.790604"), "17.79"),
        ("sdhc-2020", PHSAFE, (2, "2.514562"), (Fraction(1, 2), "0.6286405"), "2.515"),
    ],
)
def test_published_and_proved_factors(
    name: str, counted: Fraction, published: tuple[int, str], proved: tuple[int | Fraction, str], printed: str
) -> None:
    entry = catalog.entry(name)
    assert entry.specification.rho_squared.fraction == counted * published[0] == Fraction(published[1])
    assert entry.specification.evidence.status == "published"
    assert entry.proved_specification is not None
    assert entry.proved_specification.rho_squared.fraction == counted * proved[0] == Fraction(proved[1])
    assert entry.proved_specification.evidence.status == "proved"
    assert entry.product is not None
    assert entry.product.as_printed().rho_squared == Fraction(printed)
    row = entry.row()
    assert (row["factor_published"], row["factor_proved"]) == (published[0], proved[0])
    assert row["rho_squared_proved"] == float(up(Decimal(proved[1]), 6))


# The figures rounded up at five decimals, the simple ε; then one imputed copy.
@pytest.mark.parametrize(
    ("name", "exact", "rho_squared", "reading_1", "copied", "reading_copied"),
    [
        ("das-2020-printed", Fraction("55.371"), "55.37100", "126.785", "221.48400", "364.311"),
        ("das-2020", PUBLISHED, "55.37504", "126.791", "221.50015", "364.332"),
        ("das-2020-group-privacy", GROUP_PRIVACY, "57.88960", "130.909", "231.55839", "377.598"),
        ("das-2020-proved", PROVED, "43.60112", "106.972", "174.40446", "301.146"),
    ],
)
def test_the_whole_2020_das(
    name: str, exact: Fraction, rho_squared: str, reading_1: str, copied: str, reading_copied: str
) -> None:
    spec = catalog[name]
    assert str(spec.input_premetric) == "d_Ham(person)"
    assert [invariant.words() for invariant in spec.multiverse] == [
        "housing units by block",
        "occupied group quarters by type by block",
        "population by state",
    ]
    assert spec.rho_squared.fraction == exact
    assert str(up(exact, 5)) == str(spec.rho_squared.upper(5)) == rho_squared
    assert str(up(simple(name), 3)) == str(up(epsilon(exact), 3)) == reading_1
    twice = spec.per("person", copies=2)
    assert twice.rho_squared.fraction == 4 * exact
    assert str(twice.rho_squared.upper(5)) == copied
    again = reading(twice.rho_squared, DELTA).epsilon
    assert str(up(again, 3)) == str(up(epsilon(4 * exact), 3)) == reading_copied


def test_the_published_total_stands_beside_the_proved_one() -> None:
    row = catalog.entry("das-2020").row()
    assert row["rho_squared"] == float(up(PUBLISHED, 6)) == 55.375036
    assert row["rho_squared_proved"] == float(up(PROVED, 6)) == 43.601114
    assert row["rho_squared_group_privacy"] == float(up(GROUP_PRIVACY, 6)) == 57.889598
    lines = catalog.entry("das-2020").card().variants
    assert any("theorems" in line.words and line.budget == "ρ² ≥ 43.6012" for line in lines)
    assert any("group privacy" in line.words and line.budget == "ρ² ≥ 57.8896" for line in lines)


def test_constant_two_counts_the_household_parts_fourfold() -> None:
    spec = catalog["das-2020"].per("person", link="free")
    # independently: persons once, households four times
    persons = PL_PERSONS + DHC_PERSONS + 4 * SAFETAB_P
    total = persons + 4 * (PL_UNITS + DHC_UNITS + 2 * SAFETAB_H + 2 * PHSAFE)
    assert spec.rho_squared.fraction == total
    assert str(spec.rho_squared.upper(4)) == str(up(total, 4)) == "139.6169"
    assert str(up(reading(spec.rho_squared, DELTA).epsilon, 3)) == str(up(epsilon(total), 3)) == "253.016"
    # group privacy holds for a person who moves: that part of S-DHC is not multiplied again
    weaker = catalog["das-2020-group-privacy"].per("person", link="free")
    moving = persons + 4 * PHSAFE + 4 * (PL_UNITS + DHC_UNITS + 2 * SAFETAB_H)
    assert weaker.rho_squared.fraction == moving
    assert str(up(moving, 4)) == "134.5878"
    # Theorem 2 of PHSafe: 1/2 for a person who stays, 2 for one who moves; that of SafeTab-P: 2 for both
    proved = catalog["das-2020-proved"].per("person", link="free")
    moving = (
        PL_PERSONS + DHC_PERSONS + 2 * SAFETAB_P + 2 * PHSAFE + 4 * (PL_UNITS + DHC_UNITS + 2 * SAFETAB_H)
    )
    assert proved.rho_squared.fraction == moving
    assert str(up(moving, 4)) == "122.1852"


def test_topdown_per_household_multiplies_rho_of_the_person_part() -> None:
    spec = catalog["pl-2020"].per("household")
    persons, units = Fraction(293764, 114921), Fraction(11417641, 152349649)
    assert spec.rho_squared.fraction == 99_999**2 * persons + units


@pytest.mark.parametrize(
    "name",
    [
        "pl-2020",
        "dhc-2020",
        "topdown-2020",
        "das-2020",
        "das-2020-proved",
        "das-2020-group-privacy",
        "das-2020-printed",
    ],
)
def test_dropping_any_one_invariant_gives_infinity(name: str) -> None:
    spec = catalog[name]
    assert len(spec.multiverse) == 3
    for invariant in spec.multiverse:
        assert not spec.without(invariant).budget.is_finite


# The paper's Table 5.
@pytest.mark.parametrize(
    ("name", "b", "five", "fifty"),
    [
        ("whatif-state", 13_475_623, "19.36", "16.42"),
        ("whatif-state-size", 3_948_028, "18.13", "15.19"),
        ("whatif-county", 3_420_628, "17.99", "15.05"),
        ("whatif-county-size", 939_185, "16.70", "13.75"),
        ("whatif-block-group", 6_204, "11.68", "8.73"),
        ("whatif-block-group-size", 4_549, "11.37", "8.42"),
    ],
)
def test_what_if_rows(name: str, b: int, five: str, fifty: str) -> None:
    entry = catalog.entry(name)
    assert entry.b == b
    printed = [round(entry.at(rate).budget.upper(6), 2) for rate in ("1/20", "1/2")]
    assert printed == [Decimal(five), Decimal(fifty)]
    assert str(catalog[name].output_premetric) == "D_mult"
    assert str(catalog[name].input_premetric) == "d_Ham(household)"


def test_2010_as_psa() -> None:
    entry = catalog.entry("das-2010")
    low, high = (round(entry.at(rate).budget.upper(6), 2) for rate in ("1/25", "1/50"))
    assert (low, high) == (Decimal("18.29"), Decimal("19.00"))
    assert catalog["das-2010"].evidence.status == "estimated"


DOCS = Path(__file__).parents[2] / "docs"


def test_the_pages_round_up() -> None:
    """Every budget and ε of the pages is the exact one, rounded up at its last digit."""
    rho = {
        name: catalog[name].rho_squared
        for name in (
            "topdown-2020",
            "das-2020",
            "das-2020-proved",
            "das-2020-group-privacy",
            "das-2020-printed",
        )
    }
    moving, copied = (catalog["das-2020"].per("person", **how) for how in ({"link": "free"}, {"copies": 2}))
    swaps = [
        catalog.entry(name).at(rate).budget.upper(9)
        for name in NAMES
        if name.startswith("whatif") and not name.endswith("-stirred")
        for rate in ("1/20", "1/2")
    ]
    catalog_page = [
        *(budget.upper(9) for budget in rho.values()),
        *(reading(budget, DELTA).epsilon for budget in rho.values()),
        *(spec.rho_squared.upper(9) for spec in (moving, copied)),
        *(reading(spec.rho_squared, DELTA).epsilon for spec in (moving, copied)),
        *(
            catalog[name].per("person", link="free").rho_squared.upper(9)
            for name in ("das-2020-proved", "das-2020-group-privacy")
        ),
    ]
    specification_page = [rho["topdown-2020"].upper(9), min(swaps), max(swaps)]
    pages = {"reference/catalog.md": catalog_page, "explain/specification.md": specification_page}
    for name, values in pages.items():
        text = (DOCS / name).read_text(encoding="utf-8")
        for value in values:
            shown = {str(up(value, 4)), str(up(value, 4).normalize())}
            assert any(re.search(rf"(?<![\d.]){re.escape(one)}(?!\d)", text) for one in shown), (name, value)
