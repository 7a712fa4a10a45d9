"""Two parts of Arrow, loaded when first used: ``pyarrow.dataset`` imports pandas wherever that is installed.

Annotations with ``pads.Dataset`` are written as texts, because evaluating one loads the module.
"""

from typing import TYPE_CHECKING

from stirred.on_demand import ModuleOnDemand

if TYPE_CHECKING:
    import pyarrow.compute as pc
    import pyarrow.dataset as pads
else:
    pc, pads = ModuleOnDemand("pyarrow.compute"), ModuleOnDemand("pyarrow.dataset")

__all__ = ["pads", "pc"]
