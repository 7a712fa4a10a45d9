"""Invariants as tables of counts, and the linear algebra that decides which of them determine which."""
