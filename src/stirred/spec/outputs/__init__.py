"""Output premetrics: distances of output distributions, their conversions and (ε, δ) readings."""
