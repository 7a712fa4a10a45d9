"""Audit every mechanism of a plan on invented records, and combine the verdicts."""

from collections.abc import Sequence
from dataclasses import dataclass

from stirred.assess.audit import AuditResult, audit
from stirred.assess.audit.result import Outcome
from stirred.census import Census
from stirred.engine import Progress
from stirred.publish.plan.description import Plan, PlannedMechanism


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanAudit:
    """Audits of a plan's mechanisms, in their order."""

    labels: tuple[str, ...]
    results: tuple[AuditResult, ...]

    @property
    def verdict(self) -> Outcome:
        """Return fail where one audit fails, pass where all pass, else unknown."""
        found = {result.verdict for result in self.results}
        if "fail" in found:
            return "fail"
        return "pass" if found == {"pass"} else "unknown"

    def as_json(self) -> dict[str, object]:
        """Return the combined verdict, the numbers of a plan with one mechanism, and all by mechanism."""
        numbers = ("claimed", "observed_lower", "exact")
        alone = self.results[0].as_json() if len(self.results) == 1 else {}
        return {
            **{name: alone.get(name) for name in numbers},
            "verdict": self.verdict,
            "mechanisms": [
                {"label": label, **result.as_json()}
                for label, result in zip(self.labels, self.results, strict=True)
            ],
        }


def audit_plan(
    plan: Plan,
    census: Census,
    *,
    runs: int,
    confidence: float,
    records: int,
    seconds: float | None,
    methods: Sequence[str],
    on_records: bool = False,
    progress: Progress | None = None,
) -> PlanAudit:
    """Audit each mechanism by itself; budgets of several add up as the plan's promise says."""
    results = []
    for step in plan.steps:
        reason = _beyond(step)
        if reason:
            results.append(_make_unknown_audit(step, reason, confidence))
            continue
        results.append(
            audit(
                step.mechanism,
                census,
                runs=runs,
                confidence=confidence,
                records=records,
                seconds=seconds,
                methods=methods,
                on_records=on_records,
                progress=progress,
            )
        )
    return PlanAudit(labels=tuple(step.label for step in plan.steps), results=tuple(results))


def _beyond(step: PlannedMechanism) -> str:
    if step.source is not None:
        return "it tabulates the records of another release and adds no loss: audit that one"
    if step.earlier is not None:
        return "it continues another release, which an audit does not make: audit that one"
    return ""


def _make_unknown_audit(step: PlannedMechanism, reason: str, confidence: float) -> AuditResult:
    return AuditResult(
        mechanism=step.mechanism.name,
        unit="epsilon",
        claimed=None,
        observed_lower=None,
        exact=None,
        verdict="unknown",
        reason=reason,
        confidence=confidence,
    )
