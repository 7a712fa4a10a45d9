"""Stirring: the swap that loses least. The law (law), its draw (moves), the mechanism and its proof (proof.md)."""
