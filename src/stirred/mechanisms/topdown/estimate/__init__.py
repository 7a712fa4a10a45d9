"""Estimates from the measurements of the whole tree, and how certain they are."""
