"""What an audit found: claimed and observed loss, a verdict, and the tests that it rests on.

An audit has parts, and each test belongs to one. The verdict follows from them by one rule, ``decide``: a test that fails,
or a loss above the claim beyond chance, is a fail; a pass needs every part; else it is unknown and names the parts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isfinite
from typing import Literal

from stirred.assess.risk import RiskMeasure
from stirred.languages import Phrase
from stirred.mechanisms.contents import Content, Row

Outcome = Literal["pass", "fail", "unknown"]
Part = Literal["loss", "law", "noise", "sensitivity", "order", "texts", "repeat", "linked records"]
# of a law in fractions, or of runs on two data sets: what bounds the loss of everything that leaves
BY_LOSS: tuple[Part, ...] = ("loss", "order", "texts", "repeat")
BY_NOISE: tuple[Part, ...] = ("noise", "sensitivity", "order", "texts", "repeat")
ONE_SUFFICES = {
    "loss",
    "sensitivity",
}  # a test that covers everything passes; the others only bound from below
FALSE_ALARM_PROBABILITY = (
    1e-6  # of a whole audit: the probability that a mechanism that keeps its promise fails
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditTest:
    """One test: what it asked, what it found in one sentence, and a lower bound on the loss where it gives one."""

    name: str
    outcome: Outcome
    finding: str
    part: Part = "loss"
    lower: float | None = None  # on the loss per unit, at the audit's confidence
    sure: float | None = (
        None  # the same, above the true loss with at most this test's share of the false alarms
    )

    def as_json(self) -> dict[str, object]:
        """Return the test as plain values."""
        return {
            "name": self.name,
            "part": self.part,
            "outcome": self.outcome,
            "finding": self.finding,
            "lower": encode_number(self.lower),
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
        """Return the pair as plain values."""
        return {
            "columns": list(self.columns),
            "first": [list(row) for row in self.first],
            "second": [list(row) for row in self.second],
            "distance": self.distance,
            "output": {name: [list(row) for row in rows] for name, rows in self.output},
            "chances": list(self.chances),
            "loss": encode_number(self.loss),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditResult:
    """Claimed and observed loss per unit of the input premetric; ``claimed`` and ``exact`` are ∞ where no bound is finite.

    The verdict is about the audited universe. It is "unknown" where the data or the time did not suffice, where nothing is
    claimed, and where a part was not tested: ``parts`` has the outcome of each. A "pass" never stands beside a lower bound
    above the claim.
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
    needed: tuple[Part, ...] = ()  # what a pass needs
    data_sets: int = 0
    runs: int = 0
    confidence: float = 0.95
    false_alarm: float = FALSE_ALARM_PROBABILITY
    left_out: tuple[
        str, ...
    ] = ()  # record types linked to those that were audited, which the data sets do not have
    measures: tuple[RiskMeasure, ...] = ()

    def __post_init__(self) -> None:
        above = self.claimed is not None and (self.observed_lower or 0.0) > self.claimed
        if self.verdict == "pass" and above:
            raise AssertionError("a pass beside a lower bound above the claim")

    @property
    def parts(self) -> dict[str, str]:
        """Return the outcome of each part that a pass needs: pass, fail, unknown or not tested."""
        return part_outcomes(self.tests, self.needed)

    @property
    def sentence(self) -> str:
        """Return the verdict in one sentence, which reports can translate."""
        return Phrase(f"audit.verdict.{self.verdict}", mechanism=self.mechanism)

    @property
    def scope(self) -> str:
        """Return in one sentence what the verdict is not about; "" if the data sets have all record types."""
        if not self.left_out:
            return ""
        return Phrase("audit.left_out", types=tuple(self.left_out))

    def as_json(self) -> dict[str, object]:
        """Return the result as plain values; an infinite loss is the text "inf"."""
        return {
            "mechanism": self.mechanism,
            "unit": self.unit,
            "claimed": encode_number(self.claimed),
            "observed_lower": encode_number(self.observed_lower),
            "exact": encode_number(self.exact),
            "exact_text": self.exact_text,
            "verdict": self.verdict,
            "parts": self.parts,
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


def part_outcomes(tests: Sequence[AuditTest], needed: Sequence[Part]) -> dict[str, str]:
    """Return the outcome of each needed part, and of every other part that was tested.

    >>> one = AuditTest(name="noise of q", part="noise", outcome="pass", finding="…")
    >>> part_outcomes([one], ("noise", "sensitivity"))
    {'noise': 'pass', 'sensitivity': 'not tested'}
    """
    found: dict[str, str] = {}
    for part in dict.fromkeys([*needed, *(test.part for test in tests)]):
        seen = [test.outcome for test in tests if test.part == part]
        if "fail" in seen:
            found[part] = "fail"
        elif seen and (all(one == "pass" for one in seen) or (part in ONE_SUFFICES and "pass" in seen)):
            found[part] = "pass"
        else:
            found[part] = "unknown" if seen else "not tested"
    return found


def decide(tests: Sequence[AuditTest], needed: Sequence[Part], claimed: float) -> tuple[Outcome, str]:
    """Return the verdict and its reason, by the one rule that every audit ends with.

    >>> low = AuditTest(name="pair", outcome="pass", finding="…", lower=2.0, sure=1.5)
    >>> decide([low], ("loss",), 1.0)[0], decide([low], ("loss",), 1.7)[0], decide([low], ("loss",), 2.5)[0]
    ('fail', 'unknown', 'pass')
    """
    failed = [test for test in tests if test.outcome == "fail"]
    if failed:
        return "fail", failed[0].finding
    sure = max((test.sure for test in tests if test.sure is not None), default=0.0)
    lower = max((test.lower for test in tests if test.lower is not None), default=0.0)
    parts = part_outcomes(tests, needed)
    said = "; ".join(f"{part}: {outcome}" for part, outcome in parts.items())
    if sure > claimed:
        return "fail", f"the loss is at least {sure:.4f} per unit, beyond chance, above the claim"
    if claimed == inf:
        exact = [f"; {test.finding}" for test in tests if test.name == "exact"]
        return "unknown", "no claim: the mechanism promises no finite loss" + "".join(exact)
    if lower > claimed:
        return (
            "unknown",
            f"the lower bound {lower:.4f} is above the claim, but not beyond chance: run more ({said})",
        )
    if all(outcome == "pass" for outcome in parts.values()):
        covering = [test for test in tests if test.outcome == "pass" and test.part in ONE_SUFFICES]
        return "pass", f"{covering[0].finding}; {said}" if covering else said
    open_tests = [test for test in tests if parts[test.part] == "unknown" and test.outcome == "unknown"]
    return "unknown", said + (f". {open_tests[0].name}: {open_tests[0].finding}" if open_tests else "")


def encode_number(value: float | None) -> float | str | None:
    """Return a number that JSON can hold.

    >>> encode_number(inf), encode_number(None), encode_number(1.5)
    ('inf', None, 1.5)
    """
    return value if value is None or isfinite(value) else ("inf" if value == inf else "nan")
