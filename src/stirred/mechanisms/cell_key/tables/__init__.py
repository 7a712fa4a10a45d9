"""The tables of the cell key method: counting with keys, places, totals and magnitudes, and what is shown of them."""
