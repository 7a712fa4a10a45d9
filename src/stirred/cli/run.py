"""Run a plan: plan.toml → packet.

A packet has a public part (data, tables with uncertainty, spec.json, card, receipt, plan, script, report,
checksums) that may be copied anywhere, and an internal part (comparison with the truth) that may not.
An interrupted run is taken up where it stopped; the same key and census give the same bytes.

  stirred run plan.toml --out packet/
  stirred run plan.toml --out packet/ --key office.key     (made there if it does not exist)
  stirred run plan.toml --out packet/ --memory "8 GB"      (a census larger than that is worked through in parts)
  stirred run plan.toml --out packet/ --invalid drop       (leave out households that break the schema)
  stirred run plan.toml --out packet/ --language de        (card and public report in German; also fr, es)
  stirred run plan.toml --out packet/ --engine spark --master spark://host:7077
"""

import argparse
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from stirred.cli.options import (
    add_engine_arguments,
    add_invalid_argument,
    clean_after_refusal,
    is_rehearsal,
    key_file,
    load_key,
    open_engine,
    rehearsal_key,
    tell_about_records,
)
from stirred.cli.output import console, log_progress, print_json, show_progress
from stirred.cli.parser import add_language_argument

if TYPE_CHECKING:
    from stirred.publish import Packet, Plan
    from stirred.publish.check import ReadyPlan
    from stirred.spec import Specification


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("plan", help="the plan (see stirred plan new)")
    parser.add_argument("--out", required=True, metavar="DIR", help="the packet to write; must not exist")
    parser.add_argument("--key", metavar="FILE", help="the key file (default: DIR.key beside the packet)")
    parser.add_argument(
        "--public-only", action="store_true", help="make no internal comparison with the truth"
    )
    add_invalid_argument(parser, default="what the plan says")
    add_language_argument(parser, default="what the plan says, or en")
    add_engine_arguments(parser, default=None)
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(arguments: argparse.Namespace) -> int:
    """Run and say where the report is."""
    from stirred.publish import load
    from stirred.publish.plan.description import with_invalid, with_language

    plan = with_language(with_invalid(load(arguments.plan), arguments.invalid), arguments.language)
    packet, ready = release_plan(plan, Path(arguments.out), arguments, internal=not arguments.public_only)
    if arguments.json:
        print_json(describe_packet(packet, ready.specification))
        return 0
    console().print(f"packet: {packet.folder}\nopen {packet.public / 'report.html'}")
    return 0


def describe_packet(packet: "Packet", promise: "Specification") -> dict[str, object]:
    """Return what a program needs of a packet that was written: paths, promise, notes, guards and checks.

    All of it stands in the public part too, but for the folder of the internal part.
    """
    from stirred.publish.packet.checksums import INTERNAL

    public, stated = packet.public, packet.mechanisms()
    folders = ["data"] if len(stated) == 1 else [f"data-{number + 1}" for number in range(len(stated))]
    internal = packet.folder / INTERNAL
    return {
        "packet": str(packet.folder),
        "report": str(public / "report.html"),
        "private": packet.receipt()["private"],
        "specification": str(promise),
        **state_budget(promise),
        "files": {path.name: str(path) for path in sorted(public.iterdir()) if path.is_file()},
        "internal": str(internal) if internal.is_dir() else None,
        "data": [
            {"mechanism": entry["name"], "record_type": path.stem, **_list_formats(path)}
            for entry, folder in zip(stated, folders, strict=True)
            for path in sorted((public / folder).glob("*.parquet"))
        ],
        "tables": [
            {"name": name, "record_type": counted, **_list_formats(public / "tables" / f"{name}.parquet")}
            for name, counted in packet.tables().items()
        ],
        "untouched": list(promise.untouched),
        "notes": [*promise.notes, *packet.notes()],
        "guards": [{"mechanism": entry["name"], **guard} for entry in stated for guard in entry["guards"]],
        "checks": [
            {"mechanism": entry["name"], **check} for entry in stated for check in entry["invariants"]
        ],
    }


def state_budget(promise: "Specification") -> dict[str, str]:
    """Return the exact budget, under the name of its flavor."""
    from stirred.spec import NormalizedRenyi

    zcdp = isinstance(promise.output_premetric, NormalizedRenyi)
    return {"rho_squared": promise.rho_squared.exact} if zcdp else {"epsilon": promise.budget.exact}


def _list_formats(parquet: Path) -> dict[str, str]:
    """Return the paths of a released table by format."""
    copies = {kind: parquet.with_suffix(f".{kind}") for kind in ("parquet", "csv")}
    return {kind: str(path) for kind, path in copies.items() if path.exists()}


def release_plan(
    plan: "Plan", out: Path, arguments: argparse.Namespace, *, internal: bool = True, noiseless: bool = False
) -> "tuple[Packet, ReadyPlan]":
    """Run a plan into a packet and return it with what was checked before; a noiseless run has a key for tests."""
    from stirred.publish import run as run_plan
    from stirred.publish.check import prepare
    from stirred.publish.run.part import hold_lock

    show = partial(show_progress, quiet=arguments.json, kind=arguments.progress, began=time.monotonic())
    with open_engine(arguments, planned=plan.engine, accepted=plan.accept_open_network) as engine:
        # all that can be refused is refused before a key is made
        with show(late=True) as shown:
            rehearsal = noiseless or is_rehearsal(out, arguments.key)
            ready = prepare(plan, out, engine, rehearsal=rehearsal, progress=shown)
        tell_about_records(ready.census)
        log = out.with_name(out.name + ".log")
        with hold_lock(out), clean_after_refusal(key_file(out, arguments.key), log):
            key = rehearsal_key() if noiseless else load_key(out, arguments.key)
            with show() as shown, log_progress(log, shown) as progress:
                packet = run_plan(plan, out, key=key, progress=progress, internal=internal, prepared=ready)
    return packet, ready
