"""A sound census of a country with its own names, and the faults that people find in such files."""
