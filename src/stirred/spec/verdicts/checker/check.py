"""Checking a verdict: its derivation is verified step by step, by code of its own.

Numbers are compared with fifty digits of mpmath and a margin, tables and witnesses by counting. A problem is one sentence;
no problem means that the derivation proves the verdict.

What it takes for granted: the two specifications say what they mean (budgets of parts, laws of b, evidence); the domain
lists its levels, dependencies and constraints truly; distances, divergences and budgets are what their classes define; and
exact numbers are added and compared rightly. It shares these definitions with the search, the test whether two data
sets are a witness (``find_fault``), and no rule.
"""

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

from stirred.spec.budgets import Budget
from stirred.spec.domain import Domain
from stirred.spec.input_premetrics import Exchanges, Hamming, InputPremetric, Neighbours, SymmetricDifference
from stirred.spec.invariants import Margin
from stirred.spec.multiverse import Multiverse
from stirred.spec.output_premetrics import Approximate, Multiplicative, NormalizedRenyi, OutputPremetric
from stirred.spec.specification import Specification
from stirred.spec.verdict import Answer, DataSet, Derivation, Verdict, Witness, find_fault
from stirred.spec.verdicts.checker.budgets import (
    HOMES,
    breaks,
    check_budgets,
    check_changes_alone,
    collect_given,
    counts_records,
    inner_of,
    is_known,
    is_void_at,
    list_fixed,
)
from stirred.spec.verdicts.checker.tables import (
    Given,
    check_determines_all,
    check_form,
    check_leaves_open,
    has_undecided_map,
    read_whole_number,
)

MAX_COPIES = 1000  # how often the change of a pair is repeated


def check_implication(first: Specification, second: Specification, verdict: Verdict) -> tuple[str, ...]:
    """Return the problems of a verdict on whether one specification implies another; none if it is proved.

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
        return tuple((_check_yes if verdict else _check_no)(first, second, step))

    return _problems(step, check)


def check_refinement(
    finer: Multiverse, coarser: Multiverse, domain: Domain, verdict: Verdict
) -> tuple[str, ...]:
    """Return the problems of a verdict on whether the invariants of one multiverse determine another's."""
    if verdict.answer is Answer.UNKNOWN or (verdict and not coarser.invariants):
        return ()
    step = verdict.derivation
    if step is None:
        return (f"{verdict.answer.value} without a derivation",)
    rule = check_determines_all if verdict else check_leaves_open
    return _problems(step, lambda: (rule(step, Given(finer.invariants), tuple(coarser), domain),))


def _problems(step: Derivation, check: Callable[[], tuple[str, ...]]) -> tuple[str, ...]:
    """Return the problems that a check finds; facts of a wrong type are a problem too."""
    problem = check_form(step)
    if problem:
        return (problem,)
    try:
        return tuple(problem for problem in check() if problem)
    except (
        Exception
    ):  # the facts of a derivation may be anything at all: whatever they lead to, nothing is proved
        return ("the derivation is malformed: a step lacks a premise or a fact that its rule needs",)


def _check_yes(first: Specification, second: Specification, step: Derivation) -> Iterator[str]:
    if step.rule == "nothing promised":
        yield "" if not second.budget.is_finite and second.varies is None else "the second promises something"
    elif step.rule == "same":
        yield "" if _is_same(first, second) else "the two are not the same statement"
    elif step.rule == "singletons":
        yield _check_singletons(second, step.premises[0])
    elif step.rule == "no neighbours":
        yield (
            ""
            if isinstance(second.input_premetric, Neighbours)
            else "the second is not about neighbours only"
        )
        yield check_changes_alone(second)
    elif step.rule == "void":
        yield _check_promise(second)
    elif step.rule == "implication":
        yield _check_nested(first, second, step.premises[:-1])
        yield check_budgets(first, second, step.premises[-1])
    else:
        yield f"there is no rule {step.rule!r}"


def _is_same(first: Specification, second: Specification) -> bool:
    """Return whether the two are one statement; functions known in words only count as different."""
    if first is second:
        return True
    functions = [spec.varies for spec in (first, second)]
    told = all(f is None or (f.law is not None and f.statistic is not None and f.realised) for f in functions)
    return told and first == second


def _check_promise(spec: Specification) -> str:
    """Return why the second promise is not void at every distance that may occur; empty where it is void."""
    measure = spec.output_premetric
    if type(measure) is not Approximate or spec.varies is not None:
        return "the second is not an (ε, δ) promise"
    least = 1 if check_changes_alone(spec) else 2
    return (
        ""
        if is_void_at(measure, spec.budget, least)
        else "the second promises something at the smallest distance"
    )


def _check_singletons(spec: Specification, step: Derivation) -> str:
    kinds = spec.domain.record_types
    if not kinds or not all(kind.variables for kind in kinds):
        return "the domain does not list its variables"
    if len(kinds) > 1 and {kind.name for kind in kinds} != {"household", "group quarters"}:
        return "tables do not say which records belong together"
    tables = [Margin(kind.name, kind.names() - spec.domain.identifiers(kind.name)) for kind in kinds]
    return check_determines_all(
        step, Given(spec.multiverse.invariants | list_fixed(spec)), tables, spec.domain
    )


def _check_nested(first: Specification, second: Specification, steps: tuple[Derivation, ...]) -> str:
    if not first.multiverse.invariants:
        return ""
    faults = [
        check_determines_all(step, collect_given(second), first.multiverse, first.domain) for step in steps
    ]
    return (
        ""
        if any(not f for f in faults)
        else "; ".join(faults) or "nothing shows that the universes are nested"
    )


def _check_no(first: Specification, second: Specification, step: Derivation) -> Iterator[str]:
    if step.rule == "realised universe":
        yield _check_realised_no(first, second)
        return
    if step.rule != "mechanism" or step.witness is None:
        yield f"{step.rule!r} shows no pair of data sets"
        return
    copies = read_whole_number(step.facts, "copies", 1)
    if copies is None or not 0 < copies <= MAX_COPIES:
        yield "a number of records is not positive"
        return
    pair = _repeat_change(step.witness, copies)
    units = [inner_of(spec.input_premetric) for spec in (first, second)]
    # exchanges need not connect a universe: only a pair that is one step apart is known to be at finite distance
    apart = [
        _find_distance(pair, inner, second.domain) is None for inner in units if type(inner) is Exchanges
    ]
    if any(apart) or not all(counts_records(inner) or type(inner) is Exchanges for inner in units):
        yield "which data sets are at finite distance is not known"
        return
    if has_undecided_map(pair, second.domain):
        yield "the areas may lie in each other in other ways too"
        return
    near = isinstance(second.input_premetric, Neighbours)
    if near and _find_distance(pair, second.input_premetric, second.domain) != 1:
        yield "the two data sets are not neighbours"
        return
    kinds = {kind for data in (pair.first, pair.second) for kind, _, _ in data.rows}
    kept = tuple(second.multiverse.invariants | _even(second.input_premetric, kinds))
    mechanism, premetric = step.facts["mechanism"], second.output_premetric
    limit = _find_budget_at(second, pair)
    if limit is None or not limit.is_finite:
        yield "the second budget is not finite there"
        return
    if mechanism == "publish":
        let_out = first.multiverse.invariants | list_fixed(first)
        faults = [find_fault(second.domain, kept, invariant, pair) for invariant in let_out]
        yield "" if any(not f for f in faults) else "; ".join(faults) or "the first publishes nothing exactly"
        distance = _find_distance(pair, second.input_premetric, second.domain)
        yield _check_void(premetric, limit, distance)
        return
    yield find_fault(second.domain, kept, None, pair)
    part = read_whole_number(step.facts, "part", -1)
    if part != -1 or (len(first.parts) > 1 and mechanism in {"gaussian", "reveal"}):
        yield _check_by_part(first, second, pair, limit, part)
        return
    if not is_known(first.output_premetric) or not is_known(premetric):
        yield "no mechanism is known that uses up the first"
        return
    mine, theirs = (_find_distance(pair, spec.input_premetric, second.domain) for spec in (first, second))
    if first.input_premetric == second.input_premetric and mine is None and _is_linear(first, second):
        mine = theirs = Fraction(1)  # whatever the distance is, it is the same for both
    budget = _find_budget_at(first, pair)
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
    """Return the totals that a pair at finite Hamming distance shares; a home's persons are not among them."""
    inner = inner_of(premetric)
    if not isinstance(inner, Hamming | Exchanges):
        return set()
    return {Margin(kind) for kind in kinds if inner.record_type not in HOMES or kind != "person"}


def _is_linear(first: Specification, second: Specification) -> bool:
    """Return whether only the ratio of the two distances matters."""
    measures = {type(spec.output_premetric) for spec in (first, second)}
    return measures in ({Multiplicative}, {NormalizedRenyi})


def _check_by_part(
    first: Specification, second: Specification, pair: Witness, limit: Budget, place: int | None
) -> str:
    """Return why no part of a composed promise refutes the second alone; empty where one does."""
    if place is None or not -1 <= place < len(first.parts):
        return "there is no such part"
    theirs = _find_distance(pair, second.input_premetric, second.domain)
    for part in first.parts if place == -1 else (first.parts[place],):
        if part.varies is not None or not counts_records(inner_of(part.input_premetric)):
            continue
        mine = _find_distance(pair, part.input_premetric, second.domain)
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


def _check_realised_no(first: Specification, second: Specification) -> str:
    """Return why the realised universe does not refute the second; empty where it does."""
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
    """Return whether exchanges keep all tables: none reads held and swapped variables together.

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


def _check_void(premetric: OutputPremetric, limit: Budget, distance: Fraction | None) -> str:
    """Return why telling the two data sets apart does not break the second promise; empty where it does."""
    if isinstance(premetric, Multiplicative | NormalizedRenyi):
        return ""
    if isinstance(premetric, Approximate) and distance is not None:
        broken = breaks(Multiplicative(), Budget.infinite(), Fraction(1), premetric, limit, distance)
        return "" if broken else "at that distance the second promises nothing"
    return "" if premetric.infinite_at_total_variation_one else f"{premetric} may allow it"


def _repeat_change(pair: Witness, copies: int) -> Witness:
    def times(data: DataSet) -> DataSet:
        return DataSet(tuple((kind, values, n * copies) for kind, values, n in data.rows))

    return pair if copies == 1 else Witness(times(pair.first), times(pair.second))


def _find_distance(pair: Witness, premetric: InputPremetric, domain: Domain) -> Fraction | None:
    """Return the pair's distance, or None where it is not known."""
    inner = inner_of(premetric)
    if type(inner) is Exchanges:
        records = _find_distance(pair, Hamming(inner.record_type), domain)
        return None if records is None or records > 2 else Fraction(1)
    if not isinstance(inner, Hamming | SymmetricDifference) or inner.copies != 1:
        return None
    moves = inner.record_type == "person" and _may_move(pair, domain)
    if moves and (
        isinstance(inner, Hamming)
        or (domain.size_variable or any(rule.kind == "size" for rule in domain.constraints))
    ):
        return None  # a person who moves counts once or twice, and a size that changes counts for all who live there
    if isinstance(inner, Hamming):
        half = pair.distance(inner.record_type)
        return None if half is None or not half else Fraction(half)
    return Fraction(pair.difference(inner.record_type)) or None


def _may_move(pair: Witness, domain: Domain) -> bool:
    """Return whether a person of the pair may live elsewhere in the other data set."""
    if not any(domain.has(kind) for kind in ("household", "housing unit", "group quarters")):
        return False
    where = Margin("person", {"household", "quarters", *domain.spine, *domain.identifiers("household")})
    return pair.first.table(where) != pair.second.table(where)


def _find_budget_at(spec: Specification, pair: Witness) -> Budget | None:
    """Return the budget of the universe that the pair lies in, or None."""
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
