"""To be filled: encodings."""
