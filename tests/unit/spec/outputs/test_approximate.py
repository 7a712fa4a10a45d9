"""(ε, δ) has one meaning: δ adds in sums, follows group privacy between units, and never gets smaller."""

from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise, product

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stirred.errors import BudgetError, IncompatibleError, SpecificationError
from stirred.spec import (
    Approximate,
    Budget,
    BudgetFunction,
    Domain,
    Hamming,
    InputPremetric,
    Margin,
    Multiplicative,
    Multiverse,
    NormalizedRenyi,
    OutputPremetric,
    RecordType,
    Specification,
    SymmetricDifference,
    Variable,
    at_distance,
    compose,
)
from stirred.spec.card import Card, bound_odds
from stirred.spec.output_premetrics import round_up_digits, scale_delta

TOY = Domain(
    name="toy",
    record_types=(
        RecordType(
            name="household", variables=tuple(Variable(name=n, levels=("0", "1")) for n in ("a", "b"))
        ),
        RecordType(name="person", variables=(Variable(name="age"),)),
    ),
    largest_household=3,
)
FIXED = Multiverse.of(Margin("household"), Margin("person"))


def spec(
    epsilon: "Budget | int | str",
    delta: "int | str | Fraction | None" = None,
    *,
    unit: InputPremetric | None = None,
    multiverse: Multiverse | None = None,
) -> Specification:
    return Specification(
        domain=TOY,
        multiverse=FIXED if multiverse is None else multiverse,
        input_premetric=unit or Hamming("household"),
        output_premetric=Multiplicative() if delta is None else Approximate(delta),
        budget=Budget.of(epsilon),
    )


def delta_of(found: Specification) -> Fraction:
    assert isinstance(found.output_premetric, Approximate)
    return found.output_premetric.delta


def test_delta_adds_and_cannot_be_lowered() -> None:
    a = spec(1, "1/10")
    assert (a + a).output_premetric == Approximate("1/5")
    assert (a + a).budget == Budget.of(2)
    with pytest.raises(IncompatibleError, match="no rule makes a δ smaller"):
        (a + a).under(Approximate("1/10"))
    assert (a + a).under(Approximate("1/4")).output_premetric == Approximate("1/4")
    # what was asked for is no longer asked for in the next sum
    assert (a.under(Approximate("1/2")) + a).output_premetric == Approximate("1/5")
    assert not (a + a).implies(spec(2, "1/10"))
    assert (a + a).implies(spec(2, "1/5"))
    assert not spec(0, "1/10").implies(spec(9, "1/20"))


def test_from_one_on_nothing_is_promised() -> None:
    a = spec(1, "1/10")
    assert compose([a] * 9).output_premetric == Approximate("9/10")
    with pytest.raises(BudgetError, match="add up to 1,") as void:
        compose([a] * 10)
    assert "publish fewer" in str(void.value)
    assert not compose([a] * 9).implies(spec(100, "1/2"))


def test_pure_parts_have_no_delta_and_zcdp_is_refused() -> None:
    mixed = spec(1) + spec(1, "1/10") + spec(2)
    assert (mixed.output_premetric, mixed.budget) == (Approximate("1/10"), Budget.of(4))
    zcdp = replace(spec(1), output_premetric=NormalizedRenyi())
    with pytest.raises(IncompatibleError, match="no rule converts"):
        zcdp + spec(1, "1/10")
    with pytest.raises(IncompatibleError, match="at every distance"):
        zcdp.under(Approximate("1/10"))
    assert spec(1, 0).implies(spec(1))
    assert not spec(1, "1e-9").implies(spec(1))
    assert spec(1).under(Approximate("1e-9")).under(Multiplicative()) == spec(1)


def test_another_unit_follows_group_privacy() -> None:
    # constant 2 at e^ε = 3: δ(1 + 3); constant 3 at ε = 0: 3δ
    moving = spec(Budget.log(3), "1/100").per("person", link="free")
    assert (moving.output_premetric, moving.budget) == (Approximate("4/100"), Budget.log(9))
    copies = replace(spec(0, "1/100"), domain=replace(TOY, copies=3)).before_imputation()
    assert (copies.output_premetric, copies.budget) == (Approximate("3/100"), Budget.zero())
    # back from the first statement: nothing is rounded twice, nothing is inflated
    there = spec(1, "1/1000").per("person", link="free")
    assert there.per("household") == spec(1, "1/1000")
    assert there.per("person", link="free") == there
    assert there.per("person", copies=3).per("person", link="free", copies=1) == there
    # half a step: δ(e^{ε/2} − 1)/(e^ε − 1) = δ/(e^{ε/2} + 1)
    halved = spec(Budget.log(9), "1/2").per(SymmetricDifference("household"))
    assert (halved.output_premetric, halved.budget) == (Approximate("1/8"), Budget.log(3))
    with pytest.raises(BudgetError, match="in this unit the statement promises nothing"):
        spec(5, "1/100", unit=Hamming("person")).per("household")
    # what is refused here is unknown there
    assert not spec(5, "1/100", unit=Hamming("person")).implies(spec(500, "1/2"))


epsilons = st.fractions(min_value=0, max_value=12, max_denominator=40)
deltas = st.fractions(min_value=Fraction(1, 10**8), max_value=Fraction(1, 10**4), max_denominator=10**8)
constants = st.sampled_from(
    [Fraction(1, 2), Fraction(1), Fraction(3, 2), Fraction(2), Fraction(3), Fraction(7)]
)


@settings(deadline=None)
@given(epsilons, deltas, constants)
def test_delta_is_never_rounded_down(epsilon: Fraction, delta: Fraction, constant: Fraction) -> None:
    found = scale_delta(Budget.of(epsilon), delta, constant)
    with mpmath.workdps(60):
        e, c = (mpmath.mpf(x.numerator) / x.denominator for x in (epsilon, constant))
        ratio = c if epsilon == 0 else mpmath.expm1(c * e) / mpmath.expm1(e)
        true = min(ratio * delta.numerator / delta.denominator, mpmath.mpf(1))
        shown = mpmath.mpf(found.numerator) / found.denominator
        # at twelve digits the last one is 10⁻¹¹ of the value at most
        assert true * (1 - mpmath.mpf(10) ** -50) <= shown <= true * (1 + mpmath.mpf(10) ** -11)


@settings(deadline=None)
@given(st.integers(2, 50), deltas, st.integers(1, 6))
def test_whole_steps_at_a_logarithm_are_exact(q: int, delta: Fraction, steps: int) -> None:
    total = delta * sum(q**i for i in range(steps))
    assert scale_delta(Budget.log(q), delta, Fraction(steps)) == min(total, 1)
    read = at_distance(Budget.log(q), delta, distance=steps)
    assert read.epsilon == Budget.log(q) * steps
    assert min(total, 1) <= Fraction(read.delta) <= min(total, 1) * Fraction(100001, 100000)


@settings(deadline=None)
@given(
    epsilons, deltas, st.sampled_from([Fraction(2), Fraction(3)]), st.sampled_from([Fraction(2), Fraction(5)])
)
def test_two_changes_of_unit_are_one(epsilon: Fraction, delta: Fraction, c: Fraction, d: Fraction) -> None:
    """The family is closed: by c, then by d, is by cd (up to the rounding, which is upward)."""
    once = scale_delta(Budget.of(epsilon), delta, c * d)
    twice = scale_delta(Budget.of(epsilon * c), scale_delta(Budget.of(epsilon), delta, c), d)
    assert once <= twice * (1 + Fraction(1, 10**11))
    assert twice <= once * (1 + Fraction(1, 10**10)) or twice == 1


def test_a_tiny_epsilon_and_a_huge_step() -> None:
    assert (
        Fraction(2, 100)
        < scale_delta(Budget.of("1e-4000"), Fraction(1, 100), Fraction(2))
        < Fraction(21, 1000)
    )
    assert scale_delta(Budget.of("1e-4000"), Fraction(1, 100), Fraction(1, 2)) == Fraction(1, 200)
    assert scale_delta(Budget.of(1), Fraction(1, 10**10), Fraction(99_999)) == 1
    assert scale_delta(Budget.infinite(), Fraction(1, 10), Fraction(3)) == Fraction(1, 10)
    assert str(round_up_digits(Fraction(9999, 10000), 3)) == "1.00"
    for bad in (0, -1, True, 0.5):
        with pytest.raises(BudgetError):
            at_distance(Budget.of(1), "1/10", distance=bad)  # type: ignore[arg-type]


parts = st.builds(
    lambda kind, name, link, copies, epsilon, delta: spec(
        epsilon, delta, unit=kind(name, link=link, copies=copies)
    ),
    st.sampled_from([Hamming, SymmetricDifference]),
    st.sampled_from(["person", "household"]),
    st.sampled_from(["kept", "free"]),
    st.integers(1, 2),
    st.one_of(
        st.fractions(min_value=0, max_value=1, max_denominator=7).map(Budget.of),
        st.integers(1, 4).map(Budget.log),
    ),
    # at ε = ln 4 and the largest constant, 8, a δ grows by (4⁸ − 1)/3: three of these stay below 1
    st.one_of(st.none(), deltas.map(lambda delta: delta / 10)),
)


@settings(deadline=None)
@given(parts, parts, parts)
def test_sums_and_units_in_any_order(a: Specification, b: Specification, c: Specification) -> None:
    whole = (a + b) + c
    assert whole == a + (b + c) == (c + a) + b == compose([c, b, a])
    unit = Hamming("person", link="free", copies=2)
    moved = whole.per(unit)
    assert moved == (a.per(unit) + b.per(unit)) + c.per(unit) == (a + b).per(unit) + c.per(unit)
    assert moved == (c + (a + b).per(unit)).per(unit)
    assert moved.per(whole.input_premetric) == whole


# --- against distributions, with no code of the package: all of them, over two outcomes and on a grid


def promised(p: Fraction, q: Fraction, e: Fraction, delta: Fraction, k: int) -> bool:
    """P(E) ≤ e^{kε}Q(E) + δ_k for both events and both sides; e = e^ε."""
    bound = delta * sum(e**i for i in range(k))
    pairs = ((p, q), (q, p), (1 - p, 1 - q), (1 - q, 1 - p))
    return all(x <= e**k * y + bound for x, y in pairs)


def test_two_releases_keep_the_sum_at_every_distance() -> None:
    """Independent outputs (p₁, q₁) and (p₂, q₂) at distance k, each within its own promise, against the sum."""
    grid = [Fraction(i, 8) for i in range(9)]
    checked = 0
    for (e1, d1), (e2, d2), k in product(
        [(Fraction(2), Fraction(1, 10)), (Fraction(1), Fraction(1, 5))],
        [(Fraction(3, 2), Fraction(1, 20)), (Fraction(1), Fraction(1, 10))],
        (1, 2, 3),
    ):
        sides = [
            [(p, q) for p, q in product(grid, grid) if promised(p, q, e, d, k)]
            for e, d in ((e1, d1), (e2, d2))
        ]
        together, delta = Approximate(d1).compose_parts(
            [(Approximate(d1), Budget.log(e1)), (Approximate(d2), Budget.log(e2))]
        )
        assert isinstance(together, Approximate)
        assert delta == Budget.log(e1 * e2)
        bound = together.delta * sum((e1 * e2) ** i for i in range(k))
        for (p, q), (s, t) in product(*sides):
            first = [p * s, p * (1 - s), (1 - p) * s, (1 - p) * (1 - s)]
            second = [q * t, q * (1 - t), (1 - q) * t, (1 - q) * (1 - t)]
            # the worst event holds every outcome with a positive excess
            for x, y in ((first, second), (second, first)):
                excess = sum(max(a - (e1 * e2) ** k * b, 0) for a, b in zip(x, y, strict=True))
                assert excess <= bound
                checked += 1
    assert checked > 10_000


def test_group_privacy_is_reached_and_not_passed() -> None:
    """A chain of neighbours with (ε, δ) between each two reaches δ_k, so nothing smaller is true."""
    e, delta, k = Fraction(2), Fraction(1, 100), 3
    law = [Fraction(0)]
    for _ in range(k):
        law.append(e * law[-1] + delta)  # the largest P(E) that neighbours allow
    assert all(promised(p, q, e, delta, 1) for p, q in pairwise(law))
    assert Fraction(at_distance(Budget.log(2), delta, distance=k).delta) == law[-1]
    assert not promised(law[-1], law[0], e, delta - Fraction(1, 1000), k)


# --- the card


def test_the_card_reads_it_at_the_smallest_distance() -> None:
    swap = spec(
        Budget.log(3),
        "1/100",
        multiverse=Multiverse.of(Margin("household", ("a",)), Margin("household", ("b",))),
    )
    found = bound_odds(swap)
    assert found.distance == 2
    assert found.factor.startswith("9.0")
    assert found.exception == "except with probability 1/25"  # 1/100 · (1 + 3)
    # (1 − 1/25)/(1 + 9) = 9.6 %, rounded down because e^{2ε} is rounded up
    assert found.error in {"9.59%", "9.60%"}
    assert "except with probability 1/25" in Card(swap).sentence()
    near = bound_odds(replace(swap, multiverse=Multiverse.none()), distance=1)
    assert (near.exception, near.error[:4]) == ("except with probability 1/100", "24.7")
    assert bound_odds(spec(1, 0), distance=1).exception == ""
    # at a distance at which δ_k has reached 1 nothing is promised
    void = bound_odds(replace(swap, output_premetric=Approximate("1/4")))
    assert void.factor == "∞"
    assert "Nothing is promised" in Card(replace(swap, output_premetric=Approximate("1/4"))).sentence()


def test_the_best_test_errs_as_often_as_the_card_says() -> None:
    """The pair that uses up (E, Δ): the best test with equal errors, by all tests over its four outcomes."""
    e, delta = Fraction(3), Fraction(1, 5)
    rest = 1 - delta
    first = [delta, rest * e / (1 + e), rest / (1 + e), Fraction(0)]
    second = first[::-1]
    assert sum(max(a - e * b, 0) for a, b in zip(first, second, strict=True)) == delta
    # tests that accept each outcome with a probability on a grid; the largest error of the two, made smallest
    grid = [Fraction(i, 4) for i in range(5)]
    best = min(
        max(
            sum(t * a for t, a in zip(test, first, strict=True)),
            sum((1 - t) * b for t, b in zip(test, second, strict=True)),
        )
        for test in product(grid, repeat=4)
    )
    assert best == rest / (1 + e) == Fraction(1, 5)
    shown = bound_odds(spec(Budget.log(3), delta), distance=1).error
    assert shown in {"19.9%", "20.0%"}


# --- what is refused


@dataclass(frozen=True)
class Turnover(InputPremetric):
    """Distances of any size, also below 1."""

    unit = "thousand of turnover"  # type: ignore[assignment]


def test_distances_below_one_are_refused() -> None:
    """At distance 1/2 a larger ε allows less: (e^{ε/2} − 1)/(e^ε − 1) falls with ε, so budgets would not compare."""
    with pytest.raises(SpecificationError, match=r"distances 0, 1, 2"):
        spec(1, "1/10", unit=Turnover())
    assert spec(1, 0, unit=Turnover()).budget == Budget.of(1)


def test_no_delta_is_right_where_epsilon_has_no_bound() -> None:
    function = BudgetFunction(words="it grows with the largest stratum", most=Budget.log(4))
    varying = replace(spec(Budget.log(2), "1/100"), varies=function)
    # 1/100 · (1 + 4): right in every universe, not only at ε = ln 2
    assert delta_of(varying.per("person", link="free")) == Fraction(1, 20)
    endless = replace(varying, varies=replace(function, most=Budget.infinite()))
    assert delta_of(endless.per("person")) == Fraction(1, 100)  # constant 1 changes nothing
    with pytest.raises(IncompatibleError, match="no δ is right in all"):
        endless.per("person", link="free")


def test_proposition_1_holds_for_neighbours_alone() -> None:
    """Two outputs with nothing in common: at distance 1 no ε is enough, at distance 2 (ln 9, 1/10) is."""
    measure = Approximate("1/10")
    assert measure.excludes(Budget.of(1000), 1)
    assert measure.excludes(Budget.log("89/10"), 2)
    assert not measure.excludes(Budget.log(9), 2)
    assert not measure.excludes(Budget.infinite(), 1)
    assert Multiplicative().excludes(Budget.of(1000), 7)


# --- mutants: the old behaviour is caught


def the_sum_reads_one_fifth() -> bool:
    try:
        return delta_of(spec(1, "1/10") + spec(1, "1/10")) == Fraction(1, 5)
    except SpecificationError:
        return False


def two_steps_cost_four() -> bool:
    return delta_of(spec(Budget.log(3), "1/100").per("person", link="free")) == Fraction(1, 25)


def the_smaller_delta_is_refused() -> bool:
    try:
        (spec(0, "1/10") + spec(0, "1/10")).under(Approximate("1/10"))
    except IncompatibleError:
        return True
    return False


def _largest(self: Approximate, given_parts: "list[tuple[OutputPremetric, Budget]]") -> object:
    return self, self.compose([budget for _, budget in given_parts])


@pytest.mark.parametrize(
    ("check", "name", "wrong"),
    [
        (the_sum_reads_one_fifth, "compose_parts", _largest),
        (the_smaller_delta_is_refused, "compose_parts", _largest),
        (the_smaller_delta_is_refused, "convert", lambda self, budget, to: budget),
        (two_steps_cost_four, "scale", lambda self, budget, constant: (self, budget * constant)),
        (
            two_steps_cost_four,
            "scale",
            lambda self, budget, constant: (Approximate(self.delta * constant), budget * constant),
        ),
    ],
)
def test_the_old_delta_is_caught(
    monkeypatch: pytest.MonkeyPatch, check: object, name: str, wrong: object
) -> None:
    assert callable(check)
    assert check()
    monkeypatch.setattr(Approximate, name, wrong)
    assert not check()


def test_the_text_of_a_delta_tells_it_apart() -> None:
    shown = [
        str(Approximate(d)) for d in ("1/10", "185914091423/5000000000000", "185914091424/5000000000000")
    ]
    assert shown[:2] == ["D_δ(δ = 1/10)", "D_δ(δ = 0.0371828182846)"]
    assert len(set(shown)) == 3
