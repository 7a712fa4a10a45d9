"""Checking a verdict: its derivation is verified step by step, by code of its own.

Numbers are compared with fifty digits of mpmath and a margin, tables and witnesses by counting. A problem is one sentence;
no problem means that the derivation proves the verdict.
"""

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from stirred.spec.multiverse import Margin, Multiverse
from stirred.spec.neighbours import Neighbours
from stirred.spec.numbers.budget import Budget
from stirred.spec.outputs.divergences import Approximate, Multiplicative, NormalizedRenyi, OutputPremetric
from stirred.spec.premetrics import Hamming, InputPremetric, SymmetricDifference
from stirred.spec.specification import Specification
from stirred.spec.verdict import Answer, Verdict
from stirred.spec.verdicts.checker.budgets import budgets, changes_alone, counts_its_own, fixed_by, inner_of
from stirred.spec.verdicts.checker.numbers import breaks
from stirred.spec.verdicts.checker.tables import Given, determines_all, leaves_open
from stirred.spec.verdicts.derivation import Derivation
from stirred.spec.verdicts.pairs import fault
from stirred.spec.verdicts.witness import DataSet, Witness


def check_implication(first: Specification, second: Specification, verdict: Verdict) -> tuple[str, ...]:
    """The problems of a verdict on whether the first specification implies the second; none where it is proved.

    >>> from stirred.spec import Domain, Specification
    >>> spec = Specification(
    ...     domain=Domain(name="toy"), multiverse=Multiverse.none(), input_premetric=Hamming("household"),
    ...     output_premetric=Multiplicative(), budget=Budget.of(1))
    >>> weaker = spec.within(Budget.of(2))
    >>> check_implication(spec, weaker, spec.implies(weaker)), check_implication(weaker, spec, weaker.implies(spec))
    ((), ())
    """
    if verdict.answer is Answer.UNKNOWN:
        return ()
    if verdict.derivation is None:
        return (f"{verdict.answer.value} without a derivation",)
    step = verdict.derivation
    try:
        found = tuple(_yes(first, second, step) if verdict else _no(first, second, step))
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        return ("the derivation is malformed: a step lacks a premise or a fact that its rule needs",)
    if step.rule not in {"nothing promised", "same"} and first.domain != second.domain:
        return ("the two speak of different domains",)
    return tuple(problem for problem in found if problem)


def check_refinement(
    finer: Multiverse, coarser: Multiverse, domain: Any, verdict: Verdict
) -> tuple[str, ...]:
    """The problems of a verdict on whether the invariants of one multiverse determine those of another."""
    if verdict.answer is Answer.UNKNOWN or (verdict and not coarser.invariants):
        return ()
    if verdict.derivation is None:
        return (f"{verdict.answer.value} without a derivation",)
    check = determines_all if verdict else leaves_open
    try:
        problem = check(verdict.derivation, Given(finer.invariants), tuple(coarser), domain)
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        return ("the derivation is malformed: a step lacks a premise or a fact that its rule needs",)
    return (problem,) if problem else ()


def _yes(first: Specification, second: Specification, step: Derivation) -> Iterator[str]:
    if step.rule == "nothing promised":
        yield "" if not second.budget.is_finite and second.varies is None else "the second promises something"
    elif step.rule == "same":
        yield "" if first == second else "the two are not the same statement"
    elif step.rule == "singletons":
        yield _singletons(second, step.premises[0])
    elif step.rule == "no neighbours":
        yield (
            ""
            if isinstance(second.input_premetric, Neighbours)
            else "the second is not about neighbours only"
        )
        yield changes_alone(second)
    elif step.rule == "void":
        yield _promises_something(second)
    elif step.rule == "implication":
        yield _nested(first, second, step.premises[:-1])
        yield budgets(first, second, step.premises[-1])
    else:
        yield f"there is no rule {step.rule!r}"


def _promises_something(spec: Specification) -> str:
    """Whether δ stays below 1 at some distance that may occur."""
    measure = spec.output_premetric
    if not isinstance(measure, Approximate) or spec.varies is not None:
        return "the second is not an (ε, δ) promise"
    least = 1 if changes_alone(spec) else 2
    broken = breaks(Multiplicative(), Budget.infinite(), Fraction(1), measure, spec.budget, Fraction(least))
    return "the second promises something at the smallest distance" if broken else ""


def _given(spec: Specification) -> Given:
    fixed = fixed_by(spec) if counts_its_own(spec) else frozenset()
    return Given(spec.multiverse.invariants, fixed)


def _singletons(spec: Specification, step: Derivation) -> str:
    kinds = spec.domain.record_types
    if not kinds or not all(kind.variables for kind in kinds):
        return "the domain does not list its variables"
    tables = [Margin(kind.name, kind.names() - spec.domain.identifiers(kind.name)) for kind in kinds]
    totals = {Margin(kind.name) for kind in kinds} if fixed_by(spec) else set()
    given = Given(spec.multiverse.invariants | fixed_by(spec) | totals)
    return determines_all(step, given, tables, spec.domain)


def _nested(first: Specification, second: Specification, steps: tuple[Derivation, ...]) -> str:
    if not first.multiverse.invariants:
        return ""
    faults = [determines_all(step, _given(second), first.multiverse, first.domain) for step in steps]
    return (
        ""
        if any(not f for f in faults)
        else "; ".join(faults) or "nothing shows that the universes are nested"
    )


def _no(first: Specification, second: Specification, step: Derivation) -> Iterator[str]:
    if step.rule == "realised universe":
        yield _refuted_where_taken(first, second)
        return
    if step.rule != "mechanism" or step.witness is None:
        yield f"{step.rule!r} shows no pair of data sets"
        return
    copies = int(step.facts.get("copies", 1))
    if copies < 1:
        yield "a number of records is not positive"
        return
    pair = _repeated(step.witness, copies)
    if isinstance(second.input_premetric, Neighbours) and _distance(pair, second.input_premetric) != 1:
        yield "the two data sets are not neighbours"
        return
    kinds = {kind for data in (pair.first, pair.second) for kind, _, _ in data.rows}
    even = {Margin(kind) for kind in kinds} if fixed_by(second) else set()
    kept = tuple(second.multiverse.invariants | even)
    mechanism, premetric = step.facts["mechanism"], second.output_premetric
    limit = _at(second, pair)
    if limit is None or not limit.is_finite:
        yield "the second budget is not finite there"
        return
    if mechanism == "publish":
        let_out = first.multiverse.invariants | fixed_by(first)
        faults = [fault(second.domain, kept, invariant, pair) for invariant in let_out]
        yield "" if any(not f for f in faults) else "; ".join(faults) or "the first publishes nothing exactly"
        distance = _distance(pair, second.input_premetric)
        yield _void(premetric, limit, distance)
        return
    yield fault(second.domain, kept, None, pair)
    part = step.facts.get("part")
    if part is not None or (len(first.parts) > 1 and mechanism in {"gaussian", "reveal"}):
        yield _by_part(first, second, pair, limit, part)
        return
    mine, theirs = _distance(pair, first.input_premetric), _distance(pair, second.input_premetric)
    budget = _at(first, pair)
    if budget is None or (budget.is_zero and "reveal" not in mechanism):
        yield "the first allows nothing there"
    elif mechanism in {"gaussian", "reveal"} and isinstance(premetric, Multiplicative | NormalizedRenyi):
        same = mechanism == "gaussian" and isinstance(premetric, NormalizedRenyi)
        if same and not (mine and theirs and budget * mine > limit * theirs):
            yield "the first budget is not larger there"
        delta = getattr(first.output_premetric, "delta", 0)
        if mechanism == "reveal" and not delta:
            yield "the first has no δ"
        if mechanism == "gaussian" and not isinstance(first.output_premetric, NormalizedRenyi):
            yield "a Gaussian does not keep the first"
    elif mine is None or theirs is None:
        yield "the distance of the pair is not known"
    else:
        yield (
            ""
            if breaks(first.output_premetric, budget, mine, premetric, limit, theirs)
            else ("the mechanism does not break the second")
        )


def _by_part(
    first: Specification, second: Specification, pair: Witness, limit: Budget, place: int | None
) -> str:
    """One part of a composed promise refutes alone."""
    for part in first.parts if place is None else (first.parts[place],):
        mine, theirs = _distance(pair, part.input_premetric), _distance(pair, second.input_premetric)
        if isinstance(part.output_premetric, NormalizedRenyi) and isinstance(
            second.output_premetric, Multiplicative
        ):
            if not part.budget.is_zero:
                return ""
        elif (
            mine is not None
            and theirs is not None
            and breaks(part.output_premetric, part.budget, mine, second.output_premetric, limit, theirs)
        ):
            return ""
    return "no part alone refutes it"


def _refuted_where_taken(first: Specification, second: Specification) -> str:
    mine, theirs = first.varies, second.varies
    functions = [function for function in (mine, theirs) if function is not None]
    if (first.input_premetric, first.output_premetric) != (second.input_premetric, second.output_premetric):
        return "the two are in different units"
    if first.multiverse != second.multiverse or not functions:
        return "the two are not in one universe"
    if len(functions) == 2 and (not functions[0].realised or functions[0].realised != functions[1].realised):
        return "the two were taken at different universes"
    if any((function.b or 0) < 2 for function in functions) or not first.budget > second.budget:
        return "the realised universe does not refute it"
    return ""


def _void(premetric: OutputPremetric, limit: Budget, distance: Fraction | None) -> str:
    """Whether telling the two apart with certainty breaks the second promise."""
    if isinstance(premetric, Multiplicative | NormalizedRenyi):
        return ""
    if isinstance(premetric, Approximate) and distance is not None:
        broken = breaks(Multiplicative(), Budget.infinite(), Fraction(1), premetric, limit, distance)
        return "" if broken else "at that distance the second promises nothing"
    return "" if premetric.infinite_at_total_variation_one else f"{premetric} may allow it"


def _repeated(pair: Witness, copies: int) -> Witness:
    def times(data: DataSet) -> DataSet:
        return DataSet(tuple((kind, values, n * copies) for kind, values, n in data.rows))

    return pair if copies == 1 else Witness(times(pair.first), times(pair.second))


def _distance(pair: Witness, premetric: InputPremetric) -> Fraction | None:
    inner = inner_of(premetric)
    if isinstance(inner, Hamming):
        half = pair.distance(inner.record_type)
        return None if half is None or not half else Fraction(half)
    if isinstance(inner, SymmetricDifference):
        return Fraction(pair.difference(inner.record_type)) or None
    return None


def _at(spec: Specification, pair: Witness) -> Budget | None:
    """The budget of the universe the pair lies in."""
    if spec.varies is None:
        return spec.budget
    law, statistic = spec.varies.law, spec.varies.statistic
    if law is None or statistic is None:
        return None
    sizes: dict[tuple[str, ...], list[Any]] = {}
    for values, number in pair.first.records(statistic.record_type):
        if statistic.where and any(values.get(n) not in v for n, v in statistic.where.conditions):
            continue
        if any(all(values.get(n) in v for n, v in r.conditions) for r in statistic.without):
            continue
        entry = sizes.setdefault(tuple(values.get(n, "") for n in statistic.match), [0, set(), set()])
        entry[0] += number
        entry[1].add(tuple(values.get(n, "") for n in statistic.hold))
        entry[2].add(tuple(values.get(n, "") for n in statistic.swap))
    b = max((n for n, held, moved in sizes.values() if len(held) > 1 and len(moved) > 1), default=0)
    return None if b == spec.varies.b else law.at(b)
