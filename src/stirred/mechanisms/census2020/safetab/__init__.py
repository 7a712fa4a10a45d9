"""Counts of detailed population groups: what SafeTab-P and SafeTab-H share, and a room for each. Proved in proof.md."""
