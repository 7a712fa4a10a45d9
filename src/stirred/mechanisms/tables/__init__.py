"""Publish tables of records: one base, and a module or folder for each mechanism that makes them."""
