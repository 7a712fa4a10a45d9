"""What the invariants alone give away: how many data sets agree on them, and what all of these share."""

from typing import TYPE_CHECKING

from stirred.on_demand import load_on_demand

if TYPE_CHECKING:
    from stirred.assess.universe.bounds import CellBounds as CellBounds
    from stirred.assess.universe.bounds import cell_bounds as cell_bounds
    from stirred.assess.universe.counting import count_tables as count_tables
    from stirred.assess.universe.counting import log_placements as log_placements
    from stirred.assess.universe.counting import log_range as log_range
    from stirred.assess.universe.kept import Candidate as Candidate
    from stirred.assess.universe.kept import CountTables as CountTables
    from stirred.assess.universe.kept import check_candidates as check_candidates
    from stirred.assess.universe.measured import UniverseResult as UniverseResult
    from stirred.assess.universe.measured import measure_universe as measure_universe
    from stirred.assess.universe.rounding import NearInvariant as NearInvariant
    from stirred.assess.universe.rounding import gaussian as gaussian
    from stirred.assess.universe.rounding import geometric as geometric
    from stirred.assess.universe.sampling import SampledCount as SampledCount
    from stirred.assess.universe.sampling import sample_tables as sample_tables
    from stirred.assess.universe.trade import trade as trade
    from stirred.assess.universe.trade import variations as variations

__all__ = [
    "Candidate",
    "CellBounds",
    "CountTables",
    "NearInvariant",
    "SampledCount",
    "UniverseResult",
    "cell_bounds",
    "check_candidates",
    "count_tables",
    "gaussian",
    "geometric",
    "log_placements",
    "log_range",
    "measure_universe",
    "sample_tables",
    "trade",
    "variations",
]

__getattr__ = load_on_demand(
    __name__,
    {
        "bounds": ("CellBounds", "cell_bounds"),
        "counting": ("count_tables", "log_placements", "log_range"),
        "check_candidates": ("Candidate", "CountTables", "check_candidates"),
        "measured": ("UniverseResult", "measure_universe"),
        "rounding": ("NearInvariant", "gaussian", "geometric"),
        "sampling": ("SampledCount", "sample_tables"),
        "trade": ("trade", "variations"),
    },
)
