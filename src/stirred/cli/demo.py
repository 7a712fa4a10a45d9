"""See what a specification is: the 2020 census beside a swapped one, in the terminal and as one HTML file.

stirred demo                 writes demo/specifications.html
stirred demo --out here      writes here/specifications.html
stirred demo --json          one JSON document, for programs
"""

import argparse
from pathlib import Path

from stirred.catalog import catalog
from stirred.cli.output import console, print_json, table
from stirred.spec import compare
from stirred.spec.card import Card, page

PAIR = ("das-2020", "whatif-county-size")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``stirred demo``."""
    parser.add_argument(
        "--out", type=Path, default=Path("demo"), help="folder for the HTML file (default: demo)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of tables")


def run(arguments: argparse.Namespace) -> int:
    """Show both specifications and what can be said about them, and write the page."""
    cards = [catalog.entry(name).card() for name in PAIR]
    comparison = compare(cards[0].specification, cards[1].specification)
    arguments.out.mkdir(parents=True, exist_ok=True)
    target = arguments.out / "specifications.html"
    target.write_text(
        page(
            cards,
            heading="Two promises about one census",
            lead=(
                "What the 2020 census promised, beside what it would have promised had its households been swapped "
                "within counties among those of the same size.",
            ),
            comparison=comparison,
        ),
        encoding="utf-8",
    )
    if arguments.json:
        rows = catalog.rows(names=PAIR)
        print_json(
            {"specifications": rows, "sentences": [card.sentence() for card in cards], "written": str(target)}
        )
        return 0
    show(cards)
    console().print(f"open {target}")
    return 0


def show(cards: list[Card]) -> None:
    """Both specifications as one table, part by part, then in words."""
    out = console()
    rows = zip(*(card.rows() for card in cards), strict=True)
    columns = ["", *(card.title for card in cards)]
    out.print(
        table(
            "Two promises about one census", columns, [[left[0], left[1], right[1]] for left, right in rows]
        )
    )
    for card in cards:
        out.print(card.sentence(), "\n")
