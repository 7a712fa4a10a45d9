"""What the invariants alone give away: how many data sets agree on them, and what all of these share."""

from typing import TYPE_CHECKING

from stirred._support import load_on_demand

if TYPE_CHECKING:
    from stirred.assess.universe.bounds import CellBounds as CellBounds
    from stirred.assess.universe.bounds import cell_bounds as cell_bounds
    from stirred.assess.universe.counting import SampledCount as SampledCount
    from stirred.assess.universe.counting import count_tables as count_tables
    from stirred.assess.universe.counting import log_placements as log_placements
    from stirred.assess.universe.counting import log_range as log_range
    from stirred.assess.universe.counting import sample_tables as sample_tables
    from stirred.assess.universe.invariants import Candidate as Candidate
    from stirred.assess.universe.invariants import CountTables as CountTables
    from stirred.assess.universe.invariants import NearInvariant as NearInvariant
    from stirred.assess.universe.invariants import check_candidates as check_candidates
    from stirred.assess.universe.invariants import gaussian as gaussian
    from stirred.assess.universe.invariants import geometric as geometric
    from stirred.assess.universe.measures import UniverseResult as UniverseResult
    from stirred.assess.universe.measures import measure_universe as measure_universe
    from stirred.assess.universe.measures import trade as trade
    from stirred.assess.universe.measures import variations as variations

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
        "bounds": (
            "CellBounds",
            "cell_bounds",
        ),
        "counting": (
            "SampledCount",
            "count_tables",
            "log_placements",
            "log_range",
            "sample_tables",
        ),
        "invariants": (
            "Candidate",
            "CountTables",
            "NearInvariant",
            "check_candidates",
            "gaussian",
            "geometric",
        ),
        "measures": (
            "UniverseResult",
            "measure_universe",
            "trade",
            "variations",
        ),
    },
)
