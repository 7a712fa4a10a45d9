"""Calculators that need no data: budgets of a swap, readings of zCDP, the products of 2020, strata of one's own."""
