"""The integers of a level from those of the level above: least squares, then rounding."""
