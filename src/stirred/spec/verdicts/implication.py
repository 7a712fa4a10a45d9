"""Does one specification imply another? Yes with the rules used, no with a witness that a checker verifies, or unknown.

A specification allows B(x, x') = ε_D · d(x, x') between two data sets of one universe, and anything between others. The
first implies the second exactly when, for all x, x' of one universe of the second at finite distance, what the first
allows is within what the second allows: for every pair there is a mechanism that uses up what the first allows.
"""

from fractions import Fraction

from stirred.spec.algebra.stated import Stated
from stirred.spec.invariants.brief import brief
from stirred.spec.multiverse import Invariant, Multiverse
from stirred.spec.neighbours import Neighbours
from stirred.spec.numbers.budget import Budget
from stirred.spec.outputs.divergences import Approximate
from stirred.spec.outputs.group import scaled_delta
from stirred.spec.outputs.transfer import Asked, transfer
from stirred.spec.verdict import Answer, Verdict
from stirred.spec.verdicts.budgets import BudgetQuestion, at_pair, distance_of, known, refuted
from stirred.spec.verdicts.derivation import Derivation
from stirred.spec.verdicts.examples import Example, different_pair, no_neighbours
from stirred.spec.verdicts.functions import FunctionQuestion
from stirred.spec.verdicts.reach import counts_only_its_own, refines_within_reach


def implies(first: Stated, second: Stated) -> Verdict:
    """Whether every mechanism under the first specification is under the second (Lemma 1 and the conversions).

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
        return _yes("nothing promised", "the second promises nothing: its budget is infinite")
    if first is second:
        return _yes("same", "the two are one statement")
    if first.domain != second.domain:
        return Verdict.unknown(
            f"the domains differ: {first.domain} and {second.domain}; restate one on the other's domain with spec.on"
        )
    pair = different_pair(second.multiverse, second.domain, second.input_premetric)
    if pair.singletons is not None:
        rule = "no neighbours" if pair.singletons.rule == "no neighbours" else "singletons"
        because = {
            "singletons": "every universe of the second is a single data set, so it promises nothing",
            "no neighbours": "no two data sets of one universe are neighbours, so the second promises nothing",
        }[rule]
        return _yes(rule, because, pair.singletons)
    if _void(second):
        return _yes("void", "the second promises nothing at any distance that occurs: its δ reaches 1 there")
    apart = infinitely_apart(first)
    sizes = refines_within_reach(second.multiverse, apart, first.domain, second.input_premetric)
    nested = refines_within_reach(second.multiverse, first.multiverse, first.domain, second.input_premetric)
    for found in (nested, sizes):
        if found.answer is Answer.NO:
            return _published(first, second, found)
    if not nested:
        return known(_refuted_anyway(first, second, pair), nested)
    varies = first.varies is not None or second.varies is not None
    question = FunctionQuestion if varies else BudgetQuestion
    return question(first, second, nested, pair).answer()


def infinitely_apart(spec: Stated) -> Multiverse:
    """What may be published because of the distance: data sets that differ in it are infinitely far apart."""
    fixed = spec.input_premetric.fixed()
    return (
        Multiverse.none()
        if fixed is None or not counts_only_its_own(spec.input_premetric, spec.domain)
        else fixed
    )


def _yes(rule: str, because: str, *premises: Derivation) -> Verdict:
    return Verdict.yes(because, Derivation(rule=rule, claim=because, premises=premises))


def _published(first: Stated, second: Stated, nested: Verdict) -> Verdict:
    """A no where the first may publish an invariant exactly that the second does not fix (Proposition 1)."""
    pair = None if nested.derivation is None else nested.derivation.witness
    limit = at_pair(second, pair)
    distance = None if pair is None else distance_of(pair, second.input_premetric, second.domain)
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
    let_out = _changed(nested.derivation)
    because = f"the first may publish {brief(let_out, first.domain)} exactly, which the second protects (Proposition 1)"
    premises = (nested.derivation,) if nested.derivation is not None else ()
    facts = {"mechanism": "publish", "limit": limit.exact, "distance": distance}
    return Verdict.no(
        because, Derivation(rule="mechanism", claim=because, premises=premises, witness=pair, facts=facts)
    )


def _refuted_anyway(first: Stated, second: Stated, pair: Example) -> Verdict | None:
    """A no that does not depend on the multiverses: the first allows what the second's premetric never does.

    If the pair lies in one universe of the first, the mechanism at hand breaks the second; if not, the first may tell
    the two apart with certainty.
    """
    limit = None if pair.pair is None else at_pair(second, pair.pair)
    if pair.pair is None or limit is None or not limit.is_finite:
        return None
    for part in first.statements:
        if part.varies is not None or part.budget.is_zero:
            continue
        asked = Asked(
            first=part.output_premetric,
            budget=part.budget,
            second=second.output_premetric,
            limit=limit,
            allowed=Budget.of(1),  # any positive amount: only mechanisms whose loss is infinite are asked for
        )
        found = transfer(asked)
        if found.answer == "no" and found.mechanism in {"gaussian", "reveal"}:
            return refuted(found, pair.pair, second, limit, None, pair.derivation)
    return None


def _changed(step: Derivation | None) -> Invariant:
    """The invariant that a pair of data sets leaves open."""
    while step is not None and "wanted" not in step.facts:
        step = step.premises[0]
    assert step is not None
    found: Invariant = step.facts["wanted"]
    return found


def _void(spec: Stated) -> bool:
    """Whether an (ε, δ) promise says nothing between any two data sets of one universe."""
    measure = spec.output_premetric
    if not isinstance(measure, Approximate) or spec.varies is not None:
        return False
    apart = no_neighbours(spec.multiverse, spec.domain, spec.input_premetric)
    return scaled_delta(spec.budget, measure.delta, Fraction(2 if apart else 1)) >= 1
