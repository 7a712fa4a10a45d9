"""HOW WELL: what a release is worth and what it gives away; takes releases, never packet paths."""
