"""The flag that says what is done with records that break the schema, the same for every verb that releases."""

import argparse
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stirred.census import Census


def add_invalid_argument(parser: argparse.ArgumentParser, *, default: str) -> None:
    """Add ``--invalid``; ``default`` is said in the help."""
    parser.add_argument(
        "--invalid",
        choices=("refuse", "drop"),
        help="when records break the schema: refuse, or drop their households and release the rest "
        f"(default: {default})",
    )


def tell_about_records(census: "Census") -> None:
    """Say on the terminal how many records were left out, and what is doubtful; the counts stand in no file."""
    from stirred.census.validation import find_doubts

    gone = ", ".join(f"{count:,} {name} records" for name, count in census.dropped_counts.items() if count)
    if gone:
        print(
            f"left out because they break the schema: {gone} (confidential: do not publish)", file=sys.stderr
        )
    for doubt in find_doubts(census):
        print(f"warning: {doubt} (confidential: do not publish)", file=sys.stderr)
