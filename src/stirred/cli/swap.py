"""Swap a census: the Permutation Swapping Algorithm without a plan file.

Records move within strata of equal match variables; the swap variables of the selected records are deranged. What is
held, and what is counted by match × swap variables, stays exact: these are the invariants.

  stirred swap census.toml --match state size --swap county tract block --rate 1/20 --out packet/
  stirred swap census.toml --match state size --swap block --rate 1/20 --table county tenure --tables-only --out packet/
  stirred swap census.toml --match state size --swap block --rate 1/20 --promise       only say what would be promised

The packet holds the swapped records (Parquet), the tables, the specification, card, receipt, report and checksums, all at
once or not at all. Levels of geography between the swap variables move along. The key stays outside the packet.
"""

import argparse
import shutil
from pathlib import Path

from stirred.cli.engines import add_engine_arguments, chosen_engine
from stirred.cli.keys import key_for
from stirred.cli.output import console, print_json
from stirred.cli.progress import bars
from stirred.errors import InputError
from stirred.mechanisms.base import stated
from stirred.mechanisms.swapping import PermutationSwapping
from stirred.publish import save
from stirred.spec import Specification
from stirred.spec.card import Card


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags of ``stirred swap``."""
    names = {"nargs": "+", "action": "extend", "metavar": "VARIABLE"}
    parser.add_argument("census", type=Path, help="census.toml, or the folder it lies in")
    parser.add_argument("--match", **names, default=[], help="variables that make the strata")  # type: ignore[arg-type]
    parser.add_argument("--swap", **names, required=True, help="variables that move together")
    parser.add_argument("--rate", required=True, metavar="P", help="swap rate, a fraction or decimal: 1/20")
    parser.add_argument(
        "--resolution", default="household", metavar="TYPE", help="the record type that is swapped"
    )
    parser.add_argument("--hold", **names, help="held variables to publish (default: all)")  # type: ignore[arg-type]
    parser.add_argument("--drop", **names, default=[], help="variables not to publish")  # type: ignore[arg-type]
    parser.add_argument(
        "--table", nargs="+", action="append", default=[], metavar="VARIABLE", help="a table to publish"
    )
    parser.add_argument("--tables-only", action="store_true", help="publish the tables and no records")
    parser.add_argument("--no-persons", action="store_true", help="do not publish the linked records")
    parser.add_argument(
        "--untouched",
        choices=("publish", "drop", "refuse"),
        default="publish",
        help="what becomes of vacant units and group quarters, which are never swapped",
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="the packet to write; must not exist")
    parser.add_argument("--key", metavar="FILE", help="the key file (default: DIR.key beside the packet)")
    parser.add_argument("--promise", action="store_true", help="print the specification and stop")
    add_engine_arguments(parser)
    parser.add_argument("--json", action="store_true", help="one JSON document")


def run(arguments: argparse.Namespace) -> int:
    """State the promise, swap, and leave a packet."""
    mechanism = PermutationSwapping(
        match=arguments.match,
        swap=arguments.swap,
        rate=arguments.rate,
        resolution=arguments.resolution,
        hold=arguments.hold,
        drop=arguments.drop,
        tables=arguments.table,
        microdata=not arguments.tables_only,
        carry=not arguments.no_persons,
        untouched=arguments.untouched,
    )
    if not arguments.promise:
        _require_room(arguments.out)
        mechanism.refuse_degenerate()
    with chosen_engine(arguments) as engine:
        census = engine.read(arguments.census)
        mechanism.roles(census)
        if arguments.promise:
            return _promise(stated(mechanism, census, engine), json=arguments.json)
        key = key_for(arguments.out, arguments.key)
        work = arguments.out.with_name(arguments.out.name + ".work")
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        try:
            with bars(quiet=arguments.json) as progress:
                release = mechanism.release(census, key=key, engine=engine, out=work, progress=progress)
            save(release, arguments.out, engine=engine.name)
        finally:
            shutil.rmtree(work, ignore_errors=True)
    if arguments.json:
        print_json(
            {
                "packet": str(arguments.out),
                "private": key.private,
                "specification": str(release.specification),
            }
        )
        return 0
    told = console()
    told.print(str(release.specification))
    for line in (*release.specification.untouched, *release.specification.notes, *release.notes):
        told.print(f"note: {line}")
    for check in release.checks:
        told.print(f"kept: {check.invariant} ({check.numbers:,} numbers)")
    told.print(f"packet: {arguments.out}")
    return 0


def _require_room(out: Path | None) -> None:
    if out is None:
        raise InputError(
            "there is no place for the packet", fix="--out packet/, or --promise to see only the promise"
        )
    if out.exists():
        raise InputError(
            f"{out.name} exists already", why="a packet is never overwritten", fix="choose another --out"
        )


def _promise(promise: Specification, *, json: bool) -> int:
    if json:
        print_json({"specification": str(promise), "epsilon": promise.budget.exact})
    else:
        console().print(Card(promise).text())
    return 0
