"""The checker refuses derivations that do not prove their verdict: forged ones, and real ones changed at random.

What it accepts is held against brute force over all data sets of up to four records (tests/oracles).
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oracles.bridge import REALISED
from oracles.census import Small, Strata, Table
from oracles.promises import Law, Promise, brute
from oracles.sweep import Library, witness_fault
from stirred.spec import (
    Answer,
    Approximate,
    Budget,
    BudgetFunction,
    Domain,
    Hamming,
    InputPremetric,
    LargestStratum,
    Margin,
    Multiplicative,
    Multiverse,
    Neighbours,
    NormalizedRenyi,
    OutputPremetric,
    RecordType,
    SizeLaw,
    Specification,
    SymmetricDifference,
    Variable,
    Verdict,
)
from stirred.spec.refinement import decide_determined, refines
from stirred.spec.verdict import DataSet, Derivation, Witness
from stirred.spec.verdicts.checker.check import check_implication, check_refinement

UNIT = "household"
BITS = ("0", "1")


def domain(*names: str, **more: Any) -> Domain:
    variables = tuple(Variable(name=name, levels=BITS) for name in names)
    return Domain(name="toy", record_types=(RecordType(name=UNIT, variables=variables),), **more)


TOY, CUBE = domain("a", "b"), domain("a", "b", "c")
TOTAL, A, B, AB = (Margin(UNIT, tuple(by)) for by in ("", "a", "b", "ab"))


def spec(
    budget: int | str | Budget = 1,
    output: OutputPremetric | None = None,
    *kept: Margin,
    unit: InputPremetric | None = None,
    on: Domain = TOY,
    varies: BudgetFunction | None = None,
) -> Specification:
    return Specification(
        domain=on,
        multiverse=Multiverse.of(*kept),
        input_premetric=unit or Hamming(UNIT),
        output_premetric=output or Multiplicative(),
        budget=budget if isinstance(budget, Budget) else Budget.of(budget),
        varies=varies,
    )


def swap(rate: str, b: int = REALISED, kind: str = "theorem-1", **more: Any) -> Specification:
    law = SizeLaw(kind, rate)  # type: ignore[arg-type]
    statistic = more.pop("statistic", LargestStratum(UNIT, (), ("a",), ("b",)))
    varies = BudgetFunction(law=law, statistic=statistic, b=b, realised=f"{rate} at {b}")
    return spec(more.pop("budget", law.at(b)), more.pop("output", None), A, B, varies=varies, **more)


def step(rule: str, *premises: Derivation, witness: Witness | None = None, **facts: Any) -> Derivation:
    return Derivation(rule=rule, claim="forged", premises=premises, witness=witness, facts=facts)


NOTHING = step("all of")
KEPT = step("all of", step("kept", wanted=A), step("kept", wanted=B))


def yes(*premises: Derivation) -> Verdict:
    return Verdict.yes("forged", step("implication", *premises))


def no(pair: Witness, mechanism: str = "randomised response", **facts: Any) -> Verdict:
    return Verdict.no("forged", step("mechanism", witness=pair, mechanism=mechanism, **facts))


def data(*records: str, names: str = "ab", times: int = 1) -> DataSet:
    """``data("00", "11")``: two records, a = b = 0 and a = b = 1."""
    return DataSet.of(UNIT, [(dict(zip(names, record, strict=True)), times) for record in records])


CHANGED = Witness(data("00"), data("01"))
EXCHANGED = Witness(data("00", "11"), data("01", "10"))


# --- real derivations of every kind pass

REAL: dict[str, tuple[Specification, Specification, str]] = {
    "smaller budget": (spec(1), spec(2), "yes"),
    "one statement more": (spec(1, None, A), spec(1, None, A, B), "yes"),
    "read off": (spec(1, None, A), spec(1, None, AB), "yes"),
    "sums": (
        spec(1, None, Margin(UNIT, ("b",), {"a": ["1"]})),
        spec(1, None, B, Margin(UNIT, ("b",), {"a": ["0"]})),
        "yes",
    ),
    "finite distance": (spec(1, None, TOTAL), spec(1), "yes"),
    "singletons": (spec(9), spec(1, None, AB), "yes"),
    "pure and zCDP": (spec(2), spec(Budget.sqrt("1.6"), NormalizedRenyi()), "yes"),
    "at distance two": (spec(2, None, A, B), spec(1, NormalizedRenyi(), A, B), "yes"),
    "a law below another": (swap("1/2"), swap("1/20"), "yes"),
    "larger budget": (spec(2), spec(1), "no"),
    "published": (spec(1, None, A), spec(1), "no"),
    "no bound": (spec(1, NormalizedRenyi()), spec(9), "no"),
    "revealed": (spec(1, Approximate("1/10")), spec(9), "no"),
    "revealed alone": (spec(0, Approximate("1/10")), spec(1, Approximate("1/100")), "no"),
    "a law above another": (swap("1/20"), swap("1/2"), "no"),
    "laws that cross": (swap("1/2", kind="by-size"), swap("3/4", kind="by-size"), "no"),
}


@pytest.mark.parametrize("name", REAL)
def test_real_derivations_are_accepted(name: str) -> None:
    first, second, answer = REAL[name]
    verdict = first.implies(second)
    assert verdict.answer.value == answer
    assert check_implication(first, second, verdict) == ()


# --- forged ones do not

ONE = Fraction(1)
SEVERAL = domain("a", "b").record_types[0]
LINKED = Domain(
    name="linked",
    record_types=(SEVERAL, RecordType(name="person", variables=(Variable(name="age", levels=BITS),))),
    largest_household=5,
)
ONE_LEVEL = Domain(
    name="one", record_types=(RecordType(name=UNIT, variables=(Variable(name="a", levels=1),)),)
)
ONE_AREA = Domain(
    name="one area",
    record_types=(
        RecordType(
            name=UNIT, variables=(Variable(name="a", levels=("A",)), Variable(name="b", levels=("A1",)))
        ),
    ),
    spine=("a", "b"),
)
MANY = "9999999999/10000000000"  # odds of 10¹⁰ − 1: Theorem 1 at rate 1/2 is above it from b = 10¹⁰ − 1 on

FORGED: dict[str, tuple[Specification, Specification, Verdict]] = {
    # a yes whose budgets do not fit
    "a larger budget": (spec(2), spec(1), yes(NOTHING, step("budget", factor=ONE, least=1))),
    "parts that are not there": (spec(100), spec(1), yes(NOTHING, step("parts"))),
    "parts with numbers made up": (
        spec(2) + spec(3, unit=SymmetricDifference(UNIT)),
        spec(1),
        yes(NOTHING, step("parts", first="1", second="1")),
    ),
    "a smallest distance made up": (
        spec(2),
        spec(1, NormalizedRenyi()),
        yes(NOTHING, step("budget", factor=ONE, least=100)),
    ),
    "a smallest distance of two where neighbours are": (
        spec(2, None, A),
        spec(1, NormalizedRenyi(), A),
        yes(step("kept", wanted=A), step("budget", factor=ONE, least=2)),
    ),
    "a constant made up": (
        spec(1, unit=Hamming("person"), on=LINKED),
        spec(1, on=LINKED),
        yes(NOTHING, step("budget", factor=Fraction(1, 1000))),
    ),
    "neighbours that do not connect": (
        spec(1, None, A, B, unit=Neighbours(Hamming(UNIT))),
        spec(1, None, A, B),
        yes(KEPT, step("budget", factor=ONE, least=1)),
    ),
    "another domain": (spec(1, on=domain("a", "b", "c")), spec(1), yes(NOTHING, step("budget", factor=ONE))),
    "no step about budgets": (spec(2), spec(1), yes(NOTHING, NOTHING)),
    "a rule that does not exist": (spec(2), spec(1), Verdict.yes("forged", step("because"))),
    "the same, and it is not": (spec(2), spec(1), Verdict.yes("forged", step("same"))),
    "nothing promised, and it is": (spec(2), spec(1), Verdict.yes("forged", step("nothing promised"))),
    "no derivation": (spec(2), spec(1), Verdict.yes("forged")),
    # a yes whose universes are not nested
    "nothing about the invariants": (spec(1, None, A), spec(1), yes(step("budget", factor=ONE))),
    "an invariant kept that is not": (
        spec(1, None, A),
        spec(1, None, B),
        yes(step("kept", wanted=A), step("budget", factor=ONE)),
    ),
    "one of two invariants": (
        spec(1, None, A, B),
        spec(1, None, A),
        yes(step("kept", wanted=A), step("budget", factor=ONE)),
    ),
    "a distance that fixes a table": (
        spec(1, None, A),
        spec(1),
        yes(step("finite distance", step("kept", wanted=A), fixed=(A,)), step("budget", factor=ONE)),
    ),
    "the same, hidden": (
        spec(1, None, A),
        spec(1),
        yes(
            step("all of", step("finite distance", step("kept", wanted=A), fixed=(A,))),
            step("budget", factor=ONE),
        ),
    ),
    "a distance that fixes no size": (
        spec(1, None, TOTAL, unit=SymmetricDifference(UNIT)),
        spec(1, unit=SymmetricDifference(UNIT)),
        yes(
            step("all of", step("finite distance", step("kept", wanted=TOTAL), fixed=(TOTAL,))),
            step("budget", factor=ONE),
        ),
    ),
    "read off a coarser table": (
        spec(1, None, AB),
        spec(1, None, A),
        yes(step("read off", given=A, wanted=AB), step("budget", factor=ONE)),
    ),
    "singletons that are none": (
        spec(2),
        spec(1, None, A),
        Verdict.yes("forged", step("singletons", step("kept", wanted=AB))),
    ),
    # a yes between laws
    "laws that cross": (swap("1/2", kind="by-size"), swap("3/4", kind="by-size"), yes(KEPT, step("laws"))),
    "laws that cross far out": (swap("1/2"), swap(MANY), yes(KEPT, step("laws"))),
    "laws of other units": (
        swap("1/2", unit=SymmetricDifference(UNIT)),
        swap("1/2"),
        yes(KEPT, step("laws")),
    ),
    "laws of other premetrics": (swap("1/2", output=NormalizedRenyi()), swap("1/2"), yes(KEPT, step("laws"))),
    "laws of other strata": (
        swap("1/2"),
        swap("1/2", statistic=LargestStratum(UNIT, ("a",), (), ("b",))),
        yes(KEPT, step("laws")),
    ),
    "a sharper value where it was taken": (swap("1/2"), swap("1/20", budget="1/10"), yes(KEPT, step("laws"))),
    "no loss where b = 0": (
        spec("1/10", None, A, B, on=CUBE),
        swap("1/20", on=CUBE),
        yes(KEPT, step("laws")),
    ),
    "no loss where b = 0, by bounds": (
        spec("1/10", None, A, B, on=CUBE),
        swap("1/20", on=CUBE, output=NormalizedRenyi()),
        yes(KEPT, step("budget", factor=ONE, least=1)),
    ),
    "changed records for added ones": (
        spec(1),
        spec(1, unit=SymmetricDifference(UNIT)),
        yes(NOTHING, step("budget", factor=Fraction(1, 2), least=1)),
    ),
    "a law below a constant": (swap("1/2"), spec(100, None, A, B), yes(KEPT, step("budget", factor=ONE))),
    # a no without a pair that breaks the second
    "a yes turned into a no": (spec(1), spec(2), no(CHANGED)),
    "two universes": (spec(2, None, A, B), spec(1, None, A, B), no(CHANGED)),
    "equal data sets": (spec(2), spec(1), no(Witness(data("00"), data("00")))),
    "no records": (spec(2), spec(1), no(Witness(data("00", times=0), data("01", times=0)))),
    "negative numbers of records": (spec(2), spec(1), no(CHANGED, copies=-1)),
    "a negative record": (
        spec(2, None, A, B),
        spec(1, None, A, B),
        no(Witness(data("00"), data("01", "10") + data("11", times=-1))),
    ),
    "another level": (spec(2), spec(1), no(Witness(data("00"), data("02")))),
    "a second level where there is one": (
        spec(2, on=ONE_LEVEL),
        spec(1, on=ONE_LEVEL),
        no(Witness(data("x", names="a"), data("y", names="a"))),
    ),
    "a second area where there is one": (
        spec(2, on=ONE_AREA),
        spec(1, on=ONE_AREA),
        no(
            Witness(
                DataSet.of(UNIT, [({"a": "A", "b": "A1"}, 1)]), DataSet.of(UNIT, [({"a": "B", "b": "B1"}, 1)])
            )
        ),
    ),
    "a variable that the domain has not": (
        spec(2, None, AB),
        spec(1, None, AB),
        no(Witness(data("000", names="abz"), data("001", names="abz"))),
    ),
    "infinitely far": (spec(2), spec(1), no(Witness(data("00"), data("00", "01")))),
    "no neighbours": (
        spec(2, None, A, B, unit=Neighbours(Hamming(UNIT))),
        spec(1, None, A, B, unit=Neighbours(Hamming(UNIT))),
        no(EXCHANGED),
    ),
    "no pair": (spec(2), spec(1), Verdict.no("forged", step("mechanism", mechanism="randomised response"))),
    "published, and it is kept": (spec(1, None, A), spec(2, None, A), no(CHANGED, "publish")),
    "published, and the pair agrees": (spec(1, None, A), spec(2), no(CHANGED, "publish")),
    "revealed without δ": (spec(1), spec(2), no(CHANGED, "reveal")),
    "a Gaussian under pure": (spec(1), spec(2), no(CHANGED, "gaussian")),
    "a Gaussian of budget 0": (spec(0, NormalizedRenyi()), spec(2), no(CHANGED, "gaussian")),
    "a no across domains": (spec(2, on=domain("a", "b", "c")), spec(1), no(CHANGED)),
    "another realised universe": (
        swap("1/2", 100),
        swap("1/20", 2),
        Verdict.no("forged", step("realised universe", b=2)),
    ),
    "a realised universe of one data set": (
        spec(1, None, A, B),
        swap("1/20", 0, budget=0),
        Verdict.no("forged", step("realised universe", b=2)),
    ),
    "a realised universe where no budget varies": (
        spec(1, None, A),
        spec("1/2", None, AB),
        Verdict.no("forged", step("realised universe", b=2)),
    ),
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_derivations_are_refused(name: str) -> None:
    first, second, verdict = FORGED[name]
    assert check_implication(first, second, verdict) != ()


MALFORMED = {
    "no premises": yes(),
    "no facts": yes(step("read off"), step("budget")),
    "no facts of sums": yes(step("sums"), step("budget", factor=ONE)),
    "no axes": yes(step("every map", step("kept", wanted=A)), step("budget", factor=ONE)),
    "no wanted": yes(step("size"), step("budget", factor=ONE)),
    "singletons without a step": Verdict.yes("forged", step("singletons")),
    "no mechanism": Verdict.no("forged", step("mechanism", witness=CHANGED)),
    "no b": Verdict.no("forged", step("realised universe")),
    "a part that is not there": no(CHANGED, part=7),
    "half a pair": no(CHANGED, copies="half"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_derivations_are_a_problem_and_no_crash(name: str) -> None:
    assert check_implication(spec(1, None, A), spec("1/2"), MALFORMED[name]) != ()


# --- tables: sums, and maps between areas


def summed() -> tuple[tuple[Margin, ...], Margin, Verdict]:
    have = (Margin(UNIT, ("b",)), Margin(UNIT, ("b",), {"a": ["0"]}))
    want = Margin(UNIT, ("b",), {"a": ["1"]})
    return have, want, decide_determined(have, want, TOY)


def _changed_coefficient(found: Derivation) -> Derivation:
    combinations = {key: dict(value) for key, value in found.facts["combinations"].items()}
    cell = next(iter(combinations.values()))
    place = next(iter(cell))
    cell[place] += 1
    return replace(found, facts={**found.facts, "combinations": combinations})


def _missing_cell(found: Derivation) -> Derivation:
    combinations = dict(found.facts["combinations"])
    combinations.pop(next(iter(combinations)))
    return replace(found, facts={**found.facts, "combinations": combinations})


def _missing_level(found: Derivation) -> Derivation:
    (axis,) = found.facts["axes"]
    return replace(found, facts={**found.facts, "axes": (replace(axis, levels=axis.levels[:1]),)})


def _no_axes(found: Derivation) -> Derivation:
    return replace(found, facts={**found.facts, "axes": ()})


def _another_table(found: Derivation) -> Derivation:
    other = (Margin(UNIT, ("b",)), Margin(UNIT, ("b",), {"a": ["1"]}))
    return replace(found, facts={**found.facts, "given": other})


@pytest.mark.parametrize(
    "forge", [_changed_coefficient, _missing_cell, _missing_level, _no_axes, _another_table]
)
def test_a_changed_sum_is_refused(forge: Callable[[Derivation], Derivation]) -> None:
    have, want, verdict = summed()
    assert verdict.derivation is not None
    assert verdict.derivation.rule == "sums"
    asked = (Multiverse.of(*have), Multiverse.of(want), TOY)
    assert check_refinement(*asked, verdict) == ()
    assert check_refinement(*asked, replace(verdict, derivation=forge(verdict.derivation))) != ()


AREAS = Domain(
    name="areas",
    record_types=(
        RecordType(
            name=UNIT,
            variables=(
                Variable(name="a", levels=BITS),
                Variable(name="county", levels=("A", "B")),
                Variable(name="tract", levels=("1", "2", "3")),
            ),
        ),
    ),
    spine=("county", "tract"),
)


def in_areas() -> tuple[Multiverse, Multiverse, Verdict]:
    """County A from county B and the total, whichever tract lies in which county."""
    have = Multiverse.of(TOTAL, Margin(UNIT, (), {"county": ["B"]}), Margin(UNIT, (), {"tract": ["1"]}))
    want = Multiverse.of(Margin(UNIT, (), {"county": ["A"]}))
    return have, want, refines(have, want, AREAS)


def test_a_map_left_out_is_refused() -> None:
    have, want, verdict = in_areas()
    found = verdict.derivation
    assert verdict.answer is Answer.YES
    assert found is not None
    assert check_refinement(have, want, AREAS, verdict) == ()
    assert found.rule == "every map"
    fewer = replace(found, premises=found.premises[1:])
    assert check_refinement(have, want, AREAS, replace(verdict, derivation=fewer)) != ()
    alone = found.premises[0]
    assert check_refinement(have, want, AREAS, replace(verdict, derivation=alone)) != ()
    twice = replace(found, premises=(*found.premises[1:], found.premises[1]))
    assert check_refinement(have, want, AREAS, replace(verdict, derivation=twice)) != ()


def test_one_map_alone_shows_nothing() -> None:
    """Tract 1 is county A in one of the six ways in which three tracts lie in two counties."""
    have, want = Margin(UNIT, (), {"tract": ["1"]}), Margin(UNIT, (), {"county": ["A"]})
    _, _, real = in_areas()
    assert real.derivation is not None
    (axis,) = (a for a in real.derivation.premises[0].facts["axes"] if len(a.variables) > 1)
    only = replace(axis, levels=tuple(("A" if tract == "1" else "B", tract) for tract in ("1", "2", "3")))
    alone = step("sums", given=(have,), wanted=want, axes=(only,), combinations={(): {(0, ()): ONE}})
    asked = (Multiverse.of(have), Multiverse.of(want), AREAS)
    assert refines(*asked).answer is Answer.UNKNOWN
    assert check_refinement(*asked, Verdict.yes("forged", alone)) != ()
    assert check_refinement(*asked, Verdict.yes("forged", step("every map", alone))) != ()


def test_a_constraint_that_the_pair_may_break_is_refused() -> None:
    from stirred.spec import Constraint

    tied = domain("a", "b", "c", constraints=(Constraint(words="b is at most a", variables=("a", "b")),))
    broken = Witness(data("000", "110", names="abc"), data("010", "100", names="abc"))
    fine = Witness(data("000", names="abc"), data("001", names="abc"))
    first, second = spec(2, on=tied), spec(1, on=tied)
    assert check_implication(first, second, no(broken)) != ()
    assert check_implication(first, second, no(fine)) == ()


# --- real derivations changed at random: refused, or true all the same

SMALL = Small.of({"a": "01", "b": "01"})
LIBRARY = Library(SMALL)


@lru_cache(maxsize=1)
def questions() -> tuple[tuple[Promise, Promise, Verdict], ...]:
    """Real verdicts of many kinds."""
    kept = [
        frozenset[Table](),
        frozenset({Table()}),
        frozenset({Table(("a",)), Table(("b",))}),
        frozenset({Table(("b",), (("a", ("0",)),))}),
        frozenset({Table(("a", "b"))}),
        frozenset({Table(("b",)), Table(("b",), (("a", ("1",)),))}),
    ]
    flavors = [
        ("ham", "pure", "1", (0, 1)),
        ("ham", "pure", "2", (0, 1)),
        ("sym", "pure", "1", (0, 1)),
        ("ham", "zcdp", "1", (0, 1)),
        ("ham", "approximate", "1", (1, 10)),
        ("ham neighbours", "pure", "1", (0, 1)),
    ]
    every = [Promise(u, *flavor) for u in kept for flavor in flavors]  # type: ignore[arg-type]
    strata = Strata((), ("a",), ("b",))
    every += [
        Promise(kept[2], "ham", "pure", Law("by-size", rate), (0, 1), strata)
        for rate in ((1, 2), (3, 4), (1, 20))
    ]
    asked = [(one, other) for one in every for other in every[::2]]
    found = ((one, other, LIBRARY[one].implies(LIBRARY[other])) for one, other in asked)
    return tuple(entry for entry in found if entry[2].answer is not Answer.UNKNOWN)


def _steps(found: Derivation) -> Iterator[Derivation]:
    yield found
    for premise in found.premises:
        yield from _steps(premise)


@lru_cache(maxsize=1)
def pieces() -> tuple[tuple[Derivation, ...], tuple[str, ...], tuple[Any, ...]]:
    """Steps, rules and facts of all real derivations, to be put where they do not belong."""
    steps = [s for _, _, verdict in questions() if verdict.derivation for s in _steps(verdict.derivation)]
    values: dict[str, Any] = {}
    for one in steps:
        for value in one.facts.values():
            values.setdefault(repr(value), value)
    by_text = {str(one.to_json()): one for one in steps}
    return tuple(by_text.values()), tuple(sorted({one.rule for one in steps})), tuple(values.values())


def _any_data(draw: st.DrawFn) -> DataSet:
    records = draw(st.lists(st.tuples(st.sampled_from(SMALL.records), st.integers(-1, 3)), max_size=4))
    return DataSet.collect(
        (UNIT, tuple(zip(SMALL.names, record, strict=True)), number) for record, number in records
    )


def _mutated(draw: st.DrawFn, found: Derivation) -> Derivation:
    """One change somewhere in the tree."""
    steps, rules, values = pieces()
    if found.premises and draw(st.booleans()):
        place = draw(st.integers(0, len(found.premises) - 1))
        inner = _mutated(draw, found.premises[place])
        return replace(found, premises=(*found.premises[:place], inner, *found.premises[place + 1 :]))
    kinds = (
        ["rule", "graft", "fact"]
        + ["drop"] * bool(found.premises)
        + ["witness"] * (found.witness is not None)
    )
    kind = draw(st.sampled_from(kinds))
    if kind == "rule":
        return replace(found, rule=draw(st.sampled_from(rules)))
    if kind == "graft":
        return draw(st.sampled_from(steps))
    if kind == "drop":
        place = draw(st.integers(0, len(found.premises) - 1))
        return replace(found, premises=(*found.premises[:place], *found.premises[place + 1 :]))
    if kind == "witness":
        return replace(found, witness=Witness(_any_data(draw), _any_data(draw)))
    known = sorted({*found.facts} | {"copies", "least", "factor", "mechanism"})
    name = draw(st.sampled_from(known))
    value = draw(st.sampled_from(values) | st.integers(-2, 9) | st.fractions(0, 4, max_denominator=4))
    return replace(found, facts={**found.facts, name: value})


@st.composite
def forged(draw: st.DrawFn) -> tuple[Promise, Promise, Verdict]:
    """A real verdict with one to three changes in its derivation, perhaps under another question or turned around."""
    first, second, verdict = draw(st.sampled_from(questions()))
    found = verdict.derivation
    assert found is not None
    for _ in range(draw(st.integers(0, 3))):
        found = _mutated(draw, found)
    if draw(st.integers(0, 3)) == 0:
        first, second, _ = draw(st.sampled_from(questions()))
    answer = verdict.answer
    if draw(st.integers(0, 3)) == 0:
        answer = Answer.NO if answer is Answer.YES else Answer.YES
    return first, second, Verdict(answer, "forged", found)


def is_true(first: Promise, second: Promise, verdict: Verdict) -> bool:
    """By brute force: a yes that no pair of data sets breaks, a no that some pair (perhaps its own) does."""
    broken = "broken" in brute(first, second, SMALL)
    if verdict:
        return not broken and LIBRARY[first].implies(LIBRARY[second]).answer is not Answer.NO
    return broken or not witness_fault(first, second, SMALL, verdict.derivation)


PATIENT = settings(
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


@settings(PATIENT, max_examples=500)
@given(forged())
def test_a_changed_derivation_is_refused_or_true(entry: tuple[Promise, Promise, Verdict]) -> None:
    refused_or_true(entry)


@pytest.mark.slow
@settings(PATIENT, max_examples=3000)
@given(forged())
def test_many_changed_derivations_are_refused_or_true(entry: tuple[Promise, Promise, Verdict]) -> None:
    refused_or_true(entry)


def refused_or_true(entry: tuple[Promise, Promise, Verdict]) -> None:
    first, second, verdict = entry
    try:
        problems = check_implication(LIBRARY[first], LIBRARY[second], verdict)
    except (KeyError, IndexError, AttributeError, TypeError, ValueError):
        return  # facts of another kind: `test_malformed_derivations_are_a_problem_and_no_crash` asks for more
    assert problems or is_true(first, second, verdict), f"{LIBRARY[first]}\n{LIBRARY[second]}\n{verdict}"
