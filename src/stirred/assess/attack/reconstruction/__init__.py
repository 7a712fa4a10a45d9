"""Reconstruct records of small areas from published tables, as an integer programme over their histogram."""

from typing import TYPE_CHECKING

from stirred.on_demand import on_demand

if TYPE_CHECKING:
    from stirred.assess.attack.reconstruction.areas import Effort as Effort
    from stirred.assess.attack.reconstruction.areas import ReconstructedAreas as ReconstructedAreas
    from stirred.assess.attack.reconstruction.areas import reconstruct as reconstruct
    from stirred.assess.attack.reconstruction.block_tables import AGE_STARTS as AGE_STARTS
    from stirred.assess.attack.reconstruction.block_tables import age_class as age_class
    from stirred.assess.attack.reconstruction.block_tables import block_design as block_design
    from stirred.assess.attack.reconstruction.block_tables import fits_blocks as fits_blocks
    from stirred.assess.attack.reconstruction.confidence import calibration as calibration
    from stirred.assess.attack.reconstruction.confidence import held_against as held_against
    from stirred.assess.attack.reconstruction.confidence import precision_area as precision_area
    from stirred.assess.attack.reconstruction.design import TableDesign as TableDesign
    from stirred.assess.attack.reconstruction.noisy import nearest as nearest
    from stirred.assess.attack.reconstruction.programme import Programme as Programme
    from stirred.assess.attack.reconstruction.published import AreaCounts as AreaCounts
    from stirred.assess.attack.reconstruction.published import published_blocks as published_blocks
    from stirred.assess.attack.reconstruction.published import published_margins as published_margins
    from stirred.assess.attack.reconstruction.published import published_tables as published_tables
    from stirred.assess.attack.reconstruction.tracts import JoinedBlocks as JoinedBlocks
    from stirred.assess.attack.reconstruction.tracts import reconstruct_joined as reconstruct_joined
    from stirred.assess.attack.reconstruction.tracts import tract_tables as tract_tables
    from stirred.assess.attack.reconstruction.variability import Variability as Variability
    from stirred.assess.attack.reconstruction.variability import variability as variability

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
    "fits_blocks",
    "held_against",
    "nearest",
    "precision_area",
    "published_blocks",
    "published_margins",
    "published_tables",
    "reconstruct",
    "reconstruct_joined",
    "tract_tables",
    "variability",
]

__getattr__ = on_demand(
    __name__,
    {
        "areas": ("Effort", "ReconstructedAreas", "reconstruct"),
        "block_tables": ("AGE_STARTS", "age_class", "block_design", "fits_blocks"),
        "confidence": ("calibration", "held_against", "precision_area"),
        "design": ("TableDesign",),
        "noisy": ("nearest",),
        "programme": ("Programme",),
        "published": ("AreaCounts", "published_blocks", "published_margins", "published_tables"),
        "tracts": ("JoinedBlocks", "reconstruct_joined", "tract_tables"),
        "variability": ("Variability", "variability"),
    },
)
