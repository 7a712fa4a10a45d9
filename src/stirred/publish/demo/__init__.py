"""The demo: a synthetic census released three ways, with a second process beside the first."""
