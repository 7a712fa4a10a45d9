"""What is promised: exact specifications, pure mathematics, no data."""

from stirred.spec.algebra.chaining import Chain, chain
from stirred.spec.algebra.composition import compose
from stirred.spec.algebra.propositions import exact_release
from stirred.spec.algebra.statement import BudgetFunction, Evidence, Part
from stirred.spec.compare import Comparison, Finding, Relation, compare
from stirred.spec.domain import Constraint, Dependency, Domain, RecordType, Variable
from stirred.spec.laws.functions import FunctionOrder, compare_functions
from stirred.spec.laws.order import LawOrder, compare_laws
from stirred.spec.laws.sizes import SizeLaw
from stirred.spec.laws.stratum import LargestStratum
from stirred.spec.ledger import Entry, Ledger
from stirred.spec.multiverse import (
    AtLeast,
    Custom,
    Invariant,
    Margin,
    Multiverse,
    Restriction,
    SupportsCounts,
)
from stirred.spec.neighbours import Neighbours
from stirred.spec.numbers.budget import Bound, Budget
from stirred.spec.outputs.divergences import (
    Approximate,
    Multiplicative,
    NormalizedRenyi,
    OutputPremetric,
    rho_squared_to_epsilon,
)
from stirred.spec.outputs.group import GroupReading, at_distance
from stirred.spec.outputs.readings import Reading, reading
from stirred.spec.premetrics import Constant, Hamming, InputPremetric, RecordPremetric, SymmetricDifference
from stirred.spec.specification import Specification, html_of
from stirred.spec.universe import Universe, universe
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
