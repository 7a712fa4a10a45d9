"""The card in four languages: the same numbers, the names of the census, and plain English marked where it stays."""

import re
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from itertools import product

import pytest

from stirred.errors import InputError
from stirred.languages import CODES, Language
from stirred.spec import (
    Approximate,
    AtLeast,
    Budget,
    Domain,
    Hamming,
    Invariant,
    Margin,
    Multiplicative,
    Multiverse,
    NormalizedRenyi,
    RecordType,
    Specification,
    SymmetricDifference,
    Variable,
)
from stirred.spec.card import Card, page
from stirred.spec.files import from_json, to_json
from stirred.spec.input_premetrics import Neighbours

OTHERS = [code for code in CODES if code != "en"]
VARIABLES = tuple(Variable(name=name) for name in ("quarter", "size", "tenure"))
DOMAIN = Domain(
    name="toy",
    record_types=tuple(
        RecordType(name=unit, variables=VARIABLES) for unit in ("household", "person", "firm")
    ),
    spine=("quarter",),
)
FLAVORS = [
    (Multiplicative(), Budget.log(7)),
    (NormalizedRenyi(), Budget.sqrt(Fraction(2))),
    (Approximate("1/100"), Budget.of("1/2")),
    (Multiplicative(), Budget.infinite()),
]
TABLES = [(), (("quarter", "size"), ("size", "tenure")), (("quarter", "size", "tenure"),), (("quarter",),)]


def stated(unit: str, tables: tuple[tuple[str, ...], ...], flavor: int = 0) -> Specification:
    measure, budget = FLAVORS[flavor]
    return Specification(
        domain=DOMAIN,
        multiverse=Multiverse.of(*(Margin(unit, table) for table in tables)),
        input_premetric=Hamming(unit),
        output_premetric=measure,
        budget=budget,
    )


def specifications() -> list[Specification]:
    plain = [
        stated(unit, tables, flavor)
        for unit, (tables, flavor) in product(("household", "firm"), zip(TABLES, range(4), strict=True))
    ]
    one = plain[0]
    others = (SymmetricDifference("person"), Neighbours(Hamming("household")), Hamming("person", copies=3))
    inequality = AtLeast(Margin("household", ("quarter",), where={"size": ["1", "2"]}), 1000)
    return [
        *plain,
        *(replace(one, input_premetric=premetric) for premetric in others),
        one.given(inequality),
        one.given(Margin("household")),
    ]


def words(html: str) -> str:
    return re.sub(r"<[^>]*>", " ", html.partition("</style>")[2])


@pytest.mark.parametrize("code", OTHERS)
def test_every_card_is_wholly_in_its_language(code: str) -> None:
    for specification in specifications():
        html = Card(specification, language=code).html()
        assert f'<html lang="{code}">' in html
        assert 'lang="en"' not in html
        for english in (
            " the ",
            " which ",
            " record ",
            " records ",
            " household ",
            " than ",
            " exact tables",
        ):
            assert english not in words(html), (code, english)


def test_numbers_are_the_same_in_every_language() -> None:
    specification = stated("household", TABLES[1])
    assert Card(specification).budget() == "ε = 1.9460"
    for code in OTHERS:
        card = Card(specification, language=code)
        assert card.budget() == "ε = 1,9460"
        assert "49,1" in card.sentence()
        assert any("quarter" in exact for exact in card.list_exact())
        assert "49.1" not in card.html()


@pytest.mark.parametrize("code", CODES)
def test_budgets_are_never_below_their_value(code: str) -> None:
    comma = Language.of(code).numerals.decimal
    for number in (2, 3, 7, 10, 1001):
        budget = Budget.log(number)
        shown = Card(replace(stated("household", ()), budget=budget), language=code).budget().split()[-1]
        assert Decimal(shown.replace(comma, ".")) >= budget.upper(12) - Decimal("1e-12")


@pytest.mark.parametrize("code", OTHERS)
def test_a_card_from_a_file_says_the_same(code: str) -> None:
    for specification in (stated("household", TABLES[1]), stated("person", (), 1)):
        noted = replace(specification, notes=("published by others",))
        again = from_json(to_json(noted))
        assert Card(again, language=code).html() == Card(noted, language=code).html()
        assert Card(again, language=code).notes() == (Language.of(code).say("card.status.published"),)


@dataclass(frozen=True, slots=True)
class Median(Invariant):
    """An invariant of another package, in plain English."""

    def words(self) -> str:
        return "the median age of <each> quarter"

    def needs(self) -> tuple[Margin, ...]:
        return ()


def test_plain_english_is_shown_and_marked() -> None:
    specification = replace(
        stated("household", ()), multiverse=Multiverse.of(Median()), notes=("a note of another package",)
    )
    html = Card(specification, language="de").html()
    assert '<li><span lang="en">the median age of &lt;each&gt; quarter</span></li>' in html
    assert '<li><span lang="en">a note of another package</span></li>' in html
    assert "<span lang" not in Card(specification).html()


def test_pages_take_the_language_of_their_cards() -> None:
    cards = [Card(stated("household", ()), title=name, language="fr") for name in "AB"]
    assert '<html lang="fr">' in page(cards)
    assert '<html lang="es">' in page(cards, language="es")
    assert Card(stated("household", ()), language="es").title == "Especificación"
    with pytest.raises(InputError, match="there is no language"):
        Card(stated("household", ()), language="xx")
