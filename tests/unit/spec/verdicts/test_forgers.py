"""Wrong derivations of every rule, some hundred each (thousands in the slow run), and a checker that lacks a condition.

What is wrong is decided by construction or by rank (tests/oracles/forgers.py). Each side condition of the checker is then
taken out in turn (tests/oracles/weakened.py): the forgers must get a wrong derivation past every such checker.
"""

import ast
import inspect
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import zip_longest
from typing import Any

import mpmath
import pytest

from oracles.forgers import (
    FORGERS,
    FREE,
    HAM,
    SYM,
    A,
    B,
    Forgery,
    Implication,
    forgeries,
    nested,
    spec,
    step,
    yes,
)
from oracles.weakened import MODULES, Weakened, weakened
from stirred.spec import (
    Approximate,
    Budget,
    Domain,
    Hamming,
    Margin,
    Multiverse,
    RecordType,
    Specification,
    Variable,
    Verdict,
    compare,
    compose,
)
from stirred.spec.verdict import DataSet, Derivation, Witness
from stirred.spec.verdicts.checker.check import check_implication, check_refinement

SLOW_ONES = {"laws": 40}  # laws are compared at sixty sizes: fewer of them in the quick run


def problems(forgery: Forgery) -> tuple[str, ...]:
    if isinstance(forgery, Implication):
        return check_implication(forgery.first, forgery.second, forgery.verdict)
    return check_refinement(forgery.finer, forgery.coarser, forgery.domain, forgery.verdict)


def accepted(rule: str, number: int, seed: int) -> Counter[str]:
    return Counter(name for name, forgery in forgeries(rule, number, seed) if problems(forgery) == ())


@pytest.mark.parametrize("rule", FORGERS)
def test_wrong_derivations_are_refused(rule: str) -> None:
    tried = SLOW_ONES.get(rule, 200)
    found = accepted(rule, tried, seed=1)
    print(f"\n{rule}: {tried} tried, {found.total()} accepted")
    assert not found, found


@pytest.mark.slow
@pytest.mark.parametrize("rule", FORGERS)
def test_thousands_of_wrong_derivations_are_refused(rule: str) -> None:
    tried = 3000
    found = accepted(rule, tried, seed=2)
    print(f"\n{rule}: {tried} tried, {found.total()} accepted")
    assert not found, found


# --- a checker that lacks a side condition

MALFORMED_ANYWAY = "without it the next line fails, and what fails is refused"
STRICTER = "without it more is refused, not less"
TWICE = "another condition refuses the same"
TIME = "it bounds the time of a check, not what is proved"
EQUIVALENT: dict[str, str] = {
    "check.check_implication: step is None": TWICE,
    "check.check_refinement: step is None": TWICE,
    "check._check_no: step.witness is None": MALFORMED_ANYWAY,
    "check._check_no: copies is None": MALFORMED_ANYWAY,
    "check._check_no: not 0 < copies <= MAX_COPIES": TWICE,
    "check._check_no: limit is None": MALFORMED_ANYWAY,
    "check._check_no: budget is None": MALFORMED_ANYWAY,
    "check._check_no: mine is None": MALFORMED_ANYWAY,
    "check._check_no: theirs is None": MALFORMED_ANYWAY,
    "check._check_by_part: place is None": MALFORMED_ANYWAY,
    "check._check_by_part: not -1 <= place < len(first.parts)": MALFORMED_ANYWAY,
    "check._find_distance: not isinstance(inner, Hamming | SymmetricDifference)": MALFORMED_ANYWAY,
    "check._find_distance: inner.copies != 1": "a pair that refutes at more records refutes at fewer too",
    "check._may_move: not any((domain.has(kind) for kind in ('household', 'housing unit', 'group quarters')))": STRICTER,
    "check._find_budget_at: law is None": MALFORMED_ANYWAY,
    "check._find_budget_at: statistic is None": MALFORMED_ANYWAY,
    "budgets.check_changes_alone: not isinstance(inner, Hamming | SymmetricDifference)": MALFORMED_ANYWAY,
    "budgets.check_changes_alone: prod((len(options) for options in levels)) > MAX_RECORD_KINDS": TIME,
    "budgets.check_changes_alone: rest > MAX_RECORD_KINDS": TIME,
    "budgets._is_one_data_set: statistic is None": MALFORMED_ANYWAY,
    "budgets.distance_factor: factor is None": MALFORMED_ANYWAY,
    "budgets._unit_factor: not isinstance(one, Hamming | SymmetricDifference)": MALFORMED_ANYWAY,
    "budgets._unit_factor: not isinstance(other, Hamming | SymmetricDifference)": MALFORMED_ANYWAY,
    "budgets._connects: not isinstance(inner, Hamming | SymmetricDifference)": MALFORMED_ANYWAY,
    "budgets._check_parts: found is None": MALFORMED_ANYWAY,
    "budgets._check_laws: mine.statistic is None": MALFORMED_ANYWAY,
    "budgets._check_laws: theirs.statistic is None": MALFORMED_ANYWAY,
    "budgets._check_laws: mine.statistic != theirs.statistic and (not (_grows(mine.law) and _grows(theirs.law)))": (
        "no law that can be written falls with b"
    ),
    "budgets._check_realised: theirs.b is None": MALFORMED_ANYWAY,
    "budgets._check_realised: mine.b is None": MALFORMED_ANYWAY,
    "tables.check_determines: wanted != step.facts.get('wanted', wanted) and step.rule not in "
    "{'finite distance', 'every map'}": "every rule shows what is asked, whatever the step says it is about",
    "tables.check_leaves_open: len(kinds) != 1": MALFORMED_ANYWAY,
    "tables._open_pair: step.witness is None": MALFORMED_ANYWAY,
    "tables._another_map: step.witness is None": TWICE,
    "tables._read_off: not isinstance(wanted, Margin)": MALFORMED_ANYWAY,
    "tables.check_readable: needed is None": MALFORMED_ANYWAY,
    "tables._size: not isinstance(wanted, Margin)": MALFORMED_ANYWAY,
    "tables._size: not domain.size_variable": "no table has a variable without a name",
    "tables._homes: not isinstance(wanted, Margin)": MALFORMED_ANYWAY,
    "tables._homes: not domain.size_variable": "no table has a variable without a name",
    "tables._sums: not isinstance(wanted, Margin)": MALFORMED_ANYWAY,
    "tables._sums: margins is None": MALFORMED_ANYWAY,
    "tables._sums: axes is None": MALFORMED_ANYWAY,
    "tables._sums: combinations is None": MALFORMED_ANYWAY,
    "tables._sums: len(on_axes) < len(named)": "each axis lists all levels, so nothing is hidden",
    "tables._sums: terms * prod((len(levels) for _, levels in axes)) > MAX_WEIGHED_TERMS": TIME,
    "tables._sums: not {*margin.conditions()} <= on_axes": MALFORMED_ANYWAY,
    "tables._missing_maps: not ways": MALFORMED_ANYWAY,
    "tables._missing_maps: not ways[0]": "a step without joint levels shows the table by itself",
    "tables._missing_maps: any(({*way} != {*ways[0]} for way in ways))": (
        "kept to be safe: no wrong derivation is known that needs it"
    ),
    "budgets.at_most: not isinstance(theirs, Approximate)": MALFORMED_ANYWAY,
    "budgets.at_most: not read_whole_number": "a specification refuses (ε, δ) under distances that are not whole",
    "budgets.at_most: found is not None": MALFORMED_ANYWAY,
    "budgets.breaks: not limit.is_finite": TWICE,
    "budgets.breaks: not is_known(first)": TWICE,
    "budgets.breaks: not is_known(second)": TWICE,
    "budgets.breaks: allowed >= 1": "no divergence exceeds 1",
    "budgets.quadratics_ordered: not first.is_finite": TWICE,
    "budgets.quadratics_ordered: top > max(limit, value(theirs, 61))": TWICE,
    "budgets.quadratics_ordered: gap[0] < 0": TIME,
    "budgets.quadratics_ordered: b > 1 << 200": TIME,
}


TRIED = 300  # forgeries of each rule
_forged: list[tuple[str, Forgery]] = []
_to_forge = (
    forgery
    for row in zip_longest(*(forgeries(rule, TRIED) for rule in FORGERS))
    for forgery in row
    if forgery is not None
)


def in_turn() -> Iterator[tuple[str, Forgery]]:
    """The forgeries of all rules, one of each rule after the other; each is made once, when it is first tried."""
    yield from _forged
    for forgery in _to_forge:
        _forged.append(forgery)
        yield forgery


def deceived(checker: Weakened) -> str:
    """The forger that gets something past a checker; empty where none does."""
    with checker.put_in_place():
        for name, forgery in in_turn():
            if problems(forgery) == ():
                return name
    return ""


@pytest.mark.slow
def test_every_side_condition_is_needed() -> None:
    checkers = list(weakened())
    names = [checker.name for checker in checkers]
    assert {*EQUIVALENT} <= {*names}, {*EQUIVALENT} - {*names}
    missed = [c.name for c in checkers if c.name not in EQUIVALENT and not deceived(c)]
    print(f"\n{len(checkers)} conditions, {len(EQUIVALENT)} that change nothing, {len(missed)} not caught")
    assert not missed, missed


@pytest.mark.parametrize("place", range(4))
def test_some_side_conditions_are_needed(place: int) -> None:
    """Some checkers that lack a condition, chosen anew with each change of the checker: a quick look."""
    checkers = [c for c in weakened() if c.name not in EQUIVALENT][place::4][::6]
    assert not [checker.name for checker in checkers if not deceived(checker)]


# --- derivations that are none


def shared(depth: int) -> Derivation:
    """Two premises each, the same two: 2^depth steps for one who walks them all."""
    found = step("kept", wanted=A)
    for _ in range(depth):
        found = step("all of", found, found)
    return found


def deep(depth: int) -> Derivation:
    found = step("kept", wanted=A)
    for _ in range(depth):
        found = step("all of", found)
    return found


class Proud(Derivation):
    """A derivation that says of itself what it likes."""

    __slots__ = ()


ABSURD: dict[str, Any] = {
    "deep": deep(5_000),
    "shared": shared(60),
    "no derivation": "because",
    "a number": 7,
    "of another class": Proud(rule="all of", claim=""),
    "no rule": Derivation(rule=None, claim=""),  # type: ignore[arg-type]
    "endless premises": Derivation(rule="all of", claim="", premises=iter(int, 1)),  # type: ignore[arg-type]
    "premises that are texts": Derivation(rule="all of", claim="", premises=("kept",)),  # type: ignore[arg-type]
    "facts that are none": Derivation(rule="kept", claim="", facts=None),  # type: ignore[arg-type]
    "many levels": step(
        "sums",
        given=(A,),
        wanted=B,
        axes=tuple(
            type("Axis", (), {"variables": (f"v{i}",), "levels": [(str(j),) for j in range(99)]})
            for i in range(9)
        ),
        combinations={},
    ),
    "no axes": step("sums", given=(A,), wanted=B, axes=7, combinations={}),
    "no combinations": step("sums", given=(A,), wanted=B, axes=(), combinations=None),
    "given what is none": step("read off", given={}, wanted=B),
}


@pytest.mark.parametrize("name", ABSURD)
def test_what_is_no_derivation_is_a_problem_and_no_crash(name: str) -> None:
    found = ABSURD[name]
    assert check_refinement(Multiverse.of(A), Multiverse.of(B), FREE, Verdict.yes("forged", found)) != ()
    assert check_refinement(Multiverse.of(A), Multiverse.of(B), FREE, Verdict.no("forged", found)) != ()
    for verdict in (Verdict.yes("forged", found), Verdict.no("forged", found)):
        assert check_implication(spec(2), spec(1), verdict) != ()
    if isinstance(found, Derivation):
        assert check_implication(spec(2, A), spec(1, B), yes(found, step("budget"))) != ()


def test_the_checker_uses_no_code_of_the_search() -> None:
    """It imports definitions only, and asks no specification or multiverse for an answer."""
    search = (
        "refinement",
        "invariants.",
        "transfer",
        "units",
        "accounting",
        "implication",
        "examples",
        "reach",
    )
    for module in MODULES:
        tree = ast.parse(inspect.getsource(module))
        names = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        assert not [name for name in names if any(part in name for part in search)], module
        assert not [name for name in names if name.endswith(("verdicts.budgets", "verdicts.functions"))], (
            module
        )
        asked = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        assert not asked & {"refines", "implies", "constant", "per", "never_above"}, module


# --- the δ of parts in another unit


def composed_in_two_units() -> Specification:
    toy = Domain(name="toy", record_types=(RecordType(name="household", variables=(Variable(name="a"),)),))
    one = spec(1, on=toy, unit=SYM, output=Approximate("1/1000"))
    return compose([one, one])


def test_the_delta_of_parts_grows_with_the_unit() -> None:
    """At a factor of 2 it is δ(1 + e^ε): together 2(1 + e)/1000 = 0.00743656…, not 2/1000."""
    both = composed_in_two_units()
    truth = mpmath.mpf(2) / 1000 * (1 + mpmath.e)
    restated = both.per(Hamming("household"))
    assert isinstance(restated.output_premetric, Approximate)
    delta = restated.output_premetric.delta
    found = mpmath.mpf(delta.numerator) / delta.denominator
    assert truth <= found < truth * (1 + mpmath.mpf(10) ** -9)
    assert restated.budget == Budget.of(4)
    proof = yes(nested(), step("parts"))
    for limit, holds in (("0.002", False), ("0.007436", False), ("0.007437", True)):
        second = replace(
            both, input_premetric=HAM, output_premetric=Approximate(limit), budget=Budget.of(4), parts=()
        )
        assert bool(both.implies(second)) is holds
        assert (check_implication(both, second, proof) == ()) is holds


# --- what a distance fixes


def test_persons_come_and_go_under_a_distance_of_households() -> None:
    """Women are counted, men are not: x has one man in its household, x' two, and households agree."""
    variables = (Variable(name="sex", levels=("f", "m")),)
    toy = Domain(
        name="toy",
        record_types=(
            RecordType(name="household", variables=(Variable(name="block", levels=("1", "2")),)),
            RecordType(name="person", variables=variables),
        ),
    )
    kept = (Margin("household", ("block",)), Margin("person", (), {"sex": ["f"]}))
    large, none = (spec(value, *kept, on=toy) for value in (5, 0))
    verdict = large.implies(none)
    assert not verdict
    assert check_implication(large, none, verdict) == ()
    assert compare(large, none).overall.relation.value != "equal"
    # all tables exact: who lives with whom is still free
    full = [spec(value, kept[0], Margin("person", ("sex",)), on=toy) for value in (5, 0)]
    assert not full[0].implies(full[1])
    # one record type alone, and its distance: a single data set
    alone = replace(toy, record_types=toy.record_types[1:])
    one = [spec(value, kept[1], on=alone, unit=Hamming("person")) for value in (5, 0)]
    assert one[0].implies(one[1]).derivation.rule == "singletons"  # type: ignore[union-attr]
    added = [replace(s, input_premetric=Hamming("person")) for s in one]
    assert added[0].implies(added[1])


def test_a_pair_at_the_same_unknown_distance_refutes() -> None:
    """Whatever the distance of a pair of persons is per household, a larger budget allows more there."""
    toy = Domain(
        name="toy",
        record_types=(
            RecordType(name="household", variables=(Variable(name="block"),)),
            RecordType(
                name="person", variables=(Variable(name="block"), Variable(name="sex", levels=("f", "m")))
            ),
        ),
        spine=("block",),
    )
    kept = (Margin("household", ("block",)),)
    large, small = (spec(value, *kept, on=toy) for value in (5, 1))
    verdict = large.implies(small)
    assert verdict.answer.value == "no"
    assert check_implication(large, small, verdict) == ()
    people = [DataSet.of("person", [({"block": "1", "sex": "m"}, n)]) for n in (1, 2)]
    forged = Verdict.no(
        "", step("mechanism", witness=Witness(people[0], people[1]), mechanism="randomised response")
    )
    assert check_implication(large, small, forged) == ()
    assert check_implication(small, large, forged) != ()
