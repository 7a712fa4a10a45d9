"""Solve a product that keeps the published sums of an earlier one, as DHC keeps those of PL 94-171."""
