"""Compute every table and figure of the paper."""
