"""One table whose margins are exact, with noise in the free cells. The promise is proved in proof.md."""

from typing import TYPE_CHECKING

from stirred.on_demand import load_on_demand

if TYPE_CHECKING:
    from stirred.mechanisms.exact_margins.mechanism import ExactMargins as ExactMargins

__all__ = ["ExactMargins"]

__getattr__ = load_on_demand(
    __name__,
    {
        "mechanism": ("ExactMargins",),
    },
)
