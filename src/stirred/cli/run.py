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
    packet, _ = release_plan(plan, Path(arguments.out), arguments, internal=not arguments.public_only)
    report = str(packet.public / "report.html")
    if arguments.json:
        private = packet.receipt()["private"]
        print_json({"packet": str(packet.folder), "report": report, "private": private})
        return 0
    console().print(f"packet: {packet.folder}\nopen {report}")
    return 0


def release_plan(
    plan: "Plan", out: Path, arguments: argparse.Namespace, *, internal: bool = True, noiseless: bool = False
) -> "tuple[Packet, ReadyPlan]":
    """Run a plan into a packet and return it with what was checked before; a noiseless run has a key for tests."""
    from stirred.publish import run as run_plan
    from stirred.publish.check import prepare
    from stirred.publish.run.part import hold_lock

    with open_engine(arguments, planned=plan.engine) as engine:
        # all that can be refused is refused before a key is made
        with show_progress(quiet=arguments.json, late=True) as shown:
            rehearsal = noiseless or is_rehearsal(out, arguments.key)
            ready = prepare(plan, out, engine, rehearsal=rehearsal, progress=shown)
        tell_about_records(ready.census)
        log = out.with_name(out.name + ".log")
        with hold_lock(out), clean_after_refusal(key_file(out, arguments.key), log):
            key = rehearsal_key() if noiseless else load_key(out, arguments.key)
            with show_progress(quiet=arguments.json) as shown, log_progress(log, shown) as progress:
                packet = run_plan(plan, out, key=key, progress=progress, internal=internal, prepared=ready)
    return packet, ready
