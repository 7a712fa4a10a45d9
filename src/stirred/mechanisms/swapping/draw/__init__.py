"""One draw of the Permutation Swapping Algorithm: strata, selection, derangement, moves."""
