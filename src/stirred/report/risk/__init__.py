"""The chapter on risk: who stands alone, what exact numbers give away, and what attacks find beside a guess."""

from stirred.report.risk.alone import write_before_and_after, write_unique
from stirred.report.risk.attacks import (
    InversionShares,
    SkippedPart,
    write_inversion,
    write_majority,
    write_noisy_tables,
    write_skipped,
)
from stirred.report.risk.given import write_disclosure
from stirred.report.risk.measured import write_measures, write_number

__all__ = [
    "InversionShares",
    "SkippedPart",
    "write_before_and_after",
    "write_disclosure",
    "write_inversion",
    "write_majority",
    "write_measures",
    "write_noisy_tables",
    "write_number",
    "write_skipped",
    "write_unique",
]
