"""The records of a swap: encoded columns, linked records packed into words, who takes part, their digest and size."""
