"""The protection loss budget of a swap: by size, by two types, by more types, and the claim of a census."""
