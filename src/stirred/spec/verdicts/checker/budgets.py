"""Check the budgets of an implication with fifty digits: units, premetrics, laws of b, and distances."""

from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import ceil, prod
from typing import Any

import mpmath

from stirred.spec.budgets import Budget
from stirred.spec.domain import Domain
from stirred.spec.exact import Log
from stirred.spec.input_premetrics import Exchanges, Hamming, InputPremetric, Neighbours, SymmetricDifference
from stirred.spec.invariants import Custom, Invariant, Margin
from stirred.spec.laws import SizeLaw
from stirred.spec.multiverse import Multiverse
from stirred.spec.output_premetrics import Approximate, Multiplicative, NormalizedRenyi, OutputPremetric
from stirred.spec.specification import Specification
from stirred.spec.statement import BudgetFunction, Part
from stirred.spec.verdict import DataSet, Derivation
from stirred.spec.verdicts.checker.tables import Given, check_determines, check_readable, read_whole_number

# Budgets compared with fifty digits: whether one promise gives another, and whether a mechanism breaks one.
#
# For a yes every number is rounded against it and must be smaller by a margin, unless an exact comparison settles it;
# for a no every mechanism must exceed what is allowed by a margin.

DECIMAL_DIGITS = 50
SLACK = mpmath.mpf(10) ** -25
MARGIN = mpmath.mpf(10) ** -30  # by which a number of a yes must be smaller, relative to it
MAX_POWER_BITS = 4096  # bits of a power of a fraction that is computed exactly
MAX_DISTANCES = 500
KNOWN_PREMETRICS = (Multiplicative, NormalizedRenyi, Approximate)


def is_known(premetric: OutputPremetric) -> bool:
    """Return whether the checker knows the premetric by its definition; a user's own is not known."""
    return type(premetric) in KNOWN_PREMETRICS


def simplify(premetric: OutputPremetric) -> OutputPremetric:
    """Return pure DP for (ε, 0), and any other premetric as it is."""
    return Multiplicative() if type(premetric) is Approximate and not premetric.delta else premetric


def _number(budget: Budget, *, down: bool = False) -> Any:
    if not budget.is_finite:
        return mpmath.inf
    return mpmath.mpf(str(budget.lower(45) if down else budget.upper(45)))


def _ratio(value: Fraction) -> Any:
    return mpmath.mpf(value.numerator) / value.denominator


def _delta(premetric: OutputPremetric) -> Any:
    return _ratio(premetric.delta) if isinstance(premetric, Approximate) else mpmath.mpf(0)


def _delta_at(epsilon: Any, delta: Any, k: Any) -> Any:
    if not delta:
        return mpmath.mpf(0)
    return delta * k if epsilon == 0 else delta * mpmath.expm1(k * epsilon) / mpmath.expm1(epsilon)


def scale_delta(budget: Budget, delta: Fraction, factor: Fraction) -> Fraction:
    """Return δ(e^{cε} − 1)/(e^ε − 1) for a unit with constant c: exact where possible, else from above.

    >>> scale_delta(Budget.log(2), Fraction(1, 1000), Fraction(3))
    Fraction(7, 1000)
    """
    if not delta or factor == 1:
        return delta
    if not budget.is_finite:
        return Fraction(1)
    if budget.is_zero:
        return delta * factor
    one, many = _power(budget, Fraction(1)), _power(budget, factor)
    if one is not None and many is not None:
        return delta * (many - 1) / (one - 1)
    with mpmath.workdps(DECIMAL_DIGITS):
        epsilon = _number(budget, down=factor < 1)  # the fraction grows with ε for c > 1, and falls for c < 1
        found = _delta_at(epsilon, _ratio(delta), _ratio(factor)) * (1 + MARGIN)
        return Fraction(ceil(found * mpmath.mpf(10) ** 45), 10**45)


def _power(budget: Budget, factor: Fraction) -> Fraction | None:
    """Return e^(factor · ε) as a fraction where ε is a multiple of one logarithm, or None."""
    if budget.value is None or len(budget.value.terms) != 1:
        return None
    ((monomial, coefficient),) = budget.value.terms
    if len(monomial) != 1 or not isinstance(monomial[0][0], Log) or monomial[0][1] != 1:
        return None
    base, exponent = monomial[0][0].of, coefficient * factor
    roots = [_root(part, exponent.denominator) for part in (base.numerator, base.denominator)]
    if roots[0] is None or roots[1] is None:
        return None
    bits = max(roots[0].bit_length(), roots[1].bit_length()) * abs(exponent.numerator)
    return None if bits > MAX_POWER_BITS else Fraction(roots[0], roots[1]) ** exponent.numerator


def _root(value: int, order: int) -> int | None:
    """Return the whole number whose power of this order is the value, or None."""
    if order == 1 or value == 1:
        return value
    if order > 64 or value.bit_length() > MAX_POWER_BITS:
        return None
    low, high = 1, 1 << (value.bit_length() // order + 1)
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if middle**order < value else (low, middle)
    return low if low**order == value else None


def at_most(
    first: OutputPremetric,
    budget: Budget,
    factor: Fraction,
    second: OutputPremetric,
    limit: Budget,
    least: int,
    *,
    last: int | None = None,
    whole: bool = True,
) -> bool:
    """Return whether the first promise, at factor times the distance, gives the second from ``least`` on.

    With ``last`` only at distances up to that one; without ``whole`` at every distance.

    >>> at_most(Multiplicative(), Budget.of(1), Fraction(1), NormalizedRenyi(), Budget.sqrt("1/2"), 1)
    True
    """
    if not limit.is_finite:
        return True
    mine, theirs = simplify(first), simplify(second)
    if not is_known(mine) or not is_known(theirs):
        # what somebody else's premetric says of itself is its definition
        found = budget * factor if mine == theirs else mine.convert(budget * factor, theirs)
        return found is not None and found <= limit
    if type(mine) is type(theirs) and not isinstance(mine, Approximate):
        return budget * factor <= limit
    if isinstance(mine, Multiplicative | NormalizedRenyi) and (budget * factor).is_zero:
        return True
    if isinstance(theirs, NormalizedRenyi) and isinstance(mine, Multiplicative):
        return _gives_concentrated(budget * factor, limit, least, whole=whole)
    if not isinstance(theirs, Approximate) or not whole:
        return False
    own = scale_delta(budget, mine.delta, factor) if isinstance(mine, Approximate) else Fraction(0)
    if not isinstance(mine, NormalizedRenyi) and budget * factor <= limit and own <= theirs.delta:
        return True  # neither ε nor δ is larger, and then δ_k is not at any whole distance
    with mpmath.workdps(DECIMAL_DIGITS):
        up, down = _number(budget * factor), _number(limit, down=True)
        for k in range(least, least + MAX_DISTANCES):
            allowed = _delta_at(down, _ratio(theirs.delta), k)
            if allowed * (1 - MARGIN) >= 1:
                return True
            if isinstance(mine, NormalizedRenyi):
                found = _concentrated_delta((k * up) ** 2, k * down)
            else:
                found = _stick(k * up, k * down, _delta_at(up, _ratio(own), k))
            if not found * (1 + MARGIN) <= allowed:
                return False
            if k == last:
                return True
    return False


def _gives_concentrated(budget: Budget, limit: Budget, least: int, *, whole: bool) -> bool:
    """Return whether pure DP gives zCDP from a distance on, by ε²/2 or by ε·tanh(kε/2)/k."""
    if budget * Budget.sqrt("1/2") <= limit:
        return True
    if not whole:
        return False
    with mpmath.workdps(DECIMAL_DIGITS):
        epsilon, rho = _number(budget), _number(limit, down=True)
        return bool(epsilon * mpmath.tanh(least * epsilon / 2) / least * (1 + MARGIN) <= rho**2)


def _stick(loss: Any, level: Any, shown: Any) -> Any:
    """Return the hockey-stick divergence of revealing with probability ``shown``, else randomised response."""
    if loss == mpmath.inf:
        return mpmath.mpf(1)
    rest = max(mpmath.mpf(0), (mpmath.exp(loss) - mpmath.exp(level)) / (1 + mpmath.exp(loss)))
    return shown + (1 - min(shown, 1)) * rest


def _concentrated_delta(rho_squared: Any, epsilon: Any) -> Any:
    """Return the smallest δ over all orders by Canonne, Kamath and Steinke (2020), Prop. 12."""

    def at(t: Any) -> Any:
        gap = mpmath.exp(t)
        alpha = 1 + gap
        return gap * (alpha * rho_squared - epsilon) - mpmath.log(gap) + alpha * mpmath.log(gap / alpha)

    low, high = mpmath.mpf(-40), mpmath.mpf(40)
    for _ in range(200):  # the exponent is convex in the order: ternary search
        a, b = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, b) if at(a) < at(b) else (a, high)
    return mpmath.exp(at((low + high) / 2))


def is_void_at(measure: Approximate, budget: Budget, k: int) -> bool:
    """Return whether (ε, δ) promises nothing from distance k on, because δ_k has reached 1."""
    one, many = _power(budget, Fraction(1)), _power(budget, Fraction(k))
    if one is not None and many is not None:
        return measure.delta * (many - 1) / (one - 1) >= 1
    with mpmath.workdps(DECIMAL_DIGITS):
        return bool(_delta_at(_number(budget, down=True), _delta(measure), k) * (1 - MARGIN) >= 1)


def breaks(
    first: OutputPremetric,
    budget: Budget,
    mine: Fraction,
    second: OutputPremetric,
    limit: Budget,
    theirs: Fraction,
) -> bool:
    """Return whether some mechanism under the first breaks the second for a pair at these two distances.

    >>> breaks(Multiplicative(), Budget.of(2), Fraction(1), Multiplicative(), Budget.of(1), Fraction(1))
    True
    """
    first, second = simplify(first), simplify(second)
    if not limit.is_finite or not is_known(first) or not is_known(second):
        return False
    if type(first) is type(second) and not isinstance(first, Approximate):
        return budget * mine > limit * theirs
    with mpmath.workdps(DECIMAL_DIGITS):
        epsilon, level = _number(budget, down=True), _number(limit)
        loss, k = (
            epsilon * mine.numerator / mine.denominator,
            mpmath.mpf(theirs.numerator) / theirs.denominator,
        )
        own, bound = _delta(first), _delta(second)
        if isinstance(second, NormalizedRenyi):
            if own:
                return True
            return bool(loss == mpmath.inf or loss * mpmath.tanh(loss / 2) > (level * k) ** 2 + SLACK)
        if isinstance(second, Multiplicative):
            return bool(own > 0 or (isinstance(first, NormalizedRenyi) and loss > 0))
        allowed = _delta_at(level, bound, k)
        if allowed >= 1:
            return False
        if isinstance(first, NormalizedRenyi):
            mu = mpmath.sqrt(2) * loss
            if mu in {0, mpmath.inf}:
                return bool(mu)
            gauss = mpmath.ncdf(mu / 2 - level * k / mu) - mpmath.exp(level * k) * mpmath.ncdf(
                -mu / 2 - level * k / mu
            )
            return bool(gauss > allowed + SLACK)
        chain = (
            _delta_at(epsilon, own, mpmath.mpf(mine.numerator) / mine.denominator)
            if loss != mpmath.inf
            else 1
        )
        return bool(
            _stick(loss, level * k, own) > allowed + SLACK or allowed + SLACK < chain < mpmath.mpf("0.5")
        )


def quadratics_ordered(first: SizeLaw, second: SizeLaw) -> bool:
    r"""Whether $\max\{A, G(b)/C\} \le \max\{A', G'(b)/C'\}$ for all b > 60; G is $(b+1)^2$, $b(b-1)+1$ or $(b-1)^2$.

    >>> quadratics_ordered(SizeLaw("theorem-1", "1/2"), SizeLaw("theorem-1", "1/20"))
    True
    >>> quadratics_ordered(SizeLaw("theorem-1", "1/20"), SizeLaw("theorem-1", "1/2"))
    False
    """
    if not second.is_finite:
        return True
    if not first.is_finite:
        return False
    (top, mine), (limit, theirs) = (_quadratic(law) for law in (first, second))

    def value(terms: tuple[Fraction, Fraction, Fraction], b: int) -> Fraction:
        return terms[0] * b * b + terms[1] * b + terms[2]

    gap = (theirs[0] - mine[0], theirs[1] - mine[1], theirs[2] - mine[2])
    if top > max(limit, value(theirs, 61)) or gap[0] < 0:
        return False
    b = 61
    while value(gap, b) < 0 or 2 * gap[0] * b + gap[1] < 0:  # from here on the gap is positive and grows
        if b > 1 << 200:
            return False
        b *= 2
    low = 61
    while low < b:  # the last place where it is not: before it the constant must do
        middle = (low + b) // 2
        low, b = (
            (low, middle)
            if value(gap, middle) >= 0 and 2 * gap[0] * middle + gap[1] >= 0
            else (middle + 1, b)
        )
    return b == 61 or value(mine, b - 1) <= limit


def _quadratic(law: SizeLaw) -> tuple[Fraction, tuple[Fraction, Fraction, Fraction]]:
    """Return e^(2ε) beyond 60 records: the constant A and the terms of G(b)/C."""
    below, above = (rate / (1 - rate) for rate in (law.rate, law.highest))
    slope = {"theorem-1": 2, "by-size": -1, "by-exchange": -2}[law.kind]
    scale = 1 / (below * below)
    return above * above, (scale, slope * scale, scale)


# Checking the budgets of an implication: units, premetrics, laws of b, and the distances that occur.
#
# Every side condition is worked out here from the two specifications. What a step brings is used only where it points
# to a premise, and that premise is checked.

MAX_RECORD_KINDS = 20_000  # kinds of records that are written out to see whether one can change alone
HOMES = frozenset({"household", "housing unit"})
COMPARED_STRATUM_SIZES = range(2, 62)  # sizes of a largest stratum at which laws are compared one by one


def inner_of(premetric: InputPremetric) -> InputPremetric:
    return premetric.inner if isinstance(premetric, Neighbours) else premetric


def counts_records(premetric: InputPremetric) -> bool:
    """Return whether the premetric is exactly one of the two that count records."""
    return type(premetric) in {Hamming, SymmetricDifference}


def list_fixed(spec: Specification) -> frozenset[Any]:
    """Return the invariants that any two data sets at finite distance share because of the distance.

    Where vacant units and empty facilities count for persons too, only their number together with the persons' is fixed.
    """
    premetric = inner_of(spec.input_premetric)
    if type(premetric) not in {Hamming, Exchanges}:
        return frozenset()
    others = {kind.name for kind in spec.domain.record_types} - {premetric.unit}
    alone = not others or (premetric.unit in HOMES and others <= {"person"})
    return frozenset({Margin(premetric.unit)}) if alone else frozenset()


def collect_given(spec: Specification) -> Given:
    """Return what two data sets of one universe at finite distance have in common."""
    return Given(spec.multiverse.invariants, list_fixed(spec))


def is_shown(premises: tuple[Derivation, ...], spec: Specification, wanted: Invariant) -> bool:
    """Return whether a specification's invariants or its distance fix this, by themselves or by a premise."""
    given = collect_given(spec)
    return (
        wanted in given.invariants
        or wanted in given.fixed
        or any(not check_determines(premise, given, wanted, spec.domain) for premise in premises)
    )


def check_changes_alone(spec: Specification) -> str:
    """Return why one universe may hold two neighbours, by writing out all records; empty where it cannot."""
    inner = inner_of(spec.input_premetric)
    kinds = spec.domain.record_types
    if not isinstance(inner, Hamming | SymmetricDifference) or not counts_records(inner) or inner.copies != 1:
        return "the records cannot be written out"
    # rules between variables leave fewer records than are written out, and so fewer neighbours
    if [kind.name for kind in kinds] != [inner.record_type]:
        return "the records cannot be written out"
    # an invariant that is no table may forbid some changes; here they count as possible
    tables = [invariant for invariant in spec.multiverse if type(invariant) is Margin]
    levels = []
    for variable in kinds[0].variables:
        if variable.name in spec.domain.identifiers(inner.record_type):
            continue
        named = {v for m in tables for v in m.conditions().get(variable.name, ())}
        rest = 2 if variable.size is None else max(0, variable.size - len(named))
        if rest > MAX_RECORD_KINDS:
            return "the records cannot be written out"
        found = (
            variable.levels
            if isinstance(variable.levels, tuple)
            else (*named, *(f"more {i}" for i in range(rest)))
        )
        levels.append([(variable.name, level) for level in found])
    if not kinds[0].variables or prod(len(options) for options in levels) > MAX_RECORD_KINDS:
        return "the records cannot be written out"
    seen: set[tuple[object, ...]] = set()
    for values in product(*levels):
        data = DataSet.of(inner.record_type, [(dict(values), 1)])
        key = tuple(tuple(data.table(m)) for m in tables)
        if isinstance(inner, SymmetricDifference):
            if not any(key):
                return "a record that no table counts can be added"
        elif key in seen:
            return "one record can change alone"
        seen.add(key)
    return ""


def check_budgets(first: Specification, second: Specification, step: Derivation) -> str:
    """Return what is wrong with the last step of an implication, the one about budgets; empty where it holds."""
    if step.rule == "parts":
        return _check_parts(first, second, step.premises)
    if step.rule == "laws":
        return _check_laws(first, second)
    if step.rule != "budget":
        return f"{step.rule!r} says nothing about budgets"
    measures = (first.output_premetric, second.output_premetric)
    factor = distance_factor(first.input_premetric, first.multiverse, measures[0], second, step.premises)
    if isinstance(factor, str):
        return factor
    if first.varies is not None and factor != 1 and isinstance(measures[0], Approximate):
        return "the δ of the first is another one in each universe"
    if not _covers_small_universes(first, second):
        return "where b = 0 the second promises that nothing is lost"
    least = read_whole_number(step.facts, "least", 1)
    if least not in {1, 2} or (least == 2 and check_changes_alone(second)):
        return "smaller distances may occur"
    only = isinstance(second.input_premetric, Neighbours)
    within = at_most(
        measures[0],
        _find_largest(first),
        factor,
        measures[1],
        _find_smallest(second),
        least,
        last=1 if only else None,
        whole=second.input_premetric.whole,
    )
    return "" if within else "the first budget is not within the second"


def _find_largest(spec: Specification) -> Budget:
    return spec.budget if spec.varies is None else max(spec.budget, spec.varies.most)


def _find_smallest(spec: Specification) -> Budget:
    """Return the smallest budget over all universes of more than one data set."""
    function = spec.varies
    if function is None:
        return spec.budget
    # beyond the sizes compared one by one a law grows
    lowest = (
        function.least if function.law is None else min(function.law.at(b) for b in COMPARED_STRATUM_SIZES)
    )
    single = function.law is not None and function.b is not None and function.b < 2 and _is_one_data_set(spec)
    return lowest if single else min(spec.budget, lowest)


def _covers_small_universes(first: Specification, second: Specification) -> bool:
    """Return whether universes with b = 0 hold: each is a single data set, or the first loses nothing there."""
    if second.varies is None or second.varies.law is None or (first.budget.is_zero and first.varies is None):
        return True
    return _is_one_data_set(second)


def _is_one_data_set(spec: Specification) -> bool:
    """Return whether a universe with b = 0 is a single data set, because strata determine each record."""
    statistic = None if spec.varies is None else spec.varies.statistic
    if statistic is None or [kind.name for kind in spec.domain.record_types] != [statistic.record_type]:
        return False
    kind = statistic.record_type
    listed = spec.domain.record_type(kind).names() - spec.domain.identifiers(kind)
    names = (*statistic.match, *statistic.hold, *statistic.swap)
    return bool(listed) and listed <= spec.domain.closure(kind, names)


def distance_factor(
    mine: InputPremetric,
    universes: Multiverse,
    measure: OutputPremetric,
    second: Specification,
    premises: tuple[Derivation, ...],
) -> Fraction | str:
    """Return the factor with d ≤ factor · d' in every universe of the second, or why none is shown."""
    theirs = second.input_premetric
    if mine == theirs:
        return Fraction(1)
    near, one, other = isinstance(theirs, Neighbours), inner_of(mine), inner_of(theirs)
    if type(one) is Exchanges or type(other) is Exchanges:
        return _exchange_factor(mine, universes, measure, second, premises)
    factor = Fraction(1) if one == other else _unit_factor(one, other, second.domain)
    if factor is None:
        return f"no constant is known from {mine} to {theirs}"
    for kind in () if one == other else _numbers_needed(one, other, second.domain, near=near):
        if not _fixed_number(kind, second, premises):
            return f"nothing shows that the number of records is fixed: {kind}"
    if not isinstance(mine, Neighbours):
        return factor
    if near and factor <= 1:
        return Fraction(1)  # neighbours there are neighbours here, or equal
    if not is_known(measure):
        return f"{measure} is not known to have group privacy"
    if not any(_connects(one, kept, second.domain) for kept in (universes, second.multiverse)):
        return "neighbours need not connect the universes"
    return factor


def _exchange_factor(
    mine: InputPremetric,
    universes: Multiverse,
    measure: OutputPremetric,
    second: Specification,
    premises: tuple[Derivation, ...],
) -> Fraction | str:
    """Return the factor where one of the two distances counts exchanges, by way of changed records.

    Exchanges may connect the first's universes, in which the second's lie, or the second's.
    """
    one, other = inner_of(mine), inner_of(second.input_premetric)
    if isinstance(mine, Neighbours):
        same = one == other and isinstance(second.input_premetric, Neighbours)
        return Fraction(1) if same else "one exchange says nothing about several"
    if one == other:
        return Fraction(
            1
        )  # fewer universes leave fewer steps, so the second's distance is never the smaller one
    total, to = Fraction(1), second
    if type(other) is Exchanges:
        total, to = Fraction(2), replace(second, input_premetric=Hamming(other.record_type))
    if type(one) is Exchanges:
        faults = [
            check_exchanges(replace(second, multiverse=kept), one.record_type)
            for kept in (universes, second.multiverse)
        ]
        if all(faults):
            return faults[0]
        one = Hamming(one.record_type)
    rest = distance_factor(one, second.multiverse, measure, to, premises)
    return rest if isinstance(rest, str) else total * rest


def check_exchanges(spec: Specification, kind: str) -> str:
    """Return why exchanges of two records may not connect the universes of a specification; empty where they do.

    Two tables over all records (or the same part of them) have to be exact, and what only the one shows moves: everything
    else that is exact must show nothing of what moves, or show it of records of the same match values, or of all that is
    shown of records that stay.
    """
    exact = [table for table in spec.multiverse if type(table) is Margin and table.record_type == kind]
    for moving, staying in product(exact, exact):
        match = {*moving.by} & {*staying.by}
        moved, held = {*moving.by} - match, {*staying.by} - match
        if moving.conditions() != staying.conditions() or not moved or not held:
            continue
        if not _leaves_universe(spec, moving, staying):
            return ""
    return "no two exact tables let records trade places inside a universe"


def _leaves_universe(spec: Specification, moving: Margin, staying: Margin) -> bool:
    """Return whether something else that is exact, or a rule of the domain, may forbid such an exchange."""
    kind, where = moving.record_type, moving.conditions()
    moved = {*moving.by} - {*staying.by}
    shown = {*moving.by, *staying.by}
    if moved & {*where}:
        return True
    for rule in spec.domain.constraints:
        if (not rule.variables and rule.kind != "size") or moved & {*rule.variables}:
            return True
    if not _dependencies_kept(spec.domain, kind, {*moving.by}, {*staying.by}):
        return True
    stays: list[tuple[str, str]] = []
    for invariant in spec.multiverse:
        if invariant in (moving, staying):
            continue
        if type(invariant) is Custom and invariant.keeps_with == kind:
            continue
        if type(invariant) is not Margin or invariant.record_type != kind:
            return True
        if any(not check_readable(table, invariant, spec.domain) for table in (moving, staying)):
            continue
        conditions = invariant.conditions()
        if {*conditions} & moved or len(conditions) != 1 or not shown - {*conditions} <= {*invariant.by}:
            return True
        ((name, levels),) = conditions.items()
        stays += [(name, level) for level in levels]
    return len({name for name, _ in stays}) > 1 or len(stays) != len({*stays})


def _dependencies_kept(domain: Domain, kind: str, moving: set[str], staying: set[str]) -> bool:
    """Return whether no dependency ties what moves to what stays; labels of records may change with them."""
    labels = domain.identifiers(kind)
    groups = [
        {*rule.of, *rule.determines} - labels
        for rule in (*domain.rules(kind), *domain.keys(kind))
        if not {*rule.of} & labels
    ]
    tied, grown = moving - staying, True
    while grown:
        before = len(tied)
        # match values are the same on both sides of an exchange, so nothing spreads through them
        tied |= {name for group in groups if group & tied for name in group} - (moving & staying)
        grown = len(tied) > before
    return not tied & (staying - moving)


def _unit_factor(one: InputPremetric, other: InputPremetric, domain: Domain) -> Fraction | None:
    """Return the factor with d_one ≤ factor · d_other wherever d_one is finite, from the checker's own rules."""
    if not isinstance(one, Hamming | SymmetricDifference) or not counts_records(one):
        return None
    if not isinstance(other, Hamming | SymmetricDifference) or not counts_records(other):
        return None
    changed, to_changed = type(one) is Hamming, type(other) is Hamming
    if one.record_type == other.record_type or {one.record_type, other.record_type} <= HOMES:
        # a move of a person is two changes, and one record removed and one added; persons alone do not move
        alone = {kind.name for kind in domain.record_types} == {"person"}
        mover = changed and not to_changed and one.record_type == "person" and not alone
        moves = 2 if one.link == "kept" and (mover or other.link == "free") else 1
        copies = 1 if other.copies in {1, one.copies} else other.copies
        kinds = Fraction(1) if changed == to_changed else Fraction(1, 2) if changed else Fraction(2)
        return kinds * moves * copies
    if one.record_type not in HOMES or other.record_type != "person" or {one.copies, other.copies} != {1}:
        return None
    # a change of one person alters one home, or two where it moves; each is one record changed, or two added or removed
    altered = 2 if to_changed and other.link == "free" else 1
    return Fraction(altered if changed else 2 * altered)


def _numbers_needed(
    one: InputPremetric, other: InputPremetric, domain: Domain, *, near: bool
) -> tuple[str, ...]:
    """Return the record types whose number both data sets must share for the first distance to be finite."""
    if not isinstance(one, Hamming):
        return ()
    kind, homes = one.record_type, one.record_type in HOMES
    same = kind == other.unit or {kind, other.unit} <= HOMES
    if same and isinstance(other, Hamming):
        return ()
    if near and homes and isinstance(other, Hamming) and other.link == "kept":
        return ()  # one person changes inside its home
    if not homes:
        return (kind,)
    found = ["housing unit" if domain.has("housing unit") else kind]
    return (*found, "group quarters") if domain.has("group quarters") else tuple(found)


def _fixed_number(kind: str, spec: Specification, premises: tuple[Derivation, ...]) -> bool:
    """Return whether the universes fix the number of these records, directly or for housing units in parts."""
    if is_shown(premises, spec, Margin(kind)):
        return True
    levels = spec.domain.levels("housing unit", "occupancy") or ()
    if kind != "housing unit" or {*levels} != {"occupied", "vacant"}:
        return False
    vacant = Margin("housing unit", (), {"occupancy": ["vacant"]})
    return is_shown(premises, spec, Margin("household")) and is_shown(premises, spec, vacant)


def _connects(inner: InputPremetric, kept: Multiverse, domain: Domain) -> bool:
    """Return whether records can change one by one inside a universe: the invariants are at most one table."""
    if not isinstance(inner, Hamming | SymmetricDifference) or inner.copies != 1:
        return False
    if [kind.name for kind in domain.record_types] not in ([], [inner.record_type]):
        return False
    if domain.keys(inner.record_type) or not all(rule.variables for rule in domain.constraints):
        return False
    if isinstance(inner, SymmetricDifference):
        return not kept.invariants
    tables = [invariant for invariant in kept if invariant != Margin(inner.record_type)]
    margins = [table for table in tables if type(table) is Margin]
    return not tables or (
        len(margins) == len(tables)
        and any(all(not check_readable(table, other, domain) for other in margins) for table in margins)
    )


def _check_parts(first: Specification, second: Specification, premises: tuple[Derivation, ...] = ()) -> str:
    """Return why the composed parts do not give the second budget; empty where they do."""
    if second.varies is not None:
        return "the second budget differs by universe"
    losses: list[Budget] = []
    deltas = Fraction(0)
    for part in first.statements:
        universes = first.multiverse if part.multiverse is None else part.multiverse
        if any(not is_shown(premises, second, invariant) for invariant in universes):
            return "nothing shows that the second's universes lie in those of a part"
        if part.measures and all(is_shown(premises, second, table) for table in part.measures):
            continue  # it is computed from what the invariants fix
        if part.varies is not None:
            return "the budget of a part differs by universe"
        factor = distance_factor(part.input_premetric, universes, part.output_premetric, second, premises)
        if isinstance(factor, str):
            return factor
        found = _convert_part(part, factor, second.output_premetric)
        if found is None:
            return f"no conversion from {part.output_premetric} to {second.output_premetric} holds at every distance"
        losses.append(found[0])
        deltas += found[1]
    wanted = second.output_premetric
    if deltas > (wanted.delta if isinstance(wanted, Approximate) else 0):
        return "the δ of the parts add up to more"
    if type(wanted) is NormalizedRenyi:
        within = Budget.total(loss.square() for loss in losses) <= second.budget.square()
    elif is_known(wanted):
        within = Budget.total(losses) <= second.budget
    else:
        within = wanted.compose(losses) <= second.budget
    return "" if within else "the parts together have more than the second budget"


def _convert_part(part: Part, factor: Fraction, to: OutputPremetric) -> tuple[Budget, Fraction] | None:
    """Return the budget and the δ of a part in the second's unit and premetric, or None."""
    measure, budget = simplify(part.output_premetric), part.budget * factor
    if type(measure) is Approximate:
        delta = scale_delta(part.budget, measure.delta, factor)
        return (budget, delta) if type(to) is Approximate else None
    if type(measure) is Multiplicative and type(to) in {Multiplicative, Approximate}:
        return budget, Fraction(0)
    if type(measure) is Multiplicative and type(to) is NormalizedRenyi:
        return budget * Budget.sqrt("1/2"), Fraction(0)
    if measure == to:
        return budget, Fraction(0)
    found = measure.convert(budget, to)  # what somebody else's premetric says of itself is its definition
    return None if found is None else (found, Fraction(0))


def _check_laws(first: Specification, second: Specification) -> str:
    """Return why the first law is not below the second at every b and at the realised universe; empty if it is."""
    if (first.input_premetric, first.output_premetric) != (second.input_premetric, second.output_premetric):
        return "the two are in different units"
    mine, theirs = first.varies, second.varies
    if mine is None or theirs is None or mine.law is None or theirs.law is None:
        return _check_bounds(first, second)
    if (
        mine.statistic is None
        or theirs.statistic is None
        or not _never_above(mine.statistic, theirs.statistic)
    ):
        return "the two are not functions of the same b"
    for b in COMPARED_STRATUM_SIZES:
        if mine.law.at(b) > theirs.law.at(b):
            return f"at b = {b} the first budget is larger"
    if not quadratics_ordered(mine.law, theirs.law):
        return "for large b the first budget may be larger"
    if mine.statistic != theirs.statistic and not (_grows(mine.law) and _grows(theirs.law)):
        return "a law falls with b, and the two b may differ"
    return _check_realised(first, mine, second, theirs)


def _check_bounds(first: Specification, second: Specification) -> str:
    """Return why the largest budget of the first is not below the smallest of the second; empty if it is."""
    if first.varies is not None and first.varies.law is not None:
        if second.varies is None and not second.budget.is_finite:
            return ""
        return "the first grows with b, the second does not"
    if not _covers_small_universes(first, second):
        return "where b = 0 the second promises that nothing is lost"
    return "" if _find_largest(first) <= _find_smallest(second) else "the bounds do not decide"


def _grows(law: SizeLaw) -> bool:
    """Return whether the law never falls, checked one by one up to 61; beyond it all kinds grow."""
    found = [law.at(b) for b in COMPARED_STRATUM_SIZES]
    return all(found[i] <= found[i + 1] for i in range(len(found) - 1))


def _check_realised(
    first: Specification, mine: BudgetFunction, second: Specification, theirs: BudgetFunction
) -> str:
    """Return why the order fails at the realised universes, where budgets may differ from the laws; or empty."""
    assert mine.law is not None
    assert theirs.law is not None
    if mine.realised and mine.realised == theirs.realised and mine.statistic == theirs.statistic:
        single = theirs.b is not None and theirs.b < 2 and _is_one_data_set(second)
        within = first.budget <= second.budget or single
        return "" if within else "the first is larger where it was taken"
    if theirs.b is None or mine.b is None:
        return "the universes at which the budgets were taken are not known"
    if mine.law.at(theirs.b) > second.budget:
        return "the second is sharper where it was taken"
    raised = first.budget > mine.law.at(mine.b) and not (mine.b < 2 and _is_one_data_set(first))
    # it may be the second's realised universe, unless b says that it is another one
    apart = mine.statistic == theirs.statistic and (
        mine.b != theirs.b or bool(mine.realised and theirs.realised)
    )
    limit = theirs.law.at(mine.b) if apart else min(theirs.law.at(mine.b), second.budget)
    return "the first is raised where it was taken" if raised and first.budget > limit else ""


def _never_above(mine: Any, theirs: Any) -> bool:
    """Return whether every stratum of the first lies in one of the second that has at least its types."""
    if (mine.record_type, mine.where, mine.without) != (theirs.record_type, theirs.where, theirs.without):
        return False
    return (
        {*mine.match} >= {*theirs.match} and {*mine.hold} <= {*theirs.hold} and {*mine.swap} <= {*theirs.swap}
    )
