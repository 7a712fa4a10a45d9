"""Tables of counts with independent discrete Gaussian noise. What they promise is in proof.md."""

from typing import TYPE_CHECKING

from stirred.on_demand import load_on_demand

if TYPE_CHECKING:
    from stirred.mechanisms.gaussian_tables.mechanism import GaussianTables as GaussianTables

__all__ = ["GaussianTables"]

__getattr__ = load_on_demand(__name__, {"mechanism": ("GaussianTables",)})
