"""Numbers follow the language: separators, percent signs, and bounds that are never rounded down."""

from decimal import Decimal
from fractions import Fraction

import pytest

from stirred.languages import CODES, Language

THIN, FIXED = "\u202f", "\u00a0"  # the narrow no-break space, and the no-break space


@pytest.mark.parametrize(
    ("code", "number", "share"),
    [
        ("en", "1,234,567.5", "12.5%"),
        ("de", "1.234.567,5", f"12,5{FIXED}%"),
        ("fr", f"1{THIN}234{THIN}567,5", f"12,5{THIN}%"),
        ("es", "1.234.567,5", f"12,5{FIXED}%"),
    ],
)
def test_separators(code: str, number: str, share: str) -> None:
    language = Language.of(code)
    assert language.number(1234567.5, decimals=1) == number
    assert language.number(Decimal("1234567.5")) == number
    assert language.number(Fraction(2469135, 2), decimals=1) == number
    assert language.percent(0.125, decimals=1) == share
    assert language.percent(Fraction(1, 8), decimals=1) == share
    assert language.number(999) == "999"


@pytest.mark.parametrize("code", CODES)
def test_budgets_are_rounded_up(code: str) -> None:
    language = Language.of(code)
    comma = language.numerals.decimal
    assert language.upper(Decimal("52.82540000000000000000000000001")) == f"52{comma}8255"
    assert language.upper(Decimal("52.8254")) == f"52{comma}8254"
    assert language.upper(Fraction(1, 3)) == f"0{comma}3334"
    assert language.upper(Fraction(1, 10**30)) == f"0{comma}0001"
    assert language.upper(2) == f"2{comma}0000"
    assert language.upper(Decimal("272938796980.7720")) == f"2{comma}7294 × 10¹¹"
    assert language.upper(Decimal("Infinity")) == "∞"
    assert language.upper(Decimal("15.4295"), decimals=2) == f"15{comma}43"


@pytest.mark.parametrize("code", CODES)
def test_signs(code: str) -> None:
    language = Language.of(code)
    assert language.number(-3) == "−3"
    assert language.number(Fraction(1, 20)) == "1/20"
    assert language.number(float("nan"), decimals=2) == "–"
    assert language.number(0.1) == f"0{language.numerals.decimal}1"
