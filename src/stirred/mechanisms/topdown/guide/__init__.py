"""The mode guided: sums that are fitted first, and counts of units as knowledge of persons."""
