"""Checking the budgets of an implication: units, premetrics, laws of b, and the distances that occur.

Every side condition is worked out here from the two specifications. What a step brings is used only where it points to a
premise, and that premise is checked.
"""

from fractions import Fraction
from itertools import product
from math import prod
from typing import Any

from stirred.spec.algebra.statement import BudgetFunction, Part
from stirred.spec.domain import Domain
from stirred.spec.laws.sizes import SizeLaw
from stirred.spec.multiverse import Invariant, Margin, Multiverse
from stirred.spec.neighbours import Neighbours
from stirred.spec.numbers.budget import Budget
from stirred.spec.outputs.divergences import Approximate, Multiplicative, NormalizedRenyi, OutputPremetric
from stirred.spec.premetrics import Hamming, InputPremetric, SymmetricDifference
from stirred.spec.specification import Specification
from stirred.spec.verdicts.checker.numbers import at_most, is_known, quadratics_ordered, scale_delta, simplify
from stirred.spec.verdicts.checker.shape import read_whole_number
from stirred.spec.verdicts.checker.tables import Given, check_determines, check_readable
from stirred.spec.verdicts.derivation import Derivation
from stirred.spec.verdicts.witness import DataSet

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
    if type(premetric) is not Hamming:
        return frozenset()
    others = {kind.name for kind in spec.domain.record_types} - {premetric.record_type}
    alone = not others or (premetric.record_type in HOMES and others <= {"person"})
    return frozenset({Margin(premetric.record_type)}) if alone else frozenset()


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
    """Return whether the law never falls, checked one by one up to 61; beyond it both kinds grow."""
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
