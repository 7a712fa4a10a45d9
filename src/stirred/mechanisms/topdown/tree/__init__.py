"""The tree of geounits: which leaves it has, how it may be split, and the histograms of its nodes."""
