"""Compare a packet with the truth.

  stirred assess packet/ --truth census.toml --out metrics.csv           internal: metrics by table and size
  stirred assess packet/ --truth census.toml --out metrics.xlsx          the same as a workbook
  stirred assess packet/ --truth census.toml --publish --epsilon 1/10 --out accuracy/
                                                                       noisy totals that may be published

Metrics against the truth are a release. Without --publish they are internal. With --publish every table's total
absolute error gets noise worth ε, and spec.json in the folder states the budget of release and metrics together.
"""

import argparse
from fractions import Fraction
from pathlib import Path

from stirred.cli.terminal.keys import key_for
from stirred.cli.terminal.output import console, print_json, table
from stirred.errors import InputError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("packet", help="the packet, or a copy of its public part")
    parser.add_argument(
        "--truth", required=True, metavar="CENSUS", help="census.toml of the confidential census"
    )
    parser.add_argument(
        "--out", required=True, metavar="FILE|DIR", help="metrics.csv or .xlsx; a folder with --publish"
    )
    parser.add_argument("--publish", action="store_true", help="noisy totals that may be published")
    parser.add_argument("--epsilon", help='the price of each published table, an exact text such as "1/10"')
    parser.add_argument("--key", metavar="FILE", help="the key file (default: DIR.key)")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def run(arguments: argparse.Namespace) -> int:
    """Write internal metrics, or noisy ones with their price."""
    from stirred.census import read
    from stirred.publish import Packet

    packet, truth, out = Packet(Path(arguments.packet)), read(arguments.truth), Path(arguments.out)
    if packet.receipt().get("invalid") == "drop":
        truth = truth.checked(invalid="drop")  # the packet is about the records that were left
    if out.exists():
        raise InputError(
            f"{out.name} exists already", why="results are never overwritten", fix="choose another --out"
        )
    if arguments.publish:
        return _publish(arguments, out)
    from stirred.publish.compare.metrics import metrics_of, write_metrics

    metrics = metrics_of(packet, truth)
    write_metrics(metrics, out)
    if arguments.json:
        print_json({"internal": True, "rows": metrics.height, "file": str(out)})
    else:
        console().print(f"wrote {out}: computed with the confidential data, do not publish")
    return 0


def _publish(arguments: argparse.Namespace, out: Path) -> int:
    from stirred.census import read
    from stirred.publish import Packet
    from stirred.publish.before.refusals import require_room
    from stirred.publish.compare.accuracy import priced, publish_accuracy

    if not arguments.epsilon:
        raise InputError(
            "accuracy that is published has a price",
            why="--epsilon, the budget of each table, is not given",
            fix='--epsilon "1/10"',
        )
    try:
        epsilon = Fraction(arguments.epsilon)
    except (ValueError, ZeroDivisionError):
        raise InputError(
            "--epsilon is not an exact number",
            why="it is neither a fraction nor a decimal",
            fix='--epsilon "1/10"',
        ) from None
    packet, truth = Packet(Path(arguments.packet)), read(arguments.truth)
    if packet.receipt().get("invalid") == "drop":
        truth = truth.checked(invalid="drop")
    require_room(out)
    priced(packet, truth, epsilon)  # what can be refused is refused before a key is made
    found, whole = publish_accuracy(packet, truth, out, epsilon=epsilon, key=key_for(out, arguments.key))
    if arguments.json:
        print_json({"tables": [item.document() for item in found], "budget": float(whole.budget.upper(6))})
        return 0
    rows = [[a.table, f"{a.cells:,}", f"{max(a.total, 0) / a.cells:,.3f}"] for a in found]
    console().print(table("Accuracy, with noise", ["table", "cells", "mean absolute error (noisy)"], rows))
    console().print(f"the release with these figures: ε = {whole.budget} (rounded up)")
    return 0
