"""How one specification follows from others: composition, chaining, restating."""
