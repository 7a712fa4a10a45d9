"""Reconstruct records of small areas from published tables, as an integer programme over their histogram."""

from typing import TYPE_CHECKING

from stirred.on_demand import load_on_demand

if TYPE_CHECKING:
    from stirred.assess.attack.reconstruction.areas import Effort as Effort
    from stirred.assess.attack.reconstruction.areas import ReconstructedAreas as ReconstructedAreas
    from stirred.assess.attack.reconstruction.areas import reconstruct as reconstruct
    from stirred.assess.attack.reconstruction.block_tables import AGE_STARTS as AGE_STARTS
    from stirred.assess.attack.reconstruction.block_tables import age_class as age_class
    from stirred.assess.attack.reconstruction.block_tables import block_design as block_design
    from stirred.assess.attack.reconstruction.block_tables import fits_blocks as fits_blocks
    from stirred.assess.attack.reconstruction.confidence import calibration as calibration
    from stirred.assess.attack.reconstruction.confidence import mark_true as mark_true
    from stirred.assess.attack.reconstruction.confidence import precision_area as precision_area
    from stirred.assess.attack.reconstruction.design import TableDesign as TableDesign
    from stirred.assess.attack.reconstruction.noisy import find_nearest as find_nearest
    from stirred.assess.attack.reconstruction.programme import Programme as Programme
    from stirred.assess.attack.reconstruction.published import AreaCounts as AreaCounts
    from stirred.assess.attack.reconstruction.published import collect_tables as collect_tables
    from stirred.assess.attack.reconstruction.published import tabulate_blocks as tabulate_blocks
    from stirred.assess.attack.reconstruction.published import tabulate_margins as tabulate_margins
    from stirred.assess.attack.reconstruction.tracts import JoinedBlocks as JoinedBlocks
    from stirred.assess.attack.reconstruction.tracts import reconstruct_joined as reconstruct_joined
    from stirred.assess.attack.reconstruction.tracts import tabulate_tracts as tabulate_tracts
    from stirred.assess.attack.reconstruction.variability import Variability as Variability
    from stirred.assess.attack.reconstruction.variability import measure_variability as measure_variability

__all__ = [
    "AGE_STARTS",
    "AreaCounts",
    "Effort",
    "JoinedBlocks",
    "Programme",
    "ReconstructedAreas",
    "TableDesign",
    "Variability",
    "age_class",
    "block_design",
    "calibration",
    "collect_tables",
    "find_nearest",
    "fits_blocks",
    "mark_true",
    "measure_variability",
    "precision_area",
    "reconstruct",
    "reconstruct_joined",
    "tabulate_blocks",
    "tabulate_margins",
    "tabulate_tracts",
]

__getattr__ = load_on_demand(
    __name__,
    {
        "areas": ("Effort", "ReconstructedAreas", "reconstruct"),
        "block_tables": ("AGE_STARTS", "age_class", "block_design", "fits_blocks"),
        "confidence": ("calibration", "mark_true", "precision_area"),
        "design": ("TableDesign",),
        "noisy": ("find_nearest",),
        "programme": ("Programme",),
        "published": ("AreaCounts", "tabulate_blocks", "tabulate_margins", "collect_tables"),
        "tracts": ("JoinedBlocks", "reconstruct_joined", "tabulate_tracts"),
        "measure_variability": ("Variability", "measure_variability"),
    },
)
