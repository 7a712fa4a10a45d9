"""Chaining: the second mechanism reads the first one's output, and nothing else of the confidential file.

This is not composition (`+`), where both read the file. Two rules are known; the specification of a chain of mechanisms
with different specifications is otherwise open (the paper, Section 6.2).
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from stirred.errors import SpecificationError
from stirred.spec.budget import Budget
from stirred.spec.statement import BudgetFunction
from stirred.spec.verdict import Verdict

if TYPE_CHECKING:
    from stirred.spec.specification import Specification

OPEN = (
    "whether the second step adds protection of its own (a smaller budget, or fewer invariants) is unknown: "
    "no rule gives the specification of such a chain"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """What is proved about a chain, and whether something sharper is known."""

    specification: "Specification"
    sharper: Verdict
    also: "Specification | None" = None  # a second promise the chain keeps, not ranked with the first


def chain(
    first: "Specification", second: "Specification", *, stability: int | Fraction | None = None
) -> Chain:
    """The specification of reading the first output through the second mechanism.

    Rule 1, post-processing: whatever reads the output alone keeps the first promise. Rule 2, stability: if outputs of
    the first step on x and x' can be coupled so that they lie in one universe of the second and are never farther apart
    than ``stability`` · d(x, x'), the second promise carries over with its budget times ``stability`` (D_Pr must be
    quasi-convex). The caller states the stability; without it rule 2 is not used.

    >>> from stirred.spec import Budget, Domain, Hamming, Multiplicative, Multiverse, Specification
    >>> spec = Specification(
    ...     domain=Domain(name="toy"), multiverse=Multiverse.none(), input_premetric=Hamming("household"),
    ...     output_premetric=Multiplicative(), budget=Budget.of(1))
    >>> chain(spec, spec).sharper.answer.value
    'unknown'
    """
    kept = replace(first, notes=tuple(sorted({*first.notes, "chained: " + OPEN})))
    if stability is None:
        return Chain(specification=kept, sharper=Verdict.unknown(OPEN))
    if isinstance(stability, float) or stability < 0:
        raise SpecificationError("a stability is an exact number from 0 on", fix="give an int or a Fraction")
    if not second.output_premetric.quasi_convex:
        return Chain(
            specification=kept,
            sharper=Verdict.unknown(
                f"{second.output_premetric} is not known to be quasi-convex, so mixing may raise it"
            ),
        )
    carried = replace(
        second,
        budget=second.budget * Budget.of(Fraction(stability)),
        parts=(),
        bounds=(),
        varies=None
        if second.varies is None
        else BudgetFunction(words=f"{stability} × ({second.varies.words})"),
        notes=tuple(
            sorted({*second.notes, f"chained: the first step is {stability}-stable, as stated by the caller"})
        ),
    )
    if carried.implies(kept):
        return Chain(specification=carried, sharper=Verdict.yes(f"the first step is {stability}-stable"))
    return Chain(
        specification=kept,
        sharper=Verdict.yes(f"by stability the chain also keeps a second promise: {carried}"),
        also=carried,
    )
