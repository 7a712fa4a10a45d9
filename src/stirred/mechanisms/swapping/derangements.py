"""Derangement numbers d(k) and bounds on their ratios; they stand with the laws of ε in ``stirred.spec``."""

from stirred.spec.derangements import EXACT_UP_TO, derangements, step_ratio_bound

__all__ = ["EXACT_UP_TO", "derangements", "step_ratio_bound"]
