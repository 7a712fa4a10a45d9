"""Plans: what plan.toml may say, read, written and documented."""

from stirred.publish.plan.description import Plan, PlannedMechanism, Questions, Reason, TablePlan
from stirred.publish.plan.reading import load, parse

__all__ = ["Plan", "PlannedMechanism", "Questions", "Reason", "TablePlan", "load", "parse"]
