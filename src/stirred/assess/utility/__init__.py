"""Measure how far a protected table, file or conclusion is from the original."""

from stirred.assess.utility.metrics import Metric, all_metrics, malpe, mape, mape_bureau
from stirred.assess.utility.tables import AREA_BINS, BLOCK_BINS, CELL_BINS, TablePair, measure_errors

__all__ = [
    "AREA_BINS",
    "BLOCK_BINS",
    "CELL_BINS",
    "Metric",
    "TablePair",
    "all_metrics",
    "malpe",
    "mape",
    "mape_bureau",
    "measure_errors",
]
