"""The factors from records added or removed to records changed: each figure is an exact product, each reason a fact."""

from dataclasses import replace
from fractions import Fraction
from itertools import product as every

import pytest

from stirred.catalog import catalog
from stirred.catalog.products import DDHC_B, PRODUCTS, S_DHC, Product
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
from stirred.spec.algebra.conversions import PHSAFE, SAFETAB_H, SAFETAB_P, Conversion


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
    assert changed == SAFETAB_H.proved.times * removed


def test_without_disjoint_cells_only_group_privacy_holds() -> None:
    """A step that may move several counts of one cell in either direction: two steps have four times the square."""
    steps = [move for move in every(range(-3, 4), repeat=2) if sum(map(abs, move)) <= 3]
    one = max(a * a + b * b for a, b in steps)
    two = max((a + c) ** 2 + (b + d) ** 2 for a, b in steps for c, d in steps)
    assert two == SAFETAB_P.proved.times * one
    assert two > SAFETAB_H.proved.times * one


def test_a_proved_figure_says_for_which_unit_and_given_what() -> None:
    for name, unit in (("ddhc-a-2020", "person"), ("ddhc-b-2020", "household"), ("sdhc-2020", "person")):
        proved = catalog.entry(name).proved
        assert proved is not None
        assert proved.input_premetric == Hamming(unit)
        assert "given the guarantee of the code, which is published" in proved.evidence.source
    # PHSafe's code counts persons: for households only the published figure stands
    assert catalog["sdhc-2020"].input_premetric == Hamming("household")
    assert catalog["sdhc-2020-proved"] == catalog.entry("sdhc-2020").proved


def test_a_sum_with_published_parts_is_published() -> None:
    assert catalog["das-2020-proved"].evidence.status == "published"
    parts = [
        catalog["topdown-2020"],
        *(catalog.entry(n).proved for n in ("ddhc-a-2020", "ddhc-b-2020", "sdhc-2020")),
    ]
    total = compose([part for part in parts if part is not None])
    assert total.evidence.status == "published"
    assert total.rho_squared == catalog["das-2020-proved"].rho_squared


def test_the_card_shows_both_figures_with_their_marks() -> None:
    text = catalog.entry("sdhc-2020").card().text()
    for words in (
        "published by others",
        "2.5146",
        "with a factor that is proved",
        "5.0292",
        "times 4 per person",
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
        assert catalog.entry(name).proved is None
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
    ("conversion", "unit", "published", "proved"),
    [(SAFETAB_P, "person", 4, 4), (SAFETAB_H, "household", 2, 2), (PHSAFE, "person", 2, 4)],
)
def test_a_promise_is_restated_by_either_factor(
    conversion: Conversion, unit: str, published: int, proved: int
) -> None:
    spec = counted(unit, Fraction(3, 7))
    shown = conversion.restated(spec, figure="published")
    assert shown.rho_squared.fraction == Fraction(3, 7) * published
    assert shown.evidence.status == "published"
    sure = conversion.restated(spec)
    assert sure.rho_squared.fraction == Fraction(3, 7) * proved
    assert sure.evidence.status == "proved"
    assert isinstance(sure.input_premetric, Hamming)


def test_group_privacy_is_what_composition_does_alone() -> None:
    spec = counted("person", Fraction(3, 7))
    assert spec.per(Hamming("person")).budget == SAFETAB_P.restated(spec).budget


def test_pure_dp_is_left_to_composition() -> None:
    spec = replace(counted("household", Fraction(1)), output_premetric=Multiplicative())
    assert SAFETAB_H.restated(spec) == spec
    assert spec.per(Hamming("household")).budget.exact == "2"
