"""Does an implementation keep its promise? Exact losses of small universes, and bounds from runs."""

from typing import TYPE_CHECKING

from stirred._support import load_on_demand

if TYPE_CHECKING:
    from stirred.assess.audit.entry import audit as audit
    from stirred.assess.audit.result import AuditResult as AuditResult
    from stirred.assess.audit.result import AuditTest as AuditTest
    from stirred.assess.audit.result import WorstPair as WorstPair

__all__ = ["AuditResult", "AuditTest", "WorstPair", "audit"]

__getattr__ = load_on_demand(
    __name__,
    {
        "entry": ("audit",),
        "result": (
            "AuditResult",
            "AuditTest",
            "WorstPair",
        ),
    },
)
