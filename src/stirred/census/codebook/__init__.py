"""The codebook of a census: its schema, read from census.toml, and what follows from it alone."""
