"""Checking a verdict: its derivation is verified step by step, by code that shares nothing with what found it.

Numbers are compared with fifty digits of mpmath and a margin, tables and witnesses by counting. A problem is one sentence;
no problem means that the derivation proves the verdict.
"""

from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from stirred.spec.budget import Budget
from stirred.spec.divergences import Approximate, Multiplicative, NormalizedRenyi, OutputPremetric
from stirred.spec.multiverse import Margin, Multiverse
from stirred.spec.neighbours import Neighbours
from stirred.spec.premetrics import Hamming, InputPremetric, SymmetricDifference
from stirred.spec.verdict import Answer, Verdict
from stirred.spec.verdicts.check_numbers import at_most, breaks, quadratics_ordered
from stirred.spec.verdicts.check_tables import determines_all, leaves_open
from stirred.spec.verdicts.derivation import Derivation
from stirred.spec.verdicts.pairs import fault
from stirred.spec.verdicts.witness import DataSet, Pair

if TYPE_CHECKING:
    from stirred.spec.specification import Specification


def check_implication(first: "Specification", second: "Specification", verdict: Verdict) -> tuple[str, ...]:
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
    found = _yes(first, second, step) if verdict else _no(first, second, step)
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
    problem = check(verdict.derivation, tuple(finer), tuple(coarser), domain)
    return (problem,) if problem else ()


def _yes(first: "Specification", second: "Specification", step: Derivation) -> Iterator[str]:
    if step.rule == "nothing promised":
        yield "" if not second.budget.is_finite and second.varies is None else "the second promises something"
    elif step.rule == "same":
        yield "" if first == second else "the two are not the same statement"
    elif step.rule == "singletons":
        yield _singletons(second, step.premises[0])
    elif step.rule == "implication":
        yield _nested(first, second, step.premises)
        yield _budgets(first, second, step.premises[-1])
    else:
        yield f"there is no rule {step.rule!r}"


def _fixed(spec: "Specification") -> frozenset[Any]:
    """What any two data sets at finite distance have in common by themselves."""
    premetric = _inner(spec.input_premetric)
    return frozenset({Margin(premetric.record_type)}) if isinstance(premetric, Hamming) else frozenset()


def _inner(premetric: InputPremetric) -> InputPremetric:
    return premetric.inner if isinstance(premetric, Neighbours) else premetric


def _singletons(spec: "Specification", step: Derivation) -> str:
    kinds = spec.domain.record_types
    if not kinds or not all(kind.variables for kind in kinds):
        return "the domain does not list its variables"
    tables = [Margin(kind.name, kind.names() - spec.domain.identifiers(kind.name)) for kind in kinds]
    totals = {Margin(kind.name) for kind in kinds} if _fixed(spec) else set()
    given = spec.multiverse.invariants | _fixed(spec) | totals
    return determines_all(step, given, tables, spec.domain)


def _nested(first: "Specification", second: "Specification", steps: tuple[Derivation, ...]) -> str:
    if not first.multiverse.invariants:
        return ""
    given = second.multiverse.invariants
    faults = []
    for step in steps[:-1]:
        if step.rule == "finite distance" and not {*step.facts["fixed"]} <= _fixed(second):
            return "the second distance does not fix these numbers"
        faults.append(determines_all(step, given, first.multiverse, first.domain))
    return (
        ""
        if any(not f for f in faults)
        else "; ".join(faults) or "nothing shows that the universes are nested"
    )


def _budgets(first: "Specification", second: "Specification", step: Derivation) -> str:
    if step.rule == "budget":
        factor = _factor(first, second)
        if factor is None:
            factor = _unit_factor(first.input_premetric, second.input_premetric)
        if factor is None and isinstance(_inner(first.input_premetric), Hamming | SymmetricDifference):
            return f"no constant is known from {first.input_premetric} to {second.input_premetric}"
        if first.varies is not None and first.varies.law is not None:
            return "the first budget has no bound over all universes"
        mine = first.budget if first.varies is None else max(first.budget, first.varies.most)
        theirs = second.budget if second.varies is None else _smallest(second)
        least = int(step.facts.get("least", 1))
        return (
            ""
            if at_most(
                first.output_premetric, mine, factor or Fraction(1), second.output_premetric, theirs, least
            )
            else ("the first budget is not within the second")
        )
    if step.rule == "parts":
        return _parts(first, second)
    if step.rule == "laws":
        return _laws(first, second)
    return f"{step.rule!r} says nothing about budgets"


def _parts(first: "Specification", second: "Specification") -> str:
    """Several parts, each in its own unit: their budgets times the constants between the units, composed."""
    losses: list[Budget] = []
    for part in first.statements:
        if part.measures and determines_freely(part, second):
            continue
        factor = _unit_factor(part.input_premetric, second.input_premetric)
        if factor is None:
            return f"no constant is known from {part.input_premetric} to {second.input_premetric}"
        budget = part.budget * factor
        if isinstance(part.output_premetric, Multiplicative) and isinstance(
            second.output_premetric, NormalizedRenyi
        ):
            budget = budget * Budget.sqrt("1/2")
        elif type(part.output_premetric) is not type(second.output_premetric):
            return f"no conversion from {part.output_premetric} to {second.output_premetric} holds at every distance"
        losses.append(budget)
    squares = isinstance(second.output_premetric, NormalizedRenyi)
    total = Budget.total(loss.squared() for loss in losses) if squares else Budget.total(losses)
    limit = second.budget.squared() if squares else second.budget
    deltas = sum(
        (p.output_premetric.delta for p in first.statements if isinstance(p.output_premetric, Approximate)),
        Fraction(0),
    )
    if isinstance(second.output_premetric, Approximate) and deltas > second.output_premetric.delta:
        return "the δ of the parts add up to more"
    return "" if total <= limit else "the parts together have more than the second budget"


def determines_freely(part: Any, second: "Specification") -> bool:
    """Whether the second's invariants fix all that a part is computed from."""
    return bool(second.multiverse.refines(Multiverse.of(*part.measures), second.domain))


def _unit_factor(mine: InputPremetric, theirs: InputPremetric) -> Fraction | None:
    """d_mine ≤ factor · d_theirs, from a table of its own."""
    homes = {"household", "housing unit"}
    one, other = _inner(mine), _inner(theirs)
    if not isinstance(one, Hamming | SymmetricDifference) or not isinstance(
        other, Hamming | SymmetricDifference
    ):
        return None
    if one.copies != 1 or other.copies != 1:
        return None
    kinds = (
        Fraction(2) if isinstance(one, SymmetricDifference) and isinstance(other, Hamming) else Fraction(1)
    )
    if isinstance(one, Hamming) and isinstance(other, SymmetricDifference):
        return None
    if one.record_type == other.record_type or {one.record_type, other.record_type} <= homes:
        return kinds * (2 if one.link == "kept" and other.link == "free" else 1)
    if one.record_type in homes and other.record_type == "person" and isinstance(other, Hamming):
        return kinds * (2 if other.link == "free" else 1)
    return None


def _smallest(spec: "Specification") -> Budget:
    assert spec.varies is not None
    law = spec.varies.law
    return min(spec.budget, spec.varies.least) if law is None else min(spec.budget, law.at(2), law.at(3))


def _factor(first: "Specification", second: "Specification") -> Fraction | None:
    """The exact ratio of the two distances of one record type."""
    mine, theirs = _inner(first.input_premetric), _inner(second.input_premetric)
    if mine == theirs:
        return Fraction(1)
    if isinstance(mine, Hamming) and theirs == SymmetricDifference(mine.record_type):
        return Fraction(1, 2)
    if isinstance(mine, SymmetricDifference) and theirs == Hamming(mine.record_type):
        return Fraction(2)
    return None


def _laws(first: "Specification", second: "Specification") -> str:
    """Two budget functions at every b: one by one up to 60, beyond as quadratics in b."""
    mine, theirs = first.varies, second.varies
    for b in range(2, 62):
        if _law_at(first, b) > _law_at(second, b):
            return f"at b = {b} the first budget is larger"
    if mine is not None and mine.law is None and theirs is not None and theirs.law is None:
        return "" if mine.most <= theirs.least else "the bounds of the two do not decide"
    if theirs is None or theirs.law is None:
        bounded = mine is None or mine.law is None or not _law_at(second, 2).is_finite
        return "" if bounded else "the first grows with b, the second does not"
    if mine is None or mine.law is None:
        return ""  # a constant against a law that does not fall
    if mine.statistic != theirs.statistic and not _finer(mine.statistic, theirs.statistic):
        return "the two are not functions of the same b"
    return "" if quadratics_ordered(mine.law, theirs.law) else "for large b the first budget may be larger"


def _finer(mine: Any, theirs: Any) -> bool:
    """Whether every stratum of the first lies in one of the second, which has at least its types."""
    if mine is None or theirs is None or (mine.where, mine.without) != (theirs.where, theirs.without):
        return False
    return (
        {*mine.match} >= {*theirs.match} and {*mine.hold} <= {*theirs.hold} and {*mine.swap} <= {*theirs.swap}
    )


def _law_at(spec: "Specification", b: int) -> Budget:
    """The budget at a universe with this b; without a law the bound that is on the safe side is not known here."""
    function = spec.varies
    if function is None:
        return spec.budget
    return spec.budget if function.law is None else function.law.at(b)


def _no(first: "Specification", second: "Specification", step: Derivation) -> Iterator[str]:
    if step.rule == "realised universe":
        b = step.facts["b"]
        yield "" if b >= 2 and first.budget > second.budget else "the realised universe does not refute it"
        return
    if step.rule != "mechanism" or step.witness is None:
        yield f"{step.rule!r} shows no pair of data sets"
        return
    pair = _repeated(step.witness, int(step.facts.get("copies", 1)))
    kinds = {kind for data in (pair.first, pair.second) for kind, _, _ in data.rows}
    even = {Margin(kind) for kind in kinds} if _fixed(second) else set()
    kept = tuple(second.multiverse.invariants | even)
    mechanism, premetric = step.facts["mechanism"], second.output_premetric
    limit = _at(second, pair)
    if limit is None or not limit.is_finite:
        yield "the second budget is not finite there"
        return
    if mechanism == "publish":
        let_out = first.multiverse.invariants | _fixed(first)
        faults = [fault(second.domain, kept, invariant, pair) for invariant in let_out]
        yield "" if any(not f for f in faults) else "; ".join(faults)
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
    if budget is None or (budget.is_zero and mechanism != "reveal"):
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
    first: "Specification", second: "Specification", pair: Pair, limit: Budget, place: int | None
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


def _void(premetric: OutputPremetric, limit: Budget, distance: Fraction | None) -> str:
    """Whether telling the two apart with certainty breaks the second promise."""
    if isinstance(premetric, Multiplicative | NormalizedRenyi):
        return ""
    if isinstance(premetric, Approximate) and distance is not None:
        broken = breaks(Multiplicative(), Budget.infinite(), Fraction(1), premetric, limit, distance)
        return "" if broken else "at that distance the second promises nothing"
    return "" if premetric.infinite_at_total_variation_one else f"{premetric} may allow it"


def _repeated(pair: Pair, copies: int) -> Pair:
    def times(data: DataSet) -> DataSet:
        return DataSet(tuple((kind, values, n * copies) for kind, values, n in data.rows))

    return pair if copies == 1 else Pair(times(pair.first), times(pair.second))


def _distance(pair: Pair, premetric: InputPremetric) -> Fraction | None:
    inner = _inner(premetric)
    if isinstance(inner, Hamming):
        half = pair.distance(inner.record_type)
        return None if half is None or not half else Fraction(half)
    if isinstance(inner, SymmetricDifference):
        return Fraction(pair.difference(inner.record_type)) or None
    return None


def _at(spec: "Specification", pair: Pair) -> Budget | None:
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
