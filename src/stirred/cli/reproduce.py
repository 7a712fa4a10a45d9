"""Compute the tables and figures of the paper, each number beside the printed one.

  stirred reproduce all                           everything, into paper/index.html (about two minutes)
  stirred reproduce table-1940                    Table 1: counties of Massachusetts before and after a swap
  stirred reproduce table-1940 --rate 1/20 --seed 7 --json
  stirred reproduce figure-mape --out figures/    Figure 1 as PNG, SVG, CSV and JSON
  stirred reproduce table-whatif-2000 --data DIR  Table 5 for the census of 2000, from its published tables

The 1940 parts use a synthetic census that has the paper's own table; give --ipums FILE to use your IPUMS 1940
full-count extract (CSV or Parquet with STATEFIP, COUNTYICP, OWNERSHP, SERIAL and NUMPREC).
"""

import argparse
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from stirred.cli.output import console, print_json, show_progress, table
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
    "figure-budget": ("stirred.paper.budgets", "figure_budget", (), "Figure 2: swap rate against ε"),
    "table-budgets": (
        "stirred.paper.budgets",
        "table_budgets",
        (),
        "Table 3: budgets of the redistricting data and DHC",
    ),
    "table-2020": (
        "stirred.paper.budgets",
        "table_2020",
        (),
        "Table 4: the specifications of the 2020 census",
    ),
    "table-whatif": ("stirred.paper.budgets", "table_whatif", (), "Table 5: what if 2020 had swapped"),
    "table-whatif-2000": (
        "stirred.paper.budgets",
        "table_whatif_2000",
        ("data",),
        "Table 5 for the census of 2000 (needs --data)",
    ),
    "estimate-2010": (
        "stirred.paper.budgets",
        "estimate_2010",
        (),
        "Section 3.5: the 2010 census as if it had been a PSA",
    ),
    "text-numbers": ("stirred.paper.text_numbers", "text_numbers", (), "the numbers in the text"),
    "claims": (
        "stirred.paper.claims",
        "claims",
        ("seed",),
        "what the paper says in words, on small cases",
    ),
    "exact-margins": (
        "stirred.paper.exact_margins",
        "exact_margins",
        ("seed",),
        "Example 1: one table with exact margins, published in three ways",
    ),
    "beyond": (
        "stirred.paper.beyond",
        "stirring_beside_the_paper",
        ("ipums",),
        "beyond the paper: stirring beside the PSA",
    ),
    "beyond-1940": (
        "stirred.paper.beyond",
        "stirred_1940",
        ("rate", "seed", "ipums"),
        "beyond the paper: Table 1 with a stirring",
    ),
    "beyond-mape": (
        "stirred.paper.beyond",
        "figure_stirred",
        ("seed", "ipums"),
        "beyond the paper: Figure 1 with stirring",
    ),
}
HIDDEN = ("invariants",)  # too long for a terminal; in --json and on the page
ALL_FOLDER = "paper"  # the folder of everything
NEEDS_DATA = frozenset({"table-whatif-2000"})


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of ``stirred reproduce``."""
    listed = "; ".join(f"{name}: {text}" for name, (_, _, _, text) in PARTS.items())
    parser.add_argument("part", nargs="+", action="extend", metavar="PART", help=f"all, or {listed}")
    parser.add_argument("--rate", metavar="P", help="swap rate of table-1940 and beyond-1940 (default 1/2)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="seed of the test key (default 1)")
    parser.add_argument(
        "--ipums", type=Path, metavar="FILE", help="your IPUMS 1940 extract instead of the synthetic one"
    )
    parser.add_argument(
        "--data", type=Path, metavar="DIR", help="household size by tract and block group of the 2000 census"
    )
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="write JSON, CSV and charts there (default of all: paper/)"
    )
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
    everything = "all" in arguments.part
    out = arguments.out or (Path(ALL_FOLDER) if everything and not arguments.json else None)
    documents: list[dict[str, Any]] = []
    left: dict[str, str] = {}
    with show_progress(quiet=out is None or arguments.json) as progress:
        for name in names:
            if everything and name in NEEDS_DATA and arguments.data is None:
                left[name] = "needs --data DIR: household size by tract and block group of the 2000 census"
                continue
            progress(name, 0, 1)
            documents.append(make(name, arguments))
            if out is not None:
                importlib.import_module("stirred.paper.documents").write_files(documents[-1], out)
            elif not arguments.json:
                show(documents[-1])
            progress(name, 1, 1)
    if out is not None:
        page = importlib.import_module("stirred.paper.documents").write_page(documents, left, out)
        if not arguments.json:
            for name, why in left.items():
                console().print(f"{name}: not computed, {why}")
            console().print(f"open {page}")
    if arguments.json:
        print_json(documents[0] if len(documents) == 1 else {"parts": documents})
    return 0


def make(name: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """Compute one part and return its document."""
    from stirred.spec.laws import parse_rate

    module, function, takes, _ = PARTS[name]
    build: Callable[..., dict[str, Any]] = getattr(importlib.import_module(module), function)
    given: dict[str, Any] = {"seed": arguments.seed, "ipums": arguments.ipums, "data": arguments.data}
    if arguments.rate is not None:
        given["rate"] = parse_rate(arguments.rate)
    return build(**{key: value for key, value in given.items() if key in takes})


def show(document: dict[str, Any]) -> None:
    """Print a document as a table for people."""
    rows: list[dict[str, Any]] = document["rows"]
    columns = [key for key, value in rows[0].items() if not isinstance(value, dict) and key not in HIDDEN]
    facts = ", ".join(
        f"{key} {value}" for key, value in document.items() if isinstance(value, int | float | str)
    )
    cells = [[_cell(row[column]) for column in columns] for row in rows]
    console().print(table(facts.removeprefix("name "), columns, cells))


def _cell(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)
