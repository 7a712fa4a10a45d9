"""For each guarantee a wrong program that the checks catch: a check that cannot fail proves nothing."""

from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from fractions import Fraction
from math import floor

import pytest

from stirred.errors import IncompatibleError
from stirred.spec import (
    Answer,
    Budget,
    Domain,
    Evidence,
    Hamming,
    Margin,
    Multiplicative,
    Multiverse,
    NormalizedRenyi,
    Specification,
    algebra,
    exact,
    input_premetrics,
    output_premetrics,
    reading,
    refinement,
)
from stirred.spec.input_premetrics import Constant
from stirred.spec.verdict import Derivation, Verdict

DOMAIN = Domain(name="toy", spine=("county", "block"), largest_household=10)
BLOCK, COUNTY = (Multiverse.of(Margin("household", (area,))) for area in ("block", "county"))


def spec(
    rho_squared: str, unit: str, measure: NormalizedRenyi | Multiplicative | None = None
) -> Specification:
    return Specification(
        domain=DOMAIN,
        multiverse=Multiverse.of(Margin("person")),
        input_premetric=Hamming(unit, link="free"),
        output_premetric=measure or NormalizedRenyi(),
        budget=Budget.sqrt(rho_squared),
        evidence=Evidence(source=unit),
    )


def rounded_up() -> bool:
    return Budget.log(2).upper(3) == Decimal("0.694") and Budget.sqrt(2).upper(2) == Decimal("1.42")


def squares_add() -> bool:
    return (spec("9", "household") + spec("16", "household")).rho_squared == Budget.of(25)


def movers_count_twice() -> bool:
    homes = spec("1", "household").given(Margin("household"))
    return (homes + spec("1", "person")).rho_squared == Budget.of(5)


def the_number_of_homes_must_be_fixed() -> bool:
    with suppress(IncompatibleError):
        return not spec("1", "household").per("person").budget.is_finite
    return True


def households_count_for_their_members() -> bool:
    return spec("1", "person").per("household").rho_squared == Budget.of(100)


def copies_square() -> bool:
    return spec("1", "person").per("person", copies=3).rho_squared == Budget.of(9)


def pure_is_halved() -> bool:
    return spec("4", "person", Multiplicative()).under(NormalizedRenyi()).rho_squared == Budget.of(2)


def distance_is_squared() -> bool:
    return reading(Budget.of(1), "1e-10", distance=3).epsilon == reading(Budget.of(9), "1e-10").epsilon


def tight_is_the_certificate() -> bool:
    found = reading(Budget.of("293764/114921"), "1e-10", tight=True).epsilon
    return abs(Fraction(found) - Fraction(17849145, 1041158)) < Fraction(1, 10**6)


def block_fixes_county_and_not_the_reverse() -> bool:
    return bool(BLOCK.refines(COUNTY, DOMAIN)) and COUNTY.refines(BLOCK, DOMAIN).answer is Answer.NO


def dropping_costs_everything() -> bool:
    whole = spec("1", "person").given(Margin("person", ("county",)))
    return not whole.without(*whole.multiverse, released=True).budget.is_finite


def what_was_given_can_be_taken_back() -> bool:
    county = Margin("person", ("county",))
    return spec("1", "person").given(county).without(county) == spec("1", "person")


def the_number_of_records_is_free_under_hamming() -> bool:
    whole = spec("1", "person")
    return whole.without(*whole.multiverse).budget.is_finite


ALWAYS = Derivation(rule="read off", claim="always")
MUTANTS: list[tuple[Callable[[], bool], object, str, object]] = [
    (rounded_up, exact, "ceil", floor),
    (squares_add, NormalizedRenyi, "compose", lambda self, budgets: Budget.total(budgets)),
    (movers_count_twice, input_premetrics, "_household_to_person", lambda *_: Constant(Fraction(1))),
    (the_number_of_homes_must_be_fixed, input_premetrics, "_require_fixed_number", lambda *_: None),
    (
        households_count_for_their_members,
        input_premetrics,
        "_person_to_household",
        lambda *_: Constant(Fraction(1)),
    ),
    (copies_square, input_premetrics, "_copies", lambda *_: Constant(Fraction(1))),
    (pure_is_halved, Multiplicative, "convert", lambda self, budget, to: budget),
    (distance_is_squared, Budget, "__mul__", lambda self, factor: self),
    (tight_is_the_certificate, output_premetrics, "_find_best_order", lambda *_: Fraction(2)),
    (block_fixes_county_and_not_the_reverse, refinement, "read_off", lambda *_: ALWAYS),
    (block_fixes_county_and_not_the_reverse, Domain, "closure", lambda self, kind, names: frozenset(names)),
    (block_fixes_county_and_not_the_reverse, refinement, "find_witness", lambda *_: Verdict.unknown("")),
    (dropping_costs_everything, algebra, "refines_within_reach", lambda *_: Verdict.yes("always")),
    (what_was_given_can_be_taken_back, algebra, "_is_stated_within", lambda *_: False),
    (
        the_number_of_records_is_free_under_hamming,
        Hamming,
        "derive_multiverse",
        lambda self: Multiverse.none(),
    ),
]


@pytest.mark.parametrize(
    ("check", "home", "name", "wrong"), MUTANTS, ids=lambda x: getattr(x, "__name__", str(x))[:40]
)
def test_the_check_passes_and_the_mutant_is_caught(
    monkeypatch: pytest.MonkeyPatch, check: Callable[[], bool], home: object, name: str, wrong: object
) -> None:
    assert check()
    monkeypatch.setattr(home, name, wrong)
    output_premetrics.compute_tight_epsilon.cache_clear()  # or the right number would be remembered
    assert not check()
    output_premetrics.compute_tight_epsilon.cache_clear()


def test_the_modules_under_mutation_are_the_ones_in_use() -> None:
    assert input_premetrics.Hamming is Hamming
    assert output_premetrics.NormalizedRenyi is NormalizedRenyi
