"""What tables say of themselves in the metadata of their files; imported by verbs that must start fast."""

SELECTED_ROWS_KEY = (
    "stirred:selected rows"  # of a table that leaves rows out by their value: a missing row is then no 0
)
