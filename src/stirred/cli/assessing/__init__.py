"""Verbs that doubt a release: assess, audit, equate, frontier."""
