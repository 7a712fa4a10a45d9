"""What an audit found: claimed and observed loss, a verdict, and the tests that it rests on."""

from dataclasses import dataclass
from math import inf, isfinite
from typing import Literal

from stirred.assess.risk import RiskMeasure
from stirred.languages import Phrase
from stirred.mechanisms.contents import Content, Row

Outcome = Literal["pass", "fail", "unknown"]
FALSE_ALARM = 1e-6  # of a whole audit: the probability that a mechanism that keeps its promise fails


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditTest:
    """One test: what it asked, what it found in one sentence, and a lower bound on the loss where it gives one."""

    name: str
    outcome: Outcome
    finding: str
    lower: float | None = None  # on the loss per unit, at the audit's confidence

    def as_json(self) -> dict[str, object]:
        """The test as plain values."""
        return {
            "name": self.name,
            "outcome": self.outcome,
            "finding": self.finding,
            "lower": told(self.lower),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class WorstPair:
    """Two invented data sets and an output that tells them apart best."""

    columns: Row
    first: tuple[Row, ...]
    second: tuple[Row, ...]
    distance: int
    output: Content
    chances: tuple[float, float]  # of the output under the first and under the second
    loss: float  # per unit of distance

    def as_json(self) -> dict[str, object]:
        """The pair as plain values."""
        return {
            "columns": list(self.columns),
            "first": [list(row) for row in self.first],
            "second": [list(row) for row in self.second],
            "distance": self.distance,
            "output": {name: [list(row) for row in rows] for name, rows in self.output},
            "chances": list(self.chances),
            "loss": told(self.loss),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditResult:
    """Claimed and observed loss per unit of the input premetric; ``claimed`` and ``exact`` are ∞ where no bound is finite.

    The verdict is about the audited universe. It is "unknown" where the data or the time did not suffice, and where nothing
    is claimed; only an exact law, or bounds on every output, give a "pass".
    """

    mechanism: str
    unit: Literal["epsilon", "rho_squared"]
    claimed: float | None
    observed_lower: float | None
    exact: float | None
    verdict: Outcome
    reason: str
    exact_text: str = ""
    worst: WorstPair | None = None
    tests: tuple[AuditTest, ...] = ()
    data_sets: int = 0
    runs: int = 0
    confidence: float = 0.95
    false_alarm: float = FALSE_ALARM
    left_out: tuple[
        str, ...
    ] = ()  # record types linked to those that were audited, which the data sets do not have
    measures: tuple[RiskMeasure, ...] = ()

    @property
    def sentence(self) -> str:
        """The verdict in one sentence, which reports can say in every language."""
        return Phrase(f"audit.verdict.{self.verdict}", mechanism=self.mechanism)

    @property
    def scope(self) -> str:
        """What the verdict is not about, in one sentence; empty where the data sets have all record types."""
        if not self.left_out:
            return ""
        return Phrase("audit.left_out", types=tuple(self.left_out))

    def as_json(self) -> dict[str, object]:
        """The result as plain values; an infinite loss is the text "inf"."""
        return {
            "mechanism": self.mechanism,
            "unit": self.unit,
            "claimed": told(self.claimed),
            "observed_lower": told(self.observed_lower),
            "exact": told(self.exact),
            "exact_text": self.exact_text,
            "verdict": self.verdict,
            "scope": str(self.scope),
            "reason": self.reason,
            "confidence": self.confidence,
            "false_alarm": self.false_alarm,
            "data_sets": self.data_sets,
            "left_out": list(self.left_out),
            "runs": self.runs,
            "worst": None if self.worst is None else self.worst.as_json(),
            "tests": [test.as_json() for test in self.tests],
            "measures": [measure.as_json() for measure in self.measures],
        }


def told(value: float | None) -> float | str | None:
    """A number that JSON can hold.

    >>> told(inf), told(None), told(1.5)
    ('inf', None, 1.5)
    """
    return value if value is None or isfinite(value) else ("inf" if value == inf else "nan")
