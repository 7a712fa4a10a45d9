"""What stands behind a verdict: its derivation, the witness of a no, and a checker that verifies both."""
