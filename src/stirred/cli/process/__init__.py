"""The process of a command: signals, limits, pipes, and how it ends."""
