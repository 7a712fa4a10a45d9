"""A measure of risk: one number with its interval, beside what a guess without the release would find."""

from dataclasses import dataclass
from typing import Literal

from stirred.languages import Phrase, Value


def name_measure(key: str, /, **values: Value) -> Phrase:
    """Return the name of a measure as a phrase, which reports can translate.

    >>> name_measure("implied")
    'records in cells whose count is implied'
    """
    return Phrase(f"measure.{key}", **values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """The success of someone who has less than the attacker: a guess, or a ceiling from the truth itself."""

    name: str
    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RiskMeasure:
    """One number of an audit, an attack or a universe, with the records it is about and what a guess would find.

    ``value`` is None where the answer is unknown (a time limit, too few data); ``reason`` then says why. ``public`` is true
    only for numbers computed from the release and its specification alone, without the confidential census.
    """

    name: str
    about: str  # the records that it is about, for example "persons unique on block, sex and age"
    kind: Literal["absolute", "relative"]
    value: float | None
    unit: str  # "share", "bits per record", "epsilon", "count"
    low: float | None = None
    high: float | None = None
    confidence: float = 0.95
    baselines: tuple[Baseline, ...] = ()
    public: bool = False
    reason: str = ""

    @property
    def sentence(self) -> str:
        """Return a sentence: is it absolute or relative risk, and which of the two does a budget bound."""
        return Phrase(f"measure.sentence.{self.kind}")

    def as_json(self) -> dict[str, object]:
        """Return the measure as plain values."""
        return {
            "name": str(self.name),
            "about": str(self.about),
            "kind": self.kind,
            "value": self.value,
            "low": self.low,
            "high": self.high,
            "confidence": self.confidence,
            "unit": self.unit,
            "public": self.public,
            "baselines": [
                {"name": str(b.name), "value": b.value, "low": b.low, "high": b.high} for b in self.baselines
            ],
            "reason": self.reason,
            "sentence": str(self.sentence),
        }
