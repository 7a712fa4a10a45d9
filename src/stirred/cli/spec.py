"""Specifications: show one, compare two, add up several, convert, export.

A specification is a name of the catalog (`stirred catalog`) or a spec.json file.

  stirred spec show das-2020                        the card: sentence, five parts, odds, other assumptions
  stirred spec show whatif-state --rate 1/2         a swap at another rate
  stirred spec show pl-2020 --per household         another unit of protection
  stirred spec compare das-2020 whatif-county       five verdicts, each with its reason
  stirred spec compose pl-2020 dhc-2020             all outputs published together
  stirred spec convert pl-persons-2020 --delta 1e-10 --distance 1 2
  stirred spec export pl-2020 --registry            YAML for the OpenDP deployments registry
  stirred spec export pl-2020 --spec --out spec.json

Every one takes --json. Numbers are rounded up; exact budgets stand in the column "exactly" and in spec.json.
"""

import argparse
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

from stirred.cli.output import console, print_json, table
from stirred.cli.spec_export import add_export, run_export
from stirred.cli.spec_sources import (
    add_changes,
    budget_json,
    card_json,
    changed,
    delta_of,
    readings_json,
    resolve,
)
from stirred.spec import Budget, Multiplicative, NormalizedRenyi, compare, reading
from stirred.spec.card import Card, shortened
from stirred.spec.card_words import decimal, small
from stirred.spec.files import save, to_json
from stirred.spec.rounding import number


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The five things that can be done with specifications."""
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    show = _command(commands, "show", "one specification as a card", run_show)
    show.add_argument("source", metavar="NAME|FILE", help="a catalog name or a spec.json")
    add_changes(show)
    two = _command(commands, "compare", "two specifications, part by part", run_compare)
    two.add_argument("first", metavar="A", help="a catalog name or a spec.json")
    two.add_argument("second", metavar="B", help="a catalog name or a spec.json")
    total = _command(commands, "compose", "several specifications published together", run_compose)
    total.add_argument("sources", nargs="+", metavar="NAME|FILE", help="catalog names or spec.json files")
    total.add_argument("--out", type=Path, metavar="FILE", help="also write the sum as a spec.json")
    add_changes(total)
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
    """Do what the chosen command does."""
    result: int = arguments.action(arguments)
    return result


def run_show(arguments: argparse.Namespace) -> int:
    """``spec show``: the card."""
    found = resolve(arguments.source, rate=arguments.rate)
    card = found.card(changed(found.specification, arguments), delta=delta_of(arguments))
    if arguments.json:
        print_json(card_json(card))
    else:
        console().print(card.text(), markup=False)
    return 0


def run_compare(arguments: argparse.Namespace) -> int:
    """``spec compare``: five verdicts and an overall one where it is proved."""
    first, second = resolve(arguments.first), resolve(arguments.second)
    found = compare(first.specification, second.specification)
    if arguments.json:
        print_json(
            {
                "first": {"name": first.name, **budget_json(first.specification)},
                "second": {"name": second.name, **budget_json(second.specification)},
                "parts": {
                    part: {"verdict": finding.relation.value, "because": finding.because}
                    for part, finding in found.parts.items()
                },
                "overall": {"verdict": found.overall.relation.value, "because": found.overall.because},
                "warnings": list(found.warnings),
            }
        )
        return 0
    out = console()
    rows = [[part, finding.relation.value, finding.because] for part, finding in found.parts.items()]
    out.print(table(f"{first.name} against {second.name}", ["part", "verdict", "because"], rows))
    out.print(f"overall: {found.overall.relation.value}. {found.overall.because}", markup=False)
    for warning in found.warnings:
        out.print(f"note: {warning}", markup=False)
    return 0


def run_compose(arguments: argparse.Namespace) -> int:
    """``spec compose``: the sum, with "≥" when a part of unknown cost is in it."""
    found = resolve(*arguments.sources, rate=arguments.rate)
    spec = changed(found.specification, arguments)
    if arguments.out is not None:
        save(spec, arguments.out)
    card = found.card(spec, delta=delta_of(arguments))
    if arguments.json:
        print_json({**card_json(card), "unknown": list(found.unknown), "specification": to_json(spec)})
    else:
        console().print(card.text(), markup=False)
    return 0


def run_convert(arguments: argparse.Namespace) -> int:
    """``spec convert``: the budget as zCDP, and its (ε, δ) readings at stated distances."""
    found = resolve(arguments.source, rate=arguments.rate)
    spec, delta = changed(found.specification, arguments), delta_of(arguments)
    distances = arguments.distance or [1, 2]
    zcdp = spec if isinstance(spec.output_premetric, NormalizedRenyi) else spec.under(NormalizedRenyi())
    if arguments.json:
        print_json(
            {
                "name": found.name,
                **budget_json(spec),
                "rho_squared": number(zcdp.rho_squared.upper(6)),
                "delta": float(delta),
                "readings": readings_json(spec, delta, distances),
                "notes": list(spec.notes),
            }
        )
        return 0
    exact = zcdp.rho_squared
    columns = ["distance", "δ", "ε simple", "ε tight"]
    rows = [
        [str(k), small(delta), _read(exact, delta, k), _read(exact, delta, k, tight=True)] for k in distances
    ]
    if isinstance(spec.output_premetric, Multiplicative):
        columns.append("ε at δ = 0 (pure)")
        rows = [[*row, decimal((spec.budget * k).upper(4))] for row, k in zip(rows, distances, strict=True)]
    out = console()
    card = Card(spec, title=found.title, delta=delta)
    out.print(
        f"{found.title}\n{spec.input_premetric}, {spec.output_premetric}: {card.budget()}", markup=False
    )
    out.print(f"as zCDP: ρ² = {decimal(exact.upper(4))} (exactly {shortened(exact.exact)})\n", markup=False)
    out.print(table("Read as (ε, δ), at each distance alone; by way of zCDP", columns, rows))
    for note in spec.notes:
        out.print(f"- {note}", markup=False)
    return 0


def _read(rho_squared: Budget, delta: Fraction, distance: int, *, tight: bool = False) -> str:
    return decimal(reading(rho_squared, delta, distance=distance, tight=tight, decimals=4).epsilon)
