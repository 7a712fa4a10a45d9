"""The workbench: a local web application in which a methodologist designs a release by looking."""
