"""Specifications: show one, compare two, check the proofs, add up several, convert, export.

A specification is a name of the catalog (`stirred catalog`), a spec.json file, or a packet. A swap of the catalog is also
named with a swap rate: NAME@RATE.

  stirred spec show das-2020                        the card: sentence, five parts, odds, other assumptions
  stirred spec show whatif-state@1/2                a swap at another rate; the same as --rate 1/2
  stirred spec show pl-2020 --per household         another unit of protection
  stirred spec show pl-2020 --language fr           the card in French; also de, es
  stirred spec compare das-2020 whatif-county       five verdicts with reasons, and which promises more
  stirred spec compare das-2010 das-2020 --why      also how each implication was proved or refuted
  stirred spec compare whatif-state@1/2 whatif-state@1/20
  stirred spec compare mine.json das-2020 --map same            mine.json restated on the census of das-2020
  stirred spec compare mine.json das-2020 --map ward=tract      where a variable has another name there
  stirred spec check das-2010 das-2020              verify both proofs with a checker of their own
  stirred spec check mine.json                      one file: its invariants, and whether it promises anything
  stirred spec compose pl-2020 dhc-2020             all outputs published together
  stirred spec convert pl-persons-2020 --delta 1e-10 --distance 1 2
  stirred spec export pl-2020 --registry            YAML for the OpenDP deployments registry
  stirred spec export pl-2020 --spec --out spec.json

Every one takes --json. Numbers are rounded up; exact budgets stand in the column "exactly" and in spec.json.
`spec check` ends with 0 where every proof is verified (an open question is not a fault) and with 1 where one is not.
"""

import argparse
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from stirred.cli.spec.check import add_check, run_check
from stirred.cli.spec.compare import add_compare, run_compare
from stirred.cli.spec.export import add_export, run_export
from stirred.cli.spec.sources import (
    add_changes,
    apply_changes,
    budget_json,
    card_json,
    read_delta,
    readings_json,
    resolve,
)
from stirred.cli.terminal.output import console, print_json, table
from stirred.cli.terminal.parser import add_language_argument
from stirred.spec import Budget, Multiplicative, NormalizedRenyi, reading
from stirred.spec.files import save, to_json
from stirred.spec.numbers.rounding import to_json_number


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the six actions on specifications."""
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    show = _command(commands, "show", "one specification as a card", run_show)
    show.add_argument("source", metavar="NAME|FILE", help="a catalog name or a spec.json")
    add_changes(show)
    add_language_argument(show)
    two = _command(commands, "compare", "two specifications, part by part", run_compare)
    add_compare(two)
    verify = _command(commands, "check", "the proofs behind a comparison, verified", run_check)
    add_check(verify)
    total = _command(commands, "compose", "several specifications published together", run_compose)
    total.add_argument("sources", nargs="+", metavar="NAME|FILE", help="catalog names or spec.json files")
    total.add_argument("--out", type=Path, metavar="FILE", help="also write the sum as a spec.json")
    add_changes(total)
    add_language_argument(total)
    convert = _command(commands, "convert", "readings at a δ, other units, other premetrics", run_convert)
    convert.add_argument("source", metavar="NAME|FILE", help="a catalog name or a spec.json")
    convert.add_argument(
        "--distance", type=int, nargs="+", action="extend", metavar="K", help="distances (default: 1 2)"
    )
    add_changes(convert)
    export = _command(commands, "export", "write it for others to read", run_export)
    add_export(export)


def _command(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    text: str,
    action: Callable[[argparse.Namespace], int],
) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
    parser.add_argument("--json", action="store_true", help="print one JSON document and nothing else")
    parser.set_defaults(action=action)
    return parser


def run(arguments: argparse.Namespace) -> int:
    """Run the chosen action."""
    result: int = arguments.action(arguments)
    return result


def run_show(arguments: argparse.Namespace) -> int:
    """Run ``spec show``: print the card."""
    found = resolve(arguments.source, rate=arguments.rate)
    card = found.card(apply_changes(found.specification, arguments), delta=read_delta(arguments))
    if arguments.json:
        print_json(card_json(card))
    else:
        console().print(replace(card, language=arguments.language or "en").text())
    return 0


def run_compose(arguments: argparse.Namespace) -> int:
    """Run ``spec compose``: print the sum, with "≥" when it has a part of unknown cost."""
    found = resolve(*arguments.sources, rate=arguments.rate)
    spec = apply_changes(found.specification, arguments)
    if arguments.out is not None:
        save(spec, arguments.out)
    card = found.card(spec, delta=read_delta(arguments))
    if arguments.json:
        print_json({**card_json(card), "unknown": list(found.unknown), "specification": to_json(spec)})
    else:
        console().print(replace(card, language=arguments.language or "en").text())
    return 0


def run_convert(arguments: argparse.Namespace) -> int:
    """Run ``spec convert``: print the budget as zCDP, and its (ε, δ) readings at stated distances."""
    found = resolve(arguments.source, rate=arguments.rate)
    spec, delta = apply_changes(found.specification, arguments), read_delta(arguments)
    distances = arguments.distance or [1, 2]
    zcdp = spec if isinstance(spec.output_premetric, NormalizedRenyi) else spec.under(NormalizedRenyi())
    if arguments.json:
        print_json(
            {
                "name": found.name,
                **budget_json(spec),
                "rho_squared": to_json_number(zcdp.rho_squared.upper(6)),
                "delta": float(delta),
                "readings": readings_json(spec, delta, distances),
                "notes": list(spec.notes),
            }
        )
        return 0
    from stirred.spec.card import Card, shorten
    from stirred.spec.card.words import write_decimal, write_small

    exact = zcdp.rho_squared
    columns = ["distance", "δ", "ε simple", "ε tight"]
    rows = [
        [str(k), write_small(delta), _read(exact, delta, k), _read(exact, delta, k, tight=True)]
        for k in distances
    ]
    if isinstance(spec.output_premetric, Multiplicative):
        columns.append("ε at δ = 0 (pure)")
        rows = [
            [*row, write_decimal((spec.budget * k).upper(4))] for row, k in zip(rows, distances, strict=True)
        ]
    out = console()
    card = Card(spec, title=found.title, delta=delta)
    out.print(f"{found.title}\n{spec.input_premetric}, {spec.output_premetric}: {card.budget()}")
    out.print(f"as zCDP: ρ² = {write_decimal(exact.upper(4))} (exactly {shorten(exact.exact)})\n")
    out.print(table("Read as (ε, δ), at each distance alone; by way of zCDP", columns, rows))
    for note in spec.notes:
        out.print(f"- {note}")
    return 0


def _read(rho_squared: Budget, delta: Fraction, distance: int, *, tight: bool = False) -> str:
    from stirred.spec.card.words import write_decimal

    return write_decimal(reading(rho_squared, delta, distance=distance, tight=tight, decimals=4).epsilon)
