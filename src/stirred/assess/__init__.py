"""Assess how well a release serves its users; functions take releases, never packet paths."""
