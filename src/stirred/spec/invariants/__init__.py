"""The geometry of invariants: linear maps on the table of counts, mostly products of one subspace per variable."""
