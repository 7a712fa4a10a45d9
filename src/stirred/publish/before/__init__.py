"""Before a run: what a plan promises, what is refused, and how to choose and justify its settings."""
