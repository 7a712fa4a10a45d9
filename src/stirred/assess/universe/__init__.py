"""What the invariants alone give away: how many data sets agree on them, and what all of these share."""

from stirred.assess.universe.bounds import CellBounds, cell_bounds
from stirred.assess.universe.counting import count_tables, log_placements, log_range
from stirred.assess.universe.kept import Candidate, CountTables, kept
from stirred.assess.universe.measured import UniverseResult, universe
from stirred.assess.universe.rounding import NearInvariant, gaussian, geometric
from stirred.assess.universe.sampling import SampledCount, sample_tables
from stirred.assess.universe.trade import trade, variations

__all__ = [
    "Candidate",
    "CellBounds",
    "CountTables",
    "NearInvariant",
    "SampledCount",
    "UniverseResult",
    "cell_bounds",
    "count_tables",
    "gaussian",
    "geometric",
    "kept",
    "log_placements",
    "log_range",
    "sample_tables",
    "trade",
    "universe",
    "variations",
]
