"""To be filled: implication."""
