"""Hold packets against the truth: utility, audit, attack and universe.

  stirred assess packet/ --truth census.toml --out assessed/             internal: everything, with a report
  stirred assess swap/ topdown/ --truth census.toml --only utility attack --out assessed/
                                                                       several packets side by side
  stirred assess packet/ --truth census.toml --known sex age --secret race --out assessed/
                                                                       what the attacker knows and wants to learn
  stirred assess packet/ --truth census.toml --out metrics.csv           internal: metrics by table and size (or .xlsx)
  stirred assess packet/ --truth census.toml --publish --epsilon 1/10 --out accuracy/
                                                                       noisy totals that may be published

Metrics against the truth are a release. Without --publish they are internal. With --publish every table's total
absolute error gets noise worth ε, and spec.json in the folder states the budget of release and metrics together.
"""

import argparse
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from stirred.cli.options import load_key
from stirred.cli.output import console, print_json, show_progress, table
from stirred.errors import InputError

if TYPE_CHECKING:
    from stirred.census import Census
    from stirred.publish import Packet
    from stirred.publish.assessment import Doubt


DOUBTS: "tuple[Doubt, ...]" = ("utility", "audit", "attack", "universe")
FILES = (".csv", ".xlsx")  # the metrics of one packet alone


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("packet", nargs="+", help="the packets, or copies of their public parts")
    parser.add_argument(
        "--truth", required=True, metavar="CENSUS", help="census.toml of the confidential census"
    )
    parser.add_argument(
        "--out",
        required=True,
        metavar="DIR|FILE",
        help="a folder; or metrics.csv or .xlsx for the metrics of one packet alone",
    )
    parser.add_argument("--only", nargs="+", choices=DOUBTS, help="what to look into (default: all of it)")
    add_attack_arguments(parser)
    parser.add_argument("--publish", action="store_true", help="noisy totals that may be published")
    parser.add_argument("--epsilon", help='the price of each published table, an exact text such as "1/10"')
    parser.add_argument("--key", metavar="FILE", help="the key file (default: DIR.key)")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def add_attack_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what an attacker knows and wants, and how much effort attack and audit may cost."""
    how = parser.add_argument_group("attack and audit")
    how.add_argument("--record", default="", help="the records that are attacked (default: person)")
    how.add_argument("--area", default="", help="the area that the attacker knows (default: the smallest)")
    how.add_argument(
        "--known", nargs="+", metavar="VARIABLE", help="what else the attacker knows (default: sex, age)"
    )
    how.add_argument(
        "--secret", nargs="+", metavar="VARIABLE", help="what the attacker wants (default: race, hispanic)"
    )
    how.add_argument(
        "--tracts",
        default="",
        metavar="AREA",
        help="a larger area whose single years of age are joined (default: none)",
    )
    how.add_argument("--areas", type=int, default=200, help="how many areas are reconstructed (default: 200)")
    how.add_argument(
        "--bound", type=int, default=0, help="how far published counts are off at most (default: 0)"
    )
    how.add_argument("--runs", type=int, default=20_000, help="releases of each data set in an audit")
    how.add_argument(
        "--plans", metavar="DIR", help="the folder that files named in the packets' plans lie in"
    )
    how.add_argument("--seconds", type=float, default=60.0, help="the time that an audit may take")


def run(arguments: argparse.Namespace) -> int:
    """Write internal results, or noisy ones with their price."""
    from stirred.publish import Packet

    packets, out = [Packet(Path(folder)) for folder in arguments.packet], Path(arguments.out)
    alone = arguments.publish or out.suffix in FILES
    if alone and len(packets) > 1:
        raise InputError(
            "several packets are assessed into a folder",
            why="--publish and a file of metrics are about one packet",
            fix="--out DIR, or name one packet",
        )
    if alone and arguments.only not in (None, ["utility"]):
        raise InputError(
            f"--only {' '.join(arguments.only)} needs a folder",
            why="--publish and a file of metrics are about utility alone",
            fix="--out DIR",
        )
    if out.exists():
        raise InputError(
            f"{out.name} exists already", why="results are never overwritten", fix="choose another --out"
        )
    if arguments.publish:
        return _publish(arguments, packets[0], out)
    if alone:
        return _metrics(arguments, packets[0], out)
    return _assess(arguments, packets, out)


def truth_of(packet: "Packet", truth: "Census") -> "Census":
    """Return the census that a packet is about, without the records that were left out."""
    return truth.check(invalid="drop") if packet.receipt().get("invalid") == "drop" else truth


def settings_of(arguments: argparse.Namespace) -> dict[str, object]:
    """Return the settings of attack and audit as keyword arguments of publish."""
    return {
        "record_type": arguments.record,
        "area": arguments.area,
        "tracts": arguments.tracts,
        "known": None if arguments.known is None else tuple(arguments.known),
        "secret": None if arguments.secret is None else tuple(arguments.secret),
        "areas": arguments.areas,
        "bound": arguments.bound,
        "runs": arguments.runs,
        "seconds": arguments.seconds,
        "folder": None if arguments.plans is None else Path(arguments.plans),
    }


def _assess(arguments: argparse.Namespace, packets: "list[Packet]", out: Path) -> int:
    from stirred.census import read
    from stirred.publish.assessment import (
        DoubtSettings,
        assess_packet,
        choose_common_headline,
        distinct_names,
        write_assessments,
    )
    from stirred.report.risk import write_number

    truth, settings = read(arguments.truth), DoubtSettings(**settings_of(arguments))  # type: ignore[arg-type]
    names = distinct_names(packets)
    with show_progress(quiet=arguments.json) as progress:
        found = [
            assess_packet(
                packet,
                truth_of(packet, truth),
                only=arguments.only or DOUBTS,
                settings=settings,
                name=name,
                progress=progress,
            )
            for packet, name in zip(packets, names, strict=True)
        ]
    write_assessments(found, out, private=all(bool(packet.receipt().get("private")) for packet in packets))
    if arguments.json:
        packets_told = [one.as_json() for one in found]
        print_json({"internal": True, "folder": str(out), "packets": packets_told})
        return 0
    rows = []
    for one, risk in zip(found, choose_common_headline(found), strict=True):
        rows.append(
            [
                one.name,
                one.specification.shown_budget if one.specification.budget.is_finite else "∞",
                "–" if one.error is None else f"{one.error:,.3g}",
                "–"
                if risk is None or risk.value is None
                else f"{write_number(risk.value, risk.unit)}, {risk.name}",
                ", ".join(audit.verdict for audit in one.audits) or "–",
            ]
        )
    console().print(
        table("Held against the truth", ["packet", "budget", "mean absolute error", "risk", "audit"], rows)
    )
    console().print(f"wrote {out}: computed with the confidential data, do not publish")
    return 0


def _metrics(arguments: argparse.Namespace, packet: "Packet", out: Path) -> int:
    from stirred.census import read
    from stirred.publish.assessment import metrics_of, write_metrics

    metrics = metrics_of(packet, truth_of(packet, read(arguments.truth)))
    write_metrics(metrics, out)
    if arguments.json:
        print_json({"internal": True, "rows": metrics.height, "file": str(out)})
    else:
        console().print(f"wrote {out}: computed with the confidential data, do not publish")
    return 0


def _publish(arguments: argparse.Namespace, packet: "Packet", out: Path) -> int:
    from stirred.census import read
    from stirred.publish.assessment import price_metrics, publish_accuracy
    from stirred.publish.check import require_room

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
    truth = truth_of(packet, read(arguments.truth))
    require_room(out)
    price_metrics(packet, truth, epsilon)  # what can be refused is refused before a key is made
    found, whole = publish_accuracy(packet, truth, out, epsilon=epsilon, key=load_key(out, arguments.key))
    if arguments.json:
        print_json({"tables": [item.document() for item in found], "budget": float(whole.budget.upper(6))})
        return 0
    rows = [[a.table, f"{a.cells:,}", f"{max(a.total, 0) / a.cells:,.3f}"] for a in found]
    console().print(table("Accuracy, with noise", ["table", "cells", "mean absolute error (noisy)"], rows))
    console().print(f"the release with these figures: ε = {whole.budget} (rounded up)")
    return 0
