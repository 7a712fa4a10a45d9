"""The flag for the language of cards and public reports, the same for every verb that writes one."""

import argparse

from stirred.languages.catalog import CODES


def add_language_argument(parser: argparse.ArgumentParser, *, default: str = "en") -> None:
    """Add ``--language``; ``default`` is said in the help."""
    parser.add_argument(
        "--language",
        choices=CODES,
        help=f"the language of the card and of the public report (default: {default}); JSON, receipts and names of "
        "the census stay as they are",
    )
