"""The smallest distance between two data sets of one universe."""
