"""What an attack found: measures with their baselines, and the tables behind them."""

from dataclasses import dataclass, field

import polars as pl

from stirred.assess.risk import RiskMeasure


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackResult:
    """Measures of risk and the tables that they come from; all is internal but the measures marked public."""

    measures: tuple[RiskMeasure, ...]
    tables: dict[str, pl.DataFrame] = field(default_factory=dict)

    def measure(self, name: str, about: str = "") -> RiskMeasure:
        """Return the measure of a name (and of these records, where several have it)."""
        return next(m for m in self.measures if m.name == name and about in ("", m.about))
