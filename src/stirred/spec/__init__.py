"""What is promised: exact specifications, pure mathematics, no data."""

from stirred.spec.budget import Bound, Budget
from stirred.spec.chaining import Chain, chain
from stirred.spec.compare import Comparison, Finding, Relation, compare
from stirred.spec.composition import compose
from stirred.spec.divergences import (
    Approximate,
    Multiplicative,
    NormalizedRenyi,
    OutputPremetric,
    rho_squared_to_epsilon,
)
from stirred.spec.domain import Constraint, Dependency, Domain, RecordType, Variable
from stirred.spec.group import GroupReading, at_distance
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
from stirred.spec.premetrics import Constant, Hamming, InputPremetric, RecordPremetric, SymmetricDifference
from stirred.spec.propositions import exact_release
from stirred.spec.readings import Reading, reading
from stirred.spec.specification import Specification
from stirred.spec.statement import BudgetFunction, Evidence, Part
from stirred.spec.universe import Universe, universe
from stirred.spec.verdict import Answer, Verdict

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
    "GroupReading",
    "Hamming",
    "InputPremetric",
    "Invariant",
    "Ledger",
    "Margin",
    "Multiplicative",
    "Multiverse",
    "NormalizedRenyi",
    "OutputPremetric",
    "Part",
    "Reading",
    "RecordPremetric",
    "RecordType",
    "Relation",
    "Restriction",
    "Specification",
    "SupportsCounts",
    "SymmetricDifference",
    "Universe",
    "Variable",
    "Verdict",
    "at_distance",
    "chain",
    "compare",
    "compose",
    "exact_release",
    "reading",
    "rho_squared_to_epsilon",
    "universe",
]
