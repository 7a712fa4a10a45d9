"""Measurements: what each geounit spends, the noise of each answer, and the noisy measurement file."""
