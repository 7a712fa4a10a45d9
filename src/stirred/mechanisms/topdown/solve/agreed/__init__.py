"""Solve a product that agrees with an earlier one: exact sums in every child, Newton's method on the dual, exchanges."""
