"""Perturb tables by the cell key method: bounded noise, the same for the same records (proof.md)."""

from typing import TYPE_CHECKING

from stirred._support import load_on_demand

if TYPE_CHECKING:
    from stirred.mechanisms.tables.cell_key.mechanism import CellKey as CellKey
    from stirred.mechanisms.tables.cell_key.perturbation import GridTable as GridTable
    from stirred.mechanisms.tables.cell_key.perturbation import IntervalTable as IntervalTable
    from stirred.mechanisms.tables.cell_key.perturbation import design_table as design_table
    from stirred.mechanisms.tables.cell_key.perturbation import read_table as read_table
    from stirred.mechanisms.tables.cell_key.perturbation import write_grid as write_grid
    from stirred.mechanisms.tables.cell_key.perturbation import write_intervals as write_intervals


# The cell key method: tables with bounded noise that is the same for the same records. What it promises is in proof.md.

__all__ = [
    "CellKey",
    "GridTable",
    "IntervalTable",
    "design_table",
    "read_table",
    "write_grid",
    "write_intervals",
]

__getattr__ = load_on_demand(
    __name__,
    {
        "mechanism": ("CellKey",),
        "perturbation": (
            "GridTable",
            "IntervalTable",
            "design_table",
            "read_table",
            "write_grid",
            "write_intervals",
        ),
    },
)
