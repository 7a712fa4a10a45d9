"""A swap from census to release, step by step."""
