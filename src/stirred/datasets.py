"""Arrow's datasets, loaded when one is first opened: ``pyarrow.dataset`` imports pandas wherever that is installed.

Annotations with ``pads.Dataset`` are written as texts, because evaluating one loads the module.
"""

from typing import TYPE_CHECKING

from stirred.on_demand import ModuleOnDemand

if TYPE_CHECKING:
    import pyarrow.dataset as pads
else:
    pads = ModuleOnDemand("pyarrow.dataset")

__all__ = ["pads"]
