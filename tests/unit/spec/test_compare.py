"""Two specifications side by side: every verdict has a sentence, and nothing is ranked without proof."""

from dataclasses import replace

import pytest

from stirred.spec import (
    Budget,
    BudgetFunction,
    Domain,
    Evidence,
    Hamming,
    Margin,
    Multiplicative,
    Multiverse,
    NormalizedRenyi,
    RecordType,
    Relation,
    Specification,
    Variable,
    compare,
)
from stirred.spec.laws import LargestStratum, SizeLaw

SPINE = ("state", "county", "block")
DOMAIN = Domain(
    name="CEF",
    spine=SPINE,
    record_types=tuple(
        RecordType(name=name, variables=tuple(Variable(name=v) for v in (*SPINE, *more)))
        for name, more in {
            "person": ("age",),
            "household": ("size", "tenure"),
            "housing unit": (),
            "group quarters": ("type",),
        }.items()
    ),
    largest_household=99_999,
)
DAS = Specification(
    domain=DOMAIN,
    multiverse=Multiverse.of(
        Margin("person", ("state",)),
        Margin("housing unit", ("block",)),
        Margin("group quarters", ("block", "type")),
    ),
    input_premetric=Hamming("person"),
    output_premetric=NormalizedRenyi(),
    budget=Budget.sqrt("55.371"),
    evidence=Evidence(status="published", source="Table 4"),
)
PSA = Specification(
    domain=DOMAIN,
    multiverse=Multiverse.of(
        Margin("household", ("state", "size", "tenure")), Margin("household", ("state", "size", "county"))
    ),
    input_premetric=Hamming("household"),
    output_premetric=Multiplicative(),
    budget=Budget.log(3_948_029 * 19),
    varies=BudgetFunction(
        law=SizeLaw("theorem-1", "1/20"),
        statistic=LargestStratum("household", ("state", "size"), ("tenure",), ("county",)),
        universe="b = 3,948,028",
        b=3_948_028,
    ),
)


def test_the_swap_and_the_2020_system() -> None:
    found = compare(PSA, DAS)
    assert {name: finding.relation.value for name, finding in found.parts.items()} == {
        "domain": "equal",
        "multiverse": "incomparable",
        "input premetric": "stronger",
        "output premetric": "stronger",
        "budget": "incomparable",
    }
    why = found.parts["multiverse"].because
    assert "group quarters by block × type" in why
    assert "households by county × size × state" in why
    assert found.overall.relation is Relation.INCOMPARABLE
    assert "not ranked" in found.sentence
    assert any("different units" in warning for warning in found.warnings)
    assert any("differs by universe" in warning for warning in found.warnings)
    assert all(finding.because for finding in found.parts.values())


def test_the_reverse_is_the_mirror_image() -> None:
    mirror = {"stronger": "weaker", "weaker": "stronger"}
    there, back = compare(PSA, DAS), compare(DAS, PSA)
    for name in there.parts:
        relation = there.parts[name].relation.value
        assert back.parts[name].relation.value == mirror.get(relation, relation)


def test_overall_only_where_it_is_proved() -> None:
    assert compare(DAS, DAS).overall.relation is Relation.EQUAL
    assert compare(DAS, DAS.within(Budget.of(8))).overall.relation is Relation.STRONGER
    assert compare(DAS.within(Budget.of(8)), DAS).overall.relation is Relation.WEAKER
    more = DAS.given(Margin("person", ("county",)))
    assert compare(DAS, more).overall.relation is Relation.STRONGER
    assert compare(DAS, more).parts["budget"].relation is Relation.INCOMPARABLE
    person = replace(PSA, input_premetric=Hamming("person"))
    found = compare(PSA, person).overall
    assert found.relation is Relation.UNKNOWN  # a budget that differs by universe
    # with the number of homes fixed a promise per household is one per person
    homes = Multiverse.of(Margin("housing unit"), Margin("group quarters"))
    plain = replace(PSA, varies=None, multiverse=PSA.multiverse & homes)
    found = compare(plain, replace(plain, input_premetric=Hamming("person"))).overall
    assert "the first implies the second" in found.because


def test_a_smaller_number_under_more_invariants_is_not_called_stronger() -> None:
    fewer = replace(DAS, budget=Budget.of(1)).given(Margin("person", ("county",)))
    found = compare(fewer, DAS)
    assert found.overall.relation is not Relation.STRONGER
    assert found.parts["multiverse"].relation is Relation.WEAKER
    assert found.parts["budget"].relation is Relation.INCOMPARABLE


def test_invariants_that_fix_everything_are_called_out() -> None:
    small = replace(DOMAIN, record_types=(RecordType(name="person", variables=(Variable(name="age"),)),))
    nothing = replace(DAS, domain=small, multiverse=Multiverse.none())
    found = compare(replace(nothing, multiverse=Multiverse.of(Margin("person", ("age",)))), nothing)
    assert any("nothing is protected" in warning for warning in found.warnings)


def test_different_domains_are_not_compared() -> None:
    found = compare(DAS, replace(DAS, domain=Domain(name="1940")))
    assert found.parts["domain"].relation is Relation.UNKNOWN
    assert found.parts["multiverse"].relation is Relation.UNKNOWN
    assert found.overall.relation is Relation.UNKNOWN


def test_kinds_of_unit_and_divergence_compare_across_domains() -> None:
    """A household's change is at most a constant times a person's in every domain; the way back is dear or closed."""
    elsewhere = replace(PSA, domain=Domain(name="1940"))
    found = compare(elsewhere, DAS)
    assert found.parts["input premetric"].relation is Relation.STRONGER
    assert "in 1940 as in CEF" in found.parts["input premetric"].because
    assert compare(DAS, elsewhere).parts["input premetric"].relation is Relation.WEAKER
    assert found.parts["output premetric"].relation is Relation.STRONGER
    assert found.overall.relation is Relation.UNKNOWN
    unrelated = replace(elsewhere, input_premetric=Hamming("business"))
    assert compare(unrelated, DAS).parts["input premetric"].relation is Relation.UNKNOWN


@pytest.mark.parametrize("spec", [DAS, PSA])
def test_text_has_a_line_for_every_part(spec: Specification) -> None:
    lines = str(compare(spec, DAS)).splitlines()
    assert [line.split(":")[0] for line in lines[:6]] == [
        "domain",
        "multiverse",
        "input premetric",
        "output premetric",
        "budget",
        "overall",
    ]
