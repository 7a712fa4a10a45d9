"""One table whose margins are exact, with noise in the free cells. The promise is proved in proof.md."""

from stirred.mechanisms.exact_margins.mechanism import ExactMargins

__all__ = ["ExactMargins"]
