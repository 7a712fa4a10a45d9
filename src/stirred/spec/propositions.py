"""To be filled: propositions."""
