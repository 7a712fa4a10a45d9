"""Packets compared: with the truth, which is internal, or with each other."""
