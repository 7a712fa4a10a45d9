"""Derangement numbers d(k) and bounds on their ratios, from ``stirred.spec``, where the laws of ε are defined."""

from stirred.spec.laws.derangements import EXACT_UP_TO, derangements, step_ratio_bound

__all__ = ["EXACT_UP_TO", "derangements", "step_ratio_bound"]
