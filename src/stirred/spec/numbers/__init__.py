"""Exact numbers: budgets, their intervals, their rounding and their text."""
