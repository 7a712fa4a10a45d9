"""What is promised: exact specifications, pure mathematics, no data."""

from stirred.spec.algebra import Chain, Entry, Ledger, chain, compose
from stirred.spec.budgets import Bound, Budget
from stirred.spec.compare import Comparison, Finding, Relation, compare, exact_release
from stirred.spec.domain import Constraint, Dependency, Domain, RecordType, Variable
from stirred.spec.input_premetrics import (
    Constant,
    Exchanges,
    Hamming,
    InputPremetric,
    Neighbours,
    RecordPremetric,
    SymmetricDifference,
)
from stirred.spec.invariants import AtLeast, Custom, Invariant, Margin, Restriction, SupportsCounts
from stirred.spec.laws import LargestStratum, LawOrder, SizeLaw, compare_laws
from stirred.spec.multiverse import Multiverse, Universe, universe
from stirred.spec.output_premetrics import (
    Approximate,
    GroupReading,
    Multiplicative,
    NormalizedRenyi,
    OutputPremetric,
    Reading,
    at_distance,
    reading,
    rho_squared_to_epsilon,
)
from stirred.spec.specification import Specification, html_of
from stirred.spec.statement import BudgetFunction, Evidence, FunctionOrder, Part, compare_functions
from stirred.spec.verdict import Answer, Verdict


@html_of.register
def _(specification: Specification) -> str:
    # loaded here, because a card needs templates and mpmath, which a run without a notebook does not
    from stirred.spec.card import Card

    return Card(specification)._repr_html_()


__all__ = [
    "Answer",
    "Approximate",
    "AtLeast",
    "Bound",
    "Budget",
    "BudgetFunction",
    "Chain",
    "Comparison",
    "Constant",
    "Constraint",
    "Custom",
    "Dependency",
    "Domain",
    "Entry",
    "Evidence",
    "Exchanges",
    "Finding",
    "FunctionOrder",
    "GroupReading",
    "Hamming",
    "InputPremetric",
    "Invariant",
    "LargestStratum",
    "LawOrder",
    "Ledger",
    "Margin",
    "Multiplicative",
    "Multiverse",
    "Neighbours",
    "NormalizedRenyi",
    "OutputPremetric",
    "Part",
    "Reading",
    "RecordPremetric",
    "RecordType",
    "Relation",
    "Restriction",
    "SizeLaw",
    "Specification",
    "SupportsCounts",
    "SymmetricDifference",
    "Universe",
    "Variable",
    "Verdict",
    "at_distance",
    "chain",
    "compare",
    "compare_functions",
    "compare_laws",
    "compose",
    "exact_release",
    "reading",
    "rho_squared_to_epsilon",
    "universe",
]
