"""Does one specification imply another? Yes with the rules used, no with a witness that a checker verifies, or unknown.

A specification allows B(x, x') = ε_D · d(x, x') between two data sets of one universe, and anything between others. The
first implies the second exactly when, for all x, x' of one universe of the second at finite distance, what the first
allows is within what the second allows: for every pair there is a mechanism that uses up what the first allows.
"""

from fractions import Fraction

from stirred.spec.algebra.stated import SpecificationFields
from stirred.spec.invariants.brief import abbreviate
from stirred.spec.multiverse import Invariant, Multiverse
from stirred.spec.neighbours import Neighbours
from stirred.spec.numbers.budget import Budget
from stirred.spec.outputs.divergences import Approximate
from stirred.spec.outputs.group import scale_delta
from stirred.spec.outputs.transfer import TransferQuestion, transfer
from stirred.spec.verdict import Answer, Verdict
from stirred.spec.verdicts.budgets import BudgetQuestion, find_budget_at, find_distance, pick_known, refute
from stirred.spec.verdicts.derivation import Derivation
from stirred.spec.verdicts.examples import Example, find_different_pair, has_no_neighbours
from stirred.spec.verdicts.functions import FunctionQuestion
from stirred.spec.verdicts.reach import counts_only_its_own, refines_within_reach


def implies(first: SpecificationFields, second: SpecificationFields) -> Verdict:
    """Decide whether every mechanism under the first specification is under the second (Lemma 1, conversions).

    A composed specification speaks of mechanisms made of its parts, and each part is converted by itself.

    >>> from stirred.spec import Budget, Domain, Hamming, Multiplicative, Multiverse, Specification
    >>> spec = Specification(
    ...     domain=Domain(name="toy"), multiverse=Multiverse.none(), input_premetric=Hamming("household"),
    ...     output_premetric=Multiplicative(), budget=Budget.of(1))
    >>> implies(spec, spec.within(Budget.of(2))).because
    'ε = 1.0000 ≤ ε = 2.0000'
    >>> print(implies(spec.within(Budget.of(2)), spec).answer.value)
    no
    """
    if not second.budget.is_finite and second.varies is None:
        return _confirm_by_rule("nothing promised", "the second promises nothing: its budget is infinite")
    if first is second:
        return _confirm_by_rule("same", "the two are one statement")
    if first.domain != second.domain:
        return Verdict.unknown(
            f"the domains differ: {first.domain} and {second.domain}; restate one on the other's domain with spec.on"
        )
    pair = find_different_pair(second.multiverse, second.domain, second.input_premetric)
    if pair.singletons is not None:
        rule = "no neighbours" if pair.singletons.rule == "no neighbours" else "singletons"
        because = {
            "singletons": "every universe of the second is a single data set, so it promises nothing",
            "no neighbours": "no two data sets of one universe are neighbours, so the second promises nothing",
        }[rule]
        return _confirm_by_rule(rule, because, pair.singletons)
    if _is_void(second):
        return _confirm_by_rule(
            "void", "the second promises nothing at any distance that occurs: its δ reaches 1 there"
        )
    apart = find_distance_invariants(first)
    sizes = refines_within_reach(second.multiverse, apart, first.domain, second.input_premetric)
    nested = refines_within_reach(second.multiverse, first.multiverse, first.domain, second.input_premetric)
    for found in (nested, sizes):
        if found.answer is Answer.NO:
            return _refute_by_publication(first, second, found)
    if not nested:
        return pick_known(_refute_anyway(first, second, pair), nested)
    varies = first.varies is not None or second.varies is not None
    question = FunctionQuestion if varies else BudgetQuestion
    return question(first, second, nested, pair).answer()


def find_distance_invariants(spec: SpecificationFields) -> Multiverse:
    """Return the invariants that differ only at infinite distance, so that they may be published."""
    fixed = spec.input_premetric.derive_multiverse()
    return (
        Multiverse.none()
        if fixed is None or not counts_only_its_own(spec.input_premetric, spec.domain)
        else fixed
    )


def _confirm_by_rule(rule: str, because: str, *premises: Derivation) -> Verdict:
    return Verdict.yes(because, Derivation(rule=rule, claim=because, premises=premises))


def _refute_by_publication(
    first: SpecificationFields, second: SpecificationFields, nested: Verdict
) -> Verdict:
    """Return a no where the first may publish what the second does not fix (Proposition 1), else unknown."""
    pair = None if nested.derivation is None else nested.derivation.witness
    limit = find_budget_at(second, pair)
    distance = None if pair is None else find_distance(pair, second.input_premetric, second.domain)
    far = isinstance(second.input_premetric, Neighbours) and distance != 1
    if pair is None or limit is None or far:
        return Verdict.unknown(nested.because)
    breaks = (
        second.output_premetric.excludes(limit, distance)
        if distance is not None
        else second.output_premetric.infinite_at_total_variation_one and limit.is_finite
    )
    if not breaks:
        return Verdict.unknown(
            f"what the first publishes exactly may stay within the second: {nested.because}"
        )
    let_out = _find_changed(nested.derivation)
    because = f"the first may publish {abbreviate(let_out, first.domain)} exactly, which the second protects (Proposition 1)"
    premises = (nested.derivation,) if nested.derivation is not None else ()
    facts = {"mechanism": "publish", "limit": limit.exact, "distance": distance}
    return Verdict.no(
        because, Derivation(rule="mechanism", claim=because, premises=premises, witness=pair, facts=facts)
    )


def _refute_anyway(first: SpecificationFields, second: SpecificationFields, pair: Example) -> Verdict | None:
    """Return a no for any multiverses: the first allows what the second's premetric forbids; else None.

    If the pair lies in one universe of the first, the mechanism at hand breaks the second; if not, the first may tell
    the two apart with certainty.
    """
    limit = None if pair.pair is None else find_budget_at(second, pair.pair)
    if pair.pair is None or limit is None or not limit.is_finite:
        return None
    for part in first.statements:
        if part.varies is not None or part.budget.is_zero:
            continue
        asked = TransferQuestion(
            first=part.output_premetric,
            budget=part.budget,
            second=second.output_premetric,
            limit=limit,
            allowed=Budget.of(1),  # any positive amount: only mechanisms whose loss is infinite are asked for
        )
        found = transfer(asked)
        if found.answer == "no" and found.mechanism in {"gaussian", "reveal"}:
            return refute(found, pair.pair, second, limit, None, pair.derivation)
    return None


def _find_changed(step: Derivation | None) -> Invariant:
    """Return the invariant that a pair of data sets leaves open."""
    while step is not None and "wanted" not in step.facts:
        step = step.premises[0]
    assert step is not None
    found: Invariant = step.facts["wanted"]
    return found


def _is_void(spec: SpecificationFields) -> bool:
    """Return whether an (ε, δ) promise says nothing between any two data sets of one universe."""
    measure = spec.output_premetric
    if not isinstance(measure, Approximate) or spec.varies is not None:
        return False
    apart = has_no_neighbours(spec.multiverse, spec.domain, spec.input_premetric)
    return scale_delta(spec.budget, measure.delta, Fraction(2 if apart else 1)) >= 1
