"""The published numbers, as printed by the Bureau and by the paper, against what the catalog computes."""

from decimal import Decimal
from fractions import Fraction

import pytest

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
    "ddhc-a-2020",
    "ddhc-b-2020",
    "sdhc-2020",
    "das-2020",
    "das-2020-printed",
    "das-2010",
    "whatif-state",
    "whatif-state-size",
    "whatif-county",
    "whatif-county-size",
    "whatif-block-group",
    "whatif-block-group-size",
]


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


# Must show 4: ρ², simple ε; then one imputed copy.
@pytest.mark.parametrize(
    ("name", "rho_squared", "epsilon", "copied", "epsilon_copied"),
    [
        ("das-2020-printed", "55.371", "126.784", "221.484", "364.311"),
        ("das-2020", "55.37487", "126.791", "221.4995", "364.331"),
    ],
)
def test_the_whole_2020_das(
    name: str, rho_squared: str, epsilon: str, copied: str, epsilon_copied: str
) -> None:
    spec = catalog[name]
    assert str(spec.input_premetric) == "d_Ham(person)"
    assert [invariant.words() for invariant in spec.multiverse] == [
        "housing units by block",
        "occupied group quarters by type by block",
        "population by state",
    ]
    assert abs(Fraction(str(spec.rho_squared.upper(6))) - Fraction(rho_squared)) < Fraction(1, 10**5)
    assert round(simple(name), 3) == Decimal(epsilon)
    twice = spec.per("person", copies=2)
    assert abs(twice.rho_squared.fraction - Fraction(copied)) < Fraction(1, 10**4)  # type: ignore[operator]
    assert round(reading(twice.rho_squared, DELTA).epsilon, 3) == Decimal(epsilon_copied)


def test_constant_two_counts_the_household_parts_fourfold() -> None:
    spec = catalog["das-2020"].per("person", link="free")
    # independently: persons once, households four times
    persons = Fraction(293764, 114921) + Fraction(24811, 5000) + Fraction("19.776")
    households = Fraction(11417641, 152349649) + Fraction(15401, 2000) + Fraction("17.79") + Fraction("2.515")
    assert spec.rho_squared.fraction == persons + 4 * households
    assert round(Decimal(str(spec.rho_squared.upper(6))), 4) == Decimal("139.6162")
    assert round(reading(spec.rho_squared, DELTA).epsilon, 3) == Decimal("253.014")


def test_topdown_per_household_multiplies_rho_of_the_person_part() -> None:
    spec = catalog["pl-2020"].per("household")
    persons, units = Fraction(293764, 114921), Fraction(11417641, 152349649)
    assert spec.rho_squared.fraction == 99_999**2 * persons + units


@pytest.mark.parametrize("name", ["pl-2020", "dhc-2020", "das-2020", "das-2020-printed"])
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
