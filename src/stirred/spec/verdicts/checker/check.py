"""Checking a verdict: its derivation is verified step by step, by code of its own.

Numbers are compared with fifty digits of mpmath and a margin, tables and witnesses by counting. A problem is one sentence;
no problem means that the derivation proves the verdict.

What it takes for granted: the two specifications say what they mean (budgets of parts, laws of b, evidence); the domain
lists its levels, dependencies and constraints truly; distances, divergences and budgets are what their classes define; and
exact numbers are added and compared rightly. It shares these definitions with the search, and no rule.
"""

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

from stirred.spec.domain import Domain
from stirred.spec.multiverse import Margin, Multiverse
from stirred.spec.neighbours import Neighbours
from stirred.spec.numbers.budget import Budget
from stirred.spec.outputs.divergences import Approximate, Multiplicative, NormalizedRenyi, OutputPremetric
from stirred.spec.premetrics import Hamming, InputPremetric, SymmetricDifference
from stirred.spec.specification import Specification
from stirred.spec.verdict import Answer, Verdict
from stirred.spec.verdicts.checker.budgets import (
    HOMES,
    budgets,
    changes_alone,
    counts_records,
    fixed_by,
    given_by,
    inner_of,
)
from stirred.spec.verdicts.checker.numbers import breaks, known, void_at
from stirred.spec.verdicts.checker.shape import malformed, whole
from stirred.spec.verdicts.checker.tables import Given, determines_all, leaves_open, undecided_map
from stirred.spec.verdicts.derivation import Derivation
from stirred.spec.verdicts.pairs import fault
from stirred.spec.verdicts.witness import DataSet, Witness

MOST_COPIES = 1000  # how often the change of a pair is repeated


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
    step = verdict.derivation
    if step is None:
        return (f"{verdict.answer.value} without a derivation",)

    def check() -> tuple[str, ...]:
        if step.rule not in {"nothing promised", "same"} and first.domain != second.domain:
            return ("the two speak of different domains",)
        return tuple((_yes if verdict else _no)(first, second, step))

    return _problems(step, check)


def check_refinement(
    finer: Multiverse, coarser: Multiverse, domain: Domain, verdict: Verdict
) -> tuple[str, ...]:
    """The problems of a verdict on whether the invariants of one multiverse determine those of another."""
    if verdict.answer is Answer.UNKNOWN or (verdict and not coarser.invariants):
        return ()
    step = verdict.derivation
    if step is None:
        return (f"{verdict.answer.value} without a derivation",)
    rule = determines_all if verdict else leaves_open
    return _problems(step, lambda: (rule(step, Given(finer.invariants), tuple(coarser), domain),))


def _problems(step: Derivation, check: Callable[[], tuple[str, ...]]) -> tuple[str, ...]:
    """The problems that a check finds; facts of another kind than a rule needs are one too."""
    problem = malformed(step)
    if problem:
        return (problem,)
    try:
        return tuple(problem for problem in check() if problem)
    except (
        Exception
    ):  # the facts of a derivation may be anything at all: whatever they lead to, nothing is proved
        return ("the derivation is malformed: a step lacks a premise or a fact that its rule needs",)


def _yes(first: Specification, second: Specification, step: Derivation) -> Iterator[str]:
    if step.rule == "nothing promised":
        yield "" if not second.budget.is_finite and second.varies is None else "the second promises something"
    elif step.rule == "same":
        yield "" if _same(first, second) else "the two are not the same statement"
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


def _same(first: Specification, second: Specification) -> bool:
    """Whether the two are one statement; functions that are known in words only may differ behind equal words."""
    if first is second:
        return True
    functions = [spec.varies for spec in (first, second)]
    told = all(f is None or (f.law is not None and f.statistic is not None and f.realised) for f in functions)
    return told and first == second


def _promises_something(spec: Specification) -> str:
    """Whether δ stays below 1 at some distance that may occur."""
    measure = spec.output_premetric
    if type(measure) is not Approximate or spec.varies is not None:
        return "the second is not an (ε, δ) promise"
    least = 1 if changes_alone(spec) else 2
    return (
        ""
        if void_at(measure, spec.budget, least)
        else "the second promises something at the smallest distance"
    )


def _singletons(spec: Specification, step: Derivation) -> str:
    kinds = spec.domain.record_types
    if not kinds or not all(kind.variables for kind in kinds):
        return "the domain does not list its variables"
    if len(kinds) > 1 and {kind.name for kind in kinds} != {"household", "group quarters"}:
        return "tables do not say which records belong together"
    tables = [Margin(kind.name, kind.names() - spec.domain.identifiers(kind.name)) for kind in kinds]
    return determines_all(step, Given(spec.multiverse.invariants | fixed_by(spec)), tables, spec.domain)


def _nested(first: Specification, second: Specification, steps: tuple[Derivation, ...]) -> str:
    if not first.multiverse.invariants:
        return ""
    faults = [determines_all(step, given_by(second), first.multiverse, first.domain) for step in steps]
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
    copies = whole(step.facts, "copies", 1)
    if copies is None or not 0 < copies <= MOST_COPIES:
        yield "a number of records is not positive"
        return
    pair = _repeated(step.witness, copies)
    if not counts_records(inner_of(second.input_premetric)) or not counts_records(
        inner_of(first.input_premetric)
    ):
        yield "which data sets are at finite distance is not known"
        return
    if undecided_map(pair, second.domain):
        yield "the areas may lie in each other in other ways too"
        return
    near = isinstance(second.input_premetric, Neighbours)
    if near and _distance(pair, second.input_premetric, second.domain) != 1:
        yield "the two data sets are not neighbours"
        return
    kinds = {kind for data in (pair.first, pair.second) for kind, _, _ in data.rows}
    kept = tuple(second.multiverse.invariants | _even(second.input_premetric, kinds))
    mechanism, premetric = step.facts["mechanism"], second.output_premetric
    limit = _at(second, pair)
    if limit is None or not limit.is_finite:
        yield "the second budget is not finite there"
        return
    if mechanism == "publish":
        let_out = first.multiverse.invariants | fixed_by(first)
        faults = [fault(second.domain, kept, invariant, pair) for invariant in let_out]
        yield "" if any(not f for f in faults) else "; ".join(faults) or "the first publishes nothing exactly"
        distance = _distance(pair, second.input_premetric, second.domain)
        yield _void(premetric, limit, distance)
        return
    yield fault(second.domain, kept, None, pair)
    part = whole(step.facts, "part", -1)
    if part != -1 or (len(first.parts) > 1 and mechanism in {"gaussian", "reveal"}):
        yield _by_part(first, second, pair, limit, part)
        return
    if not known(first.output_premetric) or not known(premetric):
        yield "no mechanism is known that uses up the first"
        return
    mine, theirs = (_distance(pair, spec.input_premetric, second.domain) for spec in (first, second))
    if first.input_premetric == second.input_premetric and mine is None and _linear(first, second):
        mine = theirs = Fraction(1)  # whatever the distance is, it is the same for both
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


def _even(premetric: InputPremetric, kinds: set[str]) -> set[Margin]:
    """The numbers of records in which a pair at finite distance agrees; persons more or less alter a home, no number."""
    inner = inner_of(premetric)
    if not isinstance(inner, Hamming):
        return set()
    return {Margin(kind) for kind in kinds if inner.record_type not in HOMES or kind != "person"}


def _linear(first: Specification, second: Specification) -> bool:
    """Whether only the ratio of the two distances matters."""
    measures = {type(spec.output_premetric) for spec in (first, second)}
    return measures in ({Multiplicative}, {NormalizedRenyi})


def _by_part(
    first: Specification, second: Specification, pair: Witness, limit: Budget, place: int | None
) -> str:
    """One part of a composed promise refutes alone."""
    if place is None or not -1 <= place < len(first.parts):
        return "there is no such part"
    theirs = _distance(pair, second.input_premetric, second.domain)
    for part in first.parts if place == -1 else (first.parts[place],):
        if part.varies is not None or not counts_records(inner_of(part.input_premetric)):
            continue
        mine = _distance(pair, part.input_premetric, second.domain)
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
    """A no at the realised universe: with b of at least 2 it holds two data sets, one an exchange away from the other."""
    functions = [function for function in (first.varies, second.varies) if function is not None]
    if (first.input_premetric, first.output_premetric) != (second.input_premetric, second.output_premetric):
        return "the two are in different units"
    if type(first.output_premetric) not in {Multiplicative, NormalizedRenyi}:
        return "a larger budget alone does not break the second"
    if first.multiverse != second.multiverse or not functions:
        return "the two are not in one universe"
    if len(functions) == 2 and (not functions[0].realised or functions[0].realised != functions[1].realised):
        return "the two were taken at different universes"
    if any((function.b or 0) < 2 for function in functions) or not first.budget > second.budget:
        return "the realised universe does not refute it"
    if not counts_records(first.input_premetric):
        return "the universe may hold no neighbours"
    statistics = [function.statistic for function in functions]
    if any(statistic is None or not _kept_by_exchanges(statistic, first) for statistic in statistics):
        return "the universe may be a single data set"
    return ""


def _kept_by_exchanges(statistic: Any, spec: Specification) -> bool:
    """Whether two records of a stratum can exchange what is swapped: no table reads held and swapped variables together.

    Under d_Sym and d_Ham of the records themselves the two data sets are then at finite distance.
    """
    kind, domain = statistic.record_type, spec.domain
    held, moved = ({*statistic.match, *names} for names in (statistic.hold, statistic.swap))
    if any(rule.record_type in {"", kind} and not rule.variables for rule in domain.constraints):
        return False
    for rule in domain.constraints:
        if rule.record_type in {"", kind} and {*rule.variables} & (moved - held):
            return False
    for invariant in spec.multiverse:
        for need in invariant.needs():
            read = {*need.by, *need.conditions()}
            outside = need.record_type != kind or read <= domain.closure(kind, tuple(held))
            if not outside and not read <= domain.closure(kind, tuple(moved)):
                return False
        if not invariant.needs():
            return False
    return True


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


def _distance(pair: Witness, premetric: InputPremetric, domain: Domain) -> Fraction | None:
    """The pair's distance; None where it is not known."""
    inner = inner_of(premetric)
    if not isinstance(inner, Hamming | SymmetricDifference) or inner.copies != 1:
        return None
    moves = inner.record_type == "person" and _moves(pair, domain)
    if moves and (
        isinstance(inner, Hamming)
        or (domain.size_variable or any(rule.kind == "size" for rule in domain.constraints))
    ):
        return None  # a person who moves counts once or twice, and a size that changes counts for all who live there
    if isinstance(inner, Hamming):
        half = pair.distance(inner.record_type)
        return None if half is None or not half else Fraction(half)
    return Fraction(pair.difference(inner.record_type)) or None


def _moves(pair: Witness, domain: Domain) -> bool:
    """Whether a person of the pair may live elsewhere in the other data set, in a domain that lists homes."""
    if not any(domain.has(kind) for kind in ("household", "housing unit", "group quarters")):
        return False
    where = Margin("person", {"household", "quarters", *domain.spine, *domain.identifiers("household")})
    return pair.first.table(where) != pair.second.table(where)


def _at(spec: Specification, pair: Witness) -> Budget | None:
    """The budget of the universe the pair lies in."""
    if spec.varies is None:
        return spec.budget
    law, statistic = spec.varies.law, spec.varies.statistic
    if law is None or statistic is None:
        return None
    b = _largest_stratum(statistic, pair.first)
    return None if b == spec.varies.b or b != _largest_stratum(statistic, pair.second) else law.at(b)


def _largest_stratum(statistic: Any, data: DataSet) -> int:
    sizes: dict[tuple[str, ...], list[Any]] = {}
    for values, number in data.records(statistic.record_type):
        if statistic.where and any(values.get(n) not in v for n, v in statistic.where.conditions):
            continue
        if any(all(values.get(n) in v for n, v in r.conditions) for r in statistic.without):
            continue
        entry = sizes.setdefault(tuple(values.get(n, "") for n in statistic.match), [0, set(), set()])
        entry[0] += number
        entry[1].add(tuple(values.get(n, "") for n in statistic.hold))
        entry[2].add(tuple(values.get(n, "") for n in statistic.swap))
    return max((n for n, held, moved in sizes.values() if len(held) > 1 and len(moved) > 1), default=0)
