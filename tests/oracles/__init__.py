"""Brute force that the tests hold the library against; it shares no code with the library."""
