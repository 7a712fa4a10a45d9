"""One mechanism without a plan file: its flags are its settings, its packet is written at once or not at all.

  stirred NAME census.toml … --promise          what would be promised; nothing is released
  stirred NAME census.toml … --out packet/      the packet: records, tables, specification, card, receipt, report

An interrupted run is taken up by the same command and gives the same packet. The key stays outside the packet: it is the
noise. Keep it as you keep the census, or destroy it.
"""

import argparse
import inspect
import shutil
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from stirred.cli.terminal.engines import add_engine_arguments, chosen_engine
from stirred.cli.terminal.flags import add_flags, settings
from stirred.cli.terminal.keys import key_for
from stirred.cli.terminal.output import console, print_json, table
from stirred.cli.terminal.progress import bars, logged
from stirred.errors import InputError
from stirred.mechanisms.exhibits import Listing
from stirred.mechanisms.registry import find
from stirred.spec import NormalizedRenyi, Specification
from stirred.spec.card import Card

if TYPE_CHECKING:
    from stirred.mechanisms.base import Mechanism, Release


def add_arguments(name: str, parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments: those of every mechanism, and the settings of this one."""
    kind = find(name)
    parser.description = f"{inspect.cleandoc(kind.Config.__doc__ or '')}\n\n{__doc__}"
    parser.add_argument("census", type=Path, help="census.toml, or the folder it lies in")
    parser.add_argument("--out", type=Path, metavar="DIR", help="the packet to write; must not exist")
    parser.add_argument("--key", metavar="FILE", help="the key file (default: DIR.key beside the packet)")
    parser.add_argument(
        "--promise", "--check", action="store_true", help="print what would be promised and stop"
    )
    add_flags(parser, kind.Config)
    add_engine_arguments(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.set_defaults(run=partial(run, name))


def run(name: str, arguments: argparse.Namespace) -> int:
    """State the promise, run, and leave a sealed packet."""
    kind = find(name)
    mechanism = kind.of(settings(arguments, kind.Config))
    if not arguments.promise:
        _require_room(arguments.out)
    with chosen_engine(arguments) as engine:
        census = engine.read(arguments.census)
        if arguments.promise:
            return _promise(mechanism, mechanism.specification(census, engine=engine), json=arguments.json)
        mechanism.refuse(census, engine)
        key, out = key_for(arguments.out, arguments.key), arguments.out
        work = out.with_name(out.name + ".work")
        shutil.rmtree(work / "data", ignore_errors=True)
        (work / "data").mkdir(parents=True)
        try:
            with bars(quiet=arguments.json) as bar, logged(out.with_name(out.name + ".log"), bar) as progress:
                release = mechanism.release(
                    census, key=key, engine=engine, out=work / "data", state=work / "state", progress=progress
                )
            _save(release, mechanism, out, work / "data", engine.name)
            shutil.rmtree(work)
        finally:  # what the mechanism finished stays, for the same command to take up
            shutil.rmtree(work / "data", ignore_errors=True)
            if work.exists() and not any(work.iterdir()):
                work.rmdir()
    if arguments.json:
        print_json(
            {"packet": str(out), "private": release.private, "specification": str(release.specification)}
        )
        return 0
    told = console()
    told.print(str(release.specification))
    for line in (*release.specification.untouched, *release.specification.notes, *release.notes):
        told.print(f"note: {line}")
    for check in release.checks:
        told.print(f"kept: {check.invariant} ({check.numbers:,} numbers)")
    told.print(f"packet: {out}")
    return 0


def _save(release: "Release", mechanism: "Mechanism", out: Path, made: Path, engine: str) -> None:
    from stirred.publish import save

    save(release, out, engine=engine, mechanism=mechanism, made=made)


def _require_room(out: Path | None) -> None:
    if out is None:
        raise InputError(
            "there is no place for the packet",
            why="--out is not given",
            fix="--out packet/, or --promise to see only the promise",
        )
    if out.exists():
        raise InputError(
            f"{out.name} exists already", why="a packet is never overwritten", fix="choose another --out"
        )


def _promise(mechanism: "Mechanism", promise: Specification, *, json: bool) -> int:
    if json:
        zcdp = isinstance(promise.output_premetric, NormalizedRenyi)
        spent = {"rho_squared": promise.rho_squared.exact} if zcdp else {"epsilon": promise.budget.exact}
        notes = {"notes": list(promise.notes)}
        print_json({"specification": str(promise)} | spent | notes | dict(mechanism.details()))
        return 0
    shown = console()
    shown.print(Card(promise).text())
    for exhibit in mechanism.exhibits(None):
        for part in exhibit.parts:
            if isinstance(part, Listing):
                rows = [[str(value) for value in row] for row in part.rows]
                shown.print(table(f"{exhibit.title}: {part.caption}", list(part.columns), rows))
    return 0
