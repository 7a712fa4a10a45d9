"""Calculators that need no data: every number comes from the library."""
