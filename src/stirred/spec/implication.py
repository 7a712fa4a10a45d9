"""Does one specification imply another? Yes with the rules used, no with a mechanism that shows it, or unknown."""

from typing import TYPE_CHECKING

from stirred.errors import IncompatibleError
from stirred.spec.budget import Budget
from stirred.spec.composition import account
from stirred.spec.divergences import Multiplicative, NormalizedRenyi
from stirred.spec.refinement import refines_within_reach
from stirred.spec.verdict import Answer, Verdict

if TYPE_CHECKING:
    from stirred.spec.specification import Specification


def implies(first: "Specification", second: "Specification") -> Verdict:
    """Whether every mechanism under the first specification is under the second (Lemma 1 and the conversions).

    A composed specification speaks of mechanisms made of its parts, and each part is converted by itself.

    >>> from stirred.spec import Budget, Domain, Hamming, Multiplicative, Multiverse, Specification
    >>> spec = Specification(
    ...     domain=Domain(name="toy"), multiverse=Multiverse.none(), input_premetric=Hamming("household"),
    ...     output_premetric=Multiplicative(), budget=Budget.of(1))
    >>> print(implies(spec, spec.within(Budget.of(2))))
    yes: nothing has to be determined; and 1.0000 ≤ 2.0000
    """
    if not second.budget.is_finite and second.varies is None:
        return Verdict.yes("the second promises nothing: its budget is infinite")
    if first.domain != second.domain:
        return Verdict.unknown(f"the domains differ: {first.domain} and {second.domain}")
    nested = refines_within_reach(second.multiverse, first.multiverse, first.domain, second.input_premetric)
    if nested.answer is Answer.NO:
        if second.budget.is_finite and second.output_premetric.infinite_at_total_variation_one:
            # where the budget differs by universe, only its value at the realised one is at hand
            taken = " (taking its budget to be finite in every universe, as it is in the realised one)"
            return Verdict.no(
                "publishing the invariants of the first exactly costs nothing under it and is infinite under the second"
                f"{taken if second.varies else ''}, by Proposition 1: {nested.because}"
            )
        return Verdict.unknown(nested.because)
    if not nested:
        return nested
    try:
        budget, notes = account(
            first.statements,
            domain=first.domain,
            multiverse=second.multiverse,
            input_premetric=second.input_premetric,
            output_premetric=second.output_premetric,
        )
    except IncompatibleError as reason:
        return Verdict.unknown(f"{reason.what}: {reason.why}")
    rules = "; ".join(filter(None, (nested.because, *notes)))
    return _budgets(first, second, budget, rules)


def _budgets(first: "Specification", second: "Specification", budget: Budget, rules: str) -> Verdict:
    """The last step: ε_D ≤ ε'_D' for every universe D' inside D (Lemma 1)."""
    if first.varies is not None or second.varies is not None:
        return _functions(first, second, budget, rules)
    if budget <= second.budget:
        return Verdict.yes(
            f"{rules}; and {budget} ≤ {second.budget}" if rules else f"{budget} ≤ {second.budget}"
        )
    same = first.flavor == second.flavor
    if same and not first.parts and isinstance(first.output_premetric, Multiplicative | NormalizedRenyi):
        return Verdict.no(
            f"the flavor is the same and {first.budget} > {second.budget}: noise scaled to the distance from one data set "
            "uses up the first budget exactly"
        )
    return Verdict.unknown(
        f"the rules give {budget}, more than {second.budget}; a sharper conversion may exist"
    )


def _functions(first: "Specification", second: "Specification", budget: Budget, rules: str) -> Verdict:
    """Budgets that differ by universe: only bounds over all universes decide."""
    mine, theirs = first.varies, second.varies
    if (
        mine is not None
        and mine == theirs
        and first.flavor == second.flavor
        and first.budget == second.budget
    ):
        return Verdict.yes(f"the same budget in every universe: {mine.words}")
    if mine is None and theirs is not None and budget <= theirs.least:
        return Verdict.yes(f"{rules}; and {budget} is at most the second's budget in every universe")
    if mine is not None and theirs is None and first.flavor == second.flavor and mine.most <= second.budget:
        return Verdict.yes(f"the first's budget is at most {mine.most} in every universe")
    words = "; ".join(function.words for function in (mine, theirs) if function is not None)
    return Verdict.unknown(
        f"a budget differs by universe ({words}); its value at the realised universe does not decide for the others"
    )
