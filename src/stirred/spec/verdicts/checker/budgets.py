"""Checking the budgets of an implication: units, premetrics, laws of b, and the distances that occur."""

from fractions import Fraction
from itertools import product
from typing import Any

from stirred.spec.multiverse import Margin, Multiverse
from stirred.spec.neighbours import Neighbours
from stirred.spec.numbers.budget import Budget
from stirred.spec.outputs.divergences import Approximate, Multiplicative, NormalizedRenyi
from stirred.spec.premetrics import Hamming, InputPremetric, SymmetricDifference
from stirred.spec.specification import Specification
from stirred.spec.verdicts.checker.numbers import at_most, quadratics_ordered
from stirred.spec.verdicts.checker.tables import Given, determines, determines_all, readable
from stirred.spec.verdicts.derivation import Derivation
from stirred.spec.verdicts.witness import DataSet

MOST_RECORDS = 20_000  # kinds of records that are written out to see whether one can change alone


def inner_of(premetric: InputPremetric) -> InputPremetric:
    return premetric.inner if isinstance(premetric, Neighbours) else premetric


def fixed_by(spec: Specification) -> frozenset[Any]:
    """What any two data sets at finite distance have in common by themselves."""
    premetric = inner_of(spec.input_premetric)
    return frozenset({Margin(premetric.record_type)}) if isinstance(premetric, Hamming) else frozenset()


def counts_its_own(spec: Specification) -> bool:
    """Whether only records of the unit enter the distance: vacant units and empty facilities count for persons too."""
    others = {kind.name for kind in spec.domain.record_types} - {spec.input_premetric.unit}
    homes = {"household", "housing unit"}
    return not others or (spec.input_premetric.unit in homes and others <= {"person"})


def changes_alone(spec: Specification) -> str:
    """Why two data sets of one universe may be neighbours: records over all levels are written out and compared."""
    inner = inner_of(spec.input_premetric)
    kinds = spec.domain.record_types
    if not isinstance(inner, Hamming | SymmetricDifference) or [kind.name for kind in kinds] != [
        inner.record_type
    ]:
        return "the records cannot be written out"
    if any(not isinstance(i, Margin) for i in spec.multiverse) or spec.domain.rules(inner.record_type):
        return "the records cannot be written out"
    levels = []
    for variable in kinds[0].variables:
        if variable.name in spec.domain.identifiers(inner.record_type):
            continue
        named = {v for m in spec.multiverse for v in m.needs()[0].conditions().get(variable.name, ())}
        rest = 2 if variable.size is None else max(0, variable.size - len(named))
        found = (
            variable.levels
            if isinstance(variable.levels, tuple)
            else (*named, *(f"more {i}" for i in range(rest)))
        )
        levels.append([(variable.name, level) for level in found])
    total = 1
    for options in levels:
        total *= len(options)
    if not kinds[0].variables or total > MOST_RECORDS:
        return "the records cannot be written out"
    seen: set[tuple[object, ...]] = set()
    for values in product(*levels):
        data = DataSet.of(inner.record_type, [(dict(values), 1)])
        key = tuple(tuple(data.table(m.needs()[0])) for m in spec.multiverse)
        if isinstance(inner, SymmetricDifference):
            if not any(key):
                return "a record that no table counts can be added"
        elif key in seen:
            return "one record can change alone"
        seen.add(key)
    return ""


def budgets(first: Specification, second: Specification, step: Derivation) -> str:
    if step.rule == "parts":
        return _parts(first, second)
    if step.rule == "laws":
        return _laws(first, second)
    if step.rule != "budget":
        return f"{step.rule!r} says nothing about budgets"
    factor = _distance_factor(first, second, step)
    if isinstance(factor, str):
        return factor
    if first.varies is not None and first.varies.law is not None:
        return "the first budget has no bound over all universes"
    if (
        second.varies is not None
        and second.varies.law is not None
        and not _every_universe_counts(first, second)
    ):
        return "where b = 0 the second promises that nothing is lost"
    mine = first.budget if first.varies is None else max(first.budget, first.varies.most)
    theirs = second.budget if second.varies is None else _smallest(second)
    least = int(step.facts.get("least", 1))
    if least > 2 or (least == 2 and changes_alone(second)):
        return "smaller distances may occur"
    measures = (first.output_premetric, second.output_premetric)
    only = isinstance(second.input_premetric, Neighbours)
    within = at_most(measures[0], mine, factor, measures[1], theirs, least, last=1 if only else None)
    return "" if within else "the first budget is not within the second"


def _every_universe_counts(first: Specification, second: Specification) -> bool:
    """Whether a universe with b = 0 is a single data set, or the first loses nothing at all."""
    function = second.varies
    if function is None or function.statistic is None or (first.budget.is_zero and first.varies is None):
        return True
    kind = function.statistic.record_type
    if [known.name for known in second.domain.record_types] != [kind]:
        return False
    names = (*function.statistic.match, *function.statistic.hold, *function.statistic.swap)
    listed = second.domain.record_type(kind).names() - second.domain.identifiers(kind)
    return listed <= second.domain.closure(kind, names)


def _distance_factor(first: Specification, second: Specification, step: Derivation) -> Fraction | str:
    """The constant between the two distances, or why none is shown."""
    mine, theirs = first.input_premetric, second.input_premetric
    if isinstance(mine, Neighbours) and not isinstance(theirs, Neighbours) and not _one_table(first, second):
        return "neighbours need not connect the universes"
    if mine == theirs:
        return Fraction(1)
    factor = _factor(first, second)
    if factor is None:
        factor = _unit_factor(mine, theirs)
    if factor is None:
        return f"no constant is known from {mine} to {theirs}"
    if factor < 1:
        total = Margin(inner_of(theirs).unit)
        given = Given(second.multiverse.invariants)
        if all(determines(premise, given, total, second.domain) for premise in step.premises):
            return "nothing shows that the number of records is fixed"
    return factor


def _one_table(first: Specification, second: Specification) -> bool:
    """Whether the invariants are one table (beside the number of records): then records change one after the other."""
    inner = inner_of(first.input_premetric)
    for spec in (first, second):
        tables = [i for i in spec.multiverse if i != Margin(inner.unit)]
        full = [
            t
            for t in tables
            if isinstance(t, Margin)
            and all(isinstance(o, Margin) and not readable(t, o, spec.domain) for o in tables)
        ]
        plain = len(spec.domain.record_types) <= 1 and not spec.domain.keys(inner.unit)
        if plain and isinstance(inner, Hamming) and (not tables or full):
            return True
        if plain and not spec.multiverse.invariants:
            return True
    return False


def _parts(first: Specification, second: Specification) -> str:
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


def determines_freely(part: Any, second: Specification) -> bool:
    """Whether the second's invariants fix all that a part is computed from."""
    wanted = Multiverse.of(*part.measures)
    found = second.multiverse.refines(wanted, second.domain)  # where to look; what it says is verified here
    if not found or found.derivation is None:
        return False
    return not determines_all(found.derivation, Given(second.multiverse.invariants), wanted, second.domain)


def _unit_factor(mine: InputPremetric, theirs: InputPremetric) -> Fraction | None:
    """d_mine ≤ factor · d_theirs, from a table of its own."""
    homes = {"household", "housing unit"}
    one, other = inner_of(mine), inner_of(theirs)
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


def _smallest(spec: Specification) -> Budget:
    assert spec.varies is not None
    law = spec.varies.law
    return min(spec.budget, spec.varies.least) if law is None else min(spec.budget, law.at(2), law.at(3))


def _factor(first: Specification, second: Specification) -> Fraction | None:
    """The exact ratio of the two distances of one record type."""
    mine, theirs = inner_of(first.input_premetric), inner_of(second.input_premetric)
    if mine == theirs:
        return Fraction(1)
    if isinstance(mine, Hamming) and theirs == SymmetricDifference(mine.record_type):
        return Fraction(1, 2)
    if isinstance(mine, SymmetricDifference) and theirs == Hamming(mine.record_type):
        return Fraction(2)
    return None


def _laws(first: Specification, second: Specification) -> str:
    """Two budget functions at every b: one by one up to 60, beyond as quadratics in b; and at the realised universe."""
    if (first.input_premetric, first.output_premetric) != (second.input_premetric, second.output_premetric):
        return "the two are in different units"
    mine, theirs = first.varies, second.varies
    for b in range(2, 62):
        if _law_at(first, b) > _law_at(second, b):
            return f"at b = {b} the first budget is larger"
    if mine is not None and mine.law is None and theirs is not None and theirs.law is None:
        return (
            "" if mine.most <= theirs.least and first.budget <= theirs.least else "the bounds do not decide"
        )
    if theirs is None or theirs.law is None:
        bounded = mine is None or mine.law is None or not _law_at(second, 2).is_finite
        return "" if bounded else "the first grows with b, the second does not"
    if mine is None or mine.law is None:
        if not _every_universe_counts(first, second):
            return "where b = 0 the second promises that nothing is lost"
        largest = first.budget if mine is None else max(first.budget, mine.most)
        return "" if largest <= _smallest(second) else "the second is smaller at its realised universe"
    if mine.statistic != theirs.statistic and not _finer(mine.statistic, theirs.statistic):
        return "the two are not functions of the same b"
    if not quadratics_ordered(mine.law, theirs.law):
        return "for large b the first budget may be larger"
    return _realised(first, second)


def _realised(first: Specification, second: Specification) -> str:
    """The budgets at the realised universes, which may differ from the laws."""
    mine, theirs = first.varies, second.varies
    assert mine is not None
    assert theirs is not None
    same = bool(mine.realised) and mine.realised == theirs.realised and mine.statistic == theirs.statistic
    if same:
        return (
            ""
            if first.budget <= second.budget or (theirs.b or 0) < 2
            else "the first is larger where it was taken"
        )
    if theirs.b is None or mine.b is None or mine.law is None or theirs.law is None:
        return "the universes at which the budgets were taken are not known"
    if theirs.b >= 2 and mine.law.at(theirs.b) > second.budget:
        return "the second is sharper where it was taken"
    raised = mine.b >= 2 and first.budget > mine.law.at(mine.b)
    if raised and first.budget > min(theirs.law.at(mine.b), second.budget):
        return "the first is raised where it was taken"
    return ""


def _finer(mine: Any, theirs: Any) -> bool:
    """Whether every stratum of the first lies in one of the second, which has at least its types."""
    if mine is None or theirs is None or (mine.where, mine.without) != (theirs.where, theirs.without):
        return False
    return (
        {*mine.match} >= {*theirs.match} and {*mine.hold} <= {*theirs.hold} and {*mine.swap} <= {*theirs.swap}
    )


def _law_at(spec: Specification, b: int) -> Budget:
    """The budget at a universe with this b; without a law the bound that is on the safe side is not known here."""
    function = spec.varies
    if function is None:
        return spec.budget
    return spec.budget if function.law is None else function.law.at(b)
