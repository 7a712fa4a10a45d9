"""Specifications compose, refine, change unit, chain and imply, by the paper's results and nothing else."""

from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import reduce
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stirred.errors import BudgetError, IncompatibleError, SpecificationError
from stirred.spec import (
    Answer,
    Approximate,
    Budget,
    BudgetFunction,
    Constant,
    Domain,
    Evidence,
    Hamming,
    InputPremetric,
    Margin,
    Multiplicative,
    Multiverse,
    NormalizedRenyi,
    OutputPremetric,
    RecordType,
    Relation,
    Specification,
    SymmetricDifference,
    Universe,
    Variable,
    chain,
    compare,
    compose,
    exact_release,
    reading,
)

DOMAIN = Domain(
    name="CEF",
    spine=("state", "block"),
    record_types=(
        RecordType(name="person", variables=tuple(Variable(name=n) for n in ("state", "block", "age"))),
        RecordType(
            name="household", variables=tuple(Variable(name=n) for n in ("state", "block", "size", "tenure"))
        ),
        RecordType(name="housing unit", variables=tuple(Variable(name=n) for n in ("state", "block"))),
        RecordType(
            name="group quarters", variables=tuple(Variable(name=n) for n in ("state", "block", "type"))
        ),
    ),
    largest_household=99_999,
)
POPULATION = Margin("person", ("state",))
HOUSING = Margin("housing unit", ("block",))
QUARTERS = Margin("group quarters", ("block", "type"))
TOPDOWN = Multiverse.of(POPULATION, HOUSING, QUARTERS)
# with the number of homes fixed a promise per household is one per person
HOMES = Multiverse.of(Margin("housing unit"), Margin("group quarters"))


def zcdp(
    rho_squared: str | Fraction, unit: str, multiverse: Multiverse = TOPDOWN, source: str = ""
) -> Specification:
    return Specification(
        domain=DOMAIN,
        multiverse=multiverse,
        input_premetric=Hamming(unit),
        output_premetric=NormalizedRenyi(),
        budget=Budget.sqrt(rho_squared),
        evidence=Evidence(status="published", source=source),
    )


def pure(epsilon: Budget, unit: str = "household", multiverse: Multiverse | None = None) -> Specification:
    return Specification(
        domain=DOMAIN,
        multiverse=HOMES if multiverse is None else multiverse,
        input_premetric=Hamming(unit),
        output_premetric=Multiplicative(),
        budget=epsilon,
    )


PL_PERSONS, PL_UNITS = zcdp("293764/114921", "person"), zcdp("11417641/152349649", "household")
DHC_PERSONS, DHC_UNITS = zcdp("24811/5000", "person"), zcdp("15401/2000", "household")
DDHC_A = zcdp("19.776", "person", Multiverse.of(HOUSING))
DDHC_B = zcdp("17.790604", "household", Multiverse.of(HOUSING))
SDHC = zcdp("2.514562", "household", Multiverse.of(HOUSING))
ALL_2020 = (PL_PERSONS, PL_UNITS, DHC_PERSONS, DHC_UNITS, DDHC_A, DDHC_B, SDHC)

finite = st.fractions(min_value=0, max_value=100, max_denominator=100)
specifications = st.one_of(
    st.builds(
        zcdp, finite, st.sampled_from(["person", "household"]), st.just(TOPDOWN), st.sampled_from("abc")
    ),
    st.builds(pure, finite.map(Budget.of), st.sampled_from(["person", "household"])),
    st.builds(pure, st.integers(1, 10**9).map(Budget.log), st.sampled_from(["person", "household"])),
)


@settings(max_examples=60, deadline=None)
@given(specifications, specifications, specifications)
def test_composition_is_associative_and_commutative(
    a: Specification, b: Specification, c: Specification
) -> None:
    assert a + b == b + a
    assert (a + b) + c == a + (b + c)
    assert (a + b) + c == compose([c, a, b])


counted = st.builds(
    lambda kind, unit, link, copies, epsilon: replace(
        pure(Budget.of(epsilon), multiverse=HOMES & Margin("person")),
        input_premetric=kind(unit, link=link, copies=copies),
    ),
    st.sampled_from([Hamming, SymmetricDifference]),
    st.sampled_from(["person", "household"]),
    st.sampled_from(["kept", "free"]),
    st.integers(1, 3),
    finite,
)


@settings(deadline=None)
@given(counted, counted, counted)
def test_a_sum_keeps_no_note_of_a_unit_it_went_through(
    a: Specification, b: Specification, c: Specification
) -> None:
    assert (a + b) + c == a + (b + c) == (c + a) + b


def test_restating_twice_leaves_only_the_last_rule() -> None:
    once = PL_UNITS.per("person", copies=2)
    assert any("imputed into 2" in note for note in once.notes)
    assert once.per("household", copies=1).notes == PL_UNITS.notes
    assert not any("imputed into 2" in note for note in once.per("person", copies=3).notes)


def test_pure_parts_are_converted_once_at_the_end() -> None:
    one, two = pure(Budget.of(1)), pure(Budget.of(3))
    assert (one + two).budget == Budget.of(4)
    mixed = one + two + zcdp("1/2", "household")
    # 1²/2 + 3²/2 + 1/2, not (1 + 3)²/2 + 1/2
    assert mixed.rho_squared == Budget.of("11/2")
    assert mixed.output_premetric == NormalizedRenyi()


def test_the_2020_budget_at_person_level() -> None:
    total = reduce(lambda a, b: a + b, ALL_2020)
    assert total.input_premetric == Hamming("person")
    assert str(total.rho_squared.upper(5)) == "55.37504"
    assert any("constant 1" in note for note in total.notes)
    assert str(total.per("person", copies=2).rho_squared.upper(4)) == "221.5002"
    # one imputed copy quadruples ρ² and doubles ρ
    assert total.per("person", copies=2).budget == total.budget * 2


def test_constant_two_counts_household_parts_fourfold() -> None:
    total = compose(ALL_2020).per("person", link="free")
    assert any("constant 2" in note for note in total.notes)
    # the person parts are stated with kept links here, which a move would double as well: state them with free links
    moving = Hamming("person", link="free")
    free = [replace(s, input_premetric=moving) if s.input_premetric.unit == "person" else s for s in ALL_2020]
    found = compose(free)
    assert found.input_premetric == Hamming("person", link="free")
    assert round(found.rho_squared.upper(6), 4) == Decimal("139.6169")
    assert round(reading(found.rho_squared, "1e-10").epsilon, 3) == Decimal("253.015")
    # the same parts with kept links: from the original statements, so the constants are 1 and 1
    assert round(found.per("person", link="kept").rho_squared.upper(6), 5) == Decimal("55.37504")


def test_topdown_per_household_inflates_the_person_part_only() -> None:
    topdown = PL_PERSONS + PL_UNITS + DHC_PERSONS + DHC_UNITS
    persons, units = (
        Fraction(293764, 114921) + Fraction(24811, 5000),
        Fraction(11417641, 152349649) + Fraction(15401, 2000),
    )
    assert topdown.per("household").rho_squared == Budget.of(persons * 99_999**2 + units)
    # back to persons: from the original statements, not through the inflated ones
    assert topdown.per("household").per("person").budget == topdown.budget


def test_dropping_any_invariant_costs_everything() -> None:
    for invariant in TOPDOWN:
        dropped = PL_PERSONS.without(invariant, released=True)
        assert not dropped.budget.is_finite
        assert any("Proposition 1" in note for note in dropped.notes)
        # a specification does not say whether its invariants are published, so nothing is claimed unless the caller says it
        dropped = PL_PERSONS.without(invariant)
        assert not dropped.budget.is_finite
        assert any("no finite budget is known" in note for note in dropped.notes)
        assert not any("Proposition 1" in note for note in dropped.notes)
    # unless the rest determines it
    county = Margin("housing unit", ("state",))
    assert PL_PERSONS.given(county).without(county).budget == PL_PERSONS.budget


def test_without_takes_back_what_was_given() -> None:
    tenure = Margin("household", ("tenure",))
    for spec in (PL_PERSONS, PL_PERSONS + PL_UNITS, pure(Budget.of(1)), compose(ALL_2020), psa(10)):
        assert spec.given(tenure).without(tenure) == spec
        assert spec.given(tenure).given(Margin("household", ("size",))).without(tenure) == spec.given(
            Margin("household", ("size",))
        )
    # published all the same, it costs everything
    assert not pure(Budget.of(1)).given(tenure).without(tenure, released=True).budget.is_finite
    # a sum remembers the universes of each part
    swap = pure(Budget.of(1), multiverse=Multiverse.of(tenure))
    assert (swap + pure(Budget.of(2))).given(HOUSING).without(HOUSING) == swap + pure(Budget.of(2))
    assert not (swap + pure(Budget.of(2))).without(tenure).budget.is_finite
    # a constant between units that needed the invariant does not outlive it
    added = pure(Budget.of(1)).per(SymmetricDifference("household"))
    assert added.budget == Budget.of("1/2")
    assert not added.without(Margin("housing unit")).budget.is_finite


def test_given_keeps_the_budget_and_refines() -> None:
    finer = PL_PERSONS.given(Margin("household", ("block",)))
    assert finer.budget == PL_PERSONS.budget
    assert PL_PERSONS.implies(finer)
    assert finer.implies(PL_PERSONS).answer is Answer.NO


def test_within_weakens_only() -> None:
    weaker = PL_PERSONS.within(Budget.of(2))
    assert PL_PERSONS.implies(weaker)
    assert weaker.implies(PL_PERSONS).answer is Answer.NO
    with pytest.raises(BudgetError, match="less loss than is proved"):
        PL_PERSONS.within(Budget.of(1))


def test_implications_across_premetrics_and_units() -> None:
    household = pure(Budget.of(1), "household")
    assert household.implies(pure(Budget.of(1), "person"))
    assert household.implies(
        replace(pure(Budget.of(1)), output_premetric=NormalizedRenyi(), budget=Budget.sqrt("1/2"))
    )
    verdict = pure(Budget.of(1), "person").implies(household)
    assert verdict.answer is Answer.UNKNOWN
    assert zcdp(1, "household", HOMES).implies(household).answer is Answer.NO  # a Gaussian
    assert household.implies(replace(household, domain=Domain(name="other"))).answer is Answer.UNKNOWN
    assert household.implies(replace(household, budget=Budget.infinite(), domain=Domain(name="other")))


def test_zcdp_is_never_restated_as_approximate() -> None:
    with pytest.raises(IncompatibleError, match="cannot restate"):
        PL_PERSONS.under(Approximate("1e-10"))
    assert pure(Budget.of(1)).under(Approximate("1e-10")).budget == Budget.of(1)


def test_approximate_parts_add_both_numbers() -> None:
    one = replace(pure(Budget.of(1)), output_premetric=Approximate("1e-6"))
    assert (one + one).output_premetric == Approximate("2e-6")
    assert (one + one + pure(Budget.of(1))).budget == Budget.of(3)
    with pytest.raises(IncompatibleError):
        one + PL_UNITS


def test_symmetric_difference_doubles_into_hamming() -> None:
    added = replace(zcdp("4.944", "person"), input_premetric=SymmetricDifference("person"))
    # 19.776 is four times the add-or-remove budget
    assert added.per(Hamming("person")).rho_squared == Budget.of("19.776")
    assert (added + PL_PERSONS).input_premetric == Hamming("person")


def test_incompatible_specifications_are_refused_with_a_reason() -> None:
    with pytest.raises(IncompatibleError, match="domains differ"):
        PL_PERSONS + replace(PL_UNITS, domain=Domain(name="1940"))
    with pytest.raises(IncompatibleError, match="no rule relates"):
        PL_PERSONS + replace(PL_UNITS, input_premetric=Hamming("business"))
    with pytest.raises(BudgetError):
        replace(PL_PERSONS, budget=0.5)  # type: ignore[arg-type]


def test_one_realised_universe_is_refused_with_the_papers_reason() -> None:
    universe = Universe(multiverse=TOPDOWN, values={}, digest="")
    for attempt in (
        lambda: replace(PL_PERSONS, multiverse=universe),
        lambda: Multiverse.realised_only(universe),
    ):
        with pytest.raises(SpecificationError, match="accidental"):
            attempt()


def psa(b: int, rate: Fraction = Fraction(1, 20)) -> Specification:
    varies = BudgetFunction(
        words="ln(b + 1) − ln o, b the largest stratum of the universe", universe=f"b = {b}"
    )
    return replace(
        pure(Budget.log((b + 1) * (1 - rate) / rate), multiverse=Multiverse.of(QUARTERS)), varies=varies
    )


def test_a_budget_that_differs_by_universe_is_not_decided_by_the_realised_one() -> None:
    here, there = psa(10), psa(1000)
    assert here.implies(here)
    assert here.implies(there).answer is Answer.UNKNOWN
    assert here.implies(replace(there, varies=None)).answer is Answer.UNKNOWN
    bounded = replace(here, varies=replace(here.varies, most=Budget.of(10)))
    assert bounded.implies(replace(here, varies=None, budget=Budget.of(10)))
    assert (here + there).varies is not None
    # converting the unit converts the bounds with it, and raising the budget here says nothing about elsewhere
    moved = bounded.given(Margin("housing unit")).per("person", link="free")
    assert moved.varies is not None
    assert moved.varies.most == Budget.of(20)
    assert moved.budget == here.budget * 2
    raised = here.within(Budget.of(50))
    assert raised.implies(replace(raised, varies=None)).answer is Answer.UNKNOWN
    assert bounded.within(Budget.of(10)).varies is None
    assert here.given(POPULATION).varies == here.varies


def test_chaining_keeps_the_first_promise_and_says_what_is_unknown() -> None:
    swapped, noisy = psa(10), pure(Budget.of(1))
    chained = swapped.then(noisy)
    assert chained.budget == swapped.budget
    assert chained.multiverse == swapped.multiverse
    assert any("unknown" in note for note in chained.notes)
    assert chain(swapped, noisy).sharper.answer is Answer.UNKNOWN
    # a stable first step hands the second promise on, scaled
    stable = chain(replace(swapped, varies=None, multiverse=HOMES, budget=Budget.of(20)), noisy, stability=2)
    assert stable.specification.budget == Budget.of(2)
    other = chain(PL_PERSONS, pure(Budget.of(100)), stability=1)
    assert other.also is not None
    assert other.specification.budget == PL_PERSONS.budget
    with pytest.raises(SpecificationError):
        chain(swapped, noisy, stability=0.5)  # type: ignore[arg-type]


def test_exact_release_costs_nothing_or_everything() -> None:
    flavor = {"domain": DOMAIN, "input_premetric": Hamming("person"), "output_premetric": NormalizedRenyi()}
    assert exact_release(Margin("housing unit", ("state",)), multiverse=TOPDOWN, **flavor).budget.is_zero
    assert not exact_release(QUARTERS, multiverse=Multiverse.of(HOUSING), **flavor).budget.is_finite
    with pytest.raises(SpecificationError, match="unknown"):
        exact_release(POPULATION, multiverse=Multiverse.of(Margin("household", ("block", "size"))), **flavor)


def test_the_number_of_records_is_an_invariant_of_every_hamming_distance() -> None:
    """Bounded DP has an invariant already (Section 2.2): no pair of different size is at finite distance."""
    toy = Domain(name="toy", spine=("county", "block"))
    flavor = {"domain": toy, "multiverse": Multiverse.none(), "output_premetric": Multiplicative()}
    total = Margin("household")
    changed = Specification(input_premetric=Hamming("household"), budget=Budget.of(1), **flavor)
    assert changed.given(total).implies(changed)
    assert compare(changed, changed.given(total)).overall.relation is Relation.EQUAL
    assert changed.given(total).without(total).budget == Budget.of(1)
    assert exact_release(total, input_premetric=Hamming("household"), **flavor).budget.is_zero
    # adding and removing reaches data sets of any size
    added = replace(changed, input_premetric=SymmetricDifference("household"))
    assert added.given(total).implies(added).answer is Answer.NO
    assert not exact_release(total, input_premetric=added.input_premetric, **flavor).budget.is_finite
    # where it is not only households that count as records, the number of households may change at finite distance
    assert (
        pure(Budget.of(1), multiverse=Multiverse.of(total)).implies(pure(Budget.of(1))).answer
        is Answer.UNKNOWN
    )
    with pytest.raises(SpecificationError, match="unknown"):
        exact_release(total, **{**flavor, "domain": DOMAIN}, input_premetric=Hamming("household"))
    # a table by area can differ at finite distance
    by_block = Margin("household", ("block",))
    assert changed.given(by_block).implies(changed).answer is Answer.NO
    assert changed.given(by_block).without(by_block) == changed
    assert not changed.given(by_block).without(by_block, released=True).budget.is_finite


def test_a_premetric_that_does_not_say_what_is_at_finite_distance_settles_nothing() -> None:
    toy = Domain(name="toy")
    flavor = {"domain": toy, "multiverse": Multiverse.none(), "output_premetric": Multiplicative()}
    own = Specification(input_premetric=Businesses(), budget=Budget.of(1), **flavor)
    by_area = Margin("business", ("area",))
    assert own.given(by_area).implies(own).answer is Answer.UNKNOWN
    assert own.given(by_area).without(by_area) == own
    dropped = own.given(by_area).without(by_area, released=True)
    assert not dropped.budget.is_finite
    assert not any("Proposition 1" in note for note in dropped.notes)


@dataclass(frozen=True)
class Businesses(InputPremetric):
    """An input premetric of one's own: the distance in turnover, in steps of a thousand."""

    unit = "thousand of turnover"  # type: ignore[assignment]

    def constant(self, to: InputPremetric, domain: Domain, multiverse: Multiverse) -> Constant:
        if to == Hamming("business"):
            return Constant(Fraction(500), "turnover is capped at 500 thousand")
        return InputPremetric.constant(self, to, domain, multiverse)


@dataclass(frozen=True)
class MaxDivergence(OutputPremetric):
    """An output premetric of one's own whose budgets compose by their maximum (disjoint parts of the file)."""

    symbol = "D_max"

    def compose(self, budgets: list[Budget]) -> Budget:  # type: ignore[override]
        return max(budgets, default=Budget.zero())


def test_premetrics_of_ones_own_compose_and_convert() -> None:
    mine = replace(pure(Budget.of("1/100")), input_premetric=Businesses(), output_premetric=MaxDivergence())
    both = mine + replace(mine, budget=Budget.of("1/50"))
    assert both.budget == Budget.of("1/50")
    assert both.per(Hamming("business")).budget == Budget.of(10)
    assert str(both).endswith("D_max | ε = 0.0200")


def test_evidence_is_the_weakest_of_the_parts() -> None:
    total = replace(PL_PERSONS, evidence=Evidence(source="x")) + replace(
        PL_UNITS, evidence=Evidence(status="estimated", source="y")
    )
    assert total.evidence == Evidence(status="estimated", source="x; y")


def test_one_line() -> None:
    assert str(PL_PERSONS) == (
        "CEF | {group quarters by block × type, housing units by block, persons by state} "
        "| d_Ham(person) | D_nor | ρ² = 2.5563"
    )
    with pytest.raises(SpecificationError, match="has no ρ²"):
        _ = pure(Budget.of(1)).rho_squared


def test_sums_do_not_depend_on_the_order_of_seven_releases() -> None:
    totals = {str(compose(order).rho_squared.exact) for order in list(permutations(ALL_2020))[::700]}
    assert len(totals) == 1
