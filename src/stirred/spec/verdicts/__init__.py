"""Implication of specifications: its verdicts, their derivations, the witness of a no, and a checker of both."""
