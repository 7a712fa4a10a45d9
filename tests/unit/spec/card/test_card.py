"""The card: odds that are never understated, words that say what is meant, pages that need nothing else."""

import math
import re
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stirred.spec import (
    Budget,
    BudgetFunction,
    Dependency,
    Domain,
    Hamming,
    Margin,
    Multiplicative,
    Multiverse,
    NormalizedRenyi,
    RecordType,
    Specification,
    SymmetricDifference,
    Variable,
    compare,
)
from stirred.spec.card import Card, page
from stirred.spec.card import words as odds
from stirred.spec.card.words import write_decimal
from stirred.spec.nearest import smallest_distance

DOMAIN = Domain(
    name="toy",
    record_types=(
        RecordType(
            name="household", variables=tuple(Variable(name=n) for n in ("state", "county", "size", "tenure"))
        ),
    ),
    spine=("state", "county"),
)
SWAP = Multiverse.of(
    Margin("household", ("state", "size", "tenure")), Margin("household", ("county", "size"))
)


def swapped(budget: Budget) -> Specification:
    return Specification(
        domain=DOMAIN,
        multiverse=SWAP,
        input_premetric=Hamming("household"),
        output_premetric=Multiplicative(),
        budget=budget,
    )


def noisy(rho_squared: str) -> Specification:
    return replace(
        swapped(Budget.sqrt(rho_squared)),
        multiverse=Multiverse.of(Margin("household", ("state",))),
        output_premetric=NormalizedRenyi(),
    )


def test_swapping_is_read_at_distance_two() -> None:
    what = Card(swapped(Budget.log(3))).bound_odds()
    assert what.distance == 2
    assert what.factor == "9.01"  # e^{2 ln 3} = 9, the logarithm rounded up at six decimals
    assert what.log_odds is not None
    assert what.log_odds >= Decimal(2) * Decimal(3).ln()


def test_a_free_variable_lets_one_record_change_alone() -> None:
    less = Multiverse.of(Margin("household", ("state", "size")))
    assert smallest_distance(DOMAIN, less, Hamming("household")).value == 1
    assert smallest_distance(DOMAIN, SWAP, Hamming("household")).value == 2


def test_identifiers_and_dropped_variables_do_not_bring_a_swap_to_distance_one() -> None:
    variables = (*DOMAIN.record_type("household").variables, Variable(name="id"))
    names = tuple(variable.name for variable in variables if variable.name != "id")
    rule = Dependency(record_type="household", of=("id",), determines=names)
    known = replace(
        DOMAIN, record_types=(RecordType(name="household", variables=variables),), dependencies=(rule,)
    )
    assert smallest_distance(known, SWAP, Hamming("household")).value == 2
    dropped = (*variables, Variable(name="telephone"))
    more = replace(known, record_types=(RecordType(name="household", variables=dropped),), dependencies=())
    assert smallest_distance(more, SWAP, Hamming("household")).value == 2
    # an identifier alone is no variable that is fixed
    alone = Multiverse.of(Margin("household", ("state", "size")))
    assert smallest_distance(known, alone, Hamming("household")).value == 1


def test_add_or_remove_becomes_replace_when_the_number_is_fixed() -> None:
    assert smallest_distance(DOMAIN, Multiverse.none(), SymmetricDifference("household")).value == 1
    total = Multiverse.of(Margin("household"))
    assert smallest_distance(DOMAIN, total, SymmetricDifference("household")).value == 2
    # d_Sym = |x ⊖ x'| is twice the Hamming distance between data sets of one size
    assert smallest_distance(DOMAIN, SWAP, SymmetricDifference("household")).value == 4


def test_above_a_factor_of_1000_the_bound_does_not_prevent_near_certainty() -> None:
    # e^{2ε} crosses 1,000 at ε = ln(1000)/2
    assert "near-certainty" in Card(swapped(Budget.log(1001) * Fraction(1, 2))).warning()
    assert Card(swapped(Budget.log(999) * Fraction(1, 2))).warning() == ""


def test_best_test_and_beliefs_under_pure_dp() -> None:
    # ε = ln 3 at distance 2: odds 9, so the best test errs 1 in 10 and even odds become 9/10
    what = Card(swapped(Budget.log(3))).bound_odds()
    assert what.error == "9.99%"  # rounded down: never overstated
    assert what.belief(Fraction(1, 2)).startswith("90.")


def test_zcdp_is_read_with_its_exception() -> None:
    card = Card(noisy("293764/114921"))
    assert card.budget() == "ρ² = 2.5563"
    assert "10⁻¹⁰" in card.sentence()
    assert card.readings()[0][2:] == ("17.9002", "17.1436")
    assert Card(noisy("293764/114921"), delta=Fraction(1, 10**6)).readings()[0][2] != "17.9002"


def test_infinite_and_zero_budgets_have_words() -> None:
    assert "Nothing is promised" in Card(swapped(Budget.infinite())).sentence()
    assert Card(swapped(Budget.infinite())).bound_odds().factor == "∞"
    free = Card(swapped(Budget.zero()))
    assert free.bound_odds().factor == "1.00"
    assert free.bound_odds().error == "50.0%"
    for card in (Card(swapped(Budget.infinite())), free):
        assert card.html()
        assert card.markdown()
        assert card.text()


def test_the_guarantee_is_told_in_sentences_of_at_most_25_words() -> None:
    for card in (Card(swapped(Budget.log(3))), Card(noisy("2"))):
        for sentence in re.split(r"[.!?;](?:\s|$)", card.sentence()):
            assert len(sentence.split()) <= 25


@given(st.integers(0, 10**7))
def test_no_number_for_people_is_below_its_value(micro: int) -> None:
    value = Decimal(micro).scaleb(-6)
    assert Decimal(write_decimal(value).replace(",", "")) >= value


@given(st.fractions(min_value=0, max_value=30, max_denominator=1000))
def test_factors_are_never_understated(log_odds: Fraction) -> None:
    shown = odds.write_factor(Decimal(log_odds.numerator) / Decimal(log_odds.denominator))
    mantissa, _, power = shown.replace(",", "").partition(" × 10")
    digits = power.translate(str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789"))
    # 1e-12: the float on the right is only good to about fifteen digits
    assert float(mantissa) * 10 ** int(digits or 0) >= math.exp(float(log_odds)) * (1 - 1e-12)


class Page(HTMLParser):
    """What a page needs from outside, its headings, and whether its tables have heads."""

    VOID = frozenset({"meta", "link", "br", "img", "rect", "line", "input"})

    def __init__(self) -> None:
        super().__init__()
        self.outside: list[str] = []
        self.open: list[str] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.outside += [value or "" for name, value in attrs if name in {"src", "href"}]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag


@pytest.mark.parametrize("card", [Card(swapped(Budget.log(10**6))), Card(noisy("55"))], ids=["pure", "zcdp"])
def test_html_is_whole_and_needs_nothing_else(card: Card) -> None:
    parser = Page()
    html = card.html()
    parser.feed(html)
    assert parser.open == []
    assert parser.outside == []
    assert "script" not in parser.tags
    assert "http" not in html
    assert "url(" not in html
    assert '<html lang="en">' in html
    assert "prefers-color-scheme: dark" in html
    assert "@media print" in html
    assert 'role="img"' in html


def test_html_escapes_what_users_write() -> None:
    html = Card(swapped(Budget.log(3)), title="<script>alert(1)</script>").html()
    assert "<script>" not in html


def test_pages_hold_several_cards_and_notebooks_show_one() -> None:
    cards = [Card(swapped(Budget.log(3)), title="A"), Card(noisy("2"), title="B")]
    html = page(cards, heading="Two")
    assert html.count("<article") == 2
    assert "<article" in cards[0]._repr_html_()
    assert "<style>" in cards[0]._repr_html_()


def test_markdown_table_keeps_its_columns() -> None:
    lines = Card(swapped(Budget.log(3))).markdown().splitlines()
    widths = {line.replace("\\|", "").count("|") for line in lines if line.startswith("|")}
    assert widths <= {3, 5, 6}


def test_sentences_are_short_and_tables_are_whole() -> None:
    spine = ("state", "county", "tract", "block")
    held = ("size", "tenure", "type", "age", "race")
    household = RecordType(name="household", variables=tuple(Variable(name=n) for n in ("id", *spine, *held)))
    # an identifier tells nothing that a table could leave out
    key = Dependency(record_type="household", of=("id",), determines=tuple(household.names()))
    domain = Domain(name="census", spine=spine, record_types=(household,), dependencies=(key,))
    moved = Margin("household", ("size", *spine))
    kept = Margin("household", ("state", *held))
    spec = Specification(
        domain=domain,
        multiverse=Multiverse.of(moved, kept),
        input_premetric=Hamming("household"),
        output_premetric=Multiplicative(),
        budget=Budget.of(1),
    )
    short = "households by all household variables (except areas smaller than state)"
    for sentence in (" ".join(Card(spec).list_exact()), str(spec)):
        assert short in sentence
        assert "households by block × size" in sentence
        assert kept.words() not in sentence
    rows = dict(Card(spec).rows())
    assert kept.words() in rows["invariants"]
    assert moved.words() in rows["invariants"]
    assert kept.words() in Card(spec).markdown()
    labelled = replace(
        spec, multiverse=Multiverse.of(Margin("household", kept.by, label="households in full"))
    )
    assert Card(labelled).list_exact() == ["households in full"]
    # where the domain does not list its variables, the first ones stand for the rest
    bare = replace(spec, domain=Domain(name="bare"))
    assert "households by age × race × size and 3 more variables" in str(bare)
    more = compare(spec, spec.given(Margin("household", (*spine, *held))))
    assert "households by all household variables" in more.parts["multiverse"].because


def test_a_notebook_shows_a_specification_as_its_card() -> None:
    shown = swapped(Budget.of(1))._repr_html_()
    assert "<article" in shown
    assert "ε = 1.0000" in shown


def test_what_is_not_touched_and_what_differs_by_universe_stand_on_every_form() -> None:
    spec = replace(
        swapped(Budget.of(1)),
        untouched=("vacant units", "12 records alone in their stratum"),
        varies=BudgetFunction(words="it grows with b", universe="b = 7"),
    )
    card = Card(spec)
    for form in (card.text(), card.markdown(), card.html()):
        assert "exact wherever they are released: vacant units; 12 records alone" in form
        assert "differs by universe: it grows with b. It is stated here for b = 7" in form
    assert "not touched" not in Card(swapped(Budget.of(1))).text()
