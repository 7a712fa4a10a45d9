"""Run on this machine, with threads and with parts on disk."""

from stirred.engine.local.engine import Local

__all__ = ["Local"]
