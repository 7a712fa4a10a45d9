"""The verb ``spec``: one module for each large action."""
