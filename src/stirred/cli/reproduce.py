"""Compute the tables and figures of the paper.

  stirred reproduce table-1940                    Table 1: counties of Massachusetts before and after a swap
  stirred reproduce table-1940 --rate 1/20 --seed 7 --json
  stirred reproduce figure-mape --out figures/    Figure 1 as PNG, SVG, CSV and JSON
  stirred reproduce exact-margins                 Example 1: one table with exact margins, three mechanisms
  stirred reproduce all --out paper/

The 1940 parts use a synthetic census that has the paper's own table; give --ipums FILE to use your IPUMS 1940
full-count extract (CSV or Parquet with STATEFIP, COUNTYICP, OWNERSHP, SERIAL and NUMPREC).
"""

import argparse
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from stirred.cli.terminal.output import console, print_json, table
from stirred.errors import InputError, did_you_mean

# part → (module, function, options it takes, one line of help); a function returns a document with name and rows
PARTS: dict[str, tuple[str, str, tuple[str, ...], str]] = {
    "table-1940": (
        "stirred.paper.massachusetts",
        "table_1940",
        ("rate", "seed", "ipums"),
        "Table 1: before and after",
    ),
    "table-rates": (
        "stirred.paper.massachusetts",
        "table_rates",
        ("ipums",),
        "Table 2: ε at four swap rates",
    ),
    "figure-mape": (
        "stirred.paper.massachusetts",
        "figure_mape",
        ("seed", "ipums"),
        "Figure 1: what swapping changes",
    ),
    "figure-budget": ("stirred.paper.budget_curves", "figure_budget", (), "Figure 2: swap rate against ε"),
    "exact-margins": (
        "stirred.paper.exact_margins",
        "exact_margins",
        ("seed",),
        "Example 1: one table with exact margins, published in three ways",
    ),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of ``stirred reproduce``."""
    listed = "; ".join(f"{name}: {text}" for name, (_, _, _, text) in PARTS.items())
    parser.add_argument("part", nargs="+", action="extend", metavar="PART", help=f"all, or {listed}")
    parser.add_argument("--rate", metavar="P", help="swap rate of table-1940 (default 1/2)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="seed of the test key (default 1)")
    parser.add_argument(
        "--ipums", type=Path, metavar="FILE", help="your IPUMS 1940 extract instead of the synthetic one"
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="write JSON, CSV and charts there")
    parser.add_argument("--json", action="store_true", help="one JSON document")


def run(arguments: argparse.Namespace) -> int:
    """Make each part that was asked for."""
    names = list(PARTS) if "all" in arguments.part else list(dict.fromkeys(arguments.part))
    for name in names:
        if name not in PARTS:
            raise InputError(
                f"the paper has no part {name}",
                why="no table, figure or example of it has this name",
                fix=did_you_mean(name, [*PARTS, "all"]),
            )
    documents = []
    for name in names:
        document = make(name, arguments)
        documents.append(document)
        if arguments.out is not None:
            figures = importlib.import_module("stirred.paper.figures")
            for path in figures.write(document, arguments.out):
                if not arguments.json:
                    console().print(f"wrote {path}")
        elif not arguments.json:
            show(document)
    if arguments.json:
        print_json(documents[0] if len(documents) == 1 else {"parts": documents})
    return 0


def make(name: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """The document of one part."""
    from stirred.mechanisms.swapping.budget.by_size import rate_of

    module, function, takes, _ = PARTS[name]
    build: Callable[..., dict[str, Any]] = getattr(importlib.import_module(module), function)
    given: dict[str, Any] = {"seed": arguments.seed, "ipums": arguments.ipums}
    if arguments.rate is not None:
        given["rate"] = rate_of(arguments.rate)
    return build(**{key: value for key, value in given.items() if key in takes})


def show(document: dict[str, Any]) -> None:
    """A document as a table for people."""
    rows: list[dict[str, Any]] = document["rows"]
    columns = [key for key, value in rows[0].items() if not isinstance(value, dict)]
    facts = ", ".join(
        f"{key} {value}" for key, value in document.items() if isinstance(value, int | float | str)
    )
    cells = [[_cell(row[column]) for column in columns] for row in rows]
    console().print(table(facts.removeprefix("name "), columns, cells))


def _cell(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)
