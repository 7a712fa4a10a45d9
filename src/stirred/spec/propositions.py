"""The paper's results on invariants, each with its hypotheses; an error says which of them fails.

Convention of Appendix D: 0 · ∞ = ∞. A finite multiverse, for Lemma 1 and Proposition 5, is a mapping from universes
(frozen sets of data sets) to budgets.
"""

from collections.abc import Hashable, Mapping

from stirred.errors import SpecificationError
from stirred.spec.budgets import Budget
from stirred.spec.domain import Domain
from stirred.spec.input_premetrics import InputPremetric, refines_within_reach
from stirred.spec.invariants import Invariant
from stirred.spec.multiverse import Multiverse
from stirred.spec.output_premetrics import OutputPremetric
from stirred.spec.specification import Specification
from stirred.spec.statement import Evidence
from stirred.spec.verdict import Answer, Verdict

Budgets = Mapping[frozenset[Hashable], Budget]


def exact_release(
    statistic: Invariant,
    *,
    domain: Domain,
    multiverse: Multiverse,
    input_premetric: InputPremetric,
    output_premetric: OutputPremetric,
) -> Specification:
    r"""Proposition 1: publishing $c$ exactly costs 0 where every universe fixes it, and ∞ where one does not.

    The second half needs two data sets at finite distance on which $c$ differs, and $D = \infty$ at total variation 1;
    without these an error is raised.
    """
    verdict = refines_within_reach(multiverse, Multiverse.of(statistic), domain, input_premetric)
    if verdict:
        budget = Budget.zero()
    elif verdict.answer is Answer.UNKNOWN:
        raise SpecificationError(
            f"the loss of publishing {statistic} exactly is unknown",
            why=verdict.because,
            fix="declare it an invariant: then it costs nothing",
        )
    elif not output_premetric.infinite_at_total_variation_one:
        raise SpecificationError(
            f"Proposition 1 does not say what publishing {statistic} costs under {output_premetric}",
            why="its second half needs a premetric that is infinite at total variation 1",
            fix="state it under Multiplicative() or NormalizedRenyi()",
        )
    else:
        budget = Budget.infinite()
    return Specification(
        domain=domain,
        multiverse=multiverse,
        input_premetric=input_premetric,
        output_premetric=output_premetric,
        budget=budget,
        evidence=Evidence(status="proved", source="Proposition 1"),
        notes=(f"exact release of {statistic}: {verdict.because}",),
    )


def only_invariants_are_free(
    output_premetric: OutputPremetric, *, varies_at_finite_distance: bool
) -> Verdict:
    """Decide by Proposition 2 whether ε > 0: the output varies inside a universe and the premetric is a metric."""
    if not output_premetric.is_metric:
        raise SpecificationError(
            f"Proposition 2 does not apply to {output_premetric}",
            why="it needs a metric: D(P, Q) > 0 whenever P ≠ Q",
            fix="use D_mult or D_nor",
        )
    if varies_at_finite_distance:
        return Verdict.yes(
            "the output's distribution differs between two data sets of one universe, so ε > 0 (Proposition 2)"
        )
    return Verdict.no(
        "the output's distribution is the same throughout each universe: it is a function of the invariants"
    )


def loss_is_no_smaller(coarser: Multiverse, finer: Multiverse, domain: Domain) -> Verdict:
    """Decide by Proposition 3 whether the loss of a mechanism is at least as large with fewer invariants."""
    verdict = finer.refines(coarser, domain)
    if verdict:
        return Verdict.yes(
            f"every finer universe lies in a coarser one, so L' ≥ L (Proposition 3): {verdict.because}"
        )
    return Verdict.unknown(f"Proposition 3 needs one multiverse to refine the other: {verdict.because}")


def lemma_1(budgets: Budgets, finer: Budgets) -> Verdict:
    """Decide by Lemma 1 whether M(spec) ⊂ M(spec'): each D' lies in some D with ε_D ≤ ε'_{D'} (δ = 0).

    >>> whole, half = frozenset("ab"), frozenset("a")
    >>> bool(lemma_1({whole: Budget.of(1)}, {half: Budget.of(2)}))
    True
    """
    for inside, allowed in finer.items():
        holders = [budget for universe, budget in budgets.items() if inside <= universe]
        if not holders:
            return Verdict.unknown("Lemma 1 does not apply: some universe lies in none of the others")
        if not any(budget <= allowed for budget in holders):
            return Verdict.unknown(
                "Lemma 1 does not apply: every universe around some finer one has a larger budget"
            )
    return Verdict.yes("each finer universe lies in one whose budget is no larger (Lemma 1)")


def largest_coarse_budgets(
    universes: "frozenset[frozenset[Hashable]]", finer: Budgets
) -> dict[frozenset[Hashable], Budget]:
    r"""Proposition 5, first half: any $\varepsilon_D \le \inf\{\varepsilon'_{D'} : D' \subset D\}$ suffices."""
    _require_refinement(universes, frozenset(finer))
    return {
        universe: min((b for inside, b in finer.items() if inside <= universe), default=Budget.infinite())
        for universe in universes
    }


def smallest_fine_budgets(
    budgets: Budgets, universes: "frozenset[frozenset[Hashable]]"
) -> dict[frozenset[Hashable], Budget]:
    r"""Proposition 5, second half: $\varepsilon'_{D'} = \inf\{\varepsilon_D : D' \subset D\}$ holds."""
    _require_refinement(frozenset(budgets), universes)
    return {inside: min(b for universe, b in budgets.items() if inside <= universe) for inside in universes}


def _require_refinement(
    coarse: "frozenset[frozenset[Hashable]]", fine: "frozenset[frozenset[Hashable]]"
) -> None:
    if not all(any(inside <= universe for universe in coarse) for inside in fine):
        raise SpecificationError(
            "Proposition 5 does not apply",
            why="the second multiverse is no refinement of the first",
            fix="give the multiverse with the larger universes first",
        )
