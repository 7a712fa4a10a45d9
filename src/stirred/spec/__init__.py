"""What is promised: exact specifications, pure mathematics, no data."""

from stirred.spec.budget import Bound, Budget
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
from stirred.spec.ledger import Entry, Ledger
from stirred.spec.multiverse import AtLeast, Custom, Invariant, Margin, Multiverse, Restriction, SupportsCounts
from stirred.spec.premetrics import Constant, Hamming, InputPremetric, RecordPremetric, SymmetricDifference
from stirred.spec.readings import Reading, reading
from stirred.spec.specification import Specification
from stirred.spec.statement import BudgetFunction, Evidence, Part
from stirred.spec.verdict import Answer, Verdict

__all__ = [
    "Answer",
    "Approximate",
    "AtLeast",
    "Bound",
    "Budget",
    "BudgetFunction",
    "Comparison",
    "Constant",
    "Constraint",
    "Custom",
    "Dependency",
    "Domain",
    "Entry",
    "Evidence",
    "Finding",
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
    "Variable",
    "Verdict",
    "compare",
    "compose",
    "reading",
    "rho_squared_to_epsilon",
]
