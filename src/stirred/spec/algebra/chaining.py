"""Chaining: the second mechanism reads the first one's output, and nothing else of the confidential file.

This is not composition (`+`), where both read the file. Two rules are known; the specification of a chain of mechanisms
with different specifications is otherwise open (the paper, Section 6.2).
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Generic

from stirred.errors import SpecificationError
from stirred.spec.algebra.accounting import change_part_unit
from stirred.spec.algebra.stated import Spec
from stirred.spec.algebra.statement import BudgetFunction
from stirred.spec.verdict import Verdict
from stirred.spec.verdicts.implication import implies

OPEN_QUESTION = (
    "whether the second step adds protection of its own (a smaller budget, or fewer invariants) is unknown: "
    "no rule gives the specification of such a chain"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain(Generic[Spec]):
    """The proved specification of a chain, and whether a sharper one is known."""

    specification: Spec
    sharper: Verdict
    also: Spec | None = None  # a second promise the chain keeps, not ranked with the first


def chain(first: Spec, second: Spec, *, stability: int | Fraction | None = None) -> Chain[Spec]:
    r"""Return what is proved of reading the first output through the second mechanism.

    Rule 1, post-processing: whatever reads the output alone keeps the first promise.

    Rule 2, stability: the second promise with its budget times s, in the universes of both. The caller states s, and with
    it this hypothesis. For all x, x' that agree on the invariants of both steps, the outputs Y of the first step on x and
    Y' on x' can be drawn together so that always (a) both agree with x on the second's invariants, and (b)
    d(Y, Y') ≤ s · d(x, x'), d the second's distance. Proof: given (y, y'), the second step's outputs are at most
    ε·d(y, y') ≤ sε·d(x, x') apart, because (a) puts y and y' into one universe of the second, that of x. The chain's
    outputs mix these with the same weights, and a quasi-convex D does not grow by that. ∎ Nothing is assumed between x and
    x' that differ on an invariant of the first step, so nothing is promised about them: no invariant of either is dropped.

    >>> from stirred.spec import Budget, Domain, Hamming, Margin, Multiplicative, Multiverse, Specification
    >>> noisy = Specification(
    ...     domain=Domain(name="toy"), multiverse=Multiverse.none(), input_premetric=Hamming("household"),
    ...     output_premetric=Multiplicative(), budget=Budget.of(1))
    >>> swapped = noisy.given(Margin("household", ("block",))).within(Budget.of(9))
    >>> print(chain(swapped, noisy, stability=1).specification)
    toy | {households by block} | d_Ham(household) | D_mult | ε = 1.0000
    """
    # what leaves is what the second step makes of the first one's output
    kept = replace(
        first,
        notes=tuple(sorted({*first.notes, "chained: " + OPEN_QUESTION})),
        released=second.views or first.released,
    )
    if stability is None:
        return Chain(specification=kept, sharper=Verdict.unknown(OPEN_QUESTION))
    if isinstance(stability, float) or stability < 0:
        raise SpecificationError(
            f"{stability} is no stability",
            why="the budget is multiplied by it, so it has to be an exact number of at least 0",
            fix="give an int or a Fraction: stability=1",
        )
    if first.domain != second.domain:
        reason = (
            f"the second speaks of {second.domain}, and stability is stated for data sets of {first.domain}"
        )
        return Chain(specification=kept, sharper=Verdict.unknown(reason))
    if not second.output_premetric.quasi_convex:
        return Chain(
            specification=kept,
            sharper=Verdict.unknown(
                f"{second.output_premetric} is not known to be quasi-convex, so mixing may raise it"
            ),
        )
    try:
        carried = _carry_promise(first, second, Fraction(stability))
    except SpecificationError as void:  # no δ below 1 is left, or none that is right in every universe
        return Chain(specification=kept, sharper=Verdict.unknown(f"{void.what}: {void.why}"))
    if implies(carried, kept):
        return Chain(specification=carried, sharper=Verdict.yes(f"the first step is {stability}-stable"))
    return Chain(
        specification=kept,
        sharper=Verdict.yes(f"by stability the chain also keeps a second promise: {carried}"),
        also=carried,
    )


def _carry_promise(first: Spec, second: Spec, stability: Fraction) -> Spec:
    """Return the second promise scaled by the stability of the first step, in the universes of both."""
    measure, budget = change_part_unit(replace(second, parts=()).statements[0], stability)
    note = f"chained: the first step is {stability}-stable and keeps the invariants of both, as stated by the caller"
    return replace(
        second,
        multiverse=first.multiverse & second.multiverse,
        output_premetric=measure,
        budget=budget,
        parts=(),
        bounds=(),
        varies=second.varies if stability == 1 else _scale_function(second.varies, stability),
        notes=tuple(sorted({*second.notes, note})),
    )


def _scale_function(function: BudgetFunction | None, stability: Fraction) -> BudgetFunction | None:
    """Return a budget function times a constant; only its words and its bounds are known."""
    if function is None:
        return None
    return BudgetFunction(
        words=f"{stability} × ({function.words})",
        universe=function.universe,
        least=function.least * stability,
        most=function.most * stability,
    )
