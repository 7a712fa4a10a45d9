"""What the records decide about columns: facts, roles, links and nesting."""
