"""Runs that are killed at random instants, taken up again, and compared with an undisturbed run."""
