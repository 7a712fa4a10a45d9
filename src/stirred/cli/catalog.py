"""The published specifications: what others promised, with sources, and every ε computed when it is shown.

  stirred spec list                              all entries
  stirred spec list --delta 1e-12                  the same budgets read at another δ
  stirred spec list pl-2020 das-2020 --json        some entries, for programs

The column ρ² is the usual zCDP parameter (the square of the paper's ρ). "≥" marks a total that leaves out releases
whose cost nobody has stated. `stirred spec show NAME` prints one entry as a card.
"""

import argparse
from fractions import Fraction

from stirred.catalog import DELTA, catalog
from stirred.cli.output import console, print_json, table
from stirred.spec import Budget
from stirred.spec.card.words import write_decimal, write_small
from stirred.spec.exact import parse_fraction

Row = dict[str, object]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``stirred spec list``."""
    parser.add_argument("names", nargs="*", metavar="NAME", help="entries to show (default: all)")
    parser.add_argument("--delta", metavar="D", help="δ of the (ε, δ) readings (default: 1e-10)")


def run(arguments: argparse.Namespace) -> int:
    """Compute every ε at the δ asked for, and print."""
    delta = DELTA if arguments.delta is None else parse_fraction(arguments.delta, "delta")
    chosen = catalog.rows(delta, arguments.names)
    if arguments.json:
        print_json({"delta": float(delta), "entries": chosen})
        return 0
    show(chosen, delta)
    return 0


def show(rows: list[Row], delta: Fraction) -> None:
    """Print three tables (noise, swapping, no statement); invariants are letters, explained below."""
    out = console()
    concentrated = [row for row in rows if row.get("rho_squared") is not None]
    swapped = [row for row in rows if "b" in row]
    unknown = [row for row in rows if row.get("status") == "unknown"]
    letters = {words: chr(ord("a") + place) for place, words in enumerate(_all_invariants(rows))}
    if concentrated:
        title = (
            "zCDP (D_nor), ρ² per unit; at distance 1 odds move by at most e^(ε simple), "
            f"but for δ = {write_small(delta)}"
        )
        columns = ["name", "unit", "ρ²", "ε simple", "ε tight", "exact", "status"]
        drawn = [[*_format_zcdp_row(row), _letters(row, letters), str(row["status"])] for row in concentrated]
        out.print(table(title, columns, drawn))
    if swapped:
        title = "Swapping as PSA (pure DP, D_mult); the smallest distance is 2, so odds may move by e^(2ε)"
        columns = ["name", "unit", "b", "swap rate: ε", "exact", "status"]
        drawn = [[*_format_swap_row(row), _letters(row, letters), str(row["status"])] for row in swapped]
        out.print(table(title, columns, drawn))
    if letters:
        out.print(
            "  published exactly: "
            + "; ".join(f"({letter}) {words}" for words, letter in letters.items())
            + "\n"
        )
    if unknown:
        lines = [[str(row["name"]), str(row["title"])] for row in unknown]
        out.print(table("From the same confidential file, at unknown cost", ["name", "title"], lines))
        out.print("  A total that leaves these out is a lower bound and prints with ≥.")


def _all_invariants(rows: list[Row]) -> list[str]:
    seen: dict[str, None] = {}
    for row in rows:
        words = row["invariants"]
        seen.update(dict.fromkeys(words if isinstance(words, list) else ()))
    return list(seen)


def _letters(row: Row, letters: dict[str, str]) -> str:
    words = row["invariants"]
    return " ".join(letters[word] for word in words) if isinstance(words, list) else ""


def _number(row: Row, key: str) -> str:
    # rounding up twice, at six and at four decimals, is rounding up once
    sign = "≥ " if row.get("at_least") else ""
    return sign + write_decimal(Budget.of(str(row[key])).upper(4))


def _format_zcdp_row(row: Row) -> list[str]:
    numbers = [_number(row, key) for key in ("rho_squared", "epsilon_simple", "epsilon_tight")]
    return [str(row["name"]), str(row["unit"]), *numbers]


def _format_swap_row(row: Row) -> list[str]:
    rates = row["rates"]
    assert isinstance(rates, list)
    shown = "; ".join(
        f"{_percent(str(rate['rate']))}: {_number(rate, 'epsilon')}".replace(" ", "\u00a0") for rate in rates
    )  # a line ends between rates alone
    return [str(row["name"]), str(row["unit"]), f"{row['b']:,}", shown]


def _percent(rate: str) -> str:
    return f"{float(100 * Fraction(rate)):g}%"
