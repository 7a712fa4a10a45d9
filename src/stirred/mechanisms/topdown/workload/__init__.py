"""What is measured: the histogram, its queries, the shares of the budget, the rules and the tree."""

from stirred.mechanisms.topdown.workload.options import SpineOptions
from stirred.mechanisms.topdown.workload.rule import Rule
from stirred.mechanisms.topdown.workload.shipped import presets
from stirred.mechanisms.topdown.workload.workload import Mode, Workload

__all__ = ["Mode", "Rule", "SpineOptions", "Workload", "presets"]
