"""From households and persons to exact counts: variables, tables, truncation, and one kernel over parts."""
