"""What is held exactly or within bounds: constraints, the numbers they use, and checks before and after."""
