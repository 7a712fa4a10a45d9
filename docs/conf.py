"""How the pages are built."""

project = "Stirred"
author = "The Stirred contributors"
extensions = ["myst_parser"]
exclude_patterns = ["images"]
html_theme = "alabaster"
myst_enable_extensions = ["dollarmath"]
suppress_warnings = ["myst.xref_missing"]
