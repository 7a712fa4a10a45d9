"""Budgets that differ by universe: the laws of the stratum size b, and their order."""
