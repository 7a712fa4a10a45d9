"""To be filled: chaining."""
