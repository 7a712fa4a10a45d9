"""The factors from records added or removed to records changed: each figure is an exact product, each reason a fact."""

from dataclasses import replace
from fractions import Fraction
from itertools import product as every

import pytest

from stirred.catalog import catalog
from stirred.catalog.products import DDHC_B, PRODUCTS, S_DHC, Product
from stirred.mechanisms.census2020.factors import (
    PHSAFE_CONVERSION,
    SAFETAB_H_CONVERSION,
    SAFETAB_P_CONVERSION,
)
from stirred.spec import (
    Budget,
    Domain,
    Hamming,
    Multiplicative,
    Multiverse,
    NormalizedRenyi,
    Specification,
    SymmetricDifference,
    compose,
)
from stirred.spec.conversions import Conversion, Figure


def understates(shown: Product) -> bool:
    """Whether a figure is below the product of the code's budget and the published factor."""
    factor = 1 if shown.conversion is None else shown.conversion.published.times
    return shown.rho_squared < shown.counted * factor


def test_no_product_is_cut() -> None:
    assert not any(understates(product) for product in PRODUCTS)


def test_the_cut_figure_would_be_noticed() -> None:
    """The mutant: 17.79 as it is printed, below 2 × 8.895302."""
    assert understates(replace(DDHC_B, figure="printed"))
    assert not understates(replace(S_DHC, figure="printed"))  # 2.515 is rounded up


def test_printed_figures_round_the_published_ones() -> None:
    for product in PRODUCTS:
        digits = len(str(product.printed.limit_denominator(1000).denominator)) - 1
        assert abs(product.printed - product.rho_squared) <= Fraction(1, 2 * 10 ** min(digits, 2))


@pytest.mark.parametrize("s", [1, 2, 3])
def test_disjoint_cells_double_the_squared_distance(s: int) -> None:
    """Every record that counts once in at most s of six cells, removed or changed into every other."""
    records = [cells for cells in every((0, 1), repeat=6) if sum(cells) <= s]
    removed = max(sum(cells) for cells in records)
    changed = max(sum((a - b) ** 2 for a, b in zip(x, y, strict=True)) for x in records for y in records)
    assert (
        changed == SAFETAB_H_CONVERSION.proved.times * removed == SAFETAB_P_CONVERSION.proved.times * removed
    )


def test_without_disjoint_cells_only_group_privacy_holds() -> None:
    """A step that may move several counts of one cell in either direction: two steps have four times the square."""
    steps = [move for move in every(range(-3, 4), repeat=2) if sum(map(abs, move)) <= 3]
    one = max(a * a + b * b for a, b in steps)
    two = max((a + c) ** 2 + (b + d) ** 2 for a, b in steps for c, d in steps)
    assert two == SAFETAB_P_CONVERSION.bureau.times * one == PHSAFE_CONVERSION.bureau.times * one
    assert two > SAFETAB_H_CONVERSION.proved.times * one


@pytest.mark.parametrize("tau", [1, 2, 6, 10])
def test_one_household_costs_half_of_the_relation_of_the_code(tau: int) -> None:
    """Every two contents of a household with at most τ counted persons in two cells, against noise for 2τ + 2."""
    contents = [cells for cells in every(range(tau + 1), repeat=2) if sum(cells) <= tau]
    moved = max(sum((a - b) ** 2 for a, b in zip(x, y, strict=True)) for x in contents for y in contents)
    assert moved <= PHSAFE_CONVERSION.proved.times * (2 * tau + 2) ** 2
    assert (
        PHSAFE_CONVERSION.proved.times * 2**2 == 2
    )  # a table of households: attained by one that changes its cell
    assert PHSAFE_CONVERSION.proved.link == "kept"  # who moves changes two households: 4 times as much


def test_a_proved_figure_says_for_which_unit_and_given_what() -> None:
    for name, unit in (("ddhc-a-2020", "person"), ("ddhc-b-2020", "household"), ("sdhc-2020", "person")):
        proved = catalog.entry(name).proved_specification
        assert proved is not None
        assert proved.input_premetric == Hamming(unit)
        assert (
            "given that the production code counts and adds noise as it is documented"
            in proved.evidence.source
        )
        assert ", Theorem 2)" in proved.evidence.source
    weaker = catalog["sdhc-2020-group-privacy"]
    assert "given the guarantee of the code, which is published" in weaker.evidence.source
    assert catalog["sdhc-2020"].input_premetric == Hamming("household")
    assert catalog["sdhc-2020-proved"] == catalog.entry("sdhc-2020").proved_specification


def test_a_sum_with_published_parts_is_published() -> None:
    assert catalog["das-2020-proved"].evidence.status == "published"
    parts = [
        catalog["topdown-2020"],
        *(catalog.entry(n).proved_specification for n in ("ddhc-a-2020", "ddhc-b-2020", "sdhc-2020")),
    ]
    total = compose([part for part in parts if part is not None])
    assert total.evidence.status == "published"
    assert total.rho_squared == catalog["das-2020-proved"].rho_squared


def test_the_card_shows_both_figures_with_their_marks() -> None:
    text = catalog.entry("sdhc-2020").card().text()
    for words in (
        "published by others",
        "2.5146",
        "with factors that theorems about the mechanisms prove",
        "5.0292",
        "0.6287",
        "times 1/2 per person who stays in the household",
    ):
        assert words in text
    assert "the published factor is also proved" in catalog.entry("ddhc-b-2020").card().text()
    # a restatement has no proved figure beside it: that one would have to be restated too
    copied = catalog["sdhc-2020"].per("household", copies=2)
    assert "5.0292" not in "".join(
        v.budget for v in catalog.entry("sdhc-2020").card(specification=copied).variants
    )


def test_nothing_stands_beside_what_was_not_converted() -> None:
    for name in ("pl-2020", "topdown-2020", "pl-units-2020", "sdhc-2020-proved", "das-2010"):
        assert catalog.entry(name).proved_specification is None
        assert "rho_squared_proved" not in catalog.entry(name).row()


def counted(unit: str, rho_squared: Fraction) -> Specification:
    """A promise as SafeTab and PHSafe count it."""
    return Specification(
        domain=Domain(name="toy"),
        multiverse=Multiverse.none(),
        input_premetric=SymmetricDifference(unit),
        output_premetric=NormalizedRenyi(),
        budget=Budget.sqrt(rho_squared),
    )


@pytest.mark.parametrize(
    ("conversion", "unit", "times"),
    [
        (SAFETAB_P_CONVERSION, "person", (4, 4, 2)),
        (SAFETAB_H_CONVERSION, "household", (2, 2, 2)),
        (PHSAFE_CONVERSION, "person", (2, 4, Fraction(1, 2))),
    ],
)
def test_a_promise_is_restated_by_each_factor(
    conversion: Conversion, unit: str, times: tuple[Fraction, ...]
) -> None:
    spec = counted(unit, Fraction(3, 7))
    figures: tuple[Figure, ...] = ("published", "bureau", "proved")
    for figure, factor in zip(figures, times, strict=True):
        shown = conversion.restate(spec, figure=figure)
        assert shown.rho_squared.fraction == Fraction(3, 7) * factor
        assert shown.evidence.status == ("published" if figure == "published" else "proved")
        assert isinstance(shown.input_premetric, Hamming)
        assert shown.input_premetric.link == "kept"  # a move is two changes, whatever the factor covers
    assert conversion.restate(spec) == conversion.restate(spec, figure="proved")


def test_group_privacy_is_what_composition_does_alone() -> None:
    spec = counted("person", Fraction(3, 7))
    assert spec.per(Hamming("person")).budget == SAFETAB_P_CONVERSION.restate(spec, figure="bureau").budget


def test_pure_dp_is_left_to_composition() -> None:
    spec = replace(counted("household", Fraction(1)), output_premetric=Multiplicative())
    assert SAFETAB_H_CONVERSION.restate(spec) == spec
    assert spec.per(Hamming("household")).budget.exact == "2"
