"""Guards before a release: identifiers that would go out, records that cannot move, columns that undo the swap."""
