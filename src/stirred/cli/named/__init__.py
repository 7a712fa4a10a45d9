"""Commands that run a plan with a name."""
