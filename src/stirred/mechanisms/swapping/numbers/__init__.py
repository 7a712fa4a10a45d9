"""What data users compute from a release: closed forms, uncertainty, tables."""
