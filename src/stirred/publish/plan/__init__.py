"""Plans: what plan.toml may say, read, written and documented."""

from typing import TYPE_CHECKING

from stirred._support import load_on_demand

if TYPE_CHECKING:
    from stirred.publish.plan.description import Plan as Plan
    from stirred.publish.plan.description import PlannedMechanism as PlannedMechanism
    from stirred.publish.plan.description import Questions as Questions
    from stirred.publish.plan.description import Reason as Reason
    from stirred.publish.plan.description import TablePlan as TablePlan
    from stirred.publish.plan.description import load as load
    from stirred.publish.plan.description import parse as parse

__all__ = ["Plan", "PlannedMechanism", "Questions", "Reason", "TablePlan", "load", "parse"]

__getattr__ = load_on_demand(
    __name__,
    {
        "description": (
            "Plan",
            "PlannedMechanism",
            "Questions",
            "Reason",
            "TablePlan",
            "load",
            "parse",
        )
    },
)
