"""Long work: one command at a time in a process of its own, which outlives the server."""
