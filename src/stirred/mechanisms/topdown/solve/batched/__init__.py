"""Solve and round many parents in one call of compiled code."""
