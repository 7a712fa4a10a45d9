"""Forms that are made from the settings of a mechanism."""
