"""The chapter on risk: who stands alone, what exact numbers give away, and what attacks find beside a guess."""

from stirred.report.risk.alone import alone, before_and_after
from stirred.report.risk.attacks import LeftOut, Undone, left_out, majority, noisy, undone
from stirred.report.risk.given import given
from stirred.report.risk.measured import measured, written

__all__ = [
    "LeftOut",
    "Undone",
    "alone",
    "before_and_after",
    "given",
    "left_out",
    "majority",
    "measured",
    "noisy",
    "undone",
    "written",
]
