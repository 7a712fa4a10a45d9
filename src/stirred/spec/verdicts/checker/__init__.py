"""A checker of verdicts: it verifies each derivation step by step, by code of its own."""
