"""Chains: a mechanism that reads the records of an earlier release in the place of the census."""
