"""Reconstruct records of small areas from published tables, as an integer programme over their histogram."""

from stirred.assess.attack.reconstruction.areas import Effort, ReconstructedAreas, reconstruct
from stirred.assess.attack.reconstruction.block_tables import (
    AGE_STARTS,
    age_class,
    block_design,
    fits_blocks,
)
from stirred.assess.attack.reconstruction.confidence import calibration, held_against, precision_area
from stirred.assess.attack.reconstruction.design import TableDesign
from stirred.assess.attack.reconstruction.noisy import nearest
from stirred.assess.attack.reconstruction.programme import Programme
from stirred.assess.attack.reconstruction.published import (
    AreaCounts,
    published_blocks,
    published_margins,
    published_tables,
)
from stirred.assess.attack.reconstruction.variability import Variability, variability

__all__ = [
    "AGE_STARTS",
    "AreaCounts",
    "Effort",
    "Programme",
    "ReconstructedAreas",
    "TableDesign",
    "Variability",
    "age_class",
    "block_design",
    "calibration",
    "fits_blocks",
    "held_against",
    "nearest",
    "precision_area",
    "published_blocks",
    "published_margins",
    "published_tables",
    "reconstruct",
    "variability",
]
