"""A census that does not fit in memory: the tree cut into subtrees, which are worked on in parts."""
